"""Exact leave-one-out: the ends of dual paths, and the proof that they are what they seem."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from span_hpo.arrays import BoolArray, FloatArray, IndexArray
from span_hpo.certificates import Proofs, optimality_gaps
from span_hpo.errors import SolverError
from span_hpo.jit import compiled
from span_hpo.path import (
    BOUNDED,
    END,
    ERROR,
    INSIDE,
    LONG,
    MOST_CHANGED,
    MOST_SEGMENTS,
    PARKED,
    SUCCESS,
    ZERO,
    Columns,
    Paths,
    dual_variables,
)
from span_hpo.polish import offset_ends
from span_hpo.solver import DualSolution, Problem
from span_hpo.tableau import State, Tableau

_ENTRIES_AT_ONCE = 1_000_000  # coordinates of paths that are held in one array
_SIMILAR = 3  # paths that watch fewer rows by this factor are followed by themselves,
_WORTH_A_BLOCK = 100_000  # if that saves as many coordinates
_ROUNDED_UP = 1 + 1e-6  # of a movement that is computed
_VIOLATION = 1e-6  # of the KKT conditions at the end of a path, in units of the margin
_NOISE_FACTOR = 1e3  # the same in units of the rounding of a margin,
_LARGEST_VIOLATION = 1e-3  # but never more than this
_AT_BOUND = 1e-13  # relative to C_i and the largest alpha of the fit: closer is at the bound
_CLEARLY_INSIDE = 1e-8  # the same: further is inside, whatever rounding has done,
_NEARLY_AT_BOUND = 1e-5  # if it is also more than this, relative to C_i and the largest alpha now
_MOST_TABLEAUX = 8  # for one path


def is_optimal(solution: DualSolution) -> bool:
    """Tell whether a fit fulfils the KKT conditions well enough for paths to start from it."""
    return solution.converged and solution.kkt_violation() <= _violation_limit(solution)


def _violation_limit(solution: DualSolution) -> float:
    return min(_VIOLATION + _NOISE_FACTOR * solution.margin_noise, _LARGEST_VIOLATION)


def follow_rows(solution: DualSolution, rows: IndexArray, *, complete: bool) -> Proofs:
    """Follow the dual paths of some support vectors.

    Parameters
    ----------
    solution
        A fit that is optimal up to rounding.
    rows
        Support vectors, none of them the last of its class.
    complete
        Follow every path to its end, not only until the class is proven.

    Returns
    -------
    What was found for each of the rows.
    """
    problem, y = solution.problem, solution.problem.y
    excess = y * solution.decision_values - 1
    some_inside = bool(solution.in_bound.any())
    hull = solution.hull if some_inside else None
    start = State(solution.alpha, excess, solution.in_bound, hull)
    violation = _violation_limit(solution)
    if some_inside:
        groups = [(start, np.arange(len(rows)))]
    else:
        groups = [
            (_slid(problem, start, label), np.flatnonzero(y[rows] == label))
            for label in (-1.0, 1.0)
        ]
    result = Proofs.none(len(rows))
    for state, todo in groups:
        # A path that proves nothing may have met a row that was not watched, or have stopped too
        # early for what rounding leaves of the gap: once more, with all rows and to the end.
        for watch, to_end in (("end" if complete else "class", complete), ("all", True)):
            if len(todo):
                found = _settled(problem, state, rows[todo], watch, violation, to_end)
                result.put(todo, found)
                todo = todo[~found.proven]
    return result


def _settled(
    problem: Problem, state: State, rows: IndexArray, watch: str, violation: float, complete: bool
) -> Proofs:
    """Follow paths from one state, and judge where they end."""
    tableau = Tableau(problem, state)
    result = Proofs.none(len(rows))
    watched = tableau.watched(rows, watch)
    for block in _blocks(watched):
        todo, count = block, watched[block]
        for careful in (False, True):
            if len(todo):
                if careful:
                    count = np.full(len(todo), count.max())
                paths = tableau.paths(rows[todo], state.alpha[rows[todo]], count)
                tableau.follow(paths, complete or careful)
                result.put(todo, _judged(tableau, paths, violation))
                for k in np.flatnonzero(paths.outcome == LONG):
                    result.put(todo[[k]], _continued(tableau, paths, int(k), violation, complete))
                todo = todo[~result.proven[todo]]
    return result


def _blocks(watched: IndexArray) -> Iterator[IndexArray]:
    """Yield paths that are followed together: of similar width, the widest first."""
    order = np.argsort(-watched, kind="stable")
    while len(order):
        widest = int(watched[order[0]])
        count = max(1, _ENTRIES_AT_ONCE // widest)
        similar = int(np.count_nonzero(watched[order] * _SIMILAR >= widest))
        if (len(order) - similar) * widest > _WORTH_A_BLOCK:
            count = min(count, similar)
        yield order[:count]
        order = order[count:]


def _continued(tableau: Tableau, paths: Paths, k: int, violation: float, complete: bool) -> Proofs:
    """Go on with a long path, in a new tableau of where it stands."""
    row = tableau.rows[paths.row[[k]]]
    whole = paths.whole[[k]] / tableau.unit
    for _ in range(_MOST_TABLEAUX):
        tableau = Tableau(tableau.problem, _state_of(tableau, paths, k))
        paths, k = tableau.paths(row, whole, tableau.watched(row, "all")), 0
        tableau.follow(paths, complete)
        if paths.outcome[0] != LONG:
            break
    return _judged(tableau, paths, violation)


def _state_of(tableau: Tableau, paths: Paths, k: int) -> State:
    """Return where a path stands, with at least one row inside."""
    view = _view_of(tableau, paths, np.array([k]), np.arange(len(tableau.rows)))
    point = _point(view, tableau.table, paths, k, 0)
    p, kind = paths.row[k], paths.kind[k]
    alpha, excess = tableau.state.alpha.copy(), tableau.state.excess.copy()
    alpha[view.rows], excess[view.rows] = point.alpha, point.excess
    alpha[tableau.rows[p]] = paths.remaining[k] / tableau.unit
    excess[tableau.rows[p]] = point.margin - 1
    inside = np.zeros(len(alpha), dtype=bool)
    inside[tableau.rows[: len(kind)]] = (kind == INSIDE) | (kind == PARKED)
    state = State(alpha, excess, inside)
    if inside.any():
        return state
    return _slid(tableau.problem, state, float(tableau.table.y[p]))


@dataclass(frozen=True, eq=False)
class DualPath:
    """How a support vector leaves the fit: a chain of straight segments.

    Attributes
    ----------
    alpha
        Dual variable of the row at the kinks, from its value in the fit to 0.
    margin
        ``y_p f(x_p)`` at the kinks. It never rises; where alpha stays and the margin falls, the
        offset slides.
    """

    alpha: FloatArray
    margin: FloatArray


def dual_path(solution: DualSolution, row: int) -> DualPath:
    """Follow the dual path of one support vector, kink by kink.

    Parameters
    ----------
    solution
        A fit that is optimal up to rounding.
    row
        A support vector, not the last of its class.

    Raises
    ------
    SolverError
        If the path loses its precision.
    """
    problem, rows = solution.problem, np.array([row])
    whole = solution.alpha[rows]
    state = State(solution.alpha, problem.y * solution.decision_values - 1, solution.in_bound)
    alpha, margin = [float(whole[0])], [1 + float(state.excess[row])]
    if not solution.in_bound.any():
        state = _slid(problem, state, float(problem.y[row]))
        alpha.append(alpha[0])
        margin.append(1 + float(state.excess[row]))
    for _ in range(_MOST_TABLEAUX):
        tableau = Tableau(problem, state)
        paths = tableau.paths(rows, whole, tableau.watched(rows, "all"))
        for _ in range(MOST_SEGMENTS):
            paths.segments[0] = 0
            tableau.follow(paths, complete=True, most_segments=1)
            alpha.append(float(paths.remaining[0]) / tableau.unit)
            margin.append(float(paths.margin[0]))
            if paths.outcome[0] != LONG or paths.n_changed[0] == MOST_CHANGED:
                break
        if paths.outcome[0] == END:
            return DualPath(np.array(alpha), np.array(margin))
        state = _state_of(tableau, paths, 0)
    raise SolverError(f"The dual path of row {row} loses its precision.")


def _judged(tableau: Tableau, paths: Paths, violation: float) -> Proofs:
    """Return what the states prove at which the paths have stopped."""
    found = Proofs.none(len(paths.row))
    stopped = np.flatnonzero(np.isin(paths.outcome, (ERROR, SUCCESS, END)))
    width, everyone = paths.own.shape[1], np.arange(len(tableau.rows))
    start = tableau.state.excess[tableau.rows[:width]]
    movement, of_centroid, free = _movements(tableau.table, paths, stopped, start)
    far = tableau.centroid_distances * (movement[~free].max(initial=0.0) / math.sqrt(tableau.unit))
    far += of_centroid[~free].max(initial=0.0)
    far *= _ROUNDED_UP
    concerned = np.abs(tableau.state.excess[tableau.rows]) <= far
    concerned[:width] = True
    # A free offset may be limited by any row.
    for some, positions in ((stopped[~free], everyone[concerned]), (stopped[free], everyone)):
        if len(some):
            view = _view_of(tableau, paths, some, positions)
            _judge(view, tableau.table, paths, some, violation, *vars(found).values())
    return found


def _hold(table: Columns, paths: Paths, k: int, alpha: FloatArray) -> tuple[BoolArray, bool]:
    """Tell which watched rows hold the offset where path k stands, and whether it may be free.

    A row holds it if it is clearly inside its box. If none does, and all that are INSIDE are at
    a bound, the offset is free; in between it cannot be told.
    """
    kind, costs = paths.kind[k], table.costs[: len(alpha)]
    inside = (kind == INSIDE) | (kind == PARKED)
    room = np.minimum(alpha, costs - alpha)
    size = np.minimum(costs, table.alpha.max())
    small = np.minimum(costs, alpha.max())
    holding = inside & (room > np.maximum(_CLEARLY_INSIDE * size, _NEARLY_AT_BOUND * small))
    free = not (inside & (np.abs(room) > _AT_BOUND * size)).any()
    return holding, free


@compiled(dual_variables, _hold)
def _movements(
    table: Columns, paths: Paths, some: IndexArray, start: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return how far some of the paths have gone, and whether their ends leave the offset free.

    Between two states the decision value of a row moves by at most as much as that of the centroid
    of the base rows, plus the distance of the row from the centroid times the movement ``|w - w'|``
    of the weight vector; ``|w - w'|^2 = sum_j (alpha_j - alpha'_j) (g_j - g'_j)``, a sum over rows
    that have moved.

    Returns
    -------
    The movements of the weight vector (in units of the tableau) and of the centroid, and the mask,
    shape (k,) each.
    """
    n, width = table.n_base, len(start)
    movement, of_centroid = np.zeros(len(some)), np.zeros(len(some))
    free = np.zeros(len(some), dtype=np.bool_)
    for i in range(len(some)):
        k = some[i]
        p = paths.row[k]
        alpha = dual_variables(table, paths, k)
        kind = paths.kind[k]
        change = ((kind == ZERO) | (kind == BOUNDED)) * paths.value[k] - start
        change *= kind != PARKED
        fall = paths.margin[k] - paths.start_margin[k]
        if p < width:
            change[p] = fall
        square = ((alpha - table.alpha[:width]) * change).sum()
        if p >= width:
            square += (paths.remaining[k] - table.alpha[p]) * fall
        movement[i] = np.sqrt(max(square, 0.0))
        of_centroid[i] = np.abs((table.y[:n] * change[:n]).sum()) / n
        if paths.outcome[k] == END:
            holding, at_bounds = _hold(table, paths, k, alpha)
            free[i] = at_bounds and not holding.any()
    return movement, of_centroid, free


