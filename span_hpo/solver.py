"""One weighted LIBSVM fit, polished to the exact solution of the dual.

    max  sum(alpha) - 1/2 sum_ij alpha_i alpha_j y_i y_j K_ij
    s.t. 0 <= alpha_i <= C_i,  sum(y alpha) = 0

With ``beta = y alpha``, ``F = K beta`` and ``f = F + b``, a row is *in-bound* if
``0 < alpha_i < C_i``, *bounded* if ``alpha_i = C_i > 0``, and a *zero row* otherwise. Only this
module knows LIBSVM.
"""

import functools
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from span_hpo.arrays import Array, BoolArray, FloatArray, IndexArray, read_only
from span_hpo.checks import real, whole
from span_hpo.data import as_numbers, not_negative
from span_hpo.errors import SolverError
from span_hpo.gram import (
    ALL,
    KernelBlocks,
    KernelMatrix,
    as_kernel_blocks,
    is_held,
    kernel_product,
    largest_entry,
    subset,
)
from span_hpo.hull import Hull, in_bound_hull
from span_hpo.polish import (
    DualPoint,
    OffsetLimits,
    margin_noise,
    offset_limits,
    polished,
    violation_limit,
)
from span_hpo.threads import one_blas_thread

DEFAULT_TOL = 1e-3  # LIBSVM's stopping tolerance, in units of the margin
DEFAULT_MAX_ITER = 1_000_000
_SINGLE_RANGE = 1e-20, 1e20  # kernel values that LIBSVM's single precision holds with room to spare
_MOST_ITERATIONS = 2**31 - 1  # LIBSVM counts in 32 bits
_FEATURE_CACHE = 200.0  # megabytes of kernel rows that LIBSVM keeps when it works on features
_CACHE_LIMIT = 2000.0  # megabytes; LIBSVM allocates only what it uses


@dataclass(frozen=True, eq=False)
class Problem:
    """The dual of a weighted two-class SVM.

    Parameters
    ----------
    K
        Kernel matrix, shape (l, l); or any object with ``len()``, ``diagonal()`` and
        ``block(rows, columns)``, each an array of indices or ``slice(None)``, which is trusted to
        be symmetric and finite. A float64 array is not copied: leave it unchanged.
    y
        Labels, shape (l,), -1 or +1.
    costs
        Upper bound ``C_i`` of every dual variable, shape (l,), finite, at least 0. Rows with cost
        0 take no part in the fit. Both classes need a row with positive cost.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described.
    """

    K: KernelBlocks
    y: FloatArray
    costs: FloatArray

    def __post_init__(self) -> None:
        K = as_kernel_blocks(self.K)
        y = as_numbers(self.y, "y", len(K))
        if not (np.abs(y) == 1.0).all():
            raise ValueError(f"`y` must hold -1 and +1 only, got {np.unique(y)[:5].tolist()}.")
        costs = checked_costs(self.costs, y)
        for name, value in (("K", K), ("y", read_only(y)), ("costs", read_only(costs))):
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return len(self.y)

    def take(self, rows: IndexArray) -> "Problem":
        """Return the problem of some of the rows."""
        # A copy: faster than a view for a matrix in memory, and all of it is needed.
        K = KernelMatrix(self.K.block(rows, rows)) if is_held(self.K) else subset(self.K, rows)
        return Problem(K, self.y[rows], self.costs[rows])


def checked_costs(costs: Any, y: Array) -> FloatArray:
    """Return the costs of all rows, if a fit is possible with them.

    Raises
    ------
    ValueError
        If a cost is negative or not finite, or a class has no row with positive cost.
    """
    numbers = not_negative(costs, "costs", len(y))
    if numbers.all() and (y != y[0]).any():
        return numbers
    kept, classes = np.unique(y[numbers > 0]), np.unique(y)
    if len(kept) < max(2, len(classes)):
        if not len(kept):
            only = "zeros"
        elif len(kept) == 1:
            only = f"rows of class {int(kept[0]):+d}"
        else:
            only = f"zeros in class {int(np.setdiff1d(classes, kept)[0])}"
        raise ValueError(f"`costs` must be positive in some row of each class, got only {only}.")
    return numbers


