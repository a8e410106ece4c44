"""Formulas, default ranges and names of the kernels."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.metrics.pairwise import laplacian_kernel

from span_hpo.errors import NoDerivativeError
from span_hpo.kernels.blocks import check_kernel_matrix, checked_matrix
from span_hpo.kernels.distances import (
    about_mean,
    check_overflow,
    cross_squared_distances,
    products,
    some_rows,
    squared_distances,
    squared_norms,
    typical_distance,
)
from span_hpo.kernels.kernel import Kernel
from span_hpo.kernels.row_pairs import RowPairs
from span_hpo.runtime import FloatArray, IndexArray, real, whole
from span_hpo.space import (
    Float,
    Hyperparameter,
)

_TYPICAL_RANGE = 1e-300, 1e300  # median distances for which gamma neither overflows nor vanishes
_HIGHEST_DEGREE = 1000
# The default ranges of gamma, in units of one over the median distance or squared norm of the rows.
RELATIVE_WIDTHS = Float(0.01, 100.0, log=True)
_RELATIVE_SCALES = Float(0.01, 10.0, log=True)


@dataclass(frozen=True)
class RBF(Kernel):
    """The Gaussian kernel ``K(x, z) = exp(-gamma |x - z|^2)``.

    Parameters
    ----------
    gamma
        Inverse width. By default it is searched over [0.01, 100] divided by the median nonzero
        squared distance of the rows. If there are more than 2,000 rows, the median is that of rows
        spread evenly over the data.

    Examples
    --------
    >>> from span_hpo import RBF
    >>> RBF(gamma=0.5)([[0.0], [2.0]]).round(3).tolist()
    [[1.0, 0.135], [0.135, 1.0]]
    >>> RBF(gamma=0.5)([[0.0]], [[1.0], [2.0]]).round(3).tolist()
    [[0.607, 0.135]]
    """

    gamma: Hyperparameter | None = None
    libsvm_name: ClassVar[str] = "rbf"
    gives_blocks: ClassVar[bool] = True

    def bind(self, X: Any) -> "RBF":
        """Return this kernel with the default range of `gamma` filled in."""
        if self.gamma is not None:
            return self
        return replace(self, gamma=relative_to(RELATIVE_WIDTHS, squared_distances(some_rows(X))))

    def starts(self, X: Any) -> list[dict[str, Any]]:
        """Return one over the number of features, and one over the median squared distance."""
        return _starting_widths(X, squared_distances(some_rows(X)))

    def statistic(self, X: Any) -> FloatArray:
        """Return the squared distances of the rows."""
        return squared_distances(X)

    def shifted(self, X: Any) -> Any:
        """Return the features minus their mean, or sparse features unchanged."""
        return about_mean(X)

    def cross_statistic(self, X: Any, Z: Any) -> FloatArray:
        """Return the squared distances between the rows of X and the rows of Z."""
        return cross_squared_distances(X, Z)

    def matrix(self, statistic: FloatArray, **values: Any) -> FloatArray:
        """Return ``exp(-gamma D^2)``."""
        return _exponential(statistic, values["gamma"])

    def diagonal(self, X: Any, **values: Any) -> FloatArray:
        """Return ones."""
        return np.ones(X.shape[0])

    def gradient(
        self, statistic: FloatArray, K: FloatArray, weights: FloatArray, **values: Any
    ) -> dict[str, float]:
        """Return ``-sum_ij weights_ij K_ij D_ij^2``, the derivative by `gamma`."""
        return {"gamma": -_sum_of_products(weights, K, statistic)}

    def svc_arguments(self, **values: Any) -> dict[str, Any]:
        """Return the arguments that give scikit-learn's ``SVC`` this kernel."""
        return {"kernel": "rbf", "gamma": values["gamma"]}


