"""The greedy selection of members, against a plain loop, and what an ensemble decides."""

import numpy as np
import pytest
from scipy.special import logit
from sklearn.metrics import log_loss

from span_hpo.selection import (
    class_errors,
    decision_values,
    greedy_counts,
    mean_probabilities,
    members_of,
    own_probabilities,
)


def candidates(seed, n_candidates=8, n_rows=25, n_classes=2):
    """Return probabilities of many candidates, shape (T, n, k), the classes, and weights."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n_rows) % n_classes
    logs = rng.normal(size=(n_candidates, n_rows, n_classes))
    logs[:, np.arange(n_rows), codes] += rng.uniform(0, 2, (n_candidates, 1))
    found = np.exp(logs) / np.exp(logs).sum(axis=2, keepdims=True)
    return found, codes, np.exp(rng.uniform(-3, 3, n_rows))


def chosen_by_a_loop(found, codes, weight, n_steps):
    """Return the counts of greedy steps, with scikit-learn's log loss of each mean."""
    bag = []
    for _ in range(n_steps):
        losses = [
            log_loss(codes, np.mean(found[[*bag, one]], axis=0), sample_weight=weight)
            for one in range(len(found))
        ]
        bag.append(int(np.argmin(losses)))
    return np.bincount(bag, minlength=len(found))


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_steps_are_greedy(n_classes):
    """Each step takes the candidate with the least log loss of the mean, as a loop does."""
    for seed in range(5):
        found, codes, weight = candidates(seed, n_classes=n_classes)
        own = own_probabilities(found, codes)
        for n_steps in (1, 4, 10):
            counts = greedy_counts(own, weight, n_steps)
            assert counts.sum() == n_steps
            expected = chosen_by_a_loop(found, codes, weight, n_steps)
            np.testing.assert_array_equal(counts, expected)


def test_the_mean_is_better_than_the_best_candidate():
    """The log loss of the mean is at most that of the best candidate on the same rows."""
    for seed in range(20):
        found, codes, weight = candidates(seed, n_candidates=20)
        members, weights = members_of(greedy_counts(own_probabilities(found, codes), weight))
        mean = mean_probabilities(found[members], weights)
        losses = [log_loss(codes, one, sample_weight=weight) for one in found]
        assert log_loss(codes, mean, sample_weight=weight) <= min(losses) + 1e-12
        assert weights.sum() == pytest.approx(1)
        assert (weights > 0).all()


def test_equal_candidates_are_the_first_one():
    """Copies of a candidate, and copies up to rounding, share no weight with it."""
    found, codes, weight = candidates(3)
    own = own_probabilities(found, codes)
    copies = np.concatenate([own, own, own * (1 + 1e-16), own * (1 - 1e-15)])
    counts = greedy_counts(copies, weight)
    np.testing.assert_array_equal(counts[: len(own)], greedy_counts(own, weight))


def test_a_certain_mistake_is_survived():
    """A candidate that gives a row's class the probability 0 has a large but finite loss."""
    own = np.array([[0.0, 1.0, 1.0], [0.6, 0.6, 0.6]])
    np.testing.assert_array_equal(greedy_counts(own, np.ones(3), 1), [0, 1])
    assert greedy_counts(own, np.ones(3)).sum() == 10
    assert greedy_counts(np.zeros((2, 3)), np.ones(3)).tolist() == [10, 0]


def test_decisions_of_two_and_of_more_classes():
    """Log-odds of the second class, and logarithms of all; certain rows stay finite."""
    p = np.array([[0.25, 0.75], [1.0, 0.0], [0.0, 1.0]])
    values = decision_values(p)
    assert values[0] == pytest.approx(logit(0.75))
    assert np.isfinite(values).all()
    assert (values[1] < 0 < values[2]).all()
    three = np.array([[0.2, 0.5, 0.3]])
    np.testing.assert_allclose(decision_values(three), np.log(three))


def test_errors_of_classes():
    """A row is wrong if its class is not more probable than each of the others."""
    p = np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2], [0.1, 0.2, 0.7]])
    assert class_errors(p, np.array([1, 1, 2])).tolist() == [False, True, False]
    assert class_errors(p, np.array([0, 0, 0])).tolist() == [True, True, True]
