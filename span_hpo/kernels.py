"""Kernels and the matrices they give.

A kernel splits in two: a statistic of the data that no hyperparameter touches (squared distances,
inner products), computed once, and the map from it to the kernel matrix, computed anew only when a
kernel parameter changes. That is what makes a trial cheaper than a fit on the features.
"""

import functools
import os
import pickle
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from scipy.spatial.distance import pdist, squareform
from sklearn.metrics.pairwise import laplacian_kernel

from span_hpo.arrays import BoolArray, FloatArray, IndexArray
from span_hpo.checks import real, whole
from span_hpo.errors import SolverError
from span_hpo.gram import KernelBlocks, KernelMatrix, Rows, checked_matrix
from span_hpo.once import Results
from span_hpo.space import Float, Hyperparameter, Params, Space, searched, value_of

_CANCELLED = 1e-6  # squared distances below this share of the norms are formed from differences
_PAIRS_AT_ONCE = 100_000  # pairs of rows whose differences are held in memory together
_TYPICAL_RANGE = 1e-300, 1e300  # (squared) distances for which a width can be written
_HIGHEST_DEGREE = 1000
_ROWS_AT_ONCE = 1000  # whose products with all others are in memory twice for a moment
_DIAGONAL_ROWS = 500  # of which the diagonal of a kernel is computed together
_UNKNOWN_MEMORY = 2000.0  # megabytes
_MEDIAN_ROWS = 2000  # rows that the default widths look at


@dataclass(frozen=True)
class Kernel(ABC):
    """A positive semi-definite kernel; its fields are its hyperparameters."""

    @property
    def space(self) -> Space:
        """The hyperparameters that are searched."""
        return searched(self._hyperparameters())

    def values(self, params: Params) -> dict[str, Any]:
        """Return the value of every hyperparameter, fixed or searched, checked."""
        return {
            name: self.check(name, value_of(setting, name, params))
            for name, setting in self._hyperparameters().items()
        }

    def bind(self, X: Any) -> "Kernel":
        """Return this kernel with defaults that depend on the data filled in."""
        return self

    def starts(self, X: Any) -> list[dict[str, Any]]:
        """Return good guesses of some hyperparameters for these data."""
        return [{}]

    def check(self, name: str, value: Any) -> Any:
        """Return the value of one hyperparameter, or raise ``ValueError``."""
        return real(name, value, above=0)

    @abstractmethod
    def statistic(self, X: Any) -> FloatArray:
        """Return what the kernel matrix is a function of, whatever the hyperparameters are."""

    def shifted(self, X: Any) -> Any:
        """Return features that give the same kernel, with less rounding if possible."""
        return X

    def cross_statistic(self, X: Any, Z: Any) -> FloatArray:
        """Return the statistic of the rows of X with those of Z."""
        raise ValueError(
            f"`memory_limit` must allow for the whole kernel matrix with {type(self).__name__}."
        )

    def restrict(self, statistic: FloatArray, rows: IndexArray) -> FloatArray:
        """Return the statistic of some of the rows."""
        return statistic[np.ix_(rows, rows)]

    @abstractmethod
    def matrix(self, statistic: FloatArray, **values: Any) -> FloatArray:
        """Return the kernel matrix of a statistic (of any shape), as a new array or itself."""

    @abstractmethod
    def svc_arguments(self, **values: Any) -> dict[str, Any]:
        """Return the arguments that give scikit-learn's ``SVC`` the same kernel."""

    def _hyperparameters(self) -> dict[str, Any]:
        return {own.name: getattr(self, own.name) for own in fields(self)}


@dataclass(frozen=True)
class RBF(Kernel):
    """``K(x, z) = exp(-gamma |x - z|^2)``.

    Parameters
    ----------
    gamma
        Inverse width; by default searched over [0.01, 100] divided by the median nonzero squared
        distance of the data (of rows spread evenly over them, if there are more than 2,000).
    """

    gamma: Hyperparameter | None = None

    def bind(self, X: Any) -> "RBF":
        """Return this kernel with the default range of `gamma` filled in."""
        if self.gamma is not None:
            return self
        return replace(self, gamma=_width_range(_squared_distances(_some_rows(X))))

    def starts(self, X: Any) -> list[dict[str, Any]]:
        """Return one over the number of features, and over the median squared distance."""
        return _starting_widths(X, _squared_distances(_some_rows(X)))

    def statistic(self, X: Any) -> FloatArray:
        """Return the squared distances."""
        return _squared_distances(X)

    def shifted(self, X: Any) -> Any:
        """Return the features about their mean, where they do not have to stay sparse."""
        return _about_mean(X)

    def cross_statistic(self, X: Any, Z: Any) -> FloatArray:
        """Return the squared distances of the rows of X from those of Z."""
        return _cross_squared_distances(X, Z)

    def matrix(self, statistic: FloatArray, **values: Any) -> FloatArray:
        """Return ``exp(-gamma D^2)``."""
        return _exponential(statistic, values["gamma"])

    def svc_arguments(self, **values: Any) -> dict[str, Any]:
        """Return the arguments of an ``SVC`` with this kernel."""
        return {"kernel": "rbf", "gamma": values["gamma"]}


