"""Derivatives of losses by the leave-one-out values, for searches by gradients.

Every function takes labels ``y`` (-1 or +1), decision values ``f`` and weights ``w``, each of shape
(l,), and returns the derivative of the weighted mean of the row losses by each value, shape (l,).
"""

import numpy as np
from scipy.special import expit

from span_hpo.calibration import PlattSigmoid, platt_sigmoid, platt_targets
from span_hpo.metrics.rows import SMOOTHNESS, RowFunction, of_support, smoothly_wrong
from span_hpo.runtime import FloatArray

_FLAT = 1e-12  # ridge, relative to the curvature, where the fit of the sigmoid is not unique


def smooth_error_slopes(y: FloatArray, f: FloatArray, w: FloatArray) -> FloatArray:
    """Return the derivatives of ``mean(sigma(-4 y f))``."""
    errors = smoothly_wrong(y, f, w)
    slopes: FloatArray = -SMOOTHNESS * y * errors * (1 - errors) * w / w.sum()
    return slopes


def hinge_slopes(y: FloatArray, f: FloatArray, w: FloatArray) -> FloatArray:
    """Return the derivatives of ``mean(max(0, 1 - y f))``, which is 0 at the margin itself."""
    slopes: FloatArray = np.where(y * f < 1, -y * w / w.sum(), 0.0)
    return slopes


def span_functional_slopes(y: FloatArray, f: FloatArray, w: FloatArray) -> FloatArray:
    """Return the derivatives of the linear span functional."""
    slopes: FloatArray = np.where(of_support(y, f), -y * w / w.sum(), 0.0)
    return slopes


def log_loss_slopes(y: FloatArray, f: FloatArray, w: FloatArray) -> FloatArray:
    """Return the derivatives of the cross-entropy of Platt's sigmoid, which moves along."""
    sigmoid = platt_sigmoid(y, f, w)
    return _through_sigmoid(y, f, w, sigmoid, sigmoid.probability(f) - (y > 0))


def brier_slopes(y: FloatArray, f: FloatArray, w: FloatArray) -> FloatArray:
    """Return the derivatives of the squared error of Platt's sigmoid, which moves along."""
    sigmoid = platt_sigmoid(y, f, w)
    p = sigmoid.probability(f)
    return _through_sigmoid(y, f, w, sigmoid, 2 * (p - (y > 0)) * p * (1 - p))


def _through_sigmoid(
    y: FloatArray, f: FloatArray, w: FloatArray, sigmoid: PlattSigmoid, by_odds: FloatArray
) -> FloatArray:
    """Return the derivatives of a mean of functions of the log-odds ``o = A f + B``.

    A and B minimise a cross-entropy J with targets t. With ``p = sigma(o)``, the Hessian H of J by
    (A, B) and ``r = mean(by_odds (f, 1))``, the implicit function theorem gives

        dL / df_i = w_i / W [by_odds_i A - (H^-1 r)'(p_i - t_i + p_i (1 - p_i) A f_i,
                                                     p_i (1 - p_i) A)]

    Parameters
    ----------
    y, f, w
        Labels, decision values and weights.
    sigmoid
        The sigmoid that is fitted to them.
    by_odds
        Derivative of the loss of each row by its log-odds, shape (l,).
    """
    if sigmoid.slope == 0:
        return np.zeros(len(f))  # the values do not matter
    share = w / w.sum()
    # The minimum does not depend on the origin and the unit of the values. About their mean, the
    # two columns are independent even if all values are nearly equal.
    offsets = f - share @ f
    size = float(np.sqrt(share @ offsets**2))
    design = np.column_stack([offsets / size, np.ones(len(f))])
    p = expit(sigmoid.log_odds(f))
    curvature = p * (1 - p)
    hessian = design.T @ ((share * curvature)[:, None] * design)
    hessian += _FLAT * np.trace(hessian) * np.eye(2)
    moved = np.linalg.solve(hessian, design.T @ (share * by_odds))
    bends = (p - platt_targets(y, w)) / size * moved[0]
    bends += curvature * sigmoid.slope * (design @ moved)
    found: FloatArray = share * (by_odds * sigmoid.slope - bends)
    return found


SLOPES: dict[str, RowFunction] = {
    "smooth_error": smooth_error_slopes,
    "hinge": hinge_slopes,
    "span_functional": span_functional_slopes,
    "log_loss": log_loss_slopes,
    "brier": brier_slopes,
}
