"""Results that several threads share."""

import threading

import pytest

from span_hpo.runtime.memo import Memo, key_of


def test_each_result_is_computed_once():
    """A second caller gets the first one's result, another key another."""
    results, calls = Memo(), []
    for key in (1, 2, 1, 2):
        assert results.get(key, lambda key=key: calls.append(key) or 10 * key) == 10 * key
    assert calls == [1, 2]
    assert results.holds(1)
    assert not results.holds(3)


def test_only_the_latest_are_kept():
    """With `most` the older results are forgotten, also one that is wanted again."""
    results, calls = Memo(most=1), []
    for key in (1, 1, 2, 1):
        results.get(key, lambda key=key: calls.append(key))
    assert calls == [1, 2, 1]
    assert not results.holds(2)


def test_threads_wait_for_the_first():
    """While one computes, others with the same key wait; with another key they do not."""
    results, begun, go, calls, found = Memo(), threading.Event(), threading.Event(), [], []

    def slow():
        calls.append(1)
        begun.set()
        go.wait(10)
        return "done"

    threads = [
        threading.Thread(target=lambda: found.append(results.get("key", slow))) for _ in range(3)
    ]
    threads[0].start()
    assert begun.wait(10)
    for thread in threads[1:]:
        thread.start()
    assert results.get("other", lambda: 5) == 5
    go.set()
    for thread in threads:
        thread.join(10)
    assert found == ["done"] * 3
    assert calls == [1]


def test_failure_is_tried_again():
    """Whatever ends a computation, also Ctrl-C, the next caller computes anew."""
    results = Memo()
    for error in (ZeroDivisionError, KeyboardInterrupt):

        def fail(error=error):
            raise error

        with pytest.raises(error):
            results.get("key", fail)
    assert results.get("key", lambda: 7) == 7


def test_keys_of_values():
    """Equal values have equal keys; 1 and True, or what cannot be pickled, do not."""
    assert key_of({"a": 1.0, "b": [1, 2]}) == key_of({"a": 1.0, "b": [1, 2]})
    assert len({key_of({"a": value}) for value in (1, True, 1.0, "1", None)}) == 5
    assert key_of({"a": lambda: 1}) != key_of({"a": lambda: 1})
