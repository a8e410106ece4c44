import numpy as np
import pytest

from benchmarks.harness.distributions import PROBLEMS, Problem, drawn_rows, drawn_with_share


@pytest.mark.parametrize("name", PROBLEMS)
def test_problems(name):
    """Both classes are drawn, training and test rows follow one distribution, and seeds decide."""
    found, again, other = (drawn_rows(name, split) for split in (0, 0, 1))
    assert len(found.X_train) == PROBLEMS[name].rows == len(found.y_train)
    assert len(found.X_test) == 10_000
    assert set(np.unique(found.y_train)) == {-1, 1}
    np.testing.assert_array_equal(found.X_train, again.X_train)
    np.testing.assert_array_equal(found.y_test, again.y_test)
    assert (found.X_train != other.X_train).any()
    share, expected = np.mean(found.y_train > 0), np.mean(found.y_test > 0)
    assert abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / len(found.y_train))


def test_labels_are_flipped(monkeypatch):
    """A share of the labels of a problem without noise is wrong, in training and in test rows."""

    def draw(rng, count):
        X = rng.normal(size=(count, 1))
        return X, X[:, 0] > 0

    monkeypatch.setitem(PROBLEMS, "halves", Problem(draw, 5000, flipped=0.2))
    found = drawn_rows("halves", 0)
    for X, y in ((found.X_train, found.y_train), (found.X_test, found.y_test)):
        assert np.mean((X[:, 0] > 0) != (y > 0)) == pytest.approx(0.2, abs=0.02)


def test_there_are_many_problems():
    """At least 20, with 60 to 400 training rows, some of them with flipped labels."""
    assert len(PROBLEMS) >= 20
    assert {problem.rows >= 60 and problem.rows <= 400 for problem in PROBLEMS.values()} == {True}
    assert sum(problem.flipped > 0 for problem in PROBLEMS.values()) >= 4


@pytest.mark.parametrize("name", ["gaussians 200", "ringnorm 300", "few of many 300"])
def test_the_share_of_a_class_can_be_chosen(name):
    """It is the same in training and test rows, and each class keeps its distribution."""
    found, again = (drawn_with_share(name, 400, 3, 0.05) for _ in range(2))
    assert (found.y_train > 0).sum() == 20
    assert (found.y_test > 0).sum() == 500
    np.testing.assert_array_equal(found.X_train, again.X_train)
    plain = drawn_rows(name, 0)
    for label in (-1, 1):
        one, two = found.X_test[found.y_test == label], plain.X_test[plain.y_test == label]
        error = np.sqrt(one.var(axis=0) / len(one) + two.var(axis=0) / len(two))
        assert (np.abs(one.mean(axis=0) - two.mean(axis=0)) < 5 * error).all()
