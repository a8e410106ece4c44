"""Which models of a search are averaged, chosen by their leave-one-out probabilities.

References
----------
Caruana, Niculescu-Mizil, Crew and Ksikes, "Ensemble selection from libraries of models", 2004.
"""

import numpy as np

from span_hpo.runtime import Array, FloatArray, IndexArray, rows_of, weighted_mean

MOST_CANDIDATES = 30  # number of the best trials that may become members
N_STEPS = 10
_LEAST = 1e-15  # probability that stands for 0 in logarithms
_SAME = 1e-12  # relative difference of two losses that is rounding


def own_probabilities(probabilities: FloatArray, codes: Array) -> FloatArray:
    """Return the probability that each row's own class has, shape (..., n).

    Parameters
    ----------
    probabilities
        Probabilities of all classes, shape (..., n, k).
    codes
        Number of each row's class, shape (n,).
    """
    own: FloatArray = np.take_along_axis(
        probabilities, np.broadcast_to(codes, probabilities.shape[:-1])[..., None], axis=-1
    )[..., 0]
    return own


def surprise(own: FloatArray) -> FloatArray:
    """Return minus the logarithm of the probabilities, whose mean is the log loss."""
    values: FloatArray = -np.log(np.maximum(own, _LEAST))
    return values


def greedy_counts(own: FloatArray, weight: FloatArray, n_steps: int = N_STEPS) -> IndexArray:
    """Return how often each candidate is chosen into the mean that has the least log loss.

    Each step adds the candidate with which the mean probability of the rows' own classes has the
    least log loss; the first one is the best candidate by itself. A candidate may be chosen several
    times, which gives it more weight. Of equal losses, the first one counts.

    Parameters
    ----------
    own
        Leave-one-out probability of each row's own class by each candidate, shape (T, n).
    weight
        Weight of each row, shape (n,).
    n_steps
        Number of steps, which is the sum of the counts.
    """
    counts = np.zeros(len(own), dtype=int)
    total = np.zeros(own.shape[1])
    for step in range(1, n_steps + 1):
        losses = surprise((total + own) / step) @ weight
        chosen = first_least(losses)
        counts[chosen] += 1
        total += own[chosen]
    return counts


def first_least(losses: FloatArray) -> IndexArray:
    """Return the place of the first loss along the last axis that is least up to rounding."""
    least = losses.min(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        place: IndexArray = (losses <= least + _SAME * np.abs(least)).argmax(axis=-1)
    return place


def mean_probabilities(probabilities: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted mean of the members' probabilities, shape (n, k).

    Parameters
    ----------
    probabilities
        Probabilities of all classes by each member, shape (members, n, k).
    weights
        Weight of each member; they add up to 1.
    """
    mean: FloatArray = np.tensordot(weights, probabilities, axes=1)
    return mean


def decision_values(probabilities: FloatArray) -> FloatArray:
    """Return what an ensemble decides by.

    For two classes these are the log-odds of the second one, shape (n,), and for more classes the
    logarithms of the probabilities, shape (n, k).
    """
    logs = np.log(np.maximum(probabilities, np.finfo(float).tiny))
    values: FloatArray = logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs
    return values


def class_errors(probabilities: FloatArray, codes: Array) -> Array:
    """Return whether each row's own class is not more probable than all others, shape (n,)."""
    own = own_probabilities(probabilities, codes)
    others = probabilities.copy()
    np.put_along_axis(others, codes[:, None], -1.0, axis=1)
    wrong: Array = own <= others.max(axis=1)
    return wrong


def log_loss_of(own: FloatArray, weight: FloatArray) -> float:
    """Return the log loss of the probabilities of the rows' own classes."""
    return weighted_mean(surprise(own), weight)


def members_of(counts: IndexArray) -> tuple[IndexArray, FloatArray]:
    """Return the candidates that were chosen, and their weights, which add up to 1."""
    chosen = rows_of(counts)
    return chosen, counts[chosen] / counts.sum()
