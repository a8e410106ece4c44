"""The probability that the label of a row is wrong.

The true label of a row has a probability that depends on the row, and labels of class a are
exchanged for class b with a probability that depends on the two classes only. From the rows alone,
exchanged labels differ from classes that overlap in one respect: they are found far inside the
other class as often as at its border. So a score must go on changing beyond the border, as the
ratio of two densities does.

For a pair of classes with the score g, which is larger for the second one,

- ``eta = sigma(a g + b)`` is the probability that the true class is the second of the two;
- ``rho_1`` and ``rho_2`` are the probabilities that labels of the first and the second class are
  exchanged;
- ``P(second label) = rho_1 (1 - eta) + (1 - rho_2) eta``.

A label of the second class is then wrong with the probability
``rho_1 (1 - eta) / P(second label)``, and one of the first class with
``rho_2 eta / P(first label)``. Both are averaged over the rates ``rho`` and over scores of several
widths in proportion to their likelihood, so that with few rows nothing is suspected.

References
----------
Northcutt, Jiang and Chuang, "Confident learning: estimating uncertainty in dataset labels", 2021,
for the model of class-conditional noise and the joint distribution of given and true labels. Their
counts above class-conditional thresholds take classes that overlap for wrong labels.
"""

import numpy as np
from scipy.special import expit, logsumexp

from span_hpo.runtime import BoolArray, FloatArray, IndexArray, rows_of

_LISTED_ABOVE = 0.5  # probability of a wrong label above which a row is listed
# Rates of exchanged labels that are compared. Half of the prior belongs to the rate 0, and the
# other half is spread evenly over all rates up to 0.45.
_RATES = np.array([0.0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.22, 0.3, 0.4])
_WIDTHS = np.array([0.0, 0.02, 0.025, 0.035, 0.045, 0.06, 0.075, 0.09, 0.1])
_NO_ERRORS = 0.5  # prior probability that no label of a class is exchanged
_BINS = 64  # largest number of different scores to which the curves are fitted
_STEPS = 50  # largest number of steps of the fit
_HALVINGS = 8  # how often a step is halved that does not raise the likelihood
_CLIMB = 1e-2  # expected gain of the log-likelihood below which the fit ends
_RIDGE = 1e-3  # precision of the normal prior of slope and offset, for scores of unit variance


def wrong_label_probabilities(
    codes: IndexArray, scores: FloatArray, weight: FloatArray
) -> FloatArray:
    """Return the probability that the label of each row is wrong, shape (l,).

    Two classes are one pair. Otherwise, rows of a class are judged by the pair of this class and
    all others together.

    Parameters
    ----------
    codes
        Number of the class of each row, shape (l,).
    scores
        Scores of each row, larger the more the other rows speak for the class, shape
        (widths, l, classes).
    weight
        Weight of each row in the likelihood, shape (l,). A row without weight is not suspected.
    """
    probability = np.zeros(len(codes))
    some = rows_of(weight > 0)
    codes, scores, weight = codes[some], scores[:, some], weight[some]
    n_classes = scores.shape[2]
    if n_classes == 2:
        probability[some] = _exchanged(codes == 1, scores[:, :, 1], weight)
        return probability
    for code in range(n_classes):
        own = codes == code
        if own.any():
            probability[some[own]] = _exchanged(own, scores[:, :, code], weight)[own]
    return probability


def listed(probability: FloatArray) -> IndexArray:
    """Return the rows whose labels are more probably wrong than right, the most probable first."""
    rows = rows_of(probability > _LISTED_ABOVE)
    order: IndexArray = rows[np.argsort(-probability[rows], kind="stable")]
    return order


