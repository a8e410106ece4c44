"""Fit one weighted SVM and polish it to the exact solution of the dual.

The dual problem is stated in `span_hpo.solver.problem`.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from span_hpo.errors import SolverError
from span_hpo.kernels import KernelBlocks, KernelMatrix, is_held, kernel_product, largest_entry
from span_hpo.runtime import (
    FloatArray,
    check_time,
    one_blas_thread,
    read_only,
    real,
    runs_machine_code,
)
from span_hpo.solver.active_set import DualPoint, polished
from span_hpo.solver.extended import ExtendedPoint
from span_hpo.solver.libsvm_fit import checked_max_iter, libsvm_alpha
from span_hpo.solver.one_call import fitted as fitted_in_one_call
from span_hpo.solver.optimal_face import reported_alpha
from span_hpo.solver.problem import DualSolution, Problem, kinds_of_support
from span_hpo.solver.reduced import ReducedProblem, Start
from span_hpo.solver.rounding import dot_rounding
from span_hpo.solver.smo import smo_point

AUTO, LIBSVM, SMO = SOLVERS = ("auto", "libsvm", "smo")
DEFAULT_TOL = 1e-3  # LIBSVM's default, in units of the margin
DEFAULT_MAX_ITER = 1_000_000
_CLEAN_GAP = 1e-9  # gap between the limits of the offset that needs no second look
_STEPS = 200  # largest number of steps beyond double precision
_MOST_PRODUCTS = 20_000_000  # number of exact products to give up after
_MOST_ROWS = 2000  # largest number of rows for which such steps are worth their time
_MOST_ROWS_IN_ONE_CALL = 4096  # largest number of rows for which one call is worthwhile
_TOL_IN_ONE_CALL = 3e-3  # tolerance from which on its rounds take less time than pairwise steps
_PLAIN_KERNEL = 1e-150, 1e150  # kernel values for which pairwise steps do not overflow


class _Task(NamedTuple):
    """What is to be solved, and how: `start` is ``alpha`` and ``K (y alpha)``, or None for zero."""

    K: KernelBlocks
    y: FloatArray
    costs: FloatArray
    tol: float
    max_iter: int
    start: Start | None


@one_blas_thread
def solve(
    problem: Problem,
    *,
    tol: float = DEFAULT_TOL,
    max_iter: int = DEFAULT_MAX_ITER,
    polish: bool = True,
    solver: str = "auto",
    start: Any = None,
) -> DualSolution:
    """Fit a weighted SVM.

    Parameters
    ----------
    problem
        Kernel matrix, labels and costs.
    tol
        Tolerance, in units of the margin, at which the first fit stops and the polish begins. If
        both run in one call of compiled code, that call has a tolerance of its own.
    max_iter
        Largest number of steps of the first fit.
    polish
        Improve the first fit to the solution in double precision. If the solution is not reached,
        the best answer is returned, and `DualSolution.kkt_violation` shows how far off it is.
        Without polish, the answer is that of the first fit within its tolerance.
    solver
        What computes the first fit. "libsvm" is weighted LIBSVM, whose kernel values have single
        precision. "smo" takes pairwise steps on the kernel matrix, which must be held in memory.
        "auto" is "smo" if the matrix is held in memory and the compiled core is present, and
        LIBSVM otherwise or if that start does not lead to the solution; without polish, it is
        LIBSVM. All of them end at the same solution.
    start
        Where pairwise steps begin: the solution of a similar problem, such as one with other costs,
        or dual variables, shape (l,), at least 0, which are moved into their boxes and balanced. By
        default, and with LIBSVM, a fit begins at zero. A good start saves time. It does not change
        the solution: in compiled code, the last bits are the same where the solution is unique and
        the kernel matrix of the in-bound rows is not singular.

    Returns
    -------
    The solution. If it has not `converged`, a `ConvergenceWarning` is issued.

    Raises
    ------
    ValueError
        If `tol`, `max_iter`, `solver` or `start` is not valid, or "smo" is asked for a matrix that
        is not held in memory.
    SolverError
        If the solver cannot give a finite answer.

    Examples
    --------
    The decision function is ``f(x) = x - 1``, and the last row is not a support vector:

    >>> from span_hpo import Linear, Problem, solve
    >>> K = Linear()([[0.0], [2.0], [3.0]])
    >>> solution = solve(Problem(K, y=[-1, 1, 1], costs=[1.0, 1.0, 1.0]))
    >>> solution.alpha.round(3).tolist()
    [0.5, 0.5, 0.0]
    >>> round(float(solution.b), 3)
    -1.0

    The solution is a good start for other costs:

    >>> solve(Problem(K, y=[-1, 1, 1], costs=[0.2, 0.2, 0.2]), start=solution).alpha.tolist()
    [0.2, 0.2, 0.0]
    """
    tol, max_iter = real("tol", tol, above=0), checked_max_iter(max_iter)
    solver = as_solver(solver)
    check_time()
    if solver == SMO and not is_held(problem.K):
        raise ValueError(
            "`solver` must be 'auto' or 'libsvm' if the kernel matrix is not held in memory, got "
            "'smo'. Raise `memory_limit` to hold it."
        )
    reduced = ReducedProblem.of(problem, merge=polish and solver != LIBSVM)
    fitted = reduced.fitted
    y, begin = reduced.sign * fitted.y, reduced.start(start)
    task = _Task(fitted.K, y, fitted.costs, tol, max_iter, begin)
    point, used, converged = _fitted(task, solver, polish)
    answer = reduced.answer(point, reported_alpha(point) if polish else point.alpha)
    b, is_basic = reduced.sign * point.offset, answer.reported is answer.alpha
    in_bound, bounded = kinds_of_support(answer.alpha, problem.costs)
    solution = DualSolution(
        problem=problem,
        alpha=read_only(answer.alpha),
        b=b,
        decision_values=read_only(answer.F + b),
        in_bound=in_bound,
        bounded=bounded,
        converged=converged,
        tol=tol,
        max_iter=max_iter,
        solver=used,
        known_gram=answer.gram,
        known_spans=answer.spans if is_basic else None,
    )
    if not is_basic:
        solution = solution.with_alpha(answer.reported, answer.spans)
    if not solution.converged:
        warnings.warn(
            f"The fit ended with a KKT violation of {solution.kkt_violation():.2g} (`tol` = "
            f"{tol:g}, `max_iter` = {max_iter}). Scale the features, lower the costs or raise "
            "`max_iter`.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return solution


def solution_of(problem: Problem, point: DualPoint, like: DualSolution) -> DualSolution:
    """Return a point of the dual of a problem as a solution, with the settings of another one."""
    b = point.offset
    in_bound, bounded = kinds_of_support(point.alpha, point.costs)
    return DualSolution(
        problem=problem,
        alpha=read_only(point.alpha),
        b=b,
        decision_values=read_only(point.F + b),
        in_bound=in_bound,
        bounded=bounded,
        converged=_is_close(point, like.tol),
        tol=like.tol,
        max_iter=like.max_iter,
        solver=like.solver,
        known_gram=point.gram,
    )


def as_solver(solver: str) -> str:
    """Return the name of a solver after checking it."""
    if solver not in SOLVERS:
        raise ValueError(f"`solver` must be one of {list(SOLVERS)}, got {solver!r}.")
    return solver


def _fitted(task: _Task, solver: str, polish: bool) -> tuple[DualPoint, str, bool]:
    """Return the point that a fit ends at, the solver that began, and whether it has converged."""
    K, y, costs, tol, max_iter, _ = task
    if polish:
        point, used = _optimum(task, solver)
        return point, used, _is_close(point, tol)
    if solver == SMO:
        point = _finite(_smo_start(task))
        return point, SMO, _is_close(point, tol)
    alpha, converged = libsvm_alpha(K, y, costs, tol, max_iter)
    return _point(K, y, costs, alpha), LIBSVM, converged


def _optimum(task: _Task, solver: str) -> tuple[DualPoint, str]:
    """Return the solution, or the point that comes closest to it, and the solver that began.

    On a matrix in memory, compiled code takes pairwise steps and polishes the answer in one call.
    Where it gives up, the same steps follow one after the other. A point that violates margins by
    more than their rounding is improved beyond double precision.
    """
    K, y, costs, tol, max_iter, _ = task
    first = None
    if solver == SMO or (solver == AUTO and _suits_smo(K)):
        point = _in_one_call(task)
        if point is not None:
            first = _refined(point)
        if first is None or not first.offset_gap <= _CLEAN_GAP:
            start = _smo_start(task)
            if solver == SMO or np.isfinite(start.alpha.sum()):
                other = _refined(polished(_finite(start)))
                if first is None or not first.offset_gap <= other.offset_gap:
                    first = other
        if first is not None and (solver == SMO or _is_close(first, tol)):
            return first, SMO
    second = _refined(polished(_point(K, y, costs, libsvm_alpha(K, y, costs, tol, max_iter)[0])))
    # If the first gap is NaN, the comparison is false and the second point is returned.
    if first is not None and first.offset_gap < second.offset_gap:
        return first, SMO
    return second, LIBSVM


def _suits_smo(K: KernelBlocks) -> bool:
    """Return whether pairwise steps on the matrix are fast and cannot overflow."""
    smallest, largest = _PLAIN_KERNEL
    return is_held(K) and runs_machine_code() and smallest < largest_entry(K) < largest


def _smo_start(task: _Task) -> DualPoint:
    """Return a fit by pairwise steps on the matrix, within the tolerance; it may overflow."""
    alpha, F = smo_point(*task)
    return DualPoint(task.K, task.y, task.costs, alpha, F)


def _finite(start: DualPoint) -> DualPoint:
    """Return a start by pairwise steps after checking that it has not overflown."""
    if not np.isfinite(start.alpha.sum()):
        raise SolverError(
            "The pairwise steps overflow. Scale the features, lower the costs or use "
            "solver='libsvm'."
        )
    return start


def _in_one_call(task: _Task) -> DualPoint | None:
    """Return the solution that compiled code finds in one call, or None."""
    K, y, costs, _, max_iter, start = task
    if not isinstance(K, KernelMatrix) or len(y) > _MOST_ROWS_IN_ONE_CALL:
        return None
    found = fitted_in_one_call(K.values, y, costs, _TOL_IN_ONE_CALL, max_iter, start)
    if found is None:
        return None
    gram, is_only = found.gram, found.is_only
    is_known = is_only or not (gram is None or gram.is_dependent)
    spans = found.squared_spans if is_known else None
    point = DualPoint(K, y, costs, found.alpha, found.F, True, gram, spans, is_only)
    # These are the values of cached properties.
    point.__dict__.update(offset_gap=found.offset_gap, offset=found.b)
    return point


def _refined(point: DualPoint) -> DualPoint:
    """Improve a point beyond double precision if its margins are violated by more than rounding.

    That happens where rows differ by orders of magnitude, so that the tolerance of the polish,
    which the largest kernel value determines, is far too wide for the small rows.
    """
    if point.offset_gap <= _CLEAN_GAP or len(point.y) > _MOST_ROWS:
        return point
    lower, upper = point.limits.lower, point.limits.upper
    roots = np.sqrt(np.abs(point.K.diagonal()))
    rounding = dot_rounding(len(point.y), roots * (point.alpha @ roots)) + _CLEAN_GAP
    if (lower - rounding).max() <= (upper + rounding).min():
        return point
    extended = ExtendedPoint(point.K, point.y, point.costs, point.alpha)
    best = point
    for _ in extended.steps(_STEPS, _MOST_PRODUCTS):
        best = min(best, extended.rounded(), key=lambda reached: reached.offset_gap)
        if best.offset_gap <= _CLEAN_GAP:
            break
    return best


def _is_close(point: DualPoint, tol: float) -> bool:
    """Return whether a point satisfies the KKT conditions within the tolerance."""
    return point.offset_gap <= 2 * tol


def _point(K: KernelBlocks, y: FloatArray, costs: FloatArray, alpha: FloatArray) -> DualPoint:
    return DualPoint(K, y, costs, alpha, F=kernel_product(K, y * alpha))
