"""Exact leave-one-out: every row by a certificate, by its dual path, or at last by a refit."""

from dataclasses import dataclass, replace

import numpy as np

from span_hpo.arrays import BoolArray, FloatArray, IndexArray
from span_hpo.certificates import optimality_gaps
from span_hpo.gram import ALL
from span_hpo.path import END, ERROR, INSIDE, LONG, LOST, PARKED, SUCCESS, Paths
from span_hpo.polish import offset_limits
from span_hpo.solver import DualSolution, Problem
from span_hpo.tableau import State, Tableau

_STATE_ENTRIES = 4_000_000  # coordinates of paths that are held at once
_CHECK_ENTRIES = 500_000  # the same, where their states are checked
_VIOLATION = 1e-6  # of the KKT conditions at the end of a path, in units of the margin
_NOISE_FACTOR = 1e3  # the same in units of the rounding of a margin
_AT_BOUND = 1e-11  # relative to C_i and the largest alpha: closer to a bound is at the bound
_NEARLY_AT_BOUND = 1e-5  # the same: too close to tell whether the offset is free
_MOST_TABLEAUX = 8  # for one path


@dataclass(frozen=True, eq=False)
class PathResult:
    """What the paths of some rows have proven, shape (k,) each.

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


def follow_rows(
    solution: DualSolution, rows: IndexArray, squared_spans: FloatArray, *, complete: bool
) -> PathResult:
    """Follow the dual paths of some support vectors.

    Parameters
    ----------
    solution
        A fit that is optimal up to rounding.
    rows
        Support vectors, none of them the last of its class.
    squared_spans
        Their free squared spans, NaN where undefined, which tell how far a path goes.
    complete
        Follow every path to its end, not only until the class is proven.
    """
    problem, y = solution.problem, solution.problem.y
    start = State(solution.alpha, y * solution.decision_values - 1, solution.in_bound)
    result = PathResult(*(np.zeros(len(rows), dtype) for dtype in (float, bool, bool)))
    violation = _VIOLATION + _NOISE_FACTOR * solution.margin_noise
    if solution.in_bound.any():
        groups = [(start, np.arange(len(rows)))]
    else:
        groups = [
            (_slid(problem, start, label), np.flatnonzero(y[rows] == label))
            for label in (-1.0, 1.0)
        ]
    for state, group in groups:
        if complete:
            radius = solution.alpha[rows[group]] * np.sqrt(squared_spans[group])
        else:
            margin = np.maximum(1 + state.excess[rows[group]], 0.0)
            radius = np.sqrt(margin * solution.alpha[rows[group]])
        radius[np.isnan(radius)] = np.inf
        todo = np.arange(len(group))
        # A path that proves nothing may have met a row that was not watched, or have stopped too
        # early for what rounding leaves of the gap: once more, with all rows and to the end.
        for radius_of, to_end in ((radius, complete), (np.full(len(group), np.inf), True)):
            if len(todo):
                some = group[todo]
                found = _settled(problem, state, rows[some], radius_of[todo], violation, to_end)
                for name in ("margin", "exact", "proven"):
                    getattr(result, name)[some] = getattr(found, name)
                todo = todo[~found.proven]
    return result


def _settled(
    problem: Problem,
    state: State,
    rows: IndexArray,
    radius: FloatArray,
    violation: float,
    complete: bool,
) -> PathResult:
    """Follow paths from one state, and judge where they end."""
    tableau = Tableau(problem, state, rows, radius)
    result = PathResult(*(np.zeros(len(rows), dtype) for dtype in (float, bool, bool)))
    at_once = max(1, _STATE_ENTRIES // len(problem))
    for first in range(0, len(rows), at_once):
        block = slice(first, first + at_once)
        removed = rows[block]
        paths = tableau.paths(
            removed, 1 + state.excess[removed], radius[block], state.alpha[removed]
        )
        tableau.follow(paths, complete)
        found = _judged(problem, tableau, paths, violation)
        for name in ("margin", "exact", "proven"):
            getattr(result, name)[block] = getattr(found, name)
        for k in np.flatnonzero(paths.outcome == LONG):
            found = _continued(problem, tableau, paths, int(k), violation, complete)
            for name in ("margin", "exact", "proven"):
                getattr(result, name)[first + k] = getattr(found, name)[0]
    return result


def _continued(
    problem: Problem, tableau: Tableau, paths: Paths, k: int, violation: float, complete: bool
) -> PathResult:
    """Go on with a long path, in a new tableau of where it stands."""
    row = tableau.rows[paths.row[[k]]]
    everywhere = np.full(1, np.inf)
    for _ in range(_MOST_TABLEAUX):
        points = _points(problem, tableau, paths, np.array([k]))
        state = State(points.alpha[0], points.excess[0], points.inside[0])
        if not state.inside.any():
            state = _slid(problem, state, float(problem.y[row[0]]))
        whole = paths.whole[[k]] / tableau.unit
        tableau = Tableau(problem, state, row, everywhere)
        paths, k = tableau.paths(row, 1 + state.excess[row], everywhere, whole), 0
        tableau.follow(paths, complete)
        if paths.outcome[0] != LONG:
            break
    return _judged(problem, tableau, paths, violation)


@dataclass(frozen=True, eq=False)
class _Points:
    """States of k paths on all rows, computed anew from the dual variables, shape (k, l) each.

    `vague` tells where it is not clear whether the offset is unique, shape (k,).
    """

    alpha: FloatArray
    excess: FloatArray
    inside: BoolArray
    vague: BoolArray


def _points(problem: Problem, tableau: Tableau, paths: Paths, some: IndexArray) -> _Points:
    """Return where some of the paths stand."""
    y, costs, rows = problem.y, problem.costs, tableau.rows
    paths = Paths(*(part[some] for part in paths))
    each, removed = np.arange(len(some)), rows[paths.row]
    alpha = np.repeat(tableau.state.alpha[None], len(some), axis=0)
    alpha[:, rows] = tableau.dual_variables(paths)
    change = alpha[:, rows] - tableau.state.alpha[rows]
    moved = change.any(axis=0)
    excess = (change[:, moved] * y[rows[moved]]) @ problem.K.block(rows[moved], ALL)
    excess *= y
    excess += tableau.state.excess
    inside = np.zeros(alpha.shape, dtype=bool)
    inside[:, rows] = (paths.kind == INSIDE) | (paths.kind == PARKED)

    # The offset: of the rows inside, of the path where there are none, and at the end of a path
    # without any the middle of what the rows allow.
    room = np.where(inside, np.minimum(alpha, costs - alpha), 0.0)
    size = np.minimum(costs, alpha.max(axis=1)[:, None])
    strictly = room > _AT_BOUND * size
    alpha = np.where(inside & ~strictly, np.where(alpha < costs - alpha, 0.0, costs), alpha)
    count = strictly.sum(axis=1)
    shift = -((strictly * excess) @ y) / np.maximum(count, 1)
    by_path = y[removed] * (paths.margin - 1 - excess[each, removed])
    shift = np.where(count > 0, shift, by_path)
    free = (count == 0) & (paths.outcome == END)
    if free.any():
        limits = offset_limits(y, costs, alpha[free], y * (1 + excess[free]))
        which = np.arange(len(limits.lower))
        limits.lower[which, removed[free]], limits.upper[which, removed[free]] = -np.inf, np.inf
        shift[free] = (limits.lower.max(axis=1) + limits.upper.min(axis=1)) / 2
    vague = (count > 0) & ~(room > _NEARLY_AT_BOUND * size).any(axis=1)
    excess += shift[:, None] * y
    return _Points(alpha, excess, inside, vague)


def _judged(problem: Problem, tableau: Tableau, paths: Paths, violation: float) -> PathResult:
    """Return what the states prove at which the paths have stopped."""
    count, costs = len(paths.row), problem.costs
    result = PathResult(*(np.zeros(count, dtype) for dtype in (float, bool, bool)))
    stopped = np.flatnonzero(np.isin(paths.outcome, (ERROR, SUCCESS, END)))
    at_once = max(1, _CHECK_ENTRIES // len(problem))
    for first in range(0, len(stopped), at_once):
        some = stopped[first : first + at_once]
        outcome = paths.outcome[some]
        points = _points(problem, tableau, paths, some)
        alpha, excess = points.alpha, points.excess
        removed = tableau.rows[paths.row[some]]
        each = np.arange(len(some))
        margin = 1 + excess[each, removed]
        excess[each, removed] = 0.0  # p has no condition
        worst = np.maximum(
            np.where(alpha < costs, -excess, 0.0), np.where(alpha > 0, excess, 0.0)
        ).max(axis=1)
        gap = optimality_gaps(excess, alpha, costs).sum(axis=1)
        remaining = alpha[each, removed]
        with np.errstate(divide="ignore", invalid="ignore"):
            highest = margin + gap / remaining
            lowest = paths.bound[some] + (margin - paths.margin[some])
            lowest -= (gap + paths.reach[some] * worst) / paths.beyond[some]
        at_end = (outcome == END) & (worst <= violation) & ~points.vague
        result.exact[some] = at_end
        result.proven[some] = (
            at_end | ((outcome == ERROR) & (highest < 0)) | ((outcome == SUCCESS) & (lowest > 0))
        )
        result.margin[some] = np.where(outcome == SUCCESS, lowest, margin)
    return result


def _slid(problem: Problem, state: State, label: float) -> State:
    """Return the state after the offset has slid towards ``-label`` up to the first row.

    With nobody inside, the removal of a row of this class first moves the offset alone, until a
    zero row of the class or a bounded row of the other comes to its margin.
    """
    y, alpha, costs, excess = problem.y, state.alpha, problem.costs, state.excess
    slack = np.full(len(y), np.inf)
    zero = (alpha == 0) & (costs > 0) & (y == label)
    bounded = (alpha > 0) & (y != label)
    slack[zero], slack[bounded] = excess[zero], -excess[bounded]
    first = int(slack.argmin())
    inside = np.zeros(len(y), dtype=bool)
    inside[first] = True
    return replace(state, excess=excess - label * y * max(slack[first], 0.0), inside=inside)