@dataclass(frozen=True, eq=False)
class DualSolution:
    """Solution of a `Problem`, which it can check itself.

    Attributes
    ----------
    problem
        What was solved.
    alpha
        Dual variables, shape (l,).
    b
        Offset of the decision function; the middle of its interval where it is not unique.
    decision_values
        ``f(x_i)`` of every row, shape (l,).
    in_bound, bounded
        Masks of the two kinds of support vector, shape (l,).
    converged
        Whether the offset limits of all rows agree within ``2 tol``; without polish, whether
        LIBSVM says that it finished.
    tol, max_iter
        What the fit was asked for.
    """

    problem: Problem
    alpha: FloatArray
    b: float
    decision_values: FloatArray
    in_bound: BoolArray
    bounded: BoolArray
    converged: bool
    tol: float
    max_iter: int

    @property
    def n_support(self) -> int:
        """The number of support vectors."""
        return int(np.count_nonzero(self.alpha))

    @property
    def n_in_bound(self) -> int:
        """The number of in-bound support vectors."""
        return int(np.count_nonzero(self.in_bound))

    @functools.cached_property
    def hull(self) -> Hull:
        """The factored Gram matrix of the in-bound support vectors; needs at least one.

        Raises
        ------
        SolverError
            If the kernel is not positive semi-definite.
        """
        inside = np.flatnonzero(self.in_bound)
        return in_bound_hull(self.problem.K.block(inside, inside))

    @functools.cached_property
    def margin_noise(self) -> float:
        """How far rounding may move a decision value."""
        return margin_noise(self.alpha, largest_entry(self.problem.K))

    @property
    def offset_limits(self) -> OffsetLimits:
        """What every row says about the offset."""
        F = self.decision_values - self.b
        return offset_limits(self.problem.y, self.problem.costs, self.alpha, F)

    @property
    def b_unique(self) -> bool:
        """Whether only one offset is optimal."""
        lower, upper = self.offset_limits.interval
        return bool(self.in_bound.any() or upper - lower <= self.margin_noise)

    @functools.cached_property
    def excess(self) -> FloatArray:
        """``g = y f - 1`` of every row: 0 at the margin, shape (l,)."""
        return read_only(self.problem.y * self.decision_values - 1)

    @functools.cached_property
    def is_optimal(self) -> bool:
        """Whether the KKT conditions hold up to rounding, so that paths can start here."""
        return self.converged and self.kkt_violation() <= violation_limit(self.margin_noise)

    def kkt_violation(self) -> float:
        """Return the largest violation of the KKT conditions, in units of the margin.

        ``y f = 1`` for in-bound rows, ``y f <= 1`` for bounded and ``y f >= 1`` for zero rows with
        positive cost; rows with cost 0 have no condition. The dual variables are in their box and
        ``sum(y alpha)`` is 0 up to rounding in any case.
        """
        excess = self.excess
        can_grow = self.alpha < self.problem.costs
        can_fall = self.alpha > 0
        violation = np.maximum(np.where(can_grow, -excess, 0), np.where(can_fall, excess, 0))
        return float(violation.max())


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
        LIBSVM's stopping tolerance, in units of the margin.
    max_iter
        Limit of LIBSVM's iterations.
    polish
        Turn LIBSVM's answer, which carries its tolerance and the rounding of a single-precision
        kernel, into the solution in double precision. Where that fails LIBSVM's answer is kept:
        `DualSolution.kkt_violation` tells.

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
    # LIBSVM drops rows with cost 0 and renumbers the rest, so they never reach it.
    everyone = bool(problem.costs.all())
    fitted = problem if everyone else problem.take(np.flatnonzero(problem.costs))
    K, costs = fitted.K, fitted.costs
    # The class of the first row counts as +1: swapped classes are the same problem to the last bit.
    sign = float(fitted.y[0])
    y = sign * fitted.y
    start, finished = _libsvm_alpha(K, y, costs, tol, max_iter)
    point = DualPoint(K, y, costs, start, F=kernel_product(K, y * start))
    if polish:
        point = polished(point)
    b = sign * point.offset()
    if everyone:
        alpha, decision_values = point.alpha, sign * point.F + b
    else:
        alpha = np.zeros(len(problem))
        alpha[problem.costs > 0] = point.alpha
        decision_values = kernel_product(problem.K, problem.y * alpha) + b
    in_bound = (alpha > 0) & (alpha < problem.costs)
    solution = DualSolution(
        problem=problem,
        alpha=read_only(alpha),
        b=b,
        decision_values=read_only(decision_values),
        in_bound=in_bound,
        bounded=(alpha > 0) & ~in_bound,
        converged=_is_close(point, tol) if polish else finished,
        tol=tol,
        max_iter=max_iter,
    )
    if point.hull is not None:
        solution.__dict__["hull"] = point.hull  # the polish has factored it already
    if not solution.converged:
        ended = "LIBSVM finished" if finished else f"LIBSVM stopped at `max_iter` = {max_iter}"
        warnings.warn(
            f"{ended} with a KKT violation of {solution.kkt_violation():.2g}. Scale the features, "
            "lower the costs or raise `max_iter`.",
            ConvergenceWarning,
            stacklevel=3,
        )
    return solution


def _is_close(point: DualPoint, tol: float) -> bool:
    """Tell whether a polished point fulfils the KKT conditions within LIBSVM's tolerance."""
    exact = point.optimal and margin_noise(point.alpha, largest_entry(point.K)) <= tol
    return exact or point.offset_gap <= 2 * tol


def checked_max_iter(max_iter: Any) -> int:
    """Return a limit of iterations that LIBSVM can count to."""
    return whole("max_iter", max_iter, at_least=1, at_most=_MOST_ITERATIONS)


