"""The dual variables that are reported where several are optimal.

The weight vector of a fit is unique, but its dual variables are not if rows are equal, or if rows
at their margin depend on each other in feature space. A solver then returns one of many optimal
points, and spans, which depend on the in-bound rows, would depend on the solver. Of all optimal
points, the one with the least ``sum_i alpha_i^2 / C_i`` is reported instead. It is unique, does not
depend on the order of the rows or on which class is positive, and scales with the kernel. Equal
rows share their dual variable in proportion to their costs.

Let E be the rows with margin 1. All other dual variables are unique. With coordinates ``q_j`` of
the rows of E in their affine hull, and ``beta = y alpha``, the program is

    min  1/2 sum_j beta_j^2 / C_j,   sum_j beta_j q_j = c,   0 <= y_j beta_j <= C_j

for the sum c of any optimal point. Its solution is ``beta_j = clip(C_j q_j'nu)`` for the multiplier
``nu`` that satisfies the equations, which Newton's method finds.
"""

import numpy as np

from span_hpo.kernels import (
    KernelBlocks,
    KernelMatrix,
    first_equal_rows,
    kernel_times,
    largest_entry,
)
from span_hpo.runtime import BoolArray, FloatArray, IndexArray, rows_of
from span_hpo.solver.active_set import DualPoint
from span_hpo.solver.centred_gram import affine_coordinates, factored_gram
from span_hpo.solver.rounding import AT_BOUND, MARGIN_NOISE, margin_noise, zero_width

_ROUNDS = 100  # largest number of steps of Newton's method, which usually needs less than five
_BALANCED = 1e-12  # residual of the equations, relative to their terms, at which to stop
_DAMPING = 1e-9, 1e-4  # least and largest damping of Newton's method, where Q'Q = I


def reported_alpha(point: DualPoint) -> FloatArray:
    """Return the optimal dual variables with the least ``sum_i alpha_i^2 / C_i``.

    Parameters
    ----------
    point
        A solution of the dual.

    Returns
    -------
    Dual variables, shape (l,); the array of the point itself if there are no others.
    """
    if point.is_only:
        return point.alpha
    alpha, costs, in_bound = point.alpha, point.costs, point.in_bound
    noise = zero_width(margin_noise(alpha, largest_entry(point.K)))
    at_margin = np.abs(point.y - point.F - point.offset) <= noise
    at_margin = (at_margin | in_bound) & (costs > 0)
    is_independent = point.gram is not None and not point.gram.is_dependent
    is_only = is_independent and np.count_nonzero(at_margin) == np.count_nonzero(in_bound)
    is_clear = not _near_bounds(alpha[in_bound], costs[in_bound], float(alpha.sum())).any()
    if is_only and is_clear:
        return alpha
    # If the offset is not unique, no optimal point has an in-bound row, and there is only one.
    is_unique = in_bound.any() or abs(point.offset_gap) <= noise
    if point.offset_gap > noise or not is_unique:
        return alpha
    roots = np.sqrt(np.abs(point.K.diagonal()))
    E = rows_of(at_margin)
    K_EE = point.K.block(E, E)
    number = _numbers_of_equal_rows(point.K, E, K_EE, point.y[E])
    first = np.unique(number, return_index=True)[1]
    # Equal rows count as one row whose cost is the sum of theirs.
    totals, reach = (np.bincount(number, part[E]).astype(float) for part in (alpha, costs))
    candidates = [] if is_clear and len(first) == len(E) else [totals]
    K_of_groups, y = K_EE[np.ix_(first, first)], point.y[E][first]
    held = number[in_bound[E]]
    if not (is_independent and len(held) == len(np.unique(held)) == len(first)):
        coordinates = affine_coordinates(K_of_groups)
        if coordinates.shape[1] < len(first):
            candidates.insert(0, _least(coordinates, y, totals, reach))
    for shared in candidates:
        at_bounds = _at_bounds(K_of_groups, y, shared, reach, float(alpha.sum()))
        # A share never exceeds the cost, and equals it where the group is bounded.
        share = np.where(at_bounds == reach, 1.0, at_bounds / reach)[number]
        found = alpha.copy()
        found[E] = share * costs[E]
        # Rows that only nearly depend on each other would change decision values elsewhere. The
        # rounding of each value is that of its own row: the largest row says nothing about others.
        change = (point.y * (found - alpha))[E]
        moved = np.abs(kernel_times(point.K, E, change))
        is_balanced = abs(change.sum()) <= MARGIN_NOISE * alpha.sum()
        if is_balanced and (moved <= MARGIN_NOISE * (1 + roots * (alpha @ roots))).all():
            return found
    return alpha