class _View(NamedTuple):
    """The rows on which the states of some paths are computed anew from their dual variables.

    Attributes
    ----------
    rows
        The rows, shape (v,); the first are those that paths watch, in tableau order.
    place
        Where the removed row of each path is among them, -1 if it is not, shape (k,).
    unit
        The unit of the kernel in the tableau.
    y, costs, alpha, excess
        Of the rows at the start of the paths, shape (v,).
    products
        Kernel times the change of ``y alpha`` on each path, shape (k, v).
    own_products
        The same for the removed row, shape (k,).
    """

    rows: IndexArray
    place: IndexArray
    unit: float
    y: FloatArray
    costs: FloatArray
    alpha: FloatArray
    excess: FloatArray
    products: FloatArray
    own_products: FloatArray


def _view_of(tableau: Tableau, paths: Paths, some: IndexArray, positions: IndexArray) -> _View:
    """Return the view of some paths on the rows at the given positions of the tableau."""
    problem, state, n = tableau.problem, tableau.state, tableau.table.n_base
    rows, removed = tableau.rows[positions], tableau.rows[paths.row[some]]
    width = paths.own.shape[1]
    place = np.full(len(tableau.rows), -1, dtype=np.intp)
    place[positions] = np.arange(len(positions))
    place = place[paths.row[some]]
    changed = _changes(tableau.table, paths, some)
    K_p = problem.K.block(removed, rows)
    of_p = problem.y[removed] * (paths.remaining[some] - tableau.table.alpha[paths.row[some]])
    own = np.einsum("kj,kj->k", changed, K_p[:, :width]) + of_p * problem.K.diagonal()[removed]
    products = changed[:, :n] @ problem.K.block(rows[:n], rows)
    # Of the other rows few move on each path.
    moved = n + np.flatnonzero(changed[:, n:].any(axis=0))
    if len(moved):
        products += csr_array(changed[:, moved]) @ problem.K.block(rows[moved], rows)
    K_p *= of_p[:, None]
    products += K_p
    products /= tableau.unit
    return _View(
        rows,
        place,
        tableau.unit,
        problem.y[rows],
        problem.costs[rows],
        state.alpha[rows],
        state.excess[rows],
        products,
        own / tableau.unit,
    )