@dataclass(frozen=True)
class Laplacian(Kernel):
    """``K(x, z) = exp(-gamma |x - z|_1)``.

    Parameters
    ----------
    gamma
        Inverse width; by default searched over [0.01, 100] divided by the median nonzero distance
        (sum of absolute differences) of the data.
    """

    gamma: Hyperparameter | None = None

    def bind(self, X: Any) -> "Laplacian":
        """Return this kernel with the default range of `gamma` filled in."""
        if self.gamma is not None:
            return self
        return replace(self, gamma=_width_range(self.statistic(_some_rows(X))))

    def starts(self, X: Any) -> list[dict[str, Any]]:
        """Return one over the number of features, and over the median distance."""
        return _starting_widths(X, self.statistic(_some_rows(X)))

    def statistic(self, X: Any) -> FloatArray:
        """Return the sums of absolute differences."""
        if issparse(X):
            raise TypeError(
                "`X` must be dense for the laplacian kernel, got a sparse matrix: pass X.toarray()."
            )
        return np.ascontiguousarray(squareform(pdist(X, "cityblock")))

    def matrix(self, statistic: FloatArray, **values: Any) -> FloatArray:
        """Return ``exp(-gamma D)``."""
        return _exponential(statistic, values["gamma"])

    def svc_arguments(self, **values: Any) -> dict[str, Any]:
        """Return the arguments of an ``SVC`` with this kernel."""
        return {"kernel": functools.partial(laplacian_kernel, gamma=values["gamma"])}


@dataclass(frozen=True)
class Linear(Kernel):
    """``K(x, z) = x'z``."""

    def statistic(self, X: Any) -> FloatArray:
        """Return the inner products."""
        return _products(X, X)

    def cross_statistic(self, X: Any, Z: Any) -> FloatArray:
        """Return the inner products of the rows of X with those of Z."""
        return _products(X, Z)

    def matrix(self, statistic: FloatArray, **values: Any) -> FloatArray:
        """Return the inner products themselves."""
        return statistic

    def svc_arguments(self, **values: Any) -> dict[str, Any]:
        """Return the arguments of an ``SVC`` with this kernel."""
        return {"kernel": "linear"}


@dataclass(frozen=True)
class Polynomial(Kernel):
    """``K(x, z) = (gamma x'z + coef0)^degree``.

    Parameters
    ----------
    degree
        Whole number from 1 to 1000.
    gamma
        Scale of the inner products; by default searched over [0.01, 10] divided by the median
        nonzero squared norm of the rows.
    coef0
        Offset, not negative: a negative one may give a kernel that is not positive semi-definite.
    """

    degree: Hyperparameter = 3
    gamma: Hyperparameter | None = None
    coef0: Hyperparameter = 1.0

    def bind(self, X: Any) -> "Polynomial":
        """Return this kernel with the default range of `gamma` filled in."""
        if self.gamma is not None:
            return self
        squared_norms = _squared_norms(X)
        _check_overflow(squared_norms, "squared norms of the rows", "scale the features")
        return replace(self, gamma=_width_range(squared_norms, highest=10.0))

    def starts(self, X: Any) -> list[dict[str, Any]]:
        """Return one over the number of features, and over the median squared norm."""
        return _starting_widths(X, _squared_norms(X))

    def check(self, name: str, value: Any) -> Any:
        """Return the value of one hyperparameter, or raise ``ValueError``."""
        if name == "degree":
            return whole(name, value, at_least=1, at_most=_HIGHEST_DEGREE)
        if name == "coef0":
            return real(name, value, at_least=0)
        return super().check(name, value)

    def statistic(self, X: Any) -> FloatArray:
        """Return the inner products."""
        return _products(X, X)

    def cross_statistic(self, X: Any, Z: Any) -> FloatArray:
        """Return the inner products of the rows of X with those of Z."""
        return _products(X, Z)

    def matrix(self, statistic: FloatArray, **values: Any) -> FloatArray:
        """Return ``(gamma x'z + coef0)^degree``."""
        power: FloatArray = (values["gamma"] * statistic + values["coef0"]) ** values["degree"]
        return power

    def svc_arguments(self, **values: Any) -> dict[str, Any]:
        """Return the arguments of an ``SVC`` with this kernel."""
        return {"kernel": "poly", **values}


