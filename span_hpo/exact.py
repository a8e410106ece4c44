"""Exact leave-one-out: the ends of dual paths, and the proof that they are what they seem."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from span_hpo.arrays import BoolArray, FloatArray, IndexArray
from span_hpo.certificates import optimality_gaps
from span_hpo.gram import ALL
from span_hpo.jit import compiled
from span_hpo.path import (
    END,
    ERROR,
    INSIDE,
    LONG,
    PARKED,
    SUCCESS,
    Columns,
    Paths,
    changes,
    dual_variables,
)
from span_hpo.polish import offset_ends
from span_hpo.solver import DualSolution, Problem
from span_hpo.tableau import State, Tableau

_ENTRIES_AT_ONCE = 1_000_000  # coordinates of paths that are held in one array
_VIOLATION = 1e-6  # of the KKT conditions at the end of a path, in units of the margin
_NOISE_FACTOR = 1e3  # the same in units of the rounding of a margin
_AT_BOUND = 1e-11  # relative to C_i and the largest alpha: closer to a bound is at the bound
_NEARLY_AT_BOUND = 1e-5  # the same: too close to tell whether the offset is free
_MOST_TABLEAUX = 8  # for one path


@dataclass(frozen=True, eq=False)
class PathResult:
    """What the paths of some rows have shown, shape (k,) each.

    Attributes
    ----------
    margin
        ``y_p f^p(x_p)``, or the bound that proves its sign.
    exact
        Whether the margin is the value itself.
    proven
        Whether the sign is proven. A row without proof needs a refit.
    """

    margin: FloatArray
    exact: BoolArray
    proven: BoolArray

    @classmethod
    def empty(cls, count: int) -> "PathResult":
        """Return results to be filled in."""
        return cls(np.zeros(count), np.zeros(count, dtype=bool), np.zeros(count, dtype=bool))

    def put(self, rows: IndexArray, found: "PathResult") -> None:
        """Fill in what was found for some of the rows."""
        self.margin[rows] = found.margin
        self.exact[rows] = found.exact
        self.proven[rows] = found.proven


def follow_rows(solution: DualSolution, rows: IndexArray, *, complete: bool) -> PathResult:
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
    violation = _VIOLATION + _NOISE_FACTOR * solution.margin_noise
    if some_inside:
        groups = [(start, np.arange(len(rows)))]
    else:
        groups = [
            (_slid(problem, start, label), np.flatnonzero(y[rows] == label))
            for label in (-1.0, 1.0)
        ]
    result = PathResult.empty(len(rows))
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
) -> PathResult:
    """Follow paths from one state, and judge where they end."""
    tableau = Tableau(problem, state, rows, watch)
    result = PathResult.empty(len(rows))
    at_once = max(1, _ENTRIES_AT_ONCE // len(problem))
    for first in range(0, len(rows), at_once):
        todo = np.arange(first, min(first + at_once, len(rows)))
        for careful in (False, True):
            if len(todo):
                paths = tableau.paths(rows[todo], state.alpha[rows[todo]], careful=careful)
                tableau.follow(paths, complete or careful)
                result.put(todo, _judged(tableau, paths, violation))
                for k in np.flatnonzero(paths.outcome == LONG):
                    result.put(todo[[k]], _continued(tableau, paths, int(k), violation, complete))
                todo = todo[~result.proven[todo]]
    return result


def _continued(
    tableau: Tableau, paths: Paths, k: int, violation: float, complete: bool
) -> PathResult:
    """Go on with a long path, in a new tableau of where it stands."""
    problem, row = tableau.problem, tableau.rows[paths.row[[k]]]
    for _ in range(_MOST_TABLEAUX):
        start = _start_of(tableau)
        product = _products(tableau, paths, np.array([k]))
        point = _point(start, tableau.columns, paths, k, product[0])
        inside = np.zeros(len(problem), dtype=bool)
        inside[tableau.rows] = (paths.kind[k] == INSIDE) | (paths.kind[k] == PARKED)
        state = State(point.alpha, point.excess, inside)
        if not state.inside.any():
            state = _slid(problem, state, float(problem.y[row[0]]))
        whole = paths.whole[[k]] / tableau.unit
        tableau = Tableau(problem, state, row, "all")
        paths, k = tableau.paths(row, whole), 0
        tableau.follow(paths, complete)
        if paths.outcome[0] != LONG:
            break
    return _judged(tableau, paths, violation)


def _judged(tableau: Tableau, paths: Paths, violation: float) -> PathResult:
    """Return what the states prove at which the paths have stopped."""
    found = PathResult.empty(len(paths.row))
    stopped = np.flatnonzero(np.isin(paths.outcome, (ERROR, SUCCESS, END)))
    _judge(
        _start_of(tableau),
        tableau.columns,
        paths,
        stopped,
        _products(tableau, paths, stopped),
        violation,
        found.margin,
        found.exact,
        found.proven,
    )
    return found


def _products(tableau: Tableau, paths: Paths, some: IndexArray) -> FloatArray:
    """Return ``K`` times the change of ``y alpha`` on some of the paths, shape (k, l)."""
    K, rows, n = tableau.problem.K, tableau.rows, tableau.columns.n_base
    changed = changes(tableau.columns, paths, some)
    product: FloatArray = changed[:, :n] @ K.block(rows[:n], ALL)
    # Of the other rows few move on each path.
    moved = n + np.flatnonzero(changed[:, n:].any(axis=0))
    product += csr_array(changed[:, moved]) @ K.block(rows[moved], ALL)
    product /= tableau.unit
    return product


class _Start(NamedTuple):
    """The state of a tableau on all l rows, and which of them are the rows of the tableau."""

    rows: IndexArray
    unit: float
    y: FloatArray
    costs: FloatArray
    alpha: FloatArray
    excess: FloatArray


def _start_of(tableau: Tableau) -> _Start:
    problem, state = tableau.problem, tableau.state
    return _Start(
        tableau.rows, tableau.unit, problem.y, problem.costs, state.alpha, state.excess
    )


class _Point(NamedTuple):
    """Where a path stands, on all l rows, computed anew from its dual variables.

    `vague` tells that it is not clear whether the offset is unique.
    """

    alpha: FloatArray
    excess: FloatArray
    vague: bool


def _point(start: _Start, table: Columns, paths: Paths, k: int, product: FloatArray) -> _Point:
    """Return where path k stands; `product` is K times the change of ``y alpha``."""
    y, costs, rows = start.y, start.costs, start.rows
    p = rows[paths.row[k]]
    own = dual_variables(table, paths, k)
    inside = (paths.kind[k] == INSIDE) | (paths.kind[k] == PARKED)
    room = inside * np.minimum(own, table.costs - own)
    size = np.minimum(table.costs, max(own.max(), start.unit * start.alpha.max()))
    strictly = room > _AT_BOUND * size
    count = strictly.sum()
    vague = count > 0 and not (room > _NEARLY_AT_BOUND * size).any()
    if count == 0:
        own = np.where(inside, np.where(own < table.costs - own, 0.0, table.costs), own)
    alpha = start.alpha.copy()
    alpha[rows] = own / start.unit
    excess = start.excess + y * product
    if count > 0:
        # Rows inside have margin 1.
        shift = -(strictly * table.y * excess[rows]).sum() / count
    elif paths.outcome[k] == END:
        # No row determines the offset: the middle of what they allow.
        lower, upper = offset_ends(y, costs, alpha, y + y * excess)
        lower[p], upper[p] = -np.inf, np.inf
        shift = (lower.max() + upper.min()) / 2
    else:
        shift = y[p] * (paths.margin[k] - 1 - excess[p])
    excess += shift * y
    return _Point(alpha, excess, vague)


@compiled(dual_variables, offset_ends, optimality_gaps, _point)
def _judge(
    start: _Start,
    table: Columns,
    paths: Paths,
    some: IndexArray,
    products: FloatArray,
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
    costs = start.costs
    for i in range(len(some)):
        k = some[i]
        p = start.rows[paths.row[k]]
        point = _point(start, table, paths, k, products[i])
        alpha, excess = point.alpha, point.excess
        margin = 1 + excess[p]
        excess[p] = 0.0  # p has no condition
        worst = max((-excess * (alpha < costs)).max(), (excess * (alpha > 0)).max())
        if paths.outcome[k] == END:
            margins[k] = margin
            exact[k] = proven[k] = worst <= violation and not point.vague
        else:
            gap = optimality_gaps(excess, alpha, costs).sum()
            if paths.outcome[k] == ERROR:
                margins[k] = margin
                proven[k] = margin + gap / alpha[p] < 0
            else:
                lost = (gap + paths.reach[k] / start.unit * worst) / (
                    paths.beyond[k] / start.unit
                )
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
    return replace(state, excess=excess - label * y * max(slack[first], 0.0), inside=inside, hull=None)