@compiled(dual_variables)
def _changes(table: Columns, paths: Paths, some: IndexArray) -> FloatArray:
    """Return how ``y alpha`` of the watched rows but p has changed on some of the paths."""
    width = paths.own.shape[1]
    changed = np.empty((len(some), width))
    for i in range(len(some)):
        k = some[i]
        changed[i] = table.y[:width] * (dual_variables(table, paths, k) - table.alpha[:width])
        if paths.row[k] < width:
            changed[i, paths.row[k]] = 0.0
    return changed


class _Point(NamedTuple):
    """Where a path stands, on the rows of a view.

    Attributes
    ----------
    alpha, excess
        Dual variables and ``g = y f - 1``, shape (v,).
    margin
        ``y_p f(x_p)``.
    vague
        Whether it is not clear if the offset is free, or a dual variable is outside its box.
    """

    alpha: FloatArray
    excess: FloatArray
    margin: float
    vague: bool


def _point(view: _View, table: Columns, paths: Paths, k: int, i: int) -> _Point:
    """Return where path k stands, which is number i of the view."""
    y, costs, place = view.y, view.costs, view.place[i]
    y_p = table.y[paths.row[k]]
    own = dual_variables(table, paths, k)
    width = len(own)
    limit = table.costs[:width]
    holding, free = _hold(table, paths, k, own)
    count = holding.sum()
    inside = paths.kind[k] == INSIDE
    if count == 0 and free:
        own = np.where(inside, np.where(own < limit - own, 0.0, limit), own)
    outside = (inside * np.maximum(-own, own - limit)).max()
    vague = outside > _CLEARLY_INSIDE * table.alpha.max()
    own = np.minimum(np.maximum(own, 0.0), limit)
    alpha = view.alpha.copy()
    alpha[:width] = own / view.unit
    excess = view.excess + y * view.products[i]
    margin = paths.start_margin[k] + y_p * view.own_products[i]
    if count > 0:
        # Rows inside have margin 1.
        shift = -(holding * y[:width] * excess[:width]).sum() / count
    elif paths.outcome[k] == END:
        # No row holds the offset: the middle of what they allow.
        vague = vague or not free
        lower, upper = offset_ends(y, costs, alpha, y + y * excess)
        if place >= 0:
            lower[place], upper[place] = -np.inf, np.inf
        shift = (lower.max() + upper.min()) / 2
    else:
        shift = y_p * (paths.margin[k] - margin)
    excess += shift * y
    margin += y_p * shift
    if place >= 0:
        excess[place] = 0.0  # p has no condition
    return _Point(alpha, excess, margin, vague)