@dataclass(frozen=True)
class Precomputed(Kernel):
    """The kernel matrix itself is given in place of the features."""

    def bind(self, X: Any) -> "Precomputed":
        """Return this kernel, if the given matrix can be one."""
        if issparse(X):
            raise TypeError("`X` must be a dense kernel matrix, got a sparse one.")
        checked_matrix(X, "X")
        return self

    def statistic(self, X: Any) -> FloatArray:
        """Return the given matrix, symmetric to the last bit."""
        return checked_matrix(X, "X").values

    def matrix(self, statistic: FloatArray, **values: Any) -> FloatArray:
        """Return the given matrix."""
        return statistic

    def svc_arguments(self, **values: Any) -> dict[str, Any]:
        """Return the arguments of an ``SVC`` with this kernel."""
        return {"kernel": "precomputed"}


@dataclass(frozen=True)
class FunctionKernel(Kernel):
    """``K(x, z)`` by a function of the user's; a bare callable becomes one of these.

    Parameters
    ----------
    function
        Called as ``function(X, Z, **hyperparameters)`` with arrays of shape (l, d) and (m, d);
        returns shape (l, m). It must be positive semi-definite.
    hyperparameters
        Names with numbers or dimensions that are passed on, for instance
        ``{"width": Float(0.1, 10, log=True)}``.
    """

    function: Callable[..., Any]
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)

    def check(self, name: str, value: Any) -> Any:
        """Return the value as it is: only the function knows what is right."""
        return value

    def statistic(self, X: Any) -> FloatArray:
        """Return the rows themselves: nothing is known to be reusable."""
        rows: FloatArray = X
        return rows

    def restrict(self, statistic: FloatArray, rows: IndexArray) -> FloatArray:
        """Return some of the rows."""
        return statistic[rows]

    def matrix(self, statistic: FloatArray, **values: Any) -> FloatArray:
        """Return what the function gives for all pairs of rows, checked."""
        K = checked_matrix(self.function(statistic, statistic, **values), "kernel").values
        if len(K) != statistic.shape[0]:
            raise ValueError(
                f"`kernel` must return one row and column for each of {statistic.shape[0]} rows, "
                f"got shape {K.shape}."
            )
        return K

    def svc_arguments(self, **values: Any) -> dict[str, Any]:
        """Return the arguments of an ``SVC`` with this kernel."""
        return {"kernel": functools.partial(self.function, **values)}

    def _hyperparameters(self) -> dict[str, Any]:
        return dict(self.hyperparameters)


_BY_NAME: dict[str, type[Kernel]] = {
    "rbf": RBF,
    "linear": Linear,
    "poly": Polynomial,
    "laplacian": Laplacian,
    "precomputed": Precomputed,
}


