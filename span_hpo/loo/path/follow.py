"""Exact leave-one-out along the dual paths of support vectors."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from span_hpo.errors import SolverError
from span_hpo.loo.path.check import Limits, checked_paths, state_of
from span_hpo.loo.path.segments import END, LONG, MOST_CHANGED, MOST_SEGMENTS, Paths
from span_hpo.loo.path.tableau import PathState, Tableau
from span_hpo.loo.proofs import Proofs
from span_hpo.runtime import FloatArray, IndexArray
from span_hpo.solver import DualSolution, Problem

_ENTRIES_AT_ONCE = 1_000_000  # coordinates of paths that are held in one array
_SIMILAR = 3  # paths that watch fewer rows by this factor are followed by themselves,
_WORTH_A_BLOCK = 100_000  # if that saves as many coordinates
_MOST_TABLEAUX = 8  # for one path: longer ones do not end, or are sooner refitted


def follow_rows(
    solution: DualSolution, rows: IndexArray, *, complete: bool, threads: int = 1
) -> Proofs:
    """Follow the dual paths of some support vectors.

    Parameters
    ----------
    solution
        A fit that is optimal up to rounding.
    rows
        Support vectors, none of them the last of its class.
    complete
        Follow every path to its end, not only until the class is proven.
    threads
        Number of threads that follow paths, if they are compiled.

    Returns
    -------
    What was found for each of the rows.

    Raises
    ------
    SolverError
        If the kernel is seen not to be positive semi-definite.
    """
    problem, y, start = solution.problem, solution.problem.y, _start(solution)
    limits = Limits.of(solution.margin_noise)
    if start.in_bound.any():
        groups = [(start, np.arange(len(rows)))]
    else:
        groups = [
            (_after_slide(problem, start, label), np.flatnonzero(y[rows] == label))
            for label in (-1.0, 1.0)
        ]
    result = Proofs.none(len(rows))
    for state, todo in groups:
        # A path that proves nothing may have met a row that was not watched.
        for watch in ("end" if complete else "class", "all"):
            if len(todo):
                found = _settled(problem, state, rows[todo], watch, limits, complete, threads)
                result.put(todo, found)
                todo = todo[found.open]
    return result


def _start(solution: DualSolution) -> PathState:
    """Return the fit as the state from which paths start."""
    gram = solution.gram if solution.in_bound.any() else None
    return PathState(solution.alpha, solution.excess, solution.in_bound, gram)


def _settled(
    problem: Problem,
    state: PathState,
    rows: IndexArray,
    watch: str,
    limits: Limits,
    complete: bool,
    threads: int,
) -> Proofs:
    """Follow paths from one state, and judge where they end."""
    tableau = Tableau(problem, state)
    result = Proofs.none(len(rows))
    watched = tableau.watched(rows, watch)
    for block in _blocks(watched):
        todo, count = block, watched[block]
        # What proves nothing is tried once more with all rows that the block watches, and to the
        # end: it may have stopped too early for what rounding leaves of the gap.
        for careful in (False, True):
            if not len(todo):
                break
            if careful:
                count = np.full(len(todo), count.max())
            paths = tableau.paths(rows[todo], state.alpha[rows[todo]], count)
            tableau.follow(paths, complete or careful, threads=threads)
            result.put(todo, checked_paths(tableau, paths, limits))
            for k in np.flatnonzero(paths.outcome == LONG):
                found = _continued(tableau, paths, int(k), limits, complete or careful)
                result.put(todo[[k]], found)
            todo = todo[~result.proven[todo]]
    return result


def _blocks(watched: IndexArray) -> Iterator[IndexArray]:
    """Yield paths that are followed together: of similar width, the widest first."""
    order = np.argsort(-watched, kind="stable")
    while len(order):
        widest = int(watched[order[0]])
        size = max(1, _ENTRIES_AT_ONCE // widest)
        similar = int(np.count_nonzero(watched[order] * _SIMILAR >= widest))
        if (len(order) - similar) * widest > _WORTH_A_BLOCK:
            size = min(size, similar)
        yield order[:size]
        order = order[size:]


def _continued(tableau: Tableau, paths: Paths, k: int, limits: Limits, complete: bool) -> Proofs:
    """Go on with a long path, in a new tableau of where it stands."""
    row, whole = tableau.rows[paths.row[[k]]], paths.whole[[k]] / tableau.unit
    for _ in range(_MOST_TABLEAUX):
        tableau = _next_tableau(tableau, paths, k)
        paths, k = tableau.paths(row, whole, tableau.watched(row, "all")), 0
        tableau.follow(paths, complete)
        if paths.outcome[0] != LONG:
            break
    return checked_paths(tableau, paths, limits)


def _next_tableau(tableau: Tableau, paths: Paths, k: int) -> Tableau:
    """Return the tableau of where a path stands."""
    state = state_of(tableau, paths, k)
    if not state.in_bound.any():
        state = _after_slide(tableau.problem, state, float(tableau.table.y[paths.row[k]]))
    return Tableau(tableau.problem, state)


def _after_slide(problem: Problem, state: PathState, label: float) -> PathState:
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
    in_bound = np.zeros(len(y), dtype=bool)
    in_bound[first] = True
    return replace(
        state, excess=excess - label * y * max(slack[first], 0.0), in_bound=in_bound, gram=None
    )


@dataclass(frozen=True, eq=False)
class DualPath:
    """How a support vector leaves the fit: a chain of straight segments.

    Attributes
    ----------
    alpha
        Dual variable of the row at the kinks, from its value in the fit to 0.
    margin
        ``y_p f(x_p)`` at the kinks. It never rises; where alpha stays and the margin falls, the
        offset slides. The last one is the leave-one-out value, unless the offset is free at the
        end: then that lies lower, in the middle of what is possible.
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

    Returns
    -------
    The kinks of the path.

    Raises
    ------
    SolverError
        If the path loses its precision.
    """
    problem, rows, state = solution.problem, np.array([row]), _start(solution)
    whole = solution.alpha[rows]
    alpha, margin = [float(whole[0])], [1 + float(state.excess[row])]
    if not state.in_bound.any():
        state = _after_slide(problem, state, float(problem.y[row]))
        alpha.append(alpha[0])
        margin.append(1 + float(state.excess[row]))
    tableau = Tableau(problem, state)
    for _ in range(_MOST_TABLEAUX):
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
        tableau = _next_tableau(tableau, paths, 0)
    raise SolverError(f"The dual path of row {row} loses its precision.")
