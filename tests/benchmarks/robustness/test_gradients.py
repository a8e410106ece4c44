"""The comparison of gradients with central differences, and its committed figures."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.robustness import gradients
from tests.benchmarks.results import lines_of, rows_of

WANTED = 2e-5


def test_differences_are_those_of_a_known_function():
    """They are exact to nine digits, on both scales, and say how far they may be off."""
    params = {"a": 3.0, "b": -0.5}
    found, gap = gradients.differences(lambda p: np.exp(p["b"]) * p["a"] ** 2, params, ["a"])
    expected = {"a": 18 * np.exp(-0.5), "b": 9 * np.exp(-0.5)}
    assert found == {name: pytest.approx(slope, rel=1e-9) for name, slope in expected.items()}
    assert gap < 1e-8
    _, gap = gradients.differences(lambda p: abs(p["a"] - 3.0001), params, ["a"])
    assert gap > 0.1


@pytest.mark.parametrize("kernel", gradients.KERNELS)
def test_problems_follow_from_their_numbers(kernel):
    """A problem is the same each time, and searches what its kernel and weighting have."""
    one, other = (gradients.problem(kernel, "class*sigmoid", 3)[0] for _ in range(2))
    np.testing.assert_array_equal(one.data.X, other.data.X)
    np.testing.assert_array_equal(one.data.y, other.data.y)
    assert one.space == other.space
    rng = np.random.default_rng(0)
    point = gradients.random_point(one, rng)
    assert list(point) == list(one.space)
    assert one.value_and_gradient(point).loss == one(point)


def test_a_wrong_derivative_is_seen(monkeypatch):
    """An error of a hundredth in the derivative of a kernel is more than what is wanted."""
    point = {"kernel": "function", "weighting": "class", "number": 1}
    assert float(gradients.BENCHMARK.measure(point)["error"]) < WANTED
    own = gradients.KERNELS["function"]()
    wrong = replace(own, derivative=wrong_of(own.derivative))
    monkeypatch.setitem(gradients.KERNELS, "function", lambda: wrong)
    assert float(gradients.BENCHMARK.measure(point)["error"]) > WANTED


def wrong_of(slopes):
    """Return derivatives that are a hundredth too large."""

    def wrong(X, Z, weights, width):
        return {name: 1.01 * slope for name, slope in slopes(X, Z, weights, width).items()}

    return wrong


def test_committed_gradients_are_right():
    """All gradients of more than 500 problems, of every kernel and weighting, are as wanted."""
    rows = rows_of("gradients.csv")
    assert len(rows) >= 500
    for kernel in gradients.KERNELS:
        for weighting in gradients.WEIGHTINGS:
            own = rows_of("gradients.csv", kernel=kernel, weighting=weighting)
            assert len(own) == gradients.PROBLEMS
            assert {row["metric"] for row in own} == set(gradients.METRICS)
    assert {row["n_classes"] for row in rows} == {"2", "3"}
    assert sum(row["equal_rows"] == "True" for row in rows) > 100
    assert max(float(row["error"]) for row in rows) <= WANTED


def test_the_table_shows_the_largest_errors():
    """Each line has the largest error of its rows."""
    lines = lines_of(gradients.table())
    rows = rows_of("gradients.csv")
    assert float(lines["all"][-1]) == pytest.approx(max(float(r["error"]) for r in rows), rel=0.1)
    for kind, names in (("kernel", gradients.KERNELS), ("weighting", gradients.WEIGHTINGS)):
        for name in names:
            worst = max(float(row["error"]) for row in rows if row[kind] == name)
            assert float(lines[f"{kind} {name}"][-1]) == pytest.approx(worst, rel=0.1)
