"""Checks of the states at which paths have stopped, and what they prove.

A path is only a means of finding a state. Here its dual variables are taken as they are, margins
are computed anew from the kernel, and a certificate or the KKT conditions are checked.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from span_hpo.loo.certificates import optimality_gaps
from span_hpo.loo.path.segments import (
    BOUNDED,
    END,
    ERROR,
    IN_BOUND,
    PARKED,
    SUCCESS,
    ZERO,
    Paths,
    TableauColumns,
    dual_variables,
)
from span_hpo.loo.path.tableau import PathState, Tableau
from span_hpo.loo.proofs import Proofs
from span_hpo.runtime import BoolArray, FloatArray, IndexArray, compiled
from span_hpo.solver import ALPHA_ROUNDING, offset_ends, violation_limit, zero_width

_ROUNDED_UP = 1 + 1e-6  # factor that rounds up the movements by which rows are selected
# A row is clearly inside its box if it is farther from its bounds than both of these distances.
_CLEARLY_INSIDE = 1e-8  # distance from a bound, relative to C_i and the largest alpha at the base
_NEARLY_AT_BOUND = 1e-5  # distance from a bound, relative to C_i and the largest alpha now
_OUTSIDE = 1e-11  # how far alpha may leave its box, relative to the largest alpha at the base
_IMBALANCE = 1e-7  # how far sum(y alpha) may be from 0, relative to alpha_p


class Limits(NamedTuple):
    """Tolerances for the rounding of margins, in units of the margin.

    Attributes
    ----------
    violation
        Largest violation of the KKT conditions that is accepted at the end of a path.
    zero
        Least distance from 0 of a bound that proves a sign.
    """

    violation: float
    zero: float

    @classmethod
    def of(cls, noise: float) -> "Limits":
        """Return the limits for a fit whose decision values are rounded by `noise`."""
        return cls(violation_limit(noise), zero_width(noise))


def checked_paths(tableau: Tableau, paths: Paths, limits: Limits) -> Proofs:
    """Return what the states of paths prove; only paths at ERROR, SUCCESS or END prove anything."""
    found = Proofs.none(len(paths.row))
    stopped = np.flatnonzero(np.isin(paths.outcome, (ERROR, SUCCESS, END)))
    state, rows, width = tableau.state, tableau.rows, paths.own.shape[1]
    excess, alpha, costs = state.excess[rows], state.alpha[rows], tableau.problem.costs[rows]
    moves, offset_free = _movements(tableau.table, paths, stopped, excess[:width])
    # The largest movements are converted to units of the kernel and rounded up.
    moves = moves[~offset_free].max(axis=0, initial=0.0) * _ROUNDED_UP + limits.zero
    moves[0] /= math.sqrt(tableau.unit)
    concerned = np.abs(excess) <= moves[1] + moves[0] * tableau.centroid_distances
    concerned |= (excess < 0) & (alpha < costs) | (excess > 0) & (alpha > 0)
    concerned[:width] = True
    everyone = np.ones(len(rows), dtype=bool)  # any row may limit a free offset
    for some, seen, allowed in (
        (stopped[~offset_free], concerned, moves),
        (stopped[offset_free], everyone, np.full(2, np.inf)),
    ):
        if len(some):
            view = view_of(tableau, paths, some, np.flatnonzero(seen), allowed)
            _check_paths(
                view, tableau.table, paths, some, limits, found.margin, found.exact, found.proven
            )
    return found


def state_of(tableau: Tableau, paths: Paths, k: int) -> PathState:
    """Return the state of all rows where a path stands."""
    view = view_of(tableau, paths, np.array([k]), np.arange(len(tableau.rows)), np.full(2, np.inf))
    state = _checked_state(view, tableau.table, paths, k, 0)
    p, kind = tableau.rows[paths.row[k]], paths.kind[k]
    alpha, excess = tableau.state.alpha.copy(), tableau.state.excess.copy()
    alpha[view.rows], excess[view.rows] = state.alpha, state.excess
    alpha[p], excess[p] = paths.remaining[k] / tableau.unit, state.margin - 1
    in_bound = np.zeros(len(alpha), dtype=bool)
    in_bound[tableau.rows[: len(kind)]] = (kind == IN_BOUND) | (kind == PARKED)
    return PathState(alpha, excess, in_bound)


def _offset_holders(
    table: TableauColumns, paths: Paths, k: int, alpha: FloatArray
) -> tuple[BoolArray, bool]:
    """Return which watched rows hold the offset, and whether all in-bound rows are at a bound.

    A row holds the offset if it is clearly inside its box. If no row does, and all in-bound rows
    are at a bound, the offset is free. In between, it cannot be decided whether it is.
    """
    kind, costs = paths.kind[k], table.costs[: len(alpha)]
    in_bound = (kind == IN_BOUND) | (kind == PARKED)
    room = np.minimum(alpha, costs - alpha)
    size, size_now = np.minimum(costs, table.alpha.max()), np.minimum(costs, alpha.max())
    holders = in_bound & (room > np.maximum(_CLEARLY_INSIDE * size, _NEARLY_AT_BOUND * size_now))
    return holders, not (in_bound & (np.abs(room) > ALPHA_ROUNDING * size)).any()


@compiled(dual_variables, _offset_holders)
def _movements(
    table: TableauColumns, paths: Paths, some: IndexArray, start: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """Return how far some of the paths have moved, and whether their ends leave the offset free.

    Between two states, the decision value of a row moves by at most as much as that of the centroid
    of the base rows, plus the distance of the row from the centroid times the movement ``|w - w'|``
    of the weight vector. It holds that ``|w - w'|^2 = sum_j (alpha_j - alpha'_j) (g_j - g'_j)``, a
    sum over the rows whose alpha has changed. Here both movements are computed from the coordinates
    of the paths; `_check_paths` verifies them.

    Parameters
    ----------
    table, paths
        The columns of the tableau, and the paths.
    some
        Indices of the paths that have stopped.
    start
        ``g`` of the watched rows at the start of the paths.

    Returns
    -------
    The movements of the weight vector (in units of the tableau) and of the centroid, shape (k, 2),
    and a mask of the paths whose ends leave the offset free, shape (k,).
    """
    n, width = table.n_base, len(start)
    moves = np.zeros((len(some), 2))
    offset_free = np.zeros(len(some), dtype=np.bool_)
    for i in range(len(some)):
        k = some[i]
        p, kind = paths.row[k], paths.kind[k]
        alpha = dual_variables(table, paths, k)
        change = ((kind == ZERO) | (kind == BOUNDED)) * paths.value[k] - start
        change *= kind != PARKED
        change_of_p = paths.margin[k] - paths.start_margin[k]
        if p < width:
            change[p] = change_of_p
        square = ((alpha - table.alpha[:width]) * change).sum()
        if p >= width:
            square += (paths.remaining[k] - table.alpha[p]) * change_of_p
        moves[i, 0] = np.sqrt(max(square, 0.0))
        moves[i, 1] = np.abs((table.y[:n] * change[:n]).sum()) / n
        if paths.outcome[k] == END:
            holders, at_bounds = _offset_holders(table, paths, k, alpha)
            offset_free[i] = at_bounds and not holders.any()
    return moves, offset_free


class View(NamedTuple):
    """The rows on which the states of some paths are computed anew from their dual variables.

    Attributes
    ----------
    rows
        Indices of the rows, shape (v,); the first w are those that paths watch, in tableau order.
    place
        Position of the removed row of each path in `rows`, or -1 if it is not there, shape (k,).
    unit
        Unit of the kernel in the tableau.
    y, costs, alpha, excess
        Labels, costs, dual variables and ``g = y f - 1`` at the start of the paths, shape (v,).
    changed, changed_of_p
        Changes of ``y alpha`` in units of the tableau: of the watched rows without p, shape (k, w),
        and of p, shape (k,).
    products, products_of_p
        Products of the kernel with the changes of ``y alpha``: for the rows, shape (k, v), and for
        p, shape (k,).
    allowed
        Largest movements of the weight vector and of the centroid for which all rows outside the
        view can be ignored.
    """

    rows: IndexArray
    place: IndexArray
    unit: float
    y: FloatArray
    costs: FloatArray
    alpha: FloatArray
    excess: FloatArray
    changed: FloatArray
    changed_of_p: FloatArray
    products: FloatArray
    products_of_p: FloatArray
    allowed: FloatArray


def view_of(
    tableau: Tableau, paths: Paths, some: IndexArray, positions: IndexArray, allowed: FloatArray
) -> View:
    """Return the view of some paths on the rows at the given positions of the tableau."""
    problem, state, n = tableau.problem, tableau.state, tableau.table.n_base
    at, width = paths.row[some], paths.own.shape[1]
    rows, removed = tableau.rows[positions], tableau.rows[at]
    place = np.full(len(tableau.rows), -1, dtype=np.intp)
    place[positions] = np.arange(len(positions))
    changed = _changes(tableau.table, paths, some)
    changed_of_p = problem.y[removed] * (paths.remaining[some] - tableau.table.alpha[at])
    K_p = problem.K.block(removed, rows)
    products_of_p = np.einsum("kj,kj->k", changed, K_p[:, :width])
    products_of_p += changed_of_p * problem.K.diagonal()[removed]
    products = changed[:, :n] @ problem.K.block(rows[:n], rows)
    # Few of the other rows move on each path.
    moved = n + np.flatnonzero(changed[:, n:].any(axis=0))
    if len(moved):
        products += csr_array(changed[:, moved]) @ problem.K.block(rows[moved], rows)
    K_p *= changed_of_p[:, None]
    products += K_p
    products /= tableau.unit
    return View(
        rows=rows,
        place=place[at],
        unit=tableau.unit,
        y=problem.y[rows],
        costs=problem.costs[rows],
        alpha=state.alpha[rows],
        excess=state.excess[rows],
        changed=changed,
        changed_of_p=changed_of_p,
        products=products,
        products_of_p=products_of_p / tableau.unit,
        allowed=allowed,
    )


@compiled(dual_variables)
def _changes(table: TableauColumns, paths: Paths, some: IndexArray) -> FloatArray:
    """Return how ``y alpha`` of the watched rows without p has changed on some of the paths."""
    width = paths.own.shape[1]
    changed = np.empty((len(some), width))
    for i in range(len(some)):
        k = some[i]
        alpha = dual_variables(table, paths, k)
        changed[i] = table.y[:width] * (alpha - table.alpha[:width])
        if paths.row[k] < width:
            changed[i, paths.row[k]] = 0.0
    return changed


class _CheckedState(NamedTuple):
    """The state of a path on the rows of a view, computed anew.

    Attributes
    ----------
    alpha, excess
        Dual variables and ``g = y f - 1``, shape (v,). ``g_p`` is set to 0, because p has no
        condition.
    margin
        Margin ``y_p f(x_p)`` of the removed row.
    worst_in_bound
        The largest ``|g|`` of the IN_BOUND rows.
    sound
        Whether the dual variables are feasible, rows outside the view can be ignored, and it is
        clear whether the offset is free.
    """

    alpha: FloatArray
    excess: FloatArray
    margin: float
    worst_in_bound: float
    sound: bool


def _checked_state(
    view: View, table: TableauColumns, paths: Paths, k: int, i: int
) -> _CheckedState:
    """Return the state of path k, which is number i of the view."""
    y, costs, place, n = view.y, view.costs, view.place[i], table.n_base
    y_p = table.y[paths.row[k]]
    own = dual_variables(table, paths, k)
    width = len(own)
    limit = table.costs[:width]
    in_bound = paths.kind[k] == IN_BOUND
    holders, at_bounds = _offset_holders(table, paths, k, own)
    count = holders.sum()
    changed, products = view.changed[i], view.products[i]
    imbalance = np.abs(changed.sum() + view.changed_of_p[i])
    outside = (in_bound * np.maximum(-own, own - limit)).max()
    sound = imbalance <= _IMBALANCE * paths.whole[k] and outside <= _OUTSIDE * table.alpha.max()
    own = np.minimum(np.maximum(own, 0.0), limit)
    if count == 0 and at_bounds:
        own = np.where(in_bound, np.where(own < limit - own, 0.0, limit), own)
    alpha = view.alpha.copy()
    alpha[:width] = own / view.unit
    excess = view.excess + y * products
    margin = paths.start_margin[k] + y_p * view.products_of_p[i]
    if count > 0:
        # In-bound rows have margin 1.
        shift = -(holders * y[:width] * excess[:width]).sum() / count
    elif paths.outcome[k] == END:
        # No row holds the offset: take the middle of the interval that the rows allow.
        sound = sound and at_bounds
        lower, upper = offset_ends(y, costs, alpha, y + y * excess)
        if place >= 0:
            lower[place], upper[place] = -np.inf, np.inf
        shift = (lower.max() + upper.min()) / 2
    else:
        shift = y_p * (paths.margin[k] - margin)
    square = (changed * products[:width]).sum() + view.changed_of_p[i] * view.products_of_p[i]
    movement = np.sqrt(max(square, 0.0) / view.unit)
    sound = sound and movement <= view.allowed[0]
    sound = sound and np.abs(products[:n].sum() / n + shift) <= view.allowed[1]
    excess += shift * y
    margin += y_p * shift
    if place >= 0:
        excess[place] = 0.0
    worst_in_bound = (in_bound * np.abs(excess[:width])).max()
    return _CheckedState(alpha, excess, margin, worst_in_bound, sound)


@compiled(dual_variables, offset_ends, optimality_gaps, _offset_holders, _checked_state)
def _check_paths(
    view: View,
    table: TableauColumns,
    paths: Paths,
    some: IndexArray,
    limits: Limits,
    margins: FloatArray,
    exact: BoolArray,
    proven: BoolArray,
) -> None:
    """Enter what the states of some of the paths prove.

    The error certificate is ``y_p f(x_p) + gap / alpha_p < 0``, and the success certificate is that
    of `span_hpo.loo.certificates`. At the end of a path, the state is the solution without p if it
    satisfies the KKT conditions, however it was reached.
    """
    costs, unit = view.costs, view.unit
    for i in range(len(some)):
        k = some[i]
        state = _checked_state(view, table, paths, k, i)
        alpha, excess = state.alpha, state.excess
        if not state.sound:
            continue
        if paths.outcome[k] == END:
            worst = max((-excess * (alpha < costs)).max(), (excess * (alpha > 0)).max())
            margins[k] = state.margin
            exact[k] = proven[k] = worst <= limits.violation
            continue
        gap = optimality_gaps(excess, alpha, costs).sum() * unit
        if paths.outcome[k] == ERROR:
            margins[k] = state.margin + gap / paths.remaining[k]
            proven[k] = margins[k] < -limits.zero
        else:
            lost = (gap + paths.weight[k] * state.worst_in_bound) / paths.beyond[k]
            margins[k] = paths.bound[k] + (state.margin - paths.margin[k]) - lost
            proven[k] = margins[k] > limits.zero
