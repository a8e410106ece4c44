"""Sequential minimal optimisation on a kernel matrix in double precision.

In the variables ``beta = y alpha``, the dual problem of `span_hpo.solver.problem` is

    max  y'beta - 1/2 beta'K beta,   lower <= beta <= upper,  sum(beta) = 0

with the gradient ``v = y - K beta``. Every step moves a pair of rows. Row i has the largest v of
the rows that may grow, and row j is the one with which the step gains most (selection by
second-order information: Fan, Chen and Lin, JMLR 6, 2005). As in LIBSVM, the steps end when the
largest v of the rows that may grow exceeds the least v of the rows that may fall by at most `tol`.
LIBSVM converts each row of the matrix that it uses to single precision, value by value. The loops
here run over the matrix itself, which is faster if it is held in memory anyway.
"""

import numpy as np

from span_hpo.kernels import ALL, KernelBlocks, KernelMatrix, kernel_product
from span_hpo.runtime import BoolArray, FloatArray, check_time, compiled, rows_of

_FLAT = 1e-12  # relative to K_ii + K_jj: least squared distance of two rows
_OPEN_SHARE = 0.75  # if at most this share of the rows may still move, their matrix is copied
_LARGEST_COPY = 4096  # largest number of rows whose matrix is copied, which takes 128 MB
_PATIENCE = 500, 2000  # least and largest number of steps before rows are set aside
_LONGEST_PATIENCE = 20_000  # largest number of steps during which Ctrl-C has to wait
_STEPS_WITHOUT_DRIFT = 1000  # steps that round less in total than one product with K


