"""Fit one weighted SVM and polish it to the exact solution of the dual.

The dual problem is stated in `span_hpo.solver.problem`.
"""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from span_hpo.kernels import KernelBlocks, KernelMatrix, is_held, kernel_product, largest_entry
from span_hpo.runtime import (
    FloatArray,
    one_blas_thread,
    read_only,
    real,
    rows_of,
    runs_machine_code,
)
from span_hpo.solver.active_set import DualPoint, polished
from span_hpo.solver.extended import ExtendedPoint
from span_hpo.solver.libsvm_fit import checked_max_iter, libsvm_alpha
from span_hpo.solver.one_call import fitted as fitted_in_one_call
from span_hpo.solver.one_call import is_built
from span_hpo.solver.problem import DualSolution, Problem
from span_hpo.solver.rounding import dot_rounding
from span_hpo.solver.smo import smo_point

DEFAULT_TOL = 1e-3  # LIBSVM's default, in units of the margin
DEFAULT_MAX_ITER = 1_000_000
_KEPT_SHARE = 0.9  # if at most this share of the rows has a positive cost, the others are left out
_CLEAN_GAP = 1e-9  # gap between the limits of the offset that needs no second look
_STEPS = 200  # largest number of steps beyond double precision
_MOST_PRODUCTS = 20_000_000  # number of exact products to give up after
_MOST_ROWS = 2000  # largest number of rows for which such steps are worth their time
_MOST_ROWS_IN_ONE_CALL = 4096  # largest number of rows for a call that Ctrl-C cannot interrupt
_PLAIN_KERNEL = 1e-150, 1e150  # kernel values for which pairwise steps do not overflow


@one_blas_thread
def solve(
    problem: Problem,
    *,
    tol: float = DEFAULT_TOL,
    max_iter: int = DEFAULT_MAX_ITER,
    polish: bool = True,
) -> DualSolution:
    """Fit a weighted SVM.

    Parameters
    ----------
    problem
        Kernel matrix, labels and costs.
    tol
        Tolerance, in units of the margin, at which the first fit stops and the polish begins.
    max_iter
        Largest number of steps of the first fit.
    polish
        Improve the first fit to the solution in double precision. The first fit is computed on the
        kernel matrix if that is held in memory and Numba is installed, and by LIBSVM otherwise. If
        the solution is not reached, the best answer is returned, and `DualSolution.kkt_violation`
        shows how far off it is. Without polish, the answer is that of LIBSVM, with its tolerance
        and with kernel values in single precision.

    Returns
    -------
    The solution. If it has not `converged`, a `ConvergenceWarning` is issued.

    Raises
    ------
    ValueError
        If `tol` or `max_iter` is not valid.
    SolverError
        If LIBSVM cannot give a finite answer.

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
    """
    tol, max_iter = real("tol", tol, above=0), checked_max_iter(max_iter)
    kept = rows_of(problem.costs)
    # Rows with cost 0 never move. It takes less time to keep a few than to copy the matrix.
    fitted = problem if len(kept) > _KEPT_SHARE * len(problem) else problem.take(kept)
    K, costs = fitted.K, fitted.costs
    # The class of the first row counts as +1, so that swapped classes give the same last bits.
    sign = float(problem.y[kept[0]])
    y = sign * fitted.y
    if polish:
        point = _optimum(K, y, costs, tol, max_iter)
        converged = _is_close(point, tol)
    else:
        start, converged = libsvm_alpha(K, y, costs, tol, max_iter)
        point = _point(K, y, costs, start)
    b = sign * point.offset()
    if fitted is problem:
        alpha, decision_values, spans = point.alpha, sign * point.F + b, point.spans
    else:
        alpha, spans = np.zeros(len(problem)), None
        alpha[kept] = point.alpha
        if point.spans is not None:
            spans = np.zeros(len(problem))
            spans[kept] = point.spans
        decision_values = kernel_product(problem.K, problem.y * alpha) + b
    in_bound = (alpha > 0) & (alpha < problem.costs)
    solution = DualSolution(
        problem=problem,
        alpha=read_only(alpha),
        b=b,
        decision_values=read_only(decision_values),
        in_bound=in_bound,
        bounded=(alpha > 0) & ~in_bound,
        converged=converged,
        tol=tol,
        max_iter=max_iter,
        known_gram=point.gram,
        known_spans=spans,
    )
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
    b = point.offset()
    in_bound = point.in_bound
    return DualSolution(
        problem=problem,
        alpha=read_only(point.alpha),
        b=b,
        decision_values=read_only(point.F + b),
        in_bound=in_bound,
        bounded=(point.alpha > 0) & ~in_bound,
        converged=_is_close(point, like.tol),
        tol=like.tol,
        max_iter=like.max_iter,
        known_gram=point.gram,
    )


def _optimum(
    K: KernelBlocks, y: FloatArray, costs: FloatArray, tol: float, max_iter: int
) -> DualPoint:
    """Return the solution, or the point that comes closest to it.

    If the matrix is held in memory, compiled code computes everything in one call. Where that gives
    up, a start is computed on the matrix if it is held in memory and Numba is installed. If
    there is no such start, or it does not lead to the solution, LIBSVM computes the start. A point
    that violates margins by more than their rounding is improved beyond double precision.
    """
    first = None
    smallest, largest = _PLAIN_KERNEL
    if is_held(K) and runs_machine_code() and smallest < largest_entry(K) < largest:
        point = _in_one_call(K, y, costs, tol, max_iter)
        if point is not None:
            first = _refined(point)
            if _is_close(first, tol):
                return first
        start, F = smo_point(K, y, costs, tol, max_iter)
        if np.isfinite(start.sum()):
            first = _refined(polished(DualPoint(K, y, costs, start, F)))
            if _is_close(first, tol):
                return first
    second = _refined(polished(_point(K, y, costs, libsvm_alpha(K, y, costs, tol, max_iter)[0])))
    # If the first gap is NaN, the comparison is false and the second point is returned.
    return first if first is not None and first.offset_gap < second.offset_gap else second


def _in_one_call(
    K: KernelBlocks, y: FloatArray, costs: FloatArray, tol: float, max_iter: int
) -> DualPoint | None:
    """Return the solution that compiled code finds in one call, or None."""
    if not isinstance(K, KernelMatrix) or len(y) > _MOST_ROWS_IN_ONE_CALL or not is_built():
        return None
    found = fitted_in_one_call(K.values, y, costs, tol, max_iter)
    if found is None:
        return None
    point = DualPoint(
        K, y, costs, found.alpha, found.F, True, gram=found.gram, spans=found.squared_spans
    )
    point.__dict__["offset_gap"] = found.offset_gap  # the value of the cached property
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
