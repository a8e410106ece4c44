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

from span_hpo.kernels import ALL, KernelBlocks, kernel_times, largest_entry
from span_hpo.runtime import FloatArray, IndexArray, rows_of
from span_hpo.solver.active_set import DualPoint
from span_hpo.solver.centred_gram import affine_coordinates, factored_gram
from span_hpo.solver.rounding import MARGIN_NOISE, margin_noise, zero_width

_EQUAL = 1e-14  # largest difference of the kernel values of equal rows, relative to sqrt(K_ii K_jj)
_AT_BOUND = 1e-9  # distance from a bound, relative to C_i and sum(alpha), that is rounding
_ENTRIES_AT_ONCE = 4_000_000  # kernel values of equal rows that are compared in one array
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
    alpha, costs, in_bound = point.alpha, point.costs, point.in_bound
    noise = zero_width(margin_noise(alpha, largest_entry(point.K)))
    at_margin = np.abs(point.y - point.F - point.offset) <= noise
    at_margin = (at_margin | in_bound) & (costs > 0)
    is_independent = point.gram is not None and not point.gram.is_dependent
    if is_independent and np.count_nonzero(at_margin) == np.count_nonzero(in_bound):
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
    candidates = [totals] if len(first) < len(E) else []
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
    """Return a number for each row of E, the same for rows of one class with equal features.

    The kernel values of equal rows agree with all rows, up to rounding. Only rows that agree in one
    random combination of their values, and are therefore neighbours in its order, are compared.
    """
    count = len(E)
    roots = np.sqrt(np.abs(K_EE.diagonal()))
    roots[roots == 0] = 1.0
    weights = np.random.default_rng(0).random(count)
    key, width = y * (K_EE @ weights) / roots, count * _EQUAL * float(roots.sum())
    order = np.argsort(key, kind="stable")
    runs = np.split(order, rows_of(np.diff(key[order]) > width) + 1)
    number = np.full(count, -1, dtype=np.intp)
    every = np.sqrt(np.abs(K.diagonal()))
    at_once = max(1, _ENTRIES_AT_ONCE // len(every))
    for run in runs:
        while len(run) > 1:
            first, others = run[0], run[1:]
            number[first] = first
            # Most rows that differ do so already in their kernel value with the first one.
            with_first, limit = K_EE[others, first], _EQUAL * roots[others] * roots[first]
            same = (y[others] == y[first]) & (np.abs(with_first - K_EE[first, first]) <= limit)
            same &= np.abs(with_first - K_EE[others, others]) <= limit
            near = rows_of(same)
            of_first = K.block(E[[first]], ALL)
            for start in range(0, len(near), at_once):
                some = near[start : start + at_once]
                values = np.abs(K.block(E[others[some]], ALL) - of_first)
                same[some] = (values <= _EQUAL * every * roots[first]).all(axis=1)
            number[others[same]] = first
            run = others[~same]
        number[run] = run
    return np.unique(number, return_inverse=True)[1]


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


def _at_bounds(
    K: FloatArray, y: FloatArray, alpha: FloatArray, costs: FloatArray, total: float
) -> FloatArray:
    """Return dual variables of which those at a bound up to rounding equal it.

    Where margins hardly depend on a dual variable, rounding moves it away from its bound by much
    more than they show. The rows inside their boxes make up for what is moved back.
    """
    rounding = _AT_BOUND * np.minimum(costs, total)
    found = np.where(alpha <= rounding, 0.0, alpha)
    found = np.where(costs - found <= rounding, costs, found)
    moved, free = rows_of(found != alpha), rows_of((found > 0) & (found < costs))
    if len(moved) and len(free):
        change = y[moved] * (found - alpha)[moved]
        gram = factored_gram(K[np.ix_(free, free)])
        answer, _ = gram.solve(-K[np.ix_(free, moved)] @ change, -float(change.sum()))
        found[free] = np.clip(found[free] + y[free] * answer, 0.0, costs[free])
    return found
