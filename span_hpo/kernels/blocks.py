"""Kernel matrices that are held in memory or given block by block."""

import functools
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

import numpy as np
from scipy.linalg import blas

from span_hpo.runtime import FloatArray, IndexArray, rows_of

_ASYMMETRY = 1e-8  # largest asymmetry of a user's kernel matrix, relative to its largest entry
_SPARSE_SHARE = 0.2  # below this share of nonzero coefficients, gathering rows beats dsymv
_FEW_COLUMNS = 8  # a block with fewer than one in this many columns is picked value by value
_SMALL_BLOCK = 4096  # a block with fewer entries than this is picked value by value
_CACHED_ROWS = 8  # rows that stay in the processor's cache while columns are taken from them
_BLOCK_ENTRIES = 8_000_000  # entries of a kernel matrix that are formed at once if it is not held
_EQUAL = 1e-14  # largest difference of the kernel values of equal rows, relative to sqrt(K_ii K_jj)
_ENTRIES_AT_ONCE = 4_000_000  # kernel values of equal rows that are compared in one array

Rows: TypeAlias = IndexArray | slice
ALL: slice = slice(None)


@dataclass(frozen=True, eq=False)
class KernelFeatures:
    """The features and the kernel for a fit without a kernel matrix in memory.

    Attributes
    ----------
    X
        Features, shape (l, d).
    svc_arguments
        Arguments that give scikit-learn's ``SVC`` the same kernel.
    """

    X: Any
    svc_arguments: dict[str, Any]


@runtime_checkable
class KernelBlocks(Protocol):
    """A kernel matrix as the solver and the leave-one-out methods see it.

    The rows and columns of a block are arrays of indices, or ``slice(None)`` for all of them. If
    both are arrays, the block is a new array, which the caller may change.
    """

    def __len__(self) -> int: ...

    @property
    def features(self) -> KernelFeatures | None:
        """The features to fit on if the matrix is not held in memory, and None if it is held."""

    def diagonal(self) -> FloatArray:
        """Return ``K_ii`` of every row."""

    def block(self, rows: Rows, columns: Rows) -> FloatArray:
        """Return ``K_ij`` for the given rows and columns."""

    def take(self, rows: IndexArray) -> "KernelBlocks":
        """Return the kernel matrix of the given rows, without a copy."""


class GivenBlocks(Protocol):
    """The methods with which a user's own object can stand for a kernel matrix."""

    def __len__(self) -> int: ...

    def diagonal(self) -> FloatArray:
        """Return ``K_ii`` of every row."""

    def block(self, rows: Rows, columns: Rows) -> FloatArray:
        """Return ``K_ij`` for the given rows and columns."""


@dataclass(frozen=True, eq=False)
class KernelMatrix:
    """A checked, symmetric and read-only kernel matrix that is held in memory.

    Attributes
    ----------
    values
        The matrix, shape (l, l), float64, C order.
    """

    values: FloatArray
    features: ClassVar[None] = None

    def __post_init__(self) -> None:
        view = self.values.view()  # the caller's array stays writable for the caller
        view.setflags(write=False)
        object.__setattr__(self, "values", view)

    def __len__(self) -> int:
        return len(self.values)

    def diagonal(self) -> FloatArray:
        """Return ``K_ii`` of every row, shape (l,)."""
        return self.values.diagonal()

    @functools.cached_property
    def largest(self) -> float:
        """The largest ``|K_ii|``."""
        return float(np.abs(self.diagonal()).max())

    @functools.cached_property
    def first_equal(self) -> IndexArray | None:
        """For each row, the first row with the same kernel values, or None if all rows differ."""
        first = first_equal_rows(self, np.arange(len(self)), self.values)
        return None if (first == np.arange(len(self))).all() else first

    def block(self, rows: Rows, columns: Rows) -> FloatArray:
        """Return ``K_ij`` for the given rows and columns."""
        if isinstance(rows, slice) or isinstance(columns, slice):
            return self.values[rows, columns]
        if len(rows) * len(columns) < _SMALL_BLOCK or _FEW_COLUMNS * len(columns) < len(self):
            return self.values[rows[:, None], columns]
        # Taking whole rows first is several times faster than picking value by value.
        block = np.empty((len(rows), len(columns)))
        for start in range(0, len(rows), _CACHED_ROWS):
            part = slice(start, start + _CACHED_ROWS)
            block[part] = self.values[rows[part]].take(columns, axis=1)
        return block

    def take(self, rows: IndexArray) -> "KernelSubset":
        """Return the kernel matrix of the given rows, without a copy."""
        return KernelSubset(self, rows)