def _exchanged(is_second: BoolArray, scores: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the probability that the label of each row of a pair of classes is exchanged."""
    found = [_exchanged_by(is_second, g, weight) for g in scores]
    evidence = np.array([log_evidence for _, log_evidence in found])
    share = np.exp(evidence - logsumexp(evidence))
    wrong: FloatArray = share @ np.array([probability for probability, _ in found])
    return wrong


def _exchanged_by(
    is_second: BoolArray, g: FloatArray, weight: FloatArray
) -> tuple[FloatArray, float]:
    """Return the probability according to one score, and the log-evidence of the score."""
    g = (g - np.median(g)) / (float(g.std()) or 1.0)
    rho_1, rho_2 = (rates.ravel() for rates in np.meshgrid(_RATES, _RATES, indexing="ij"))
    centres, counts = _binned(is_second, g, weight)
    slope, offset, likelihood = _fitted(centres, counts, rho_1, rho_2)
    share = np.where(_RATES == 0, _NO_ERRORS, (1 - _NO_ERRORS) * _WIDTHS / _WIDTHS.sum())
    joint = likelihood + np.log(np.outer(share, share).ravel())
    log_evidence = float(logsumexp(joint))
    wrong = np.zeros(len(g))
    for p, a, b, r_1, r_2 in zip(
        np.exp(joint - log_evidence), slope, offset, rho_1, rho_2, strict=True
    ):
        if p > 0 and (r_1 or r_2):
            wrong += p * _wrong(is_second, a * g + b, r_1, r_2)
    return wrong, log_evidence


def _wrong(is_second: BoolArray, odds: FloatArray, rho_1: float, rho_2: float) -> FloatArray:
    """Return the probability that each label is wrong, at these log-odds of the second class.

    The ratio of a wrong to a right label is ``rho_1 (1 - eta) / ((1 - rho_2) eta)`` for the second
    class, and ``rho_2 eta / ((1 - rho_1) (1 - eta))`` for the first.
    """
    with np.errstate(divide="ignore"):
        wrong_second = np.log(rho_1) - np.log1p(-rho_2) - odds
        wrong_first = np.log(rho_2) - np.log1p(-rho_1) + odds
    probability: FloatArray = expit(np.where(is_second, wrong_second, wrong_first))
    return probability


def _binned(
    is_second: BoolArray, g: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return mean scores of bins with about as many rows, and the weights of both classes there."""
    order = np.argsort(g, kind="stable")
    bins = np.empty(len(g), dtype=int)
    bins[order] = np.arange(len(g)) * min(_BINS, len(g)) // len(g)
    weight = weight / weight.mean()
    centres = np.bincount(bins, g) / np.bincount(bins)
    counts = [np.bincount(bins, weight * labels) for labels in (~is_second, is_second)]
    return centres, np.array(counts)


def _fitted(
    g: FloatArray, counts: FloatArray, rho_1: FloatArray, rho_2: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the most likely slope and offset, and the log-likelihood, for each pair of rates.

    All pairs of rates are fitted at once by Fisher scoring with a line search.
    """
    low, high = rho_1[:, None], 1 - rho_2[:, None]
    theta, tiny = np.zeros((len(rho_1), 2)), np.finfo(float).tiny

    def likelihood(theta: FloatArray) -> FloatArray:
        odds = theta[:, :1] * g + theta[:, 1:]
        first = 1 - high + (high - low) * expit(-odds)
        second = low + (high - low) * expit(odds)
        first, second = (np.log(np.maximum(P, tiny)) for P in (first, second))
        total: FloatArray = first @ counts[0] + second @ counts[1]
        total -= _RIDGE * (theta**2).sum(axis=1) / 2
        return total

    value = likelihood(theta)
    for _ in range(_STEPS):
        eta = expit(theta[:, :1] * g + theta[:, 1:])
        P = low + (high - low) * eta
        change = (high - low) * eta * (1 - eta)
        size = np.maximum(P * (1 - P), tiny)
        pull = (counts[1] * (1 - P) - counts[0] * P) * change / size
        curve = counts.sum(axis=0) * change**2 / size
        gradient = np.column_stack([pull @ g, pull.sum(axis=1)]) - _RIDGE * theta
        information = np.empty((len(theta), 2, 2))
        information[:, 0, 0] = curve @ g**2 + _RIDGE
        information[:, 0, 1] = information[:, 1, 0] = curve @ g
        information[:, 1, 1] = curve.sum(axis=1) + _RIDGE
        step = np.linalg.solve(information, gradient[:, :, None])[:, :, 0]
        moving = (gradient * step).sum(axis=1) > _CLIMB
        if not moving.any():
            break
        step[~moving] = 0.0
        for _ in range(_HALVINGS):
            moved = theta + step
            moved[:, 0] = np.maximum(moved[:, 0], 0.0)  # a score does not speak for the other class
            reached = likelihood(moved)
            better = moving & (reached > value)
            theta[better], value[better], step[better] = moved[better], reached[better], 0.0
            moving &= ~better
            if not moving.any():
                break
            step /= 2
        if moving.all():  # no step makes progress beyond rounding
            break
    return theta[:, 0], theta[:, 1], value