def as_kernel(kernel: Any) -> Kernel:
    """Return the kernel that a user means by a name, a kernel object or a callable."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in _BY_NAME:
        return _BY_NAME[kernel]()
    if callable(kernel) and not isinstance(kernel, type):
        return FunctionKernel(kernel)
    raise ValueError(
        f"`kernel` must be one of {sorted(_BY_NAME)}, a kernel such as RBF(gamma=0.1) or a "
        f"callable (X, Z) -> matrix, got {kernel!r}."
    )


@dataclass(frozen=True, eq=False)
class FeatureKernel:
    """A kernel matrix that is never held: blocks of it are computed from the features.

    Attributes
    ----------
    kernel
        The kernel.
    X
        Features, shape (l, d).
    values
        Its hyperparameters.
    """

    kernel: Kernel
    X: Any
    values: dict[str, Any]
    held: ClassVar[bool] = False

    def __len__(self) -> int:
        count: int = self.X.shape[0]
        return count

    def diagonal(self) -> FloatArray:
        """Return ``K_ii`` of every row."""
        return self._diagonal

    @functools.cached_property
    def _diagonal(self) -> FloatArray:
        parts = []
        for start in range(0, len(self), _DIAGONAL_ROWS):
            rows = self.X[start : start + _DIAGONAL_ROWS]
            statistic = self.kernel.cross_statistic(rows, rows)
            parts.append(self.kernel.matrix(statistic.diagonal().copy(), **self.values))
        return np.concatenate(parts)

    def block(self, rows: Rows, columns: Rows) -> FloatArray:
        """Return ``K_ij`` for the given rows and columns, a new array."""
        statistic = self.kernel.cross_statistic(self.X[rows], self.X[columns])
        with np.errstate(over="ignore", invalid="ignore"):
            block = self.kernel.matrix(statistic, **self.values)
        _check_overflow(block, f"kernel values with {self.values}", "use smaller parameters")
        return np.ascontiguousarray(block)

    def take(self, rows: IndexArray) -> "FeatureKernel":
        """Return the kernel of some of the rows."""
        return FeatureKernel(self.kernel, self.X[rows], self.values)

    def svc_arguments(self) -> dict[str, Any]:
        """Return the arguments of an ``SVC`` with this kernel."""
        return self.kernel.svc_arguments(**self.values)


class KernelCache:
    """The kernel matrices of one data set, shared by threads and left out of pickles.

    The statistic is computed once and the last kernel matrix is kept, so trials that change only
    costs build no matrix at all. A matrix that several threads ask for at once is built by one.
    Where matrices do not fit into the memory limit none is held: kernels are computed from the
    features, block by block.

    Parameters
    ----------
    kernel
        A kernel with its defaults filled in.
    X
        Features, shape (l, d), or the kernel matrix for `Precomputed`.
    memory_limit
        Megabytes for matrices of l x l numbers.
    """

    def __init__(self, kernel: Kernel, X: Any, memory_limit: float | None = None) -> None:
        self.kernel = kernel
        self.X = X
        self.memory_limit = default_memory_limit() if memory_limit is None else memory_limit
        self._fixed = None if kernel.space else kernel.values({})
        self._shifted: Results[Any] = Results(most=1)
        self._statistic: Results[FloatArray] = Results(most=1)
        self._matrix: Results[KernelMatrix] = Results(most=1)

    def matrix(self, params: Params, rows: IndexArray | None = None) -> KernelBlocks:
        """Return the kernel matrix of all rows, or of some of them in the given order."""
        values = self.kernel.values(params) if self._fixed is None else self._fixed
        count = self.X.shape[0]
        if not self._fits(count):
            if rows is not None and self._fits(len(rows)):
                return self._build(self.kernel.statistic(self.X[rows]), values)
            X = self._shifted.get((), lambda: self.kernel.shifted(self.X))
            self.kernel.cross_statistic(X[:1], X[:1])  # raises if the kernel has no blocks
            return FeatureKernel(self.kernel, X if rows is None else X[rows], values)
        key = _key({name: values[name] for name in self.kernel.space})
        if self._fixed is not None:
            # One matrix for all trials: what it is made of is not needed again.
            K = self._matrix.get(key, lambda: self._build(self.kernel.statistic(self.X), values))
            return K if rows is None else KernelMatrix(K.block(rows, rows))
        statistic = self._statistic.get((), lambda: self.kernel.statistic(self.X))
        if rows is not None and not self._matrix.holds(key):
            # Widths differ from trial to trial: build no more than this one looks at.
            return self._build(self.kernel.restrict(statistic, rows), values)
        K = self._matrix.get(key, lambda: self._build(statistic, values))
        return K if rows is None else KernelMatrix(K.block(rows, rows))

    def _fits(self, count: int) -> bool:
        """Tell whether the matrices of so many rows fit into the memory limit."""
        if isinstance(self.kernel, Precomputed):
            return True  # it is there already
        matrices = 1.0 if self._fixed is not None else 2.0
        # LIBSVM keeps one of its own in single precision.
        return 8e-6 * (matrices + 0.5) * count**2 <= self.memory_limit

    def _build(self, statistic: FloatArray, values: dict[str, Any]) -> KernelMatrix:
        with np.errstate(over="ignore", invalid="ignore"):
            K = self.kernel.matrix(statistic, **values)
        _check_overflow(K, f"kernel values with {values}", "use smaller kernel parameters")
        return KernelMatrix(K)

    def __reduce__(self) -> tuple[Any, ...]:
        return KernelCache, (self.kernel, self.X, self.memory_limit)


def default_memory_limit() -> float:
    """Return a quarter of the machine's memory, in megabytes."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return _UNKNOWN_MEMORY  # a system that does not tell
    return total / 4e6