@dataclass(frozen=True, eq=False)
class KernelSubset:
    """The kernel matrix of some rows of a larger kernel matrix, without a copy."""

    whole: GivenBlocks
    rows: IndexArray
    features: ClassVar[None] = None

    def __len__(self) -> int:
        return len(self.rows)

    def diagonal(self) -> FloatArray:
        """Return ``K_ii`` of every row."""
        return self.whole.diagonal()[self.rows]

    def block(self, rows: Rows, columns: Rows) -> FloatArray:
        """Return ``K_ij`` for the given rows and columns."""
        return self.whole.block(self.rows[rows], self.rows[columns])

    def take(self, rows: IndexArray) -> "KernelSubset":
        """Return the kernel matrix of the given rows, without a copy."""
        return KernelSubset(self.whole, self.rows[rows])


@dataclass(frozen=True, eq=False)
class UserBlocks:
    """A user's own object as a kernel matrix, which is trusted to be symmetric and finite."""

    given: GivenBlocks
    features: ClassVar[None] = None

    def __len__(self) -> int:
        return len(self.given)

    def diagonal(self) -> FloatArray:
        """Return ``K_ii`` of every row."""
        return self.given.diagonal()

    def block(self, rows: Rows, columns: Rows) -> FloatArray:
        """Return ``K_ij`` for the given rows and columns."""
        return self.given.block(rows, columns)

    def take(self, rows: IndexArray) -> KernelSubset:
        """Return the kernel matrix of the given rows."""
        return KernelSubset(self.given, rows)


def is_held(K: KernelBlocks) -> bool:
    """Return whether the whole matrix is in memory or may be formed there for a fit."""
    return K.features is None


def as_kernel_blocks(K: Any) -> KernelBlocks:
    """Convert a user's kernel matrix to the form that all stages work on.

    Parameters
    ----------
    K
        A square matrix, or an object with ``len()``, ``diagonal()`` and ``block(rows, columns)``.

    Raises
    ------
    TypeError, ValueError
        If `K` is a matrix but is not square, symmetric and finite.
    """
    if isinstance(K, KernelBlocks):
        return K
    if hasattr(K, "block") and hasattr(K, "diagonal"):
        return UserBlocks(K)
    return checked_matrix(K, "K")


def check_kernel_matrix(K: Any, name: str) -> None:
    """Raise if a user's matrix cannot be a kernel matrix; see `checked_matrix`."""
    checked_matrix(K, name)


def checked_matrix(K: Any, name: str) -> KernelMatrix:
    """Check a user's kernel matrix and return it as a `KernelMatrix`."""
    matrix = np.asarray(K)
    if matrix.dtype.kind not in "fiub":
        raise TypeError(f"`{name}` must hold real numbers, got dtype {matrix.dtype}.")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"`{name}` must be a square kernel matrix, got shape {matrix.shape}.")
    values = np.ascontiguousarray(matrix, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"`{name}` must be finite, got NaN or infinity.")
    gap = float(np.abs(values - values.T).max(initial=0.0))
    if gap > _ASYMMETRY * np.abs(values).max(initial=0.0):
        raise ValueError(f"`{name}` must be symmetric, got |K - K'| up to {gap:.3g}.")
    return KernelMatrix((values + values.T) / 2 if gap else values)