@dataclass(frozen=True)
class Laplacian(Kernel):
    """The Laplacian kernel ``K(x, z) = exp(-gamma |x - z|_1)``.

    Parameters
    ----------
    gamma
        Inverse width. By default it is searched over [0.01, 100] divided by the median nonzero
        distance (sum of absolute differences) of the rows.

    Examples
    --------
    >>> from span_hpo import Laplacian
    >>> Laplacian(gamma=0.5)([[0.0, 0.0], [1.0, 3.0]]).round(3).tolist()
    [[1.0, 0.135], [0.135, 1.0]]
    """

    gamma: Hyperparameter | None = None

    def bind(self, X: Any) -> "Laplacian":
        """Return this kernel with the default range of `gamma` filled in."""
        if self.gamma is not None:
            return self
        return replace(self, gamma=relative_to(RELATIVE_WIDTHS, self.statistic(some_rows(X))))

    def starts(self, X: Any) -> list[dict[str, Any]]:
        """Return one over the number of features, and one over the median distance."""
        return _starting_widths(X, self.statistic(some_rows(X)))

    def statistic(self, X: Any) -> FloatArray:
        """Return the sums of the absolute differences of the rows."""
        _check_dense(X, "X")
        return np.ascontiguousarray(squareform(pdist(X, "cityblock")))

    def cross_statistic(self, X: Any, Z: Any) -> FloatArray:
        """Return the sums of absolute differences between the rows of X and the rows of Z."""
        _check_dense(X, "X")
        _check_dense(Z, "Z")
        distances: FloatArray = cdist(X, Z, "cityblock")
        return distances

    def matrix(self, statistic: FloatArray, **values: Any) -> FloatArray:
        """Return ``exp(-gamma D)``."""
        return _exponential(statistic, values["gamma"])

    def gradient(
        self, statistic: FloatArray, K: FloatArray, weights: FloatArray, **values: Any
    ) -> dict[str, float]:
        """Return ``-sum_ij weights_ij K_ij D_ij``, the derivative by `gamma`."""
        return {"gamma": -_sum_of_products(weights, K, statistic)}

    def svc_arguments(self, **values: Any) -> dict[str, Any]:
        """Return the arguments that give scikit-learn's ``SVC`` this kernel."""
        return {"kernel": functools.partial(laplacian_kernel, gamma=values["gamma"])}


@dataclass(frozen=True)
class Linear(Kernel):
    """The linear kernel ``K(x, z) = x'z``.

    Examples
    --------
    >>> from span_hpo import Linear
    >>> Linear()([[1.0, 2.0], [3.0, 0.0]]).tolist()
    [[5.0, 3.0], [3.0, 9.0]]
    """

    libsvm_name: ClassVar[str] = "linear"
    gives_blocks: ClassVar[bool] = True

    def statistic(self, X: Any) -> FloatArray:
        """Return the inner products of the rows."""
        return products(X, X)

    def cross_statistic(self, X: Any, Z: Any) -> FloatArray:
        """Return the inner products of the rows of X with the rows of Z."""
        return products(X, Z)

    def matrix(self, statistic: FloatArray, **values: Any) -> FloatArray:
        """Return the inner products themselves."""
        return statistic

    def svc_arguments(self, **values: Any) -> dict[str, Any]:
        """Return the arguments that give scikit-learn's ``SVC`` this kernel."""
        return {"kernel": "linear"}


