"""The rows on which the states of stopped paths are computed anew from their dual variables.

Rows far from their margins need not be looked at: between two states, the decision value of a row
moves by at most as much as that of the centroid of the base rows, plus the distance of the row from
the centroid times the movement ``|w - w'|`` of the weight vector. It holds that
``|w - w'|^2 = sum_j (alpha_j - alpha'_j) (g_j - g'_j)``, a sum over the rows whose alpha has
changed. Both movements are first computed from the coordinates of the paths, which selects the
rows, and later verified by `span_hpo.loo.path.check`.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from span_hpo.loo.path.segments import (
    BOUNDED,
    END,
    IN_BOUND,
    PARKED,
    SUCCESS,
    ZERO,
    Paths,
    TableauColumns,
    dual_variables,
)
from span_hpo.loo.path.tableau import Tableau
from span_hpo.runtime import BoolArray, FloatArray, IndexArray, compiled
from span_hpo.solver import ALPHA_ROUNDING, dot_rounding

_ROUNDED_UP = 1 + 1e-3  # factor that rounds up the movements by which rows are selected
# A row is clearly inside its box if it is farther from its bounds than both of these distances.
_CLEARLY_INSIDE = 1e-8  # distance from a bound, relative to C_i and the largest alpha at the base
_NEARLY_AT_BOUND = 1e-5  # distance from a bound, relative to C_i and the largest alpha now
_SMALL_PRODUCT = 20_000_000  # multiplications up to which zeros cost less than finding them
_OUTSIDE = 1e-11  # how far alpha may leave its box, relative to the largest alpha at the base


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


class Stops(NamedTuple):
    """What the coordinates of k stopped paths say about their states.

    Attributes
    ----------
    alpha
        Dual variables of the watched rows, moved into the box and 0 for the removed row, in units
        of the tableau, shape (k, w).
    holders
        Mask of the watched rows that determine the offset, shape (k, w).
    moves
        Movements of the weight vector (in units of the tableau) and of the centroid, shape (k, 2).
    offset_free
        Mask of the ends that leave the offset free, shape (k,).
    sound
        Mask of the paths whose dual variables were in the box up to rounding and leave no doubt
        whether the offset is free, shape (k,).
    """

    alpha: FloatArray
    holders: BoolArray
    moves: FloatArray
    offset_free: BoolArray
    sound: BoolArray

    def take(self, chosen: IndexArray) -> "Stops":
        """Return some of the stops."""
        return Stops(
            self.alpha[chosen],
            self.holders[chosen],
            self.moves[chosen],
            self.offset_free[chosen],
            self.sound[chosen],
        )


@compiled
def _enter_stops(
    table: TableauColumns, paths: Paths, some: IndexArray, start: FloatArray, stops: Stops
) -> None:
    """Fill in the `stops` of some paths; `start` is ``g`` of the watched rows at the base."""
    n, width = table.n_base, len(start)
    costs = table.costs[:width]
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
        stops.moves[i, 0] = np.sqrt(max(square, 0.0))
        stops.moves[i, 1] = np.abs((table.y[:n] * change[:n]).sum()) / n
        holders, at_bounds = _offset_holders(table, paths, k, alpha)
        in_bound = kind == IN_BOUND
        outside = (in_bound * np.maximum(-alpha, alpha - costs)).max()
        held = holders.any()
        at_end = paths.outcome[k] == END
        stops.offset_free[i] = at_end and at_bounds and not held
        stops.sound[i] = outside <= _OUTSIDE * table.alpha.max()
        stops.sound[i] = stops.sound[i] and (held or at_bounds or not at_end)
        alpha = np.minimum(np.maximum(alpha, 0.0), costs)
        if at_bounds and not held:
            alpha = np.where(in_bound, np.where(alpha < costs - alpha, 0.0, costs), alpha)
        if p < width:
            alpha[p] = 0.0
        stops.alpha[i] = alpha
        stops.holders[i] = holders


def stops_of(tableau: Tableau, paths: Paths, some: IndexArray) -> Stops:
    """Return what the coordinates of some paths say about their states."""
    count, width = len(some), paths.own.shape[1]
    stops = Stops(
        alpha=np.empty((count, width)),
        holders=np.empty((count, width), dtype=bool),
        moves=np.zeros((count, 2)),
        offset_free=np.zeros(count, dtype=bool),
        sound=np.zeros(count, dtype=bool),
    )
    start = tableau.state.excess[tableau.rows[:width]]
    _enter_stops(tableau.table, paths, some, start, stops)
    return stops


def concerned_rows(
    tableau: Tableau, stops: Stops, width: int, slack: float
) -> tuple[IndexArray, FloatArray]:
    """Return the rows whose margins may matter, and the largest movements for which this holds.

    Parameters
    ----------
    tableau, stops
        The tableau, and the stops whose offset is not free.
    width
        Number of rows that the paths watch, which are always among the rows.
    slack
        Movement of margins that is allowed for in addition.

    Returns
    -------
    The positions of the rows in tableau order, and the movements of the weight vector and of the
    centroid.
    """
    state, rows = tableau.state, tableau.rows
    excess, alpha, costs = state.excess[rows], state.alpha[rows], tableau.problem.costs[rows]
    moves = stops.moves.max(axis=0, initial=0.0) * _ROUNDED_UP + slack
    moves[0] /= math.sqrt(tableau.unit)
    reach = state.rounding[rows] + moves[1] + moves[0] * tableau.centroid_distances
    concerned = np.abs(excess) <= reach
    concerned |= (excess < 0) & (alpha < costs) | (excess > 0) & (alpha > 0)
    concerned[:width] = True
    return np.flatnonzero(concerned), moves


class View(NamedTuple):
    """The rows on which the states of k paths are computed anew.

    Attributes
    ----------
    rows
        Indices of the rows, shape (v,); the first w are those that paths watch, in tableau order.
    place
        Position of the removed row of each path in `rows`, or -1 if it is not there, shape (k,).
    y, costs, alpha, excess
        Labels, costs, dual variables and ``g = y f - 1`` at the start of the paths, shape (v,).
    rounding, roots, distances
        Bounds on the rounding errors of ``excess``, ``sqrt(K_jj)``, and distances from the centroid
        of the base, shape (v,).
    own, holders
        Dual variables of the watched rows where the paths stand, without p, and the mask of those
        that determine the offset, shape (k, w).
    whole, left
        Dual variable of p in the fit, and where the paths stand, shape (k,).
    products, products_of_p
        Products of the kernel with the changes of ``y alpha``: for the rows, shape (k, v), and for
        p, shape (k,).
    square, spread
        Squared movement of the weight vector, and ``sum_j |y_j alpha_j - y_j alpha'_j| sqrt(K_jj)``
        as a measure of the rounding of products, shape (k,).
    imbalance
        Sum ``y'alpha`` where the paths stand, and a bound on its rounding error, shape (k, 2).
    K_p, K_pp
        Kernel values of p with the watched rows, shape (k, w), and with itself, shape (k,).
    K_base, K_moved, moved
        Kernel values of the n base rows, and of those other rows that some path has moved or moves,
        with all rows, shape (n, v) and (m, v), and the positions of the latter, shape (m,).
    rounding_of_p, distance_of_p
        Bound on the rounding error of the margin of p at the start, and its distance from the
        centroid of the base, shape (k,).
    n_terms
        Number of products in each of the sums.
    allowed
        Largest movements of the weight vector and of the centroid for which all rows outside the
        view can be ignored.
    """

    rows: IndexArray
    place: IndexArray
    y: FloatArray
    costs: FloatArray
    alpha: FloatArray
    excess: FloatArray
    rounding: FloatArray
    roots: FloatArray
    distances: FloatArray
    own: FloatArray
    holders: BoolArray
    whole: FloatArray
    left: FloatArray
    products: FloatArray
    products_of_p: FloatArray
    square: FloatArray
    spread: FloatArray
    imbalance: FloatArray
    K_p: FloatArray
    K_base: FloatArray
    K_moved: FloatArray
    moved: IndexArray
    K_pp: FloatArray
    rounding_of_p: FloatArray
    distance_of_p: FloatArray
    n_terms: int
    allowed: FloatArray


def view_of(
    tableau: Tableau,
    paths: Paths,
    some: IndexArray,
    stops: Stops,
    positions: IndexArray,
    allowed: FloatArray,
) -> View:
    """Return the view of some paths, with their stops, on the rows at the given positions."""
    problem, state, n = tableau.problem, tableau.state, tableau.table.n_base
    at, width = paths.row[some], stops.alpha.shape[1]
    rows, removed = tableau.rows[positions], tableau.rows[at]
    place = np.full(len(tableau.rows), -1, dtype=np.intp)
    place[positions] = np.arange(len(positions))
    own, left = stops.alpha / tableau.unit, paths.remaining[some] / tableau.unit
    before = np.repeat(state.alpha[rows[None, :width]], len(some), axis=0)
    near = np.flatnonzero(at < width)
    before[near, at[near]] = 0.0  # the change of p is counted apart
    changed = (own - before) * problem.y[rows[:width]]
    changed_of_p = problem.y[removed] * (left - state.alpha[removed])
    diagonal = problem.K.diagonal()
    roots = np.sqrt(np.abs(diagonal))
    K_p = problem.K.block(removed, rows)
    products_of_p = np.einsum("kj,kj->k", changed, K_p[:, :width])
    products_of_p += changed_of_p * diagonal[removed]
    moved = _moved(n, changed, paths.direction[some])
    K_base, K_moved = problem.K.block(rows[:n], rows), problem.K.block(rows[moved], rows)
    products = _products(changed, K_base, K_moved, moved)
    products += K_p * changed_of_p[:, None]
    square = np.einsum("kj,kj->k", changed, products[:, :width]) + changed_of_p * products_of_p
    sizes = np.abs(changed)
    n_terms = n + len(moved) + 1
    total = state.imbalance + changed.sum(axis=1) + changed_of_p
    size = abs(state.imbalance) + sizes.sum(axis=1) + np.abs(changed_of_p)
    return View(
        rows=rows,
        place=place[at],
        y=problem.y[rows],
        costs=problem.costs[rows],
        alpha=state.alpha[rows],
        excess=state.excess[rows],
        rounding=state.rounding[rows],
        roots=roots[rows],
        distances=tableau.centroid_distances[positions],
        own=own,
        holders=stops.holders,
        whole=paths.whole[some] / tableau.unit,
        left=left,
        products=products,
        products_of_p=products_of_p,
        square=square,
        spread=sizes @ roots[rows[:width]] + np.abs(changed_of_p) * roots[removed],
        imbalance=np.column_stack([total, dot_rounding(n_terms, size)]),
        K_p=K_p[:, :width],
        K_base=K_base,
        K_moved=K_moved,
        moved=moved,
        K_pp=diagonal[removed],
        rounding_of_p=state.rounding[removed],
        distance_of_p=tableau.centroid_distances[at],
        n_terms=n_terms,
        allowed=allowed,
    )


def _moved(n: int, changed: FloatArray, direction: FloatArray) -> IndexArray:
    """Return the watched rows outside the base that have moved or are about to move."""
    moved: IndexArray = n + np.flatnonzero((changed[:, n:] != 0).any(axis=0))
    moving = n + np.flatnonzero((direction[:, n:] != 0).any(axis=0))
    return np.union1d(moved, moving)


def _products(
    changes: FloatArray, K_base: FloatArray, K_moved: FloatArray, moved: IndexArray
) -> FloatArray:
    """Return the products of the kernel with changes of the watched rows."""
    products: FloatArray = changes[:, : len(K_base)] @ K_base
    if len(moved) == 0:
        return products
    others = changes[:, moved]
    if len(changes) * K_moved.size <= _SMALL_PRODUCT:
        products += others @ K_moved
    else:
        products += csr_array(others) @ K_moved  # few of these rows move on each path
    return products


class Beyond(NamedTuple):
    """Points beyond ``alpha_p = 0``, to which the last directions of m paths lead.

    Attributes
    ----------
    place
        Position of each path of a view among the m paths, or -1, shape (k,).
    step
        Distance ``s`` beyond ``alpha_p = 0``, shape (m,).
    rows
        Positions of the r rows that move on some of the paths, shape (r,).
    sizes
        How far each of these rows moves, shape (m, r).
    square
        Upper bound of the squared movement of the weight vector, shape (m,).
    imbalance
        Upper bound of ``|y'alpha|`` at the point, shape (m,).
    holder
        Position of a row that has room to make up for the imbalance, or -1, shape (m,).
    """

    place: IndexArray
    step: FloatArray
    rows: IndexArray
    sizes: FloatArray
    square: FloatArray
    imbalance: FloatArray
    holder: IndexArray


def beyond_of(tableau: Tableau, paths: Paths, some: IndexArray, view: View) -> Beyond:
    """Return the points that are to prove the success of those paths that claim it.

    The rows move along the direction of the path until ``alpha_p = -s``, but stay in their boxes.
    """
    claims = np.flatnonzero(paths.outcome[some] == SUCCESS)
    place = np.full(len(some), -1, dtype=np.intp)
    place[claims] = np.arange(len(claims))
    chosen = some[claims]
    rows = np.concatenate([np.arange(tableau.table.n_base), view.moved])
    K = np.concatenate([view.K_base[:, rows], view.K_moved[:, rows]])
    y, costs, roots = view.y[rows], view.costs[rows], view.roots[rows]
    own, K_p = view.own[claims[:, None], rows], view.K_p[claims[:, None], rows]
    step = paths.beyond[chosen] / tableau.unit
    length = view.left[claims] + step
    target = own + length[:, None] * paths.direction[chosen[:, None], rows]
    np.minimum(np.maximum(target, 0.0, out=target), costs, out=target)
    moves = (target - own) * y
    of_p = -tableau.table.y[paths.row[chosen]] * length
    square = np.einsum("kj,kj->k", moves @ K + 2 * of_p[:, None] * K_p, moves)
    square += of_p * of_p * view.K_pp[claims]
    sizes = np.abs(moves)
    spread = sizes @ roots + length * np.sqrt(np.abs(view.K_pp[claims]))
    n_terms = len(rows) + 1
    room = np.minimum(target, costs - target)
    start, rounding = view.imbalance[claims].T
    imbalance = np.abs(start + moves.sum(axis=1) + of_p) + rounding
    imbalance += dot_rounding(n_terms, sizes.sum(axis=1) + length)
    return Beyond(
        place=place,
        step=step,
        rows=rows,
        sizes=sizes,
        square=np.maximum(square, 0.0) + dot_rounding(2 * n_terms, spread * spread),
        imbalance=imbalance,
        holder=np.where(room.max(axis=1) > imbalance, rows[room.argmax(axis=1)], -1),
    )