def smo_point(
    K: KernelBlocks,
    y: FloatArray,
    costs: FloatArray,
    tol: float,
    max_iter: int,
    start: tuple[FloatArray, FloatArray] | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return ``alpha`` and ``F = K (y alpha)``, optimal up to `tol` or after `max_iter` steps.

    The steps begin at zero, or at a feasible `start` of the same two parts. Dual variables at a
    bound equal 0 or the cost bit for bit.
    """
    held = K if isinstance(K, KernelMatrix) else KernelMatrix(K.block(ALL, ALL))
    beta, v = np.zeros(len(y)), y.copy()
    if start is not None:
        beta, v = y * start[0], y - start[1]
    left = _descend(held, y, *_box(y, costs), beta, v, tol, max_iter)
    few = left > max_iter - _STEPS_WITHOUT_DRIFT
    return np.abs(beta), y - v if few else kernel_product(held, beta)


def improved_in_box(
    K: FloatArray,
    alpha: FloatArray,
    y: FloatArray,
    costs: FloatArray,
    v: FloatArray,
    tol: float,
    steps: int,
) -> FloatArray:
    """Return better dual variables of a few rows while all other rows keep theirs.

    Parameters
    ----------
    K
        Kernel matrix of these rows, shape (n, n).
    alpha, y, costs
        Dual variables, labels and costs, shape (n,).
    v
        Gradient ``y - F`` of these rows, in which F is summed over all rows, shape (n,).
    tol
        Gap of the gradient between two rows at which to stop.
    steps
        Largest number of steps.
    """
    beta = y * alpha
    _pair_steps(K, *_distance_parts(K), *_box(y, costs), beta, v.copy(), tol, steps)
    return np.abs(beta)


def shortened_in_box(
    P: FloatArray,
    x: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    tol: float,
    steps: int,
    pull: FloatArray | float = 0.0,
) -> FloatArray:
    """Return a point of the box that has the same sum as x and a smaller ``x'Px / 2 - pull'x``.

    Parameters
    ----------
    P
        Positive semi-definite matrix, shape (n, n).
    x
        Point of the box at which to start, shape (n,).
    lower, upper
        Bounds of the box, shape (n,).
    tol
        Gap of the gradient between two rows at which to stop.
    steps
        Largest number of steps.
    pull
        Linear part of the function, shape (n,).
    """
    shorter = x.copy()
    _pair_steps(P, *_distance_parts(P), lower, upper, shorter, pull - P @ x, tol, steps)
    return shorter


def _descend(
    K: KernelMatrix,
    y: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    beta: FloatArray,
    v: FloatArray,
    tol: float,
    max_steps: int,
) -> int:
    """Move `beta` and its gradient `v` to the optimum, and return how many steps are left.

    After about as many steps as there are rows, the rows that seem settled at a bound are set
    aside, and the others go on by themselves. The result is 0 if the optimum is not reached.
    """
    diagonal, flat = _distance_parts(K.values)
    left, at_once = max_steps, min(max(len(y), _PATIENCE[0]), _PATIENCE[1])
    while left:
        check_time()
        allowed = min(at_once, left)
        taken, gap = _pair_steps(K.values, diagonal, flat, lower, upper, beta, v, tol, allowed)
        left -= taken
        if gap <= tol:
            return left
        if taken < allowed:
            return 0  # rounding allows no further step
        still_open = rows_of(~_seem_settled(lower, upper, beta, v))
        if len(still_open) <= min(_OPEN_SHARE * len(y), _LARGEST_COPY):
            part = KernelMatrix(K.block(still_open, still_open))
            beta_part, v_part = beta[still_open], v[still_open]
            left = _descend(
                part,
                v_part + part.values @ beta_part,
                lower[still_open],
                upper[still_open],
                beta_part,
                v_part,
                tol,
                left,
            )
            beta[still_open] = beta_part
            v[:] = y - kernel_product(K, beta)
            # In case some rows were not settled, wait longer before the next time.
            at_once = min(2 * at_once, _LONGEST_PATIENCE)
    return 0


def _box(y: FloatArray, costs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper bounds of ``beta``."""
    signed = y * costs
    return np.minimum(signed, 0.0), np.maximum(signed, 0.0)


def _distance_parts(K: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return ``K_ii`` of every row, and its part of the least squared distance of a pair."""
    diagonal = K.diagonal().copy()
    return diagonal, _FLAT * np.where(diagonal > 0, diagonal, diagonal.max() or 1.0)


def _seem_settled(
    lower: FloatArray, upper: FloatArray, beta: FloatArray, v: FloatArray
) -> BoolArray:
    """Return a mask of the rows at a bound whose gradient keeps them there."""
    may_grow, may_fall = beta < upper, beta > lower
    top, bottom = v[may_grow].max(), v[may_fall].min()
    settled: BoolArray = (~may_grow & (v > top)) | (~may_fall & (v < bottom))
    return settled


def _largest(x: FloatArray) -> float:
    """Return the largest value."""
    # Four maxima that need not wait for each other are four times as fast as one.
    fours = len(x) // 4 * 4
    top_0 = top_1 = top_2 = top_3 = -np.inf
    for t in range(0, fours, 4):
        top_0 = max(top_0, x[t])
        top_1 = max(top_1, x[t + 1])
        top_2 = max(top_2, x[t + 2])
        top_3 = max(top_3, x[t + 3])
    top = max(max(top_0, top_1), max(top_2, top_3))
    for t in range(fours, len(x)):
        top = max(top, x[t])
    return top


def _position(x: FloatArray, value: float) -> int:
    """Return the first position of a value that the array contains."""
    position = 0
    while position < len(x) - 1 and x[position] != value:
        position += 1
    return position


@compiled
def _pair_steps(
    K: FloatArray,
    diagonal: FloatArray,
    flat: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    beta: FloatArray,
    v: FloatArray,
    tol: float,
    steps: int,
) -> tuple[int, float]:
    """Take at most `steps` steps in place, and return their number and the remaining gap.

    If fewer steps leave a gap above `tol`, rounding allows no further step.
    """
    n = len(v)
    # Added to v, these exclude the rows that may not grow, or may not fall, without a branch.
    bar_growth = np.where(beta < upper, 0.0, -np.inf)
    bar_fall = np.where(beta > lower, 0.0, np.inf)
    growth, fall, gains = np.empty(n), np.empty(n), np.empty(n)
    for taken in range(steps + 1):
        for t in range(n):
            growth[t] = v[t] + bar_growth[t]
        for t in range(n):
            fall[t] = -v[t] - bar_fall[t]
        top = _largest(growth)
        gap = top + _largest(fall)
        if gap <= tol or taken == steps:
            break
        i = _position(growth, top)
        K_i, K_ii, flat_i = K[i], diagonal[i], flat[i]
        for t in range(n):
            difference = max(top + fall[t], 0.0)
            distance = max(K_ii + diagonal[t] - 2 * K_i[t], flat_i + flat[t])
            gains[t] = difference * difference / distance
        j = _position(gains, _largest(gains))
        K_j = K[j]
        room_i, room_j = upper[i] - beta[i], beta[j] - lower[j]
        step = (top - v[j]) / max(K_ii + diagonal[j] - 2 * K_i[j], flat_i + flat[j])
        step = min(step, room_i, room_j)
        if beta[i] + step == beta[i] and beta[j] - step == beta[j]:
            break
        beta[i] = upper[i] if step == room_i else beta[i] + step
        beta[j] = lower[j] if step == room_j else beta[j] - step
        for t in (i, j):
            bar_growth[t] = 0.0 if beta[t] < upper[t] else -np.inf
            bar_fall[t] = 0.0 if beta[t] > lower[t] else np.inf
        for t in range(n):
            v[t] -= step * (K_i[t] - K_j[t])
    return taken, gap
