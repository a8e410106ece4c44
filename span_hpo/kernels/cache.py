"""Keep the kernel matrices of one data set between trials, or form them block by block."""

import functools
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from span_hpo.kernels.blocks import KernelBlocks, KernelFeatures, KernelMatrix, Rows
from span_hpo.kernels.functions import Precomputed
from span_hpo.kernels.kernel import Kernel, WeightBlock
from span_hpo.runtime import FloatArray, IndexArray, Memo, key_of
from span_hpo.space import Float, Params

_AT_PEAK = 3.0  # memory at the peak relative to the matrices: copies and factors of their blocks
_UNKNOWN_MEMORY = 2000.0  # memory limit in megabytes if the system does not report its memory


@dataclass(frozen=True, eq=False)
class FeatureKernel:
    """A kernel matrix that is never held, because its blocks are computed from the features.

    Attributes
    ----------
    kernel
        The kernel.
    X
        Features, shape (l, d).
    values
        Values of the kernel's hyperparameters.
    """

    kernel: Kernel
    X: Any
    values: dict[str, Any]

    def __len__(self) -> int:
        count: int = self.X.shape[0]
        return count

    def diagonal(self) -> FloatArray:
        """Return ``K_ii`` of every row."""
        return self._diagonal

    @functools.cached_property
    def _diagonal(self) -> FloatArray:
        return self.kernel.diagonal(self.X, **self.values)

    def block(self, rows: Rows, columns: Rows) -> FloatArray:
        """Return ``K_ij`` for the given rows and columns as a new array."""
        statistic = self.kernel.cross_statistic(self.X[rows], self.X[columns])
        return np.ascontiguousarray(self.kernel.finite_matrix(statistic, **self.values))

    def take(self, rows: IndexArray) -> "FeatureKernel":
        """Return the kernel matrix of the given rows."""
        return FeatureKernel(self.kernel, self.X[rows], self.values)

    @property
    def features(self) -> KernelFeatures:
        """The features to fit on, because the matrix is not held."""
        return KernelFeatures(*self.kernel.features_of_fit(self.X, **self.values))


@dataclass(frozen=True)
class KernelMemory:
    """The memory that kernel matrices will take, in megabytes.

    Attributes
    ----------
    is_held
        Whether the matrices fit into the limit. Otherwise none is held.
    matrices
        Memory of all matrices that are, or would be, held at a time.
    peak
        Memory at the peak of a trial in which most rows are support vectors.
    limit
        Limit of the memory for matrices.
    """

    is_held: bool
    matrices: float
    peak: float
    limit: float


