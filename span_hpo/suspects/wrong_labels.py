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

With several classes, each one forms a pair with all others together. Either it has rates of its
own, or all labels are exchanged at one rate ``rho`` and evenly among the other k - 1 classes, so
that ``rho_1 = rho / (k - 1)`` and ``rho_2 = rho`` in every pair. The second model has one rate to
learn from all rows. The two are averaged in proportion to their evidence, which is halved, because
an exchanged label counts in the pairs of two classes.

References
----------
Northcutt, Jiang and Chuang, "Confident learning: estimating uncertainty in dataset labels", 2021,
for the model of class-conditional noise and the joint distribution of given and true labels. Their
counts above class-conditional thresholds take classes that overlap for wrong labels.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logsumexp

from span_hpo.runtime import BoolArray, FloatArray, IndexArray, rows_of

_LISTED_ABOVE = 0.5  # probability of a wrong label above which a row is listed
# Rates of exchanged labels that are compared. Half of the prior belongs to the rate 0, and the
# other half is spread evenly over all rates up to 0.45.
_RATES = np.array([0.0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.22, 0.3, 0.4])
_WIDTHS = np.array([0.0, 0.02, 0.025, 0.035, 0.045, 0.06, 0.075, 0.09, 0.1])
_NO_ERRORS = 0.5  # prior probability that no label of a class is exchanged
_PRIOR = np.where(_RATES == 0, _NO_ERRORS, (1 - _NO_ERRORS) * _WIDTHS / _WIDTHS.sum())
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
    all others together, with rates of its own and with one rate for all classes.

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
    if scores.shape[2] == 2:
        probability[some], _ = _exchanged(codes == 1, scores[:, :, 1], weight)
        return probability
    (own, own_evidence), (common, common_evidence) = (
        rates(codes, scores, weight) for rates in (_at_own_rates, _at_one_rate)
    )
    share = expit(common_evidence - own_evidence)
    probability[some] = share * common + (1 - share) * own
    return probability


def listed(probability: FloatArray) -> IndexArray:
    """Return the rows whose labels are more probably wrong than right, the most probable first."""
    rows = rows_of(probability > _LISTED_ABOVE)
    order: IndexArray = rows[np.argsort(-probability[rows], kind="stable")]
    return order


def _at_own_rates(
    codes: IndexArray, scores: FloatArray, weight: FloatArray
) -> tuple[FloatArray, float]:
    """Return the probability for each row if every class has its own rates, and the evidence."""
    probability, evidence = np.zeros(len(codes)), 0.0
    for code in np.unique(codes):
        own = codes == code
        found, of_class = _exchanged(own, scores[:, :, code], weight)
        probability[own] = found[own]
        evidence += of_class / 2
    return probability, evidence


def _at_one_rate(
    codes: IndexArray, scores: FloatArray, weight: FloatArray
) -> tuple[FloatArray, float]:
    """Return the probability for each row if all labels have one rate, and the evidence."""
    rho_1, rho_2 = _RATES / (scores.shape[2] - 1), _RATES
    found, evidence = [], []
    for of_width in scores:
        curves = {
            code: _curve(codes == code, of_width[:, code], weight, rho_1, rho_2)
            for code in np.unique(codes)
        }
        joint = np.log(_PRIOR) + sum(curve.likelihood for curve in curves.values()) / 2
        log_evidence = float(logsumexp(joint))
        wrong = np.zeros(len(codes))
        for code, curve in curves.items():
            own = codes == code
            wrong[own] = curve.wrong(own, np.exp(joint - log_evidence), rho_1, rho_2)[own]
        found.append(wrong)
        evidence.append(log_evidence)
    return _averaged(found, evidence)


def _exchanged(
    is_second: BoolArray, scores: FloatArray, weight: FloatArray
) -> tuple[FloatArray, float]:
    """Return the probability that each label of a pair is exchanged, and the log-evidence."""
    rho_1, rho_2 = (rates.ravel() for rates in np.meshgrid(_RATES, _RATES, indexing="ij"))
    prior = np.log(np.outer(_PRIOR, _PRIOR).ravel())
    found, evidence = [], []
    for g in scores:
        curve = _curve(is_second, g, weight, rho_1, rho_2)
        joint = curve.likelihood + prior
        log_evidence = float(logsumexp(joint))
        found.append(curve.wrong(is_second, np.exp(joint - log_evidence), rho_1, rho_2))
        evidence.append(log_evidence)
    return _averaged(found, evidence)


def _averaged(found: list[FloatArray], evidence: list[float]) -> tuple[FloatArray, float]:
    """Return the mean over scores of all widths in proportion to their evidence, and its log."""
    total = float(logsumexp(evidence))
    mean: FloatArray = np.exp(np.array(evidence) - total) @ np.array(found)
    return mean, total - float(np.log(len(evidence)))


@dataclass(frozen=True, eq=False)
class _Curve:
    """The most likely curves ``eta`` of one score, for each of some pairs of rates.

    Attributes
    ----------
    g
        Score of each row, with median 0 and deviation 1, shape (l,).
    slope, offset, likelihood
        Parameters of the curves and their log-likelihood, each with one entry for a pair of rates.
    """

    g: FloatArray
    slope: FloatArray
    offset: FloatArray
    likelihood: FloatArray

    def wrong(
        self, is_second: BoolArray, share: FloatArray, rho_1: FloatArray, rho_2: FloatArray
    ) -> FloatArray:
        """Return the probability that each label is wrong, averaged over the rates."""
        wrong = np.zeros(len(self.g))
        for p, a, b, r_1, r_2 in zip(share, self.slope, self.offset, rho_1, rho_2, strict=True):
            if p > 0 and (r_1 or r_2):
                wrong += p * _wrong(is_second, a * self.g + b, r_1, r_2)
        return wrong


def _curve(
    is_second: BoolArray, g: FloatArray, weight: FloatArray, rho_1: FloatArray, rho_2: FloatArray
) -> _Curve:
    """Return the curves of one score."""
    g = (g - np.median(g)) / (float(g.std()) or 1.0)
    return _Curve(g, *_fitted(*_binned(is_second, g, weight), rho_1, rho_2))


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
