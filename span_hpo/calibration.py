"""Class probabilities from decision values, calibrated on leave-one-out values."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit, logit

from span_hpo.runtime import FloatArray, IndexArray, rows_of, weighted_mean
from span_hpo.solver import n_classes_of, pairs_of, rows_of_pairs

_PLATT_STEPS = 100  # largest number of Newton steps
_PLATT_GRADIENT = 1e-10  # gradient of the mean cross-entropy that ends the fit, for unit values
_PLATT_ROUNDING = 4 * float(np.finfo(float).eps)  # relative rounding of the cross-entropy
_PLATT_STEP = 1e-10  # shortest step of the line search, relative to the Newton step
_PLATT_EQUAL = 1e-9  # spread of equal values, relative to the largest: they are rounded
_PLATT_RIDGE = 1e-12  # ridge that keeps the Hessian regular where all values agree
_TIE = 1e-9  # relative amount by which the predicted class exceeds an equally probable one


class LeftOutValues(Protocol):
    """Labels as numbers and leave-one-out decision values, as a `LeaveOneOut` has them."""

    @property
    def y(self) -> FloatArray:
        """Labels: -1 and +1 for two classes, class numbers for more."""

    @property
    def decision_values(self) -> FloatArray:
        """Values, shape (l,) for two classes and (l, pairs) for more."""


@dataclass(frozen=True)
class PlattSigmoid:
    """Platt's sigmoid, ``P(y = +1 | f) = sigma(slope f + offset)``."""

    slope: float
    offset: float

    def log_odds(self, f: FloatArray) -> FloatArray:
        """Return the log-odds of the positive class, ``slope f + offset``."""
        return self.slope * f + self.offset

    def probability(self, f: FloatArray) -> FloatArray:
        """Return the probability of the positive class."""
        probability: FloatArray = expit(self.log_odds(f))
        return probability


def platt_sigmoid(y: FloatArray, f: FloatArray, w: FloatArray) -> PlattSigmoid:
    """Fit a non-decreasing sigmoid to decision values.

    The sigmoid minimises the weighted cross-entropy over ``slope >= 0``, with the targets
    ``(N+ + 1)/(N+ + 2)`` and ``1/(N- + 2)`` instead of 1 and 0. Here N+ and N- are the total
    weights of the two classes, with weights scaled to a mean of 1. The minimum is found by a damped
    Newton method in two variables.

    References
    ----------
    Platt, "Probabilistic outputs for support vector machines", 1999; Lin, Lin and Weng, "A note on
    Platt's probabilistic outputs for support vector machines", 2007.
    """
    target = platt_targets(y, w)
    w = w / w.mean()
    n_positive, n_negative = w[y > 0].sum(), w[y <= 0].sum()
    # About the mean, both columns are independent even if all values are nearly equal.
    middle = weighted_mean(f, w)
    size = math.sqrt(weighted_mean((f - middle) ** 2, w))
    if size <= _PLATT_EQUAL * float(np.abs(f).max()):
        return PlattSigmoid(slope=0.0, offset=float(logit(weighted_mean(target, w))))
    design = np.column_stack([(f - middle) / size, np.ones(len(f))])

    def cross_entropy(theta: FloatArray) -> float:
        odds = design @ theta
        return weighted_mean(np.logaddexp(0.0, odds) - target * odds, w)

    theta = np.array([0.0, np.log((n_positive + 1) / (n_negative + 1))])
    value = cross_entropy(theta)
    for _ in range(_PLATT_STEPS):
        probability = expit(design @ theta)
        gradient = design.T @ (w * (probability - target)) / w.sum()
        if np.abs(gradient).max() < _PLATT_GRADIENT:
            break
        curvature = w * probability * (1 - probability) / w.sum()
        hessian = design.T @ (curvature[:, None] * design) + _PLATT_RIDGE * np.eye(2)
        direction = -np.linalg.solve(hessian, gradient)
        step = 1.0
        limit = value + _PLATT_ROUNDING * abs(value)
        while (reached := cross_entropy(theta + step * direction)) > limit:
            step /= 2
            if step < _PLATT_STEP:
                break  # no step makes progress beyond rounding
        if reached > limit:
            break
        theta, value = theta + step * direction, reached
    if theta[0] < 0:
        # Values that rank the classes the wrong way round are worth no more than a constant.
        return PlattSigmoid(slope=0.0, offset=float(logit(weighted_mean(target, w))))
    slope = float(theta[0]) / size
    return PlattSigmoid(slope=slope, offset=float(theta[1]) - slope * middle)