@dataclass(frozen=True)
class Polynomial(Kernel):
    """The polynomial kernel ``K(x, z) = (gamma x'z + coef0)^degree``.

    Parameters
    ----------
    degree
        Degree, a whole number from 1 to 1000.
    gamma
        Scale of the inner products. By default it is searched over [0.01, 10] divided by the
        median nonzero squared norm of the rows.
    coef0
        Offset, at least 0, because the kernel may not be positive semi-definite with a negative
        offset.

    Examples
    --------
    >>> from span_hpo import Polynomial
    >>> Polynomial(degree=2, gamma=1.0, coef0=1.0)([[1.0], [2.0]]).tolist()
    [[4.0, 9.0], [9.0, 25.0]]
    """

    degree: Hyperparameter = 3
    gamma: Hyperparameter | None = None
    coef0: Hyperparameter = 1.0
    libsvm_name: ClassVar[str] = "polynomial"
    gives_blocks: ClassVar[bool] = True

    def bind(self, X: Any) -> "Polynomial":
        """Return this kernel with the default range of `gamma` filled in."""
        if self.gamma is not None:
            return self
        norms = squared_norms(X)
        check_overflow(norms, "squared norms of the rows", "scale the features")
        return replace(self, gamma=relative_to(_RELATIVE_SCALES, norms))

    def starts(self, X: Any) -> list[dict[str, Any]]:
        """Return one over the number of features, and one over the median squared norm."""
        return _starting_widths(X, squared_norms(X))

    def check(self, name: str, value: Any) -> Any:
        """Return the value of one hyperparameter, or raise ``ValueError`` if it is not valid."""
        if name == "degree":
            return whole(name, value, at_least=1, at_most=_HIGHEST_DEGREE)
        if name == "coef0":
            return real(name, value, at_least=0)
        return super().check(name, value)

    def statistic(self, X: Any) -> FloatArray:
        """Return the inner products of the rows."""
        return products(X, X)

    def cross_statistic(self, X: Any, Z: Any) -> FloatArray:
        """Return the inner products of the rows of X with the rows of Z."""
        return products(X, Z)

    def matrix(self, statistic: FloatArray, **values: Any) -> FloatArray:
        """Return ``(gamma x'z + coef0)^degree``."""
        power: FloatArray = (values["gamma"] * statistic + values["coef0"]) ** values["degree"]
        return power

    def gradient(
        self, statistic: FloatArray, K: FloatArray, weights: FloatArray, **values: Any
    ) -> dict[str, float]:
        """Return the derivatives by `gamma` and `coef0`; the degree is a whole number."""
        degree = values["degree"]
        slopes = degree * (values["gamma"] * statistic + values["coef0"]) ** (degree - 1)
        slopes *= weights
        return {"gamma": float(np.vdot(slopes, statistic)), "coef0": float(slopes.sum())}

    def svc_arguments(self, **values: Any) -> dict[str, Any]:
        """Return the arguments that give scikit-learn's ``SVC`` this kernel."""
        return {"kernel": "poly", **values}


@dataclass(frozen=True)
class Precomputed(Kernel):
    """A kernel whose matrix is given in place of the features.

    Examples
    --------
    >>> from span_hpo import Precomputed, SpanObjective
    >>> K = [[2.0, 1.0], [1.0, 2.0]]
    >>> Precomputed()(K).tolist()
    [[2.0, 1.0], [1.0, 2.0]]
    >>> list(SpanObjective(K, [-1, 1], kernel=Precomputed()).space)
    ['C_-1', 'C_1']
    """

    def bind(self, X: Any) -> "Precomputed":
        """Return this kernel after checking that `X` can be a kernel matrix."""
        if issparse(X):
            raise TypeError("`X` must be a dense kernel matrix, got a sparse one.")
        check_kernel_matrix(X, "X")
        return self

    def statistic(self, X: Any) -> FloatArray:
        """Return the given matrix, made symmetric to the last bit."""
        return checked_matrix(X, "X").values

    def between(self, X: Any, Z: Any, **values: Any) -> FloatArray:
        """Raise ``ValueError``, because a given matrix has no values for other rows."""
        raise ValueError(
            "`Z` must be None for a precomputed kernel, which knows only its own rows, got "
            f"shape {Z.shape}."
        )

    def matrix(self, statistic: FloatArray, **values: Any) -> FloatArray:
        """Return the given matrix."""
        return statistic

    def svc_arguments(self, **values: Any) -> dict[str, Any]:
        """Return the arguments that give scikit-learn's ``SVC`` this kernel."""
        return {"kernel": "precomputed"}