def _key(values: dict[str, Any]) -> Any:
    """Return what tells these values from others, also 1 from True, or a list before a change."""
    try:
        return pickle.dumps(values)
    except (AttributeError, TypeError, pickle.PicklingError):
        return object()  # a lambda, for instance: like no other, so that nothing is reused


def _check_overflow(matrix: FloatArray, what: str, remedy: str) -> None:
    if not np.isfinite(matrix).all():
        raise SolverError(f"The {what} overflow: {remedy}.")


def _products(X: Any, Z: Any) -> FloatArray:
    """Return ``X Z'``, checked to be finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        products = _gram(X, Z)
    _check_overflow(products, "inner products of the rows", "scale the features")
    return products


def _gram(X: Any, Z: Any) -> FloatArray:
    """Return ``X Z'`` as an array, of sparse rows block by block."""
    if not issparse(X):
        gram: FloatArray = X @ Z.T
        return gram
    gram = np.empty((X.shape[0], Z.shape[0]))
    for start in range(0, len(gram), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        gram[block] = (X[block] @ Z.T).toarray()
    return gram


def _about_mean(X: Any) -> Any:
    """Return features about their mean; sparse ones as they are, to stay sparse."""
    return X if issparse(X) else X - X.mean(axis=0)


def _cross_squared_distances(X: Any, Z: Any) -> FloatArray:
    """Return ``|x_i - z_j|^2``; close rows from their differences, as in `_squared_distances`."""
    squared: FloatArray = np.add.outer(_squared_norms(X), _squared_norms(Z))
    cancelled = _CANCELLED * squared
    squared -= 2 * _products(X, Z)
    for i, j, exact in _from_differences(X, Z, squared <= cancelled):
        squared[i, j] = exact
    return squared


def _from_differences(
    X: Any, Z: Any, close: BoolArray
) -> Iterator[tuple[IndexArray, IndexArray, FloatArray]]:
    """Yield pairs of close rows and their squared distances, some at a time."""
    first, second = np.nonzero(close)
    for start in range(0, len(first), _PAIRS_AT_ONCE):
        i, j = first[start : start + _PAIRS_AT_ONCE], second[start : start + _PAIRS_AT_ONCE]
        yield i, j, _squared_norms(X[i] - Z[j])


def _squared_norms(X: Any) -> FloatArray:
    """Return ``|x|^2`` of every row."""
    with np.errstate(over="ignore"):
        if issparse(X):
            norms: FloatArray = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        else:
            norms = np.einsum("ij,ij->i", X, X)
    return norms


def _exponential(distances: FloatArray, gamma: float) -> FloatArray:
    K: FloatArray = distances * -gamma
    return np.exp(K, out=K)


def _some_rows(X: Any) -> Any:
    """Return rows spread evenly over the data: enough to know a median."""
    return X[:: -(-X.shape[0] // _MEDIAN_ROWS)]


def _typical(distances: FloatArray) -> float:
    """Return the median nonzero distance."""
    nonzero = distances[distances > 0]
    # Rows that all coincide have one kernel matrix, whatever the width.
    return float(np.median(nonzero)) if len(nonzero) else 1.0


def _starting_widths(X: Any, distances: FloatArray) -> list[dict[str, Any]]:
    return [{"gamma": 1 / X.shape[1]}, {"gamma": 1 / _typical(distances)}]


def _width_range(distances: FloatArray, highest: float = 100.0) -> Float:
    typical = _typical(distances)
    if not _TYPICAL_RANGE[0] < typical < _TYPICAL_RANGE[1]:
        raise ValueError(f"`X` must be scaled: its rows are {typical:.1e} apart in the median.")
    return Float(0.01 / typical, highest / typical, log=True)


def _squared_distances(X: Any) -> FloatArray:
    """Return ``|x_i - x_j|^2``, also of close rows with a relative error of about 1e-10.

    ``|x|^2 + |z|^2 - 2 x'z`` is fast but loses what the norms share: the few pairs that it would
    spoil, equal rows above all, are formed from their differences.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        X = _about_mean(X)
        norms = _squared_norms(X)
        squared = _gram(X, X)
        # In place and by blocks of rows: there is never a second matrix of this size.
        for start in range(0, len(squared), _ROWS_AT_ONCE):
            block = slice(start, start + _ROWS_AT_ONCE)
            part, sums = squared[block], norms[block, None] + norms
            part *= -2
            part += sums
            _check_overflow(part, "squared distances", "scale the features")
            for i, j, exact in _from_differences(X[block], X, part <= _CANCELLED * sums):
                part[i, j] = exact
    np.fill_diagonal(squared, 0.0)
    return squared