def largest_entry(K: KernelBlocks) -> float:
    """Return the largest ``|K_ii|``, which no ``|K_ij|`` exceeds in a kernel matrix."""
    return K.largest if isinstance(K, KernelMatrix) else float(np.abs(K.diagonal()).max())


def first_equal_rows(K: KernelBlocks, rows: IndexArray, block: FloatArray) -> IndexArray:
    """Return, for each of n rows, the position of the first of them with the same kernel values.

    The kernel values of equal rows agree with all rows of K, up to rounding. Only rows that agree
    in one random combination of their values, and are therefore neighbours in its order, are
    compared.

    Parameters
    ----------
    K
        Kernel matrix.
    rows
        Indices of the n rows.
    block
        Kernel values of these rows with each other, shape (n, n).
    """
    count = len(rows)
    roots = np.sqrt(np.abs(block.diagonal()))
    roots[roots == 0] = 1.0
    weights = np.random.default_rng(0).random(count)
    key, width = (block @ weights) / roots, count * _EQUAL * float(roots.sum())
    order = np.argsort(key, kind="stable")
    differs = np.diff(key[order]) > width
    first = np.arange(count)
    if differs.all():
        return first
    every = np.sqrt(np.abs(K.diagonal()))
    at_once = max(1, _ENTRIES_AT_ONCE // len(every))
    for run in np.split(order, rows_of(differs) + 1):
        while len(run) > 1:
            one, others = run[0], run[1:]
            # Most rows that differ do so already in their kernel value with the first one.
            with_one, limit = block[others, one], _EQUAL * roots[others] * roots[one]
            same = np.abs(with_one - block[one, one]) <= limit
            same &= np.abs(with_one - block[others, others]) <= limit
            near = rows_of(same)
            of_one = K.block(rows[[one]], ALL)
            for start in range(0, len(near), at_once):
                some = near[start : start + at_once]
                values = np.abs(K.block(rows[others[some]], ALL) - of_one)
                same[some] = (values <= _EQUAL * every * roots[one]).all(axis=1)
            group = np.append(others[same], one)
            first[group] = group.min()
            run = others[~same]
    return first


def entry_range(K: KernelBlocks) -> tuple[float, float]:
    """Return the least and the largest ``K_ij``, for which blocks of rows are read in turn."""
    if isinstance(K, KernelMatrix):
        return float(K.values.min()), float(K.values.max())
    least, largest = np.inf, -np.inf
    at_once = max(1, _BLOCK_ENTRIES // len(K))
    for start in range(0, len(K), at_once):
        part = K.block(np.arange(start, min(start + at_once, len(K))), ALL)
        least, largest = min(least, float(part.min())), max(largest, float(part.max()))
    return least, largest


def kernel_product(K: KernelBlocks, coefficients: FloatArray) -> FloatArray:
    """Return ``K @ coefficients``, shape (l,), which is faster with many zero coefficients."""
    nonzero = rows_of(coefficients)
    return kernel_times(K, nonzero, coefficients[nonzero])


def kernel_times(K: KernelBlocks, rows: IndexArray, coefficients: FloatArray) -> FloatArray:
    """Return ``K[:, rows] @ coefficients``, shape (l,), which is faster with few rows."""
    if isinstance(K, KernelMatrix) and len(rows) > _SPARSE_SHARE * len(K):
        everywhere = np.zeros(len(K))
        everywhere[rows] = coefficients
        # dsymv reads half of the symmetric matrix. The transpose is in Fortran order: no copy.
        product: FloatArray = blas.dsymv(1.0, K.values.T, everywhere)
        return product
    product = np.zeros(len(K))
    at_once = max(1, _BLOCK_ENTRIES // len(K))
    for start in range(0, len(rows), at_once):
        part = slice(start, start + at_once)
        product += coefficients[part] @ K.block(rows[part], ALL)
    return product
