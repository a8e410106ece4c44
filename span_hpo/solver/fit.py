"""One weighted fit, polished to the exact solution of the dual.

    max  sum(alpha) - 1/2 sum_ij alpha_i alpha_j y_i y_j K_ij
    s.t. 0 <= alpha_i <= C_i,  sum(y alpha) = 0

With ``beta = y alpha``, ``F = K beta`` and ``f = F + b``, a row is *in-bound* if
``0 < alpha_i < C_i``, *bounded* if ``alpha_i = C_i > 0``, and a *zero row* otherwise.
"""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from span_hpo.kernels import KernelBlocks, is_held, kernel_product, largest_entry
from span_hpo.runtime import (
    FloatArray,
    one_blas_thread,
    read_only,
    real,
    rows_of,
    runs_machine_code,
)
from span_hpo.solver.active_set import DualPoint, polished
from span_hpo.solver.libsvm_fit import checked_max_iter, libsvm_alpha
from span_hpo.solver.problem import DualSolution, Problem
from span_hpo.solver.smo import smo_point

DEFAULT_TOL = 1e-3  # in units of the margin; LIBSVM's default
DEFAULT_MAX_ITER = 1_000_000
_KEPT_SHARE = 0.9  # of the rows: with less, a matrix without the rows of cost 0 is made
_PLAIN_KERNEL = 1e-150, 1e150  # beyond it steps overflow: LIBSVM gets the matrix in another unit


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
        Where the fit may stop and the polish begins, in units of the margin.
    max_iter
        Limit of the steps until then.
    polish
        Go on to the solution in double precision, from a start that is computed on the matrix
        where it is held and Numba is installed, and by LIBSVM otherwise. Where that fails the best
        answer is kept: `DualSolution.kkt_violation` tells. Without polish it is LIBSVM's answer,
        with its tolerance and the rounding of a kernel in single precision.

    Returns
    -------
    The solution. A `ConvergenceWarning` tells if it is not `converged`.

    Raises
    ------
    ValueError
        If `tol` or `max_iter` is not valid.
    SolverError
        If LIBSVM's answer is not finite.
    """
    tol, max_iter = real("tol", tol, above=0), checked_max_iter(max_iter)
    kept = rows_of(problem.costs)
    # Rows with cost 0 never move. A few of them cost less than a matrix without them.
    fitted = problem if len(kept) > _KEPT_SHARE * len(problem) else problem.take(kept)
    K, costs = fitted.K, fitted.costs
    # The class of the first row counts as +1: swapped classes are the same problem to the last bit.
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
        alpha, decision_values = point.alpha, sign * point.F + b
    else:
        alpha = np.zeros(len(problem))
        alpha[kept] = point.alpha
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


def _optimum(
    K: KernelBlocks, y: FloatArray, costs: FloatArray, tol: float, max_iter: int
) -> DualPoint:
    """Return the solution, or what comes closest to it.

    The start is computed on the matrix where that is held and Numba is there, by LIBSVM otherwise,
    and where the first start did not lead there.
    """
    first = None
    smallest, largest = _PLAIN_KERNEL
    if is_held(K) and runs_machine_code() and smallest < largest_entry(K) < largest:
        start, F = smo_point(K, y, costs, tol, max_iter)
        if np.isfinite(start.sum()):
            first = polished(DualPoint(K, y, costs, start, F))
            if _is_close(first, tol):
                return first
    second = polished(_point(K, y, costs, libsvm_alpha(K, y, costs, tol, max_iter)[0]))
    # A gap that is not a number is no better than any other.
    return first if first is not None and first.offset_gap < second.offset_gap else second


def _is_close(point: DualPoint, tol: float) -> bool:
    """Tell whether a point fulfils the KKT conditions within the tolerance."""
    return point.offset_gap <= 2 * tol


def _point(K: KernelBlocks, y: FloatArray, costs: FloatArray, alpha: FloatArray) -> DualPoint:
    return DualPoint(K, y, costs, alpha, F=kernel_product(K, y * alpha))