def _libsvm_alpha(
    K: Any, y: FloatArray, costs: FloatArray, tol: float, max_iter: int
) -> tuple[FloatArray, bool]:
    """Return LIBSVM's dual variables, and whether it finished within `max_iter`.

    At a bound they equal 0 or the cost bit for bit, so the split into in-bound and bounded rows
    needs no tolerance.
    """
    fit, unit = _private_fit() or _public_fit, 1.0
    if is_held(K):
        matrix = np.ascontiguousarray(K.block(ALL, ALL))
        unit = _kernel_unit(largest_entry(K))
    else:
        fit, matrix = functools.partial(_fit_on_features, K.svc_arguments()), K.X
    if unit != 1:
        matrix, costs = matrix / unit, costs * unit
        if not (np.isfinite(costs).all() and costs.all()):
            raise SolverError(
                f"The costs times kernel values of about {unit:.0e} are out of range."
            )
    support, of_support, finished = fit(matrix, (y < 0).astype(float), costs, tol, max_iter)
    alpha = np.zeros(len(y))
    # LIBSVM sets a bounded alpha to its cost, but may miss it upwards by the last bit.
    alpha[support] = np.minimum(of_support, costs[support]) / unit
    if not np.isfinite(alpha.sum()):
        raise SolverError("LIBSVM returned dual variables that are not finite.")
    return alpha, finished


def _kernel_unit(largest: float) -> float:
    """Return a power of two that brings such a kernel into the range of single precision."""
    if largest == 0 or _SINGLE_RANGE[0] < largest < _SINGLE_RANGE[1]:
        return 1.0
    return 2.0 ** (math.frexp(largest)[1] - 1)


_Fit = Callable[
    [FloatArray, FloatArray, FloatArray, float, int], tuple[IndexArray, FloatArray, bool]
]


def _public_fit(
    K: FloatArray, classes: FloatArray, costs: FloatArray, tol: float, max_iter: int
) -> tuple[IndexArray, FloatArray, bool]:
    """Fit through the public class, with its overhead of about a millisecond."""
    return _fit_svc(
        K, classes, costs, tol, max_iter, kernel="precomputed", cache_size=_cache_size(len(K))
    )


def _fit_on_features(
    kernel: dict[str, Any],
    X: Any,
    classes: FloatArray,
    costs: FloatArray,
    tol: float,
    max_iter: int,
) -> tuple[IndexArray, FloatArray, bool]:
    """Fit where the kernel matrix is not held: LIBSVM works on the features."""
    try:
        return _fit_svc(X, classes, costs, tol, max_iter, cache_size=_FEATURE_CACHE, **kernel)
    except ValueError as error:
        raise SolverError(f"LIBSVM cannot work on these features: {error}") from error


def _fit_svc(
    X: Any, classes: FloatArray, costs: FloatArray, tol: float, max_iter: int, **arguments: Any
) -> tuple[IndexArray, FloatArray, bool]:
    """Return support vectors and dual variables of an ``SVC``, and whether it finished."""
    svc = SVC(C=1.0, tol=tol, max_iter=max_iter, **arguments)
    with (
        sklearn.config_context(assume_finite=True, skip_parameter_validation=True),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", ConvergenceWarning)
        svc.fit(X, classes, sample_weight=costs)
    coefficients = svc.dual_coef_
    if issparse(coefficients):
        coefficients = coefficients.toarray()
    return svc.support_, np.abs(coefficients[0]), svc.fit_status_ == 0


@functools.cache
def _private_fit() -> _Fit | None:
    """Return a fit without that overhead, if this scikit-learn has one that gives the same answer.

    ``sklearn.svm._libsvm`` is private: it is used only after it has reproduced the public class on
    a small problem.
    """
    try:
        from sklearn.svm import _libsvm
    except ImportError:
        return None

    def fit(
        K: FloatArray, classes: FloatArray, costs: FloatArray, tol: float, max_iter: int
    ) -> tuple[IndexArray, FloatArray, bool]:
        _libsvm.set_verbosity_wrap(0)
        support, _, _, coefficients, _, _, _, status, _ = _libsvm.fit(
            K,
            classes,
            svm_type=0,
            kernel="precomputed",
            C=1.0,
            sample_weight=costs,
            tol=tol,
            max_iter=max_iter,
            cache_size=_cache_size(len(K)),
        )
        return support, np.abs(coefficients[0]), status == 0

    x = np.array([0.0, 1.0, 2.0, 4.0, 5.0])
    example = (
        np.exp(-((x[:, None] - x) ** 2)),
        np.array([0.0, 1.0, 0.0, 1.0, 1.0]),
        np.array([1.0, 0.5, 0.1, 2.0, 3.0]),
        1e-3,
        1000,
    )
    try:
        support, alpha, finished = fit(*example)
    except Exception:  # noqa: BLE001  a private function may fail in any way after an update
        return None
    wanted_support, wanted_alpha, _ = _public_fit(*example)
    same = np.array_equal(support, wanted_support) and np.array_equal(alpha, wanted_alpha)
    return fit if same and finished else None


def _cache_size(rows: int) -> float:
    """Return the megabytes of the whole matrix in LIBSVM's single precision."""
    return min(_CACHE_LIMIT, 1.0 + 4 * rows**2 / 1e6)