def platt_targets(y: FloatArray, w: FloatArray) -> FloatArray:
    """Return the targets of the fit of Platt's sigmoid, shape (l,)."""
    positive, w = y > 0, w / w.mean()
    n_positive, n_negative = w[positive].sum(), w[~positive].sum()
    targets: FloatArray = np.where(
        positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2)
    )
    return targets


def class_probabilities(
    sigmoids: Sequence[PlattSigmoid], values: FloatArray, predicted: IndexArray
) -> FloatArray:
    """Return the probability of every class, shape (m, k).

    The probabilities of several classes are coupled from those of their pairs. If the predicted
    class is not the most probable one, because calibration has moved the boundary, it and all more
    probable classes get the mean of their probabilities.

    Parameters
    ----------
    sigmoids
        Sigmoid of every pair of classes.
    values
        Decision values, positive for the second class of a pair: shape (m,) for two classes, and
        (m, pairs) for more.
    predicted
        Number of the predicted class of each row, shape (m,).

    References
    ----------
    Platt, "Probabilistic outputs for support vector machines", 1999; Wu, Lin and Weng,
    "Probability estimates for multi-class classification by pairwise coupling", 2004.
    """
    return _agreeing(calibrated(sigmoids, values), predicted)


def calibrated(sigmoids: Sequence[PlattSigmoid], values: FloatArray) -> FloatArray:
    """Return the probability of every class, shape (m, k), whatever class is predicted.

    Parameters
    ----------
    sigmoids, values
        Sigmoids and decision values; see `class_probabilities`.
    """
    if values.ndim == 1:
        odds = sigmoids[0].log_odds(values)
        return np.column_stack([expit(-odds), expit(odds)])
    return _coupled(sigmoids, values, n_classes_of(values.shape[1]))


def loo_sigmoids(loo: LeftOutValues, weight: FloatArray) -> tuple[PlattSigmoid, ...]:
    """Return the sigmoid of every pair of classes, fitted to the leave-one-out values."""
    y, values = loo.y, loo.decision_values
    if values.ndim == 1:
        return (platt_sigmoid(y, values, weight),)
    return tuple(
        platt_sigmoid(signs, values[rows, column], weight[rows])
        for column, (rows, signs) in enumerate(rows_of_pairs(y))
    )


def _coupled(sigmoids: Sequence[PlattSigmoid], values: FloatArray, n_classes: int) -> FloatArray:
    """Return the probabilities of the classes from those of their pairs, shape (m, k).

    With ``r_ij`` the probability of class i among i and j, the result p minimises
    ``sum_ij (r_ji p_i - r_ij p_j)^2`` subject to ``sum(p) = 1``.

    Parameters
    ----------
    sigmoids
        Sigmoid of every pair of classes.
    values
        Decision values, positive for the second class of each pair, shape (m, pairs).
    n_classes
        Number of classes.
    """
    r = np.zeros((len(values), n_classes, n_classes))
    for column, (first, second) in enumerate(pairs_of(n_classes)):
        r[:, second, first] = sigmoids[column].probability(values[:, column])
        r[:, first, second] = 1 - r[:, second, first]
    system = np.ones((len(values), n_classes + 1, n_classes + 1))
    system[:, :n_classes, :n_classes] = -r * r.transpose(0, 2, 1)
    classes = np.arange(n_classes)
    system[:, classes, classes] = (r**2).sum(axis=1)
    system[:, n_classes, n_classes] = 0.0
    wanted = np.zeros((len(values), n_classes + 1, 1))
    wanted[:, n_classes] = 1.0
    probabilities: FloatArray = np.maximum(np.linalg.solve(system, wanted)[:, :n_classes, 0], 0.0)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return probabilities


def _agreeing(probabilities: FloatArray, predicted: IndexArray) -> FloatArray:
    """Return probabilities that are largest for the predicted class."""
    for row in rows_of(probabilities.argmax(axis=1) != predicted):
        own = probabilities[row, predicted[row]]
        level = probabilities[row] >= own
        shared = probabilities[row, level].mean()
        probabilities[row, level] = shared * (1 - _TIE)
        probabilities[row, predicted[row]] = shared * (1 + _TIE * (level.sum() - 1))
    return probabilities