@compiled(dual_variables, offset_ends, optimality_gaps, _hold, _point)
def _judge(
    view: _View,
    table: Columns,
    paths: Paths,
    some: IndexArray,
    violation: float,
    margins: FloatArray,
    exact: BoolArray,
    proven: BoolArray,
) -> None:
    """Fill in what the states of some of the paths prove.

    The error certificate is ``y_p f(x_p) + gap / alpha_p < 0``, the success certificate that of
    `span_hpo.certificates`. At the end of a path the state itself is the solution without p, if it
    fulfils the KKT conditions, however it was reached.
    """
    costs, unit = view.costs, view.unit
    for i in range(len(some)):
        k = some[i]
        point = _point(view, table, paths, k, i)
        alpha, excess, margin = point.alpha, point.excess, point.margin
        worst = max((-excess * (alpha < costs)).max(), (excess * (alpha > 0)).max())
        if point.vague:
            continue
        if paths.outcome[k] == END:
            margins[k] = margin
            exact[k] = proven[k] = worst <= violation
            continue
        gap = optimality_gaps(excess, alpha, costs).sum()
        if paths.outcome[k] == ERROR:
            margins[k] = margin
            proven[k] = margin + gap * unit / paths.remaining[k] < 0
        else:
            lost = (gap * unit + paths.reach[k] * worst) / paths.beyond[k]
            margins[k] = paths.bound[k] + (margin - paths.margin[k]) - lost
            proven[k] = margins[k] > 0


def _slid(problem: Problem, state: State, label: float) -> State:
    """Return the state after the offset has slid towards ``-label`` up to the first row.

    With nobody inside, the removal of a row of this class first moves the offset alone, until a
    zero row of the class or a bounded row of the other comes to its margin.
    """
    y, alpha, excess = problem.y, state.alpha, state.excess
    slack = np.full(len(y), np.inf)
    zero = (alpha == 0) & (problem.costs > 0) & (y == label)
    bounded = (alpha > 0) & (y != label)
    slack[zero], slack[bounded] = excess[zero], -excess[bounded]
    first = int(slack.argmin())
    inside = np.zeros(len(y), dtype=bool)
    inside[first] = True
    return replace(
        state, excess=excess - label * y * max(slack[first], 0.0), inside=inside, hull=None
    )
