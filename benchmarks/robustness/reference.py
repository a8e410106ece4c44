"""Leave-one-out margins in double precision, by a solver that shares no code with the package.

The dual problem is written in ``beta = y alpha``:

    min  1/2 beta' K beta - y' beta    s.t.  lower <= beta <= upper,  sum(beta) = 0

with ``lower_i = min(0, y_i C_i)`` and ``upper_i = max(0, y_i C_i)``. With ``E = K beta - y`` and
the offset b, a solution has ``E_i + b = 0`` for rows strictly inside their bounds, ``>= 0`` at the
lower bound and ``<= 0`` at the upper bound.

Every row p is left out by a fit of its own with ``C_p = 0``: pairwise steps from the solution of
all rows (`pair_steps`), then steps of one row at a time while the rows inside their bounds stay
stationary (`finish`). What the margin ``y_p f^p(x_p)`` is worth follows from the duality gap
(`bounded_value`).
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.robustness.dual_steps import (
    NOISE,
    SNAP,
    UNIT,
    balance,
    bounded_value,
    finish,
    pair_steps,
)

FloatArray = npt.NDArray[np.float64]

_PAIR_STEPS = 60  # most pairwise steps for each row: the finish solves what they leave
_PAIR_TOLERANCE = 1e-7  # of the margin, at which pairwise steps end
_FINISH_STEPS = 12  # most steps of the finish for each row, beyond which it has cycled
_CLEAR = 10.0  # multiple of the rounding above which an interval of offsets has a length


@dataclass(frozen=True, eq=False)
class Reference:
    """Margins of all rows without themselves.

    Attributes
    ----------
    margins
        ``y_p f^p(x_p)``, shape (l,).
    errors
        Bounds on the errors of the margins, shape (l,); infinite where none is known.
    betas
        ``beta`` of the problem without row p, as row p of a matrix, shape (l, l).
    """

    margins: FloatArray
    errors: FloatArray
    betas: FloatArray


def leave_one_out_margins(K: FloatArray, y: FloatArray, costs: FloatArray) -> Reference:
    """Return the leave-one-out margins of all rows, with bounds on their errors.

    Parameters
    ----------
    K
        Kernel matrix, shape (l, l), symmetric.
    y
        Labels, shape (l,), -1 or +1.
    costs
        Upper bounds of the dual variables, shape (l,), at least 0.
    """
    count = len(y)
    margins, errors = np.full(count, -1.0), np.zeros(count)
    betas = np.zeros((count, count))
    full = solve_dual(K, y, costs, np.zeros(count))
    for p in range(count):
        left = np.where(np.arange(count) == p, 0.0, costs)
        if len(np.unique(y[left > 0])) < 2:
            continue  # an error by definition
        betas[p] = full if costs[p] == 0 else solve_dual(K, y, left, full)
        margins[p], errors[p] = margin_of_row(K, y, left, betas[p], p)
    return Reference(margins, errors, betas)


def solve_dual(K: FloatArray, y: FloatArray, costs: FloatArray, start: FloatArray) -> FloatArray:
    """Return ``beta`` of the solution; `start` need not respect the bounds."""
    lower, upper = np.minimum(0.0, y * costs), np.maximum(0.0, y * costs)
    beta = np.clip(start, lower, upper)
    balance(beta, lower, upper)
    pair_steps(K, y, lower, upper, beta, _PAIR_STEPS * len(y), _PAIR_TOLERANCE)
    finish(K, y, lower, upper, beta, _FINISH_STEPS * len(y))
    return beta


def margin_of_row(
    K: FloatArray, y: FloatArray, costs: FloatArray, beta: FloatArray, p: int
) -> tuple[float, float]:
    """Return ``y_p f(x_p)`` at `beta`, where row p has cost 0 or ``beta_p = 0``, and its error.

    The error is a bound for every optimal offset, or for the middle of the optimal offsets where
    every row is at one of its bounds.
    """
    lower, upper = np.minimum(0.0, y * costs), np.maximum(0.0, y * costs)
    value, error = bounded_value(K, y, lower, upper, beta, p)
    if not math.isfinite(error):
        value, error = _middle_value(K, y, costs, beta, p)
    return float(y[p] * value), error


def offset_interval(
    y: FloatArray, costs: FloatArray, beta: FloatArray, products: FloatArray
) -> tuple[float, float]:
    """Return the ends of the interval of optimal offsets, with ``products = K beta``."""
    offsets = y - products
    can_grow, can_fall = beta < np.maximum(0.0, y * costs), beta > np.minimum(0.0, y * costs)
    return (
        float(np.max(np.where(can_grow, offsets, -np.inf))),
        float(np.min(np.where(can_fall, offsets, np.inf))),
    )


def _middle_value(
    K: FloatArray, y: FloatArray, costs: FloatArray, beta: FloatArray, p: int
) -> tuple[float, float]:
    """Return the value in the middle of the optimal offsets if every row is at a bound.

    The sum of the dual variables must be 0 exactly, which `math.fsum` decides, and all margins must
    be right beyond rounding. Otherwise the error is infinite.
    """
    lower, upper = np.minimum(0.0, y * costs), np.maximum(0.0, y * costs)
    at_lower = beta - lower <= SNAP * costs
    at_upper = upper - beta <= SNAP * costs
    snapped = np.where(at_lower, lower, np.where(at_upper, upper, beta))
    products = K @ snapped
    noise = NOISE * UNIT * len(y) * (1 + np.abs(K) @ np.abs(snapped))
    low, high = offset_interval(y, costs, snapped, products)
    value = products[p] + (low + high) / 2
    largest = float(noise[costs > 0].max() + noise[p])
    free = bool((at_lower | at_upper).all()) and math.fsum(snapped) == 0.0
    if free and high - low > _CLEAR * largest:
        return float(value), 2 * largest
    return float(value), math.inf
