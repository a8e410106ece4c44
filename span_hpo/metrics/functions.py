"""Losses of leave-one-out decision values, all of which are minimised.

Every function takes labels ``y`` (-1 or +1), decision values ``f`` and weights ``w``, each of
shape (l,), and returns one number. Means are weighted means, and a decision value of exactly 0 is
an error for either class.

For k > 2 classes, ``y`` holds class numbers and ``f`` has one column for each pair. Functions that
need only classes look at the classes that the pairs elect.
"""

import numpy as np
from sklearn.metrics import average_precision_score, f1_score, matthews_corrcoef, roc_auc_score

from span_hpo.metrics.rows import (
    cross_entropies,
    shortfalls,
    smoothly_wrong,
    span_losses,
    squared_errors,
    wrong,
)
from span_hpo.runtime import FloatArray, weighted_mean
from span_hpo.solver import voted


def error(y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return the error, ``mean(y f <= 0)``."""
    return weighted_mean(wrong(y, f, w), w)


def balanced_error(y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return the mean of the error rates of the classes."""
    errors = wrong(y, f, w)
    return float(
        np.mean([weighted_mean(errors[y == label], w[y == label]) for label in np.unique(y)])
    )


def smooth_error(y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return ``mean(sigma(-4 y f))``, a smooth form of the error without plateaus."""
    return weighted_mean(smoothly_wrong(y, f, w), w)


def hinge(y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return the hinge loss, ``mean(max(0, 1 - y f))``."""
    return weighted_mean(shortfalls(y, f, w), w)


def span_functional(y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return the linear span functional, the sum over support vectors of ``alpha S^2 - y f``.

    Like other losses it is divided by the number of rows, or by the sum of their weights. It is the
    part of an upper bound of the error that depends on the model (Chapelle and Vapnik, "Model
    selection for support vector machines", 1999, section 5.1), and may be negative.
    """
    return weighted_mean(span_losses(y, f, w), w)


def log_loss(y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return the cross-entropy of Platt's sigmoid fitted to the values."""
    return weighted_mean(cross_entropies(y, f, w), w)


def brier(y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return the mean squared error of Platt's sigmoid fitted to the values."""
    return weighted_mean(squared_errors(y, f, w), w)


def auc(y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return 1 minus the area under the ROC curve."""
    return 1 - float(roc_auc_score(y > 0, f, sample_weight=w))


def average_precision(y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return 1 minus the average precision of the positive class."""
    return 1 - float(average_precision_score(y > 0, f, sample_weight=w))


def f1(y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return 1 minus F1 of the positive class, or 1 minus the mean F1 of several classes."""
    if f.ndim == 2:
        elected = voted(y.astype(int), f)
        return 1 - float(f1_score(y, elected, average="macro", sample_weight=w, zero_division=0.0))
    hit, missed, false_alarm, _ = _confusion(y, f, w)
    return 1 - 2 * hit / (2 * hit + missed + false_alarm)


def mcc(y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return 1 minus Matthews' correlation, which is 0 if one class is never predicted."""
    if f.ndim == 2:
        return 1 - float(matthews_corrcoef(y, voted(y.astype(int), f), sample_weight=w))
    hit, missed, false_alarm, right = _confusion(y, f, w)
    actual = (hit + missed) * (false_alarm + right)
    predicted = (hit + false_alarm) * (missed + right)
    if predicted == 0:
        return 1.0
    return 1 - float((hit * right - missed * false_alarm) / np.sqrt(actual) / np.sqrt(predicted))


def _confusion(y: FloatArray, f: FloatArray, w: FloatArray) -> tuple[float, float, float, float]:
    """Return the weights of hits, misses, false alarms and correct rejections."""
    right, positive = y * f > 0, y > 0
    cells = (right & positive, ~right & positive, ~right & ~positive, right & ~positive)
    hit, missed, false_alarm, rejected = (float(w[cell].sum()) for cell in cells)
    return hit, missed, false_alarm, rejected