@dataclass(frozen=True)
class FunctionKernel(Kernel):
    """A kernel that a user's own function computes.

    An objective accepts a bare callable as well, and makes a `FunctionKernel` of it.

    Parameters
    ----------
    function
        Function that is called as ``function(X, Z, **hyperparameters)`` with arrays of shape (l, d)
        and (m, d) and returns the kernel values, shape (l, m). The kernel must be positive
        semi-definite.
    hyperparameters
        Hyperparameters of the function by name, each a fixed value or a dimension to search, for
        instance ``{"width": Float(0.1, 10, log=True)}``.
    derivative
        Function that is called as ``derivative(X, Z, weights, **hyperparameters)`` with weights of
        shape (l, m) and returns ``sum_ij weights_ij dK_ij / dt`` for each hyperparameter t that is
        searched as a real number, as a mapping from names. Only searches by gradients need it.

    Examples
    --------
    >>> from span_hpo import FunctionKernel
    >>> def shifted_product(X, Z, shift):
    ...     return X @ Z.T + shift
    >>> kernel = FunctionKernel(shifted_product, {"shift": 1.0})
    >>> kernel([[1.0], [2.0]]).tolist()
    [[2.0, 3.0], [3.0, 5.0]]
    """

    function: Callable[..., Any]
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    derivative: Callable[..., Mapping[str, Any]] | None = None

    def check(self, name: str, value: Any) -> Any:
        """Return the value unchanged, because only the function knows which values are valid."""
        return value

    def statistic(self, X: Any) -> Any:
        """Return the rows themselves, because nothing is known to be reusable."""
        return X

    def restrict(self, statistic: FloatArray, rows: IndexArray) -> FloatArray:
        """Return the given rows."""
        return statistic[rows]

    def part(self, statistic: Any, rows: IndexArray, columns: IndexArray) -> RowPairs:
        """Return the pairs of some rows with some others."""
        return RowPairs(statistic[rows], statistic[columns])

    def gradient(
        self, statistic: RowPairs, K: FloatArray, weights: FloatArray, **values: Any
    ) -> dict[str, float]:
        """Return what the user's `derivative` returns, after checking it."""
        if self.derivative is None:
            raise NoDerivativeError(
                "`kernel` must have a derivative for gradients: pass FunctionKernel(function, "
                "hyperparameters, derivative), got derivative=None."
            )
        found = self.derivative(*statistic.sides, weights, **values)
        wanted = [name for name, part in self.space.items() if isinstance(part, Float)]
        if not isinstance(found, Mapping) or not set(wanted) <= set(found):
            raise ValueError(
                f"`derivative` of the kernel must return a mapping with the names {wanted}, got "
                f"{found!r}."
            )
        return {name: real(f"derivative by {name}", found[name]) for name in wanted}

    def matrix(self, statistic: Any, **values: Any) -> FloatArray:
        """Return the values of the function for all pairs of rows after checking them."""
        K = checked_matrix(self.function(statistic, statistic, **values), "kernel").values
        if len(K) != statistic.shape[0]:
            raise ValueError(
                f"`kernel` must return one row and column for each of {statistic.shape[0]} rows, "
                f"got shape {K.shape}."
            )
        return K

    def between(self, X: Any, Z: Any, **values: Any) -> FloatArray:
        """Return the values of the function between two sets of rows after checking them."""
        K = np.asarray(self.function(X, Z, **values), dtype=np.float64)
        if K.shape != (X.shape[0], Z.shape[0]):
            raise ValueError(
                f"`kernel` must return shape {(X.shape[0], Z.shape[0])}, got shape {K.shape}."
            )
        if not np.isfinite(K).all():
            raise ValueError("`kernel` must return finite numbers, got NaN or infinity.")
        return K

    def svc_arguments(self, **values: Any) -> dict[str, Any]:
        """Return the arguments that give scikit-learn's ``SVC`` this kernel."""
        return {"kernel": functools.partial(self.function, **values)}

    def _hyperparameters(self) -> dict[str, Any]:
        return dict(self.hyperparameters)


def _check_dense(X: Any, name: str) -> None:
    if issparse(X):
        raise TypeError(
            f"`{name}` must be dense for the laplacian kernel, got a sparse matrix: pass "
            f"{name}.toarray()."
        )


def _exponential(distances: FloatArray, gamma: float) -> FloatArray:
    K: FloatArray = distances * -gamma
    return np.exp(K, out=K)


def _sum_of_products(*factors: FloatArray) -> float:
    """Return the sum over the products of the entries of three matrices."""
    return float(np.einsum("ij,ij,ij->", *factors))


def _starting_widths(X: Any, distances: FloatArray) -> list[dict[str, Any]]:
    return [{"gamma": 1 / X.shape[1]}, {"gamma": 1 / typical_distance(distances)}]


def relative_to(relative: Float, distances: FloatArray) -> Float:
    """Return a range of gamma in absolute units, for rows with these distances."""
    typical = typical_distance(distances)
    if not _TYPICAL_RANGE[0] < typical < _TYPICAL_RANGE[1]:
        raise ValueError(
            f"`X` must be scaled, got a median (squared) distance or norm of {typical:.1e}."
        )
    return Float(relative.low / typical, relative.high / typical, log=True)