class KernelCache:
    """The kernel matrices of one data set, which threads share and pickles leave out.

    The statistic is computed once and the last kernel matrix is kept, so that trials that change
    only costs build no matrix at all. If several threads need the same matrix at once, one of them
    builds it. If the matrices exceed the memory limit, none is held, and blocks of kernel values
    are computed from the features.

    Parameters
    ----------
    kernel
        Kernel whose default ranges have been filled in.
    X
        Features, shape (l, d), or the kernel matrix for `Precomputed`.
    memory_limit
        Megabytes that matrices of l x l numbers may take; by default a quarter of the machine's
        memory.
    """

    def __init__(self, kernel: Kernel, X: Any, memory_limit: float | None = None) -> None:
        self.kernel = kernel
        self.X = X
        self.memory_limit = default_memory_limit() if memory_limit is None else memory_limit
        self._space = kernel.space
        self._fixed = None if self._space else kernel.values({})
        self._shifted: Memo[Any] = Memo(most=1)
        self._statistic: Memo[FloatArray] = Memo(most=1)
        self._matrix: Memo[KernelMatrix] = Memo(most=1)

    def matrix(self, params: Params, rows: IndexArray | None = None) -> KernelBlocks:
        """Return the kernel matrix of all rows, or of the given rows in their order."""
        values = self.kernel.values(params) if self._fixed is None else self._fixed
        count = self.X.shape[0]
        if not self._fits(count):
            if rows is not None and self._fits(len(rows)):
                return self._build(self.kernel.statistic(self.X[rows]), values)
            if not self.kernel.gives_blocks:
                raise ValueError(
                    "`memory_limit` must allow for the whole kernel matrix with "
                    f"{type(self.kernel).__name__}, got {self.memory_limit:g} MB."
                )
            X = self._shifted.get((), lambda: self.kernel.shifted(self.X))
            return FeatureKernel(self.kernel, X if rows is None else X[rows], values)
        key = key_of({name: values[name] for name in self._space})
        if self._fixed is not None:
            # One matrix serves all trials, so the statistic is not needed again.
            K = self._matrix.get(key, lambda: self._build(self.kernel.statistic(self.X), values))
            return K if rows is None else KernelMatrix(K.block(rows, rows))
        statistic = self._statistic.get((), lambda: self.kernel.statistic(self.X))
        if rows is not None and not self._matrix.holds(key):
            # The next trial will have other parameters: build only the part that this one needs.
            return self._build(self.kernel.restrict(statistic, rows), values)
        K = self._matrix.get(key, lambda: self._build(statistic, values))
        return K if rows is None else KernelMatrix(K.block(rows, rows))

    def gradient(
        self,
        K: KernelBlocks,
        params: Params,
        blocks: Iterable[WeightBlock],
        rows: IndexArray | None = None,
    ) -> dict[str, float]:
        """Return ``sum_ij w_ij dK_ij / dt`` for each searched real hyperparameter t of the kernel.

        Parameters
        ----------
        K, params, rows
            The matrix that `matrix` has returned for these hyperparameters and rows.
        blocks
            Weights ``w``, block by block, which may be overwritten; indices count the rows of K.

        Raises
        ------
        NoDerivativeError
            If the kernel has no derivative.
        """
        names = [name for name, part in self._space.items() if isinstance(part, Float)]
        if not names:
            return {}
        if isinstance(K, FeatureKernel):
            X, statistic = K.X, None
        else:
            X = self.X if rows is None else self.X[rows]
            statistic = self._statistic_of(rows)
        values = self.kernel.values(params)
        found = self.kernel.total_gradient(X, statistic, K, blocks, **values)
        return {name: float(found[name]) for name in names}

    def _statistic_of(self, rows: IndexArray | None) -> Any:
        """Return the statistic of all rows, or of the given rows in their order."""
        if rows is not None and not self._fits(self.X.shape[0]):
            return self.kernel.statistic(self.X[rows])
        statistic = self._statistic.get((), lambda: self.kernel.statistic(self.X))
        return statistic if rows is None else self.kernel.restrict(statistic, rows)

    def memory(self, threads: int) -> KernelMemory:
        """Return a forecast of the memory that trials in so many threads take."""
        count = self.X.shape[0]
        # All threads share the statistic; with a searched width, each has a matrix of its own.
        matrices = 1.0 if self._fixed is not None else 1.0 + threads
        held = 8e-6 * count**2 * matrices
        return KernelMemory(self._fits(count), held, _AT_PEAK * held, self.memory_limit)

    def _fits(self, count: int) -> bool:
        """Return whether the matrices of `count` rows fit into the memory limit."""
        if isinstance(self.kernel, Precomputed):
            return True  # the matrix is in memory already
        matrices = 1.0 if self._fixed is not None else 2.0
        # LIBSVM keeps a copy of the matrix in single precision.
        return 8e-6 * (matrices + 0.5) * count**2 <= self.memory_limit

    def _build(self, statistic: FloatArray, values: dict[str, Any]) -> KernelMatrix:
        return KernelMatrix(self.kernel.finite_matrix(statistic, **values))

    def __reduce__(self) -> tuple[Any, ...]:
        return KernelCache, (self.kernel, self.X, self.memory_limit)


def default_memory_limit() -> float:
    """Return a quarter of the machine's memory, in megabytes."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return _UNKNOWN_MEMORY  # the system does not report its memory
    return total / 4e6
