"""The decision value at which the predictions of two classes switch.

A threshold t predicts the second class where ``f >= t``. It follows from a probability of the
second class by Platt's sigmoid, or it is the best one for leave-one-out values.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import logit

from span_hpo.calibration import PlattSigmoid
from span_hpo.metrics import Metric
from span_hpo.runtime import FloatArray, IndexArray, weighted_mean
from span_hpo.solver import is_wrong

_BEYOND = float(np.finfo(float).max)  # threshold that no decision value reaches
_LEAST = float(np.finfo(float).tiny)
_MOST_CUTS = 200  # largest number of thresholds at which a metric is computed as a whole
_MARGIN = 1.0  # distance from all values to a threshold beyond them
_SAME = 1e-12  # relative difference of two losses that is rounding

_Cells = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


def class_share(y: FloatArray, w: FloatArray) -> float:
    """Return the share of the second class in the weight of all rows.

    The balanced error is least where the second class is predicted if its probability is at least
    this share, because the errors of each class are divided by the share of the class.
    """
    return weighted_mean(y > 0, w)


def cost_probability(first: float, second: float) -> float:
    """Return the probability of the second class from which on it is cheaper to predict it.

    With the costs of missing a row of the first and of the second class, and their ratio
    ``c = second/first``, this is ``1/(1 + c)``.
    """
    return 1 / (1 + second / first)


def cost_loss(y: FloatArray, f: FloatArray, w: FloatArray, first: float, second: float) -> float:
    """Return the mean cost of a row, of which only those that are missed cost something."""
    return weighted_mean(np.where(y > 0, second, first) * is_wrong(y, f), w)


def shifted(f: FloatArray, threshold: float) -> FloatArray:
    """Return the values minus the threshold, with the least positive number instead of 0.

    A value of 0 would be an error for either class, but a value at the threshold is predicted to be
    of the second class.
    """
    values: FloatArray = f - threshold
    values[values == 0] = _LEAST
    return values


def threshold_at(sigmoid: PlattSigmoid, probability: float) -> float:
    """Return the decision value at which the second class reaches a probability.

    If decision values tell nothing (a slope of 0), the same class is predicted everywhere, and the
    threshold is the largest or the smallest number.
    """
    odds = float(logit(probability)) - sigmoid.offset
    if sigmoid.slope <= abs(odds) / _BEYOND:
        return _BEYOND if odds > 0 else -_BEYOND
    return odds / sigmoid.slope


def best_threshold(y: FloatArray, f: FloatArray, w: FloatArray, metric: Metric) -> float:
    """Return the threshold t with the least loss of ``f - t``.

    All thresholds in a gap between two neighbouring values predict the same. The middle of each gap
    is tried, or 0 in the gap that holds 0, and one threshold beyond either end. The metrics in
    `COUNTED` are computed for all gaps from running sums; others for 200 gaps at most, evenly
    spread over the sorted values. Equal losses are decided by the distance from 0.

    Parameters
    ----------
    y
        Labels, shape (l,), -1 or +1.
    f
        Leave-one-out decision values, shape (l,).
    w
        Weight of each row in the metric, shape (l,). Rows with weight 0 make no gaps.
    metric
        Metric that is minimised. The loss at the threshold is optimistic, because the threshold
        was searched on the same values.
    """
    y, f, w = y[w > 0], f[w > 0], w[w > 0]
    values, place = np.unique(f, return_inverse=True)
    cuts = _middles(values)
    count = COUNTED.get(metric.name) if not metric.own else None
    if count is not None:
        losses = count(*_cells(y, w, place, len(values)))
    else:
        cuts = _some(cuts)
        losses = np.array([metric.loss(y, shifted(f, cut), w) for cut in cuts.tolist()])
    least = losses.min()
    tied = losses <= least + _SAME * max(1.0, abs(least))
    return float(min(cuts[tied].tolist(), key=abs))


def _middles(values: FloatArray) -> FloatArray:
    """Return a threshold for each gap between sorted values, and one beyond either end."""
    ends = np.array([values[0] - _MARGIN]), np.array([values[-1] + _MARGIN])
    below, above = values[:-1], values[1:]
    middle = below + (above - below) / 2
    # The middle of neighbouring numbers may be rounded to the lower one, which it would not exceed.
    middle = np.where(middle > below, middle, above)
    cuts = np.concatenate([ends[0], middle, ends[1]])
    lower, upper = np.append(-np.inf, values), np.append(values, np.inf)
    cuts[(lower < 0) & (upper > 0)] = 0.0
    return cuts


def _some(cuts: FloatArray) -> FloatArray:
    """Return at most a few hundred thresholds, among them the outer ones and the one at 0."""
    if len(cuts) <= _MOST_CUTS:
        return cuts
    chosen = np.linspace(0, len(cuts) - 1, _MOST_CUTS).round().astype(int)
    some: FloatArray = cuts[np.union1d(chosen, np.abs(cuts).argmin())]
    return some


def _cells(y: FloatArray, w: FloatArray, place: IndexArray, n_values: int) -> _Cells:
    """Return the weights of hits, misses, false alarms and correct rejections at each threshold.

    The k-th threshold lies above k of the sorted values, of which `place` says where rows stand.
    """
    missed, rejected = (
        np.append(0.0, np.cumsum(np.bincount(place[of_class], w[of_class], n_values)))
        for of_class in (y > 0, y < 0)
    )
    return missed[-1] - missed, missed, rejected[-1] - rejected, rejected


def _error(hit: FloatArray, missed: FloatArray, alarm: FloatArray, right: FloatArray) -> FloatArray:
    losses: FloatArray = (missed + alarm) / (hit + missed + alarm + right)
    return losses


def _f1(hit: FloatArray, missed: FloatArray, alarm: FloatArray, right: FloatArray) -> FloatArray:
    losses: FloatArray = 1 - 2 * hit / (2 * hit + missed + alarm)
    return losses


def _mcc(hit: FloatArray, missed: FloatArray, alarm: FloatArray, right: FloatArray) -> FloatArray:
    predicted = (hit + alarm) * (missed + right)
    actual = (hit + missed) * (alarm + right)
    root = np.sqrt(np.where(predicted > 0, predicted, np.inf)) * np.sqrt(actual)
    losses: FloatArray = 1 - (hit * right - missed * alarm) / root  # 1 if one class is predicted
    return losses


# Metrics of the numbers of errors, computed for all thresholds at once.
COUNTED: dict[str, Callable[..., FloatArray]] = {"error": _error, "f1": _f1, "mcc": _mcc}

# Metrics that no threshold changes, because they see the order of the values or calibrate them.
UNMOVED = frozenset({"auc", "average_precision", "brier", "log_loss"})
