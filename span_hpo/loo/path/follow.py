"""Exact leave-one-out along the dual paths of support vectors."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from span_hpo.errors import SolverError
from span_hpo.loo.path.check import checked_paths, state_of
from span_hpo.loo.path.one_call import followed_in_one_call
from span_hpo.loo.path.segments import END, LONG, MOST_CHANGED, MOST_SEGMENTS, Paths
from span_hpo.loo.path.tableau import PathState, Tableau
from span_hpo.loo.proofs import Proofs
from span_hpo.runtime import FloatArray, IndexArray, check_time
from span_hpo.solver import DualSolution, Problem, margin_rounding, zero_width

_ENTRIES_AT_ONCE = 1_000_000  # largest number of coordinates of paths in one array
_SIMILAR = 3  # largest ratio between the numbers of rows that the paths of a block watch
_WORTH_A_BLOCK = 100_000  # number of coordinates that splitting a block of paths must save
_MOST_TABLEAUX = 8  # largest number of tableaux for one path; beyond it a refit is faster


def follow_rows(
    solution: DualSolution, rows: IndexArray, *, complete: bool, threads: int = 1
) -> Proofs:
    """Follow the dual paths of some support vectors.

    Parameters
    ----------
    solution
        A fit that is optimal up to rounding.
    rows
        Indices of support vectors, none of which may be the last row of its class.
    complete
        Follow every path to its end, not only until the class is proven.
    threads
        Number of threads that follow paths, if the code is compiled.

    Returns
    -------
    Proofs for the rows.

    Raises
    ------
    SolverError
        If the kernel turns out not to be positive semi-definite.
    """
    problem, y, start = solution.problem, solution.problem.y, PathState.of_fit(solution)
    slack = zero_width(solution.margin_noise)
    if start.in_bound.any():
        groups = [(start, np.arange(len(rows)))]
    else:
        groups = [
            (_after_slide(problem, start, label), np.flatnonzero(y[rows] == label))
            for label in (-1.0, 1.0)
        ]
    result = Proofs.none(len(rows))
    for state, todo in groups:
        found = followed_in_one_call(problem, state, rows[todo], complete=complete, threads=threads)
        result.put(todo, found)
        todo = todo[~found.proven | (complete & ~found.exact)]
        # A path that proves nothing may have met a row that was not watched.
        for watch in ("end" if complete else "class", "all"):
            if len(todo):
                found = _settled(problem, state, rows[todo], watch, slack, complete, threads)
                result.put(todo, found)
                todo = todo[found.lost]
    return result


def _settled(
    problem: Problem,
    state: PathState,
    rows: IndexArray,
    watch: str,
    slack: float,
    complete: bool,
    threads: int,
) -> Proofs:
    """Follow the paths of some rows from one state, and check where they stop."""
    tableau = Tableau(problem, state)
    result = Proofs.none(len(rows))
    watched = tableau.watched(rows, watch)
    for block in _blocks(watched):
        check_time()
        todo, count = block, watched[block]
        # A path that proves nothing is followed once more, to its end and with all rows that the
        # block watches: it may have stopped too early for a proof that allows for rounding.
        for careful in (False, True):
            if not len(todo):
                break
            if careful:
                count = np.full(len(todo), count.max())
            paths = tableau.paths(rows[todo], state.alpha[rows[todo]], count)
            tableau.follow(paths, complete or careful, threads=threads)
            result.put(todo, checked_paths(tableau, paths, slack))
            for k in np.flatnonzero(paths.outcome == LONG):
                check_time()
                found = _continued(tableau, paths, int(k), slack, complete or careful)
                result.put(todo[[k]], found)
            todo = np.intersect1d(todo, result.lost)
    return result


def _blocks(watched: IndexArray) -> Iterator[IndexArray]:
    """Yield blocks of paths of similar width that are followed together, the widest first."""
    order = np.argsort(-watched, kind="stable")
    while len(order):
        widest = int(watched[order[0]])
        size = max(1, _ENTRIES_AT_ONCE // widest)
        similar = int(np.count_nonzero(watched[order] * _SIMILAR >= widest))
        if (len(order) - similar) * widest > _WORTH_A_BLOCK:
            size = min(size, similar)
        yield order[:size]
        order = order[size:]


def _continued(tableau: Tableau, paths: Paths, k: int, slack: float, complete: bool) -> Proofs:
    """Continue a long path in a new tableau, which is based on where the path stands."""
    row, whole = tableau.rows[paths.row[[k]]], paths.whole[[k]] / tableau.unit
    for _ in range(_MOST_TABLEAUX):
        tableau = _next_tableau(tableau, paths, k)
        paths, k = tableau.paths(row, whole, tableau.watched(row, "all")), 0
        tableau.follow(paths, complete)
        if paths.outcome[0] != LONG:
            break
    return checked_paths(tableau, paths, slack)


def _next_tableau(tableau: Tableau, paths: Paths, k: int) -> Tableau:
    """Return a new tableau that is based on where a path stands."""
    state = state_of(tableau, paths, k)
    if not state.in_bound.any():
        state = _after_slide(tableau.problem, state, float(tableau.table.y[paths.row[k]]))
    return Tableau(tableau.problem, state)


def _after_slide(problem: Problem, state: PathState, label: float) -> PathState:
    """Return the state after the offset has slid towards ``-label`` up to the first row.

    If no row is in-bound, the removal of a row of this class at first moves only the offset, until
    the margin of a zero row of this class, or of a bounded row of the other class, reaches 1.
    """
    y, alpha, excess = problem.y, state.alpha, state.excess
    slack = np.full(len(y), np.inf)
    zero = (alpha == 0) & (problem.costs > 0) & (y == label)
    bounded = (alpha > 0) & (y != label)
    slack[zero], slack[bounded] = excess[zero], -excess[bounded]
    first = int(slack.argmin())
    in_bound = np.zeros(len(y), dtype=bool)
    in_bound[first] = True
    shift = max(slack[first], 0.0)
    return replace(
        state,
        excess=excess - label * y * shift,
        rounding=state.rounding + margin_rounding(excess, shift),
        in_bound=in_bound,
        gram=None,
    )


@dataclass(frozen=True, eq=False)
class DualPath:
    """The dual path of a support vector: the straight segments on which it leaves the fit.

    Attributes
    ----------
    alpha
        Dual variable of the row at the kinks, from its value in the fit down to 0.
    margin
        Margin ``y_p f(x_p)`` at the kinks, which never rises. Where it falls while alpha does not
        change, the offset slides. The last margin is the leave-one-out value, unless the offset is
        free at the end: the value is then lower, because the middle of the offsets is taken.
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
        Index of a support vector that is not the last row of its class.

    Returns
    -------
    The kinks of the path.

    Raises
    ------
    SolverError
        If the path cannot be followed to its end.
    """
    problem, rows, state = solution.problem, np.array([row]), PathState.of_fit(solution)
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
    raise SolverError(
        f"The dual path of row {row} cannot be followed to its end. `leave_one_out` refits such "
        "rows."
    )
