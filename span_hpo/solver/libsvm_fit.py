"""Compute dual variables with LIBSVM, from a kernel matrix or from features.

LIBSVM stops at a tolerance and computes with kernel values in single precision.
"""

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC, OneClassSVM

from span_hpo.errors import SolverError
from span_hpo.kernels import ALL, KernelBlocks, largest_entry
from span_hpo.runtime import FloatArray, IndexArray, rows_of, whole

_SINGLE_RANGE = 1e-20, 1e20  # kernel values that LIBSVM's single precision holds with room to spare
_MOST_ITERATIONS = 2**31 - 1  # largest number of iterations that LIBSVM counts in 32 bits
_FEATURE_CACHE = 200.0  # megabytes of kernel rows that LIBSVM keeps when it works on features
_CACHE_LIMIT = 2000.0  # largest cache in megabytes, of which LIBSVM allocates only what it uses


def checked_max_iter(max_iter: Any) -> int:
    """Return a limit of iterations after checking that LIBSVM can count to it."""
    return whole("max_iter", max_iter, at_least=1, at_most=_MOST_ITERATIONS)


def libsvm_alpha(
    K: KernelBlocks, y: FloatArray, costs: FloatArray, tol: float, max_iter: int
) -> tuple[FloatArray, bool]:
    """Return LIBSVM's dual variables, and whether it finished within `max_iter`.

    Dual variables at a bound equal 0 or the cost bit for bit, so that the split into in-bound and
    bounded rows needs no tolerance. Rows with cost 0 are left out, because LIBSVM would drop them
    and renumber the others.
    """
    if not costs.all():
        kept = rows_of(costs)
        alpha = np.zeros(len(y))
        alpha[kept], finished = libsvm_alpha(K.take(kept), y[kept], costs[kept], tol, max_iter)
        return alpha, finished
    fit, unit = checked_private_fit() or _public_fit, 1.0
    features = K.features
    if features is None:
        matrix = np.ascontiguousarray(K.block(ALL, ALL))
        unit = _kernel_unit(largest_entry(K))
    else:
        fit, matrix = functools.partial(_fit_on_features, features.svc_arguments), features.X
    if unit != 1:
        matrix, costs = matrix / unit, costs * unit
        if not (np.isfinite(costs).all() and costs.all()):
            raise SolverError(
                f"The costs times kernel values of about {unit:.0e} are out of range. Scale the "
                "features or change the costs."
            )
    support, of_support, finished = fit(matrix, (y < 0).astype(float), costs, tol, max_iter)
    alpha = np.zeros(len(y))
    # LIBSVM sets a bounded alpha to its cost, but may miss it upwards by the last bit.
    alpha[support] = np.minimum(of_support, costs[support]) / unit
    if not np.isfinite(alpha.sum()):
        raise SolverError(
            "LIBSVM returned dual variables that are not finite. Scale the features or lower the "
            "costs."
        )
    return alpha, finished


def one_class_weights(Q: FloatArray, tol: float, max_iter: int) -> FloatArray:
    """Return beta that minimises ``beta' Q beta`` for ``sum(beta) = 1, beta >= 0``, shape (l,).

    This is LIBSVM's one-class problem with ``nu = 1/l``. Its box ``beta <= 1`` follows from the
    sum.

    Raises
    ------
    SolverError
        If LIBSVM does not finish within `max_iter` steps.
    """
    svm = OneClassSVM(kernel="precomputed", nu=1 / len(Q), tol=tol, max_iter=max_iter)
    svm.set_params(cache_size=_cache_size(len(Q)))
    with (
        sklearn.config_context(assume_finite=True, skip_parameter_validation=True),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", ConvergenceWarning)
        svm.fit(Q)
    if svm.fit_status_ != 0:
        raise SolverError(f"LIBSVM's one-class problem did not end within {max_iter} steps.")
    beta = np.zeros(len(Q))
    beta[svm.support_] = svm.dual_coef_[0]
    beta /= beta.sum()
    return beta


def _kernel_unit(largest: float) -> float:
    """Return a power of two in units of which the kernel values fit into single precision."""
    if largest == 0 or _SINGLE_RANGE[0] < largest < _SINGLE_RANGE[1]:
        return 1.0
    return 2.0 ** (math.frexp(largest)[1] - 1)


_Fit = Callable[
    [FloatArray, FloatArray, FloatArray, float, int], tuple[IndexArray, FloatArray, bool]
]


def _public_fit(
    K: FloatArray, classes: FloatArray, costs: FloatArray, tol: float, max_iter: int
) -> tuple[IndexArray, FloatArray, bool]:
    """Fit with the public class ``SVC``, which has an overhead of about a millisecond."""
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
    """Fit on the features, for kernel matrices that are not held in memory."""
    try:
        return _fit_svc(X, classes, costs, tol, max_iter, cache_size=_FEATURE_CACHE, **kernel)
    except ValueError as error:
        raise SolverError(f"LIBSVM cannot work on these features: {error}") from error


def _fit_svc(
    X: Any, classes: FloatArray, costs: FloatArray, tol: float, max_iter: int, **arguments: Any
) -> tuple[IndexArray, FloatArray, bool]:
    """Return the support vectors of an ``SVC``, their dual variables, and whether it finished."""
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
def checked_private_fit() -> _Fit | None:
    """Return a fit without the overhead of ``SVC``, or None if scikit-learn has no reliable one.

    ``sklearn.svm._libsvm`` is private, so it is used only after it has given the same answer as the
    public class on a small problem.
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


def _cache_size(n_rows: int) -> float:
    """Return the megabytes of the whole matrix in LIBSVM's single precision, up to a limit."""
    return min(_CACHE_LIMIT, 1.0 + 4 * n_rows**2 / 1e6)