def _numbers_of_equal_rows(
    K: KernelBlocks, E: IndexArray, K_EE: FloatArray, y: FloatArray
) -> IndexArray:
    """Return a number for each row of E, the same for rows of one class with equal features."""
    if isinstance(K, KernelMatrix):
        first = E if K.first_equal is None else K.first_equal[E]
    else:
        first = first_equal_rows(K, E, K_EE)
    return np.unique(2 * first + (y > 0), return_inverse=True)[1]


def _least(
    coordinates: FloatArray, y: FloatArray, alpha: FloatArray, costs: FloatArray
) -> FloatArray:
    """Return the dual variables with the least ``sum alpha_i^2 / C_i`` and the same weight vector.

    In ``x_j = beta_j / sqrt(C_j)``, the function is ``|x|^2 / 2``, and the equations are
    ``Q'x = Q'x_0`` with an orthonormal basis Q. For the multiplier ``nu``, the solution is
    ``x = clip(Q nu)``, and ``nu`` minimises a convex function whose gradient is ``Q'x - Q'x_0``. If
    the method does not converge, the dual variables are returned as they are.
    """
    roots = np.sqrt(costs)
    Q = np.linalg.qr(coordinates * roots[:, None])[0]
    lower, upper = np.minimum(y * roots, 0.0), np.maximum(y * roots, 0.0)
    start = y * alpha / roots
    c = Q.T @ start
    nu, size = c.copy(), float(np.linalg.norm(start))
    for _ in range(_ROUNDS):
        h = Q @ nu
        x = np.minimum(np.maximum(h, lower), upper)
        residual = Q.T @ x - c
        error = float(np.linalg.norm(residual))
        free = (h > lower) & (h < upper)
        if error <= _BALANCED * size:
            # What is left of the residual is spread over the rows inside their boxes.
            x[free] -= np.linalg.lstsq(Q[free].T, residual, rcond=None)[0]
            return y * np.minimum(np.maximum(x, lower), upper) * roots
        J = Q[free].T @ Q[free]
        J.flat[:: len(J) + 1] += min(max(0.1 * error / size, _DAMPING[0]), _DAMPING[1])
        step = -np.linalg.solve(J, residual)
        nu += _length(h, Q @ step, lower, upper, float(c @ step)) * step
    return alpha


def _length(
    h: FloatArray, change: FloatArray, lower: FloatArray, upper: FloatArray, wanted: float
) -> float:
    """Return the t at which ``change' clip(h + t change)``, which grows with t, is `wanted`."""

    def slope(t: float) -> float:
        return float(change @ np.minimum(np.maximum(h + t * change, lower), upper)) - wanted

    with np.errstate(divide="ignore", invalid="ignore"):
        kinks = np.concatenate([(lower - h) / change, (upper - h) / change])
    kinks = np.sort(kinks[np.isfinite(kinks) & (kinks > 0)])
    below, above = -1, len(kinks)
    while above - below > 1:
        middle = (below + above) // 2
        if slope(kinks[middle]) >= 0:
            above = middle
        else:
            below = middle
    left = float(kinks[below]) if below >= 0 else 0.0
    right = float(kinks[above]) if above < len(kinks) else left + 1.0
    at_left, at_right = slope(left), slope(right)
    # Between two kinks, and beyond the last one, the slope is a straight line.
    return left + (right - left) * -at_left / (at_right - at_left) if at_right > at_left else right


def _near_bounds(alpha: FloatArray, costs: FloatArray, total: float) -> BoolArray:
    """Return a mask of the dual variables that are at a bound up to rounding."""
    near: BoolArray = np.minimum(alpha, costs - alpha) <= AT_BOUND * np.minimum(costs, total)
    return near


def _at_bounds(
    K: FloatArray, y: FloatArray, alpha: FloatArray, costs: FloatArray, total: float
) -> FloatArray:
    """Return dual variables of which those at a bound up to rounding equal it.

    Where margins hardly depend on a dual variable, rounding moves it away from its bound by much
    more than they show. The rows inside their boxes make up for what is moved back.
    """
    near = _near_bounds(alpha, costs, total)
    found = np.where(near, np.where(alpha <= costs - alpha, 0.0, costs), alpha)
    moved, free = rows_of(found != alpha), rows_of((found > 0) & (found < costs))
    if len(moved) and len(free):
        change = y[moved] * (found - alpha)[moved]
        gram = factored_gram(K[np.ix_(free, free)])
        answer, _ = gram.solve(-K[np.ix_(free, moved)] @ change, -float(change.sum()))
        found[free] = np.clip(found[free] + y[free] * answer, 0.0, costs[free])
    return found
