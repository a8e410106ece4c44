"""Probabilities of the classes from decision values, calibrated on leave-one-out values."""

import math
from collections.abc import Sequence

import numpy as np

from span_hpo.arrays import FloatArray, IndexArray, rows_of
from span_hpo.metrics import PlattSigmoid, platt_sigmoid
from span_hpo.objective import Evaluation
from span_hpo.pairwise import pairs_of, rows_of_pairs

_TIE = 1e-9  # relative: by how much the probability of the predicted class exceeds an equal one


def class_probabilities(
    sigmoids: Sequence[PlattSigmoid], values: FloatArray, predicted: IndexArray
) -> FloatArray:
    """Return the probability of every class, shape (m, k).

    Several classes are coupled from their pairs. Where the most probable class is not the one that
    is predicted, because calibration has moved the border, it and all that are more probable get
    the mean of their probabilities.

    Parameters
    ----------
    sigmoids
        Of every pair of classes.
    values
        Decision values, positive for the second class of a pair: shape (m,) of two classes, else
        (m, pairs).
    predicted
        Number of the class that is predicted for each row.

    References
    ----------
    Platt, "Probabilistic outputs for support vector machines", 1999; Wu, Lin and Weng,
    "Probability estimates for multi-class classification by pairwise coupling", 2004.
    """
    if values.ndim == 1:
        second = sigmoids[0].probability(values)
        return _agreeing(np.column_stack([1 - second, second]), predicted)
    n_classes = (1 + math.isqrt(1 + 8 * values.shape[1])) // 2
    return _agreeing(_coupled(sigmoids, values, n_classes), predicted)


def loo_sigmoids(evaluation: Evaluation) -> tuple[PlattSigmoid, ...]:
    """Return a sigmoid of the leave-one-out values for every pair of classes."""
    y, values, weight = evaluation.loo.y, evaluation.loo.decision_values, evaluation.metric_weight
    if values.ndim == 1:
        return (platt_sigmoid(y, values, weight),)
    return tuple(
        platt_sigmoid(signs, values[rows, column], weight[rows])
        for column, (rows, signs) in enumerate(rows_of_pairs(y))
    )


def _coupled(sigmoids: Sequence[PlattSigmoid], values: FloatArray, n_classes: int) -> FloatArray:
    """Return the probabilities of the classes from those of their pairs, shape (m, k).

    With ``r_ij`` the probability of class i among i and j, the p that minimises
    ``sum_ij (r_ji p_i - r_ij p_j)^2`` with ``sum(p) = 1``.

    Parameters
    ----------
    sigmoids
        Of every pair.
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
    """Return probabilities whose largest belongs to the class that is predicted."""
    for row in rows_of(probabilities.argmax(axis=1) != predicted):
        own = probabilities[row, predicted[row]]
        level = probabilities[row] >= own
        shared = probabilities[row, level].mean()
        probabilities[row, level] = shared * (1 - _TIE)
        probabilities[row, predicted[row]] = shared * (1 + _TIE * (level.sum() - 1))
    return probabilities
