"""The interface that all kernels share.

A kernel matrix is computed in two steps. The first gives a statistic of the data that depends on no
hyperparameter, such as squared distances or inner products, and is taken once. The second maps the
statistic to the kernel matrix, and is repeated only when a kernel parameter changes. This makes a
trial cheaper than a fit on the features.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np

from span_hpo.data import as_features
from span_hpo.errors import NoDerivativeError
from span_hpo.kernels.blocks import KernelBlocks
from span_hpo.kernels.distances import check_overflow
from span_hpo.runtime import FloatArray, IndexArray, make_plain, real
from span_hpo.space import Float, Params, Space, as_dimension, searched, value_of

_DIAGONAL_ROWS = 500  # rows whose diagonal kernel values are computed together

# Rows, columns, and a weight for each pair of them.
WeightBlock: TypeAlias = tuple[IndexArray, IndexArray, FloatArray]


@dataclass(frozen=True)
class Kernel(ABC):
    """A positive semi-definite kernel whose fields are its hyperparameters.

    A kernel can be called if all its hyperparameters are fixed. ``RBF(gamma=1.0)(X)`` returns the
    kernel matrix of the rows of X, and ``RBF(gamma=1.0)(X, Z)`` returns the kernel values between
    the rows of X and the rows of Z.

    Attributes
    ----------
    libsvm_name
        Name of the kernel in LIBSVM's model files, or None if LIBSVM does not have it.
    gives_blocks
        Whether blocks of the kernel matrix can be computed from the features, so that the whole
        matrix need not fit into memory.
    """

    libsvm_name: ClassVar[str | None] = None
    gives_blocks: ClassVar[bool] = False

    def __post_init__(self) -> None:
        make_plain(self)

    def __call__(self, X: Any, Z: Any = None) -> FloatArray:
        """Return the kernel values of all pairs of rows.

        Parameters
        ----------
        X
            Features, shape (l, d), dense or sparse.
        Z
            Other features, shape (m, d); the features of `X` by default.

        Returns
        -------
        Kernel values, shape (l, l) without `Z` and (l, m) with it.

        Raises
        ------
        TypeError, ValueError
            If a hyperparameter is not a fixed number or the features are not as described.
        SolverError
            If the kernel values overflow.
        """
        values = self._fixed_values()
        rows = as_features(X, "X", least_rows=1)
        if Z is None:
            return self.finite_matrix(self.statistic(rows), **values)
        others = as_features(Z, "Z", least_rows=1)
        if rows.shape[1] != others.shape[1]:
            raise ValueError(
                f"`Z` must have the {rows.shape[1]} features of `X`, got {others.shape[1]}."
            )
        return self.between(rows, others, **values)

    @classmethod
    def parameter_names(cls) -> tuple[str, ...]:
        """Return the names of the hyperparameters."""
        return tuple(own.name for own in fields(cls))

    @property
    def space(self) -> Space:
        """The hyperparameters that are searched."""
        return dict(self._searched)

    @functools.cached_property
    def _searched(self) -> Space:
        return searched(self._hyperparameters())

    def __getstate__(self) -> dict[str, Any]:
        # Copies and hashes of a kernel do not depend on what has been asked of it.
        return {name: value for name, value in vars(self).items() if name != "_searched"}

    @property
    def alike(self) -> tuple[str, ...]:
        """Names of the hyperparameters that have one meaning, such as widths of features."""
        return ()

    def values(self, params: Params) -> dict[str, Any]:
        """Return the checked value of every hyperparameter, whether it is fixed or searched."""
        return {
            name: self.check(name, value_of(setting, name, params))
            for name, setting in self._hyperparameters().items()
        }

    def named(self, feature_names: Sequence[str]) -> "Kernel":
        """Return this kernel with hyperparameters named after columns, if it has one for each."""
        return self

    def bind(self, X: Any) -> "Kernel":
        """Return this kernel with defaults that depend on the data filled in."""
        return self

    def starts(self, X: Any) -> list[dict[str, Any]]:
        """Return good first guesses of some hyperparameters for these data."""
        return [{}]

    def check(self, name: str, value: Any) -> Any:
        """Return the value of one hyperparameter, or raise ``ValueError`` if it is not valid."""
        return real(name, value, above=0)

    @abstractmethod
    def statistic(self, X: Any) -> Any:
        """Return the statistic of the rows from which `matrix` computes the kernel matrix."""

    def shifted(self, X: Any) -> Any:
        """Return features that give the same kernel values, with less rounding if possible."""
        return X

    def cross_statistic(self, X: Any, Z: Any) -> Any:
        """Return the statistic between the rows of X and the rows of Z.

        A kernel that does not give blocks may override `between` instead.
        """
        raise NotImplementedError

    def between(self, X: Any, Z: Any, **values: Any) -> FloatArray:
        """Return the kernel values between the rows of X and the rows of Z."""
        return self.finite_matrix(self.cross_statistic(X, Z), **values)

    def restrict(self, statistic: Any, rows: IndexArray) -> Any:
        """Return the part of the statistic that belongs to the given rows."""
        return statistic[np.ix_(rows, rows)]

    def part(self, statistic: Any, rows: IndexArray, columns: IndexArray) -> Any:
        """Return the part of the statistic that belongs to some rows and some columns."""
        return statistic[rows[:, None], columns]

    @abstractmethod
    def matrix(self, statistic: Any, **values: Any) -> FloatArray:
        """Return the kernel values for a statistic of any shape, whose memory they may share."""

    def finite_matrix(self, statistic: Any, **values: Any) -> FloatArray:
        """Return the kernel values for a statistic after checking that they are finite.

        Raises
        ------
        SolverError
            If a kernel value overflows.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            K = self.matrix(statistic, **values)
        check_overflow(K, f"kernel values with {values}", "use smaller kernel parameters")
        return K

    def diagonal(self, X: Any, **values: Any) -> FloatArray:
        """Return the kernel value of each row with itself, shape (l,)."""
        parts = []
        for start in range(0, X.shape[0], _DIAGONAL_ROWS):
            rows = X[start : start + _DIAGONAL_ROWS]
            statistic = self.cross_statistic(rows, rows)
            parts.append(self.matrix(statistic.diagonal().copy(), **values))
        return np.concatenate(parts)

    def gradient(
        self, statistic: Any, K: FloatArray, weights: FloatArray, **values: Any
    ) -> Mapping[str, float]:
        """Return ``sum_ij weights_ij dK_ij / dt`` for the hyperparameters t that are real numbers.

        Parameters
        ----------
        statistic
            Statistic between l rows and m others; see `part` and `cross_statistic`.
        K
            Kernel values of these pairs of rows, shape (l, m).
        weights
            Weights of the derivatives, shape (l, m).
        **values
            Values of all hyperparameters.

        Raises
        ------
        NoDerivativeError
            If the kernel has no derivative.
        """
        raise NoDerivativeError(
            f"`kernel` must have a derivative, which {type(self).__name__} has not: give it a "
            "method `gradient`, or search by Optuna."
        )

    def total_gradient(
        self,
        X: Any,
        statistic: Any,
        K: KernelBlocks,
        blocks: Iterable[WeightBlock],
        **values: Any,
    ) -> Mapping[str, float]:
        """Return the sum of `gradient` over blocks of weights.

        Parameters
        ----------
        X
            Features of the rows of K.
        statistic
            Their statistic, or None if it does not fit into memory.
        K
            Kernel matrix.
        blocks
            Rows, columns and weights, which may be overwritten.
        **values
            Values of all hyperparameters.

        Raises
        ------
        NoDerivativeError
            If the kernel has no derivative.
        ValueError
            If a user's derivatives do not name all searched real hyperparameters.
        """
        names = [name for name, part in self.space.items() if isinstance(part, Float)]
        total = dict.fromkeys(names, 0.0)
        for rows, columns, weights in blocks:
            if statistic is None:
                part = self.cross_statistic(X[rows], X[columns])
                of_block = self.finite_matrix(part, **values)
            else:
                part, of_block = self.part(statistic, rows, columns), K.block(rows, columns)
            found = self.gradient(part, of_block, weights, **values)
            if not isinstance(found, Mapping) or not set(names) <= set(found):
                raise ValueError(
                    f"`gradient` of {type(self).__name__} must return a mapping with the names "
                    f"{names}, got {found!r}."
                )
            for name in names:
                total[name] += float(found[name])
        return total

    @abstractmethod
    def svc_arguments(self, **values: Any) -> dict[str, Any]:
        """Return the arguments that give scikit-learn's ``SVC`` the same kernel."""

    def features_of_fit(self, X: Any, **values: Any) -> tuple[Any, dict[str, Any]]:
        """Return features, and the arguments that give ``SVC`` the same kernel on them."""
        return X, self.svc_arguments(**values)

    def _hyperparameters(self) -> dict[str, Any]:
        return {own.name: getattr(self, own.name) for own in fields(self)}

    def _fixed_values(self) -> dict[str, Any]:
        """Return the value of every hyperparameter, or raise ``ValueError`` if one is searched."""
        for name, setting in self._hyperparameters().items():
            if setting is None and name in self.parameter_names():
                raise ValueError(
                    f"`{name}` must be set before {type(self).__name__} can be called, because "
                    "its default depends on the data of a search, got None."
                )
            if as_dimension(setting) is not None:
                raise ValueError(
                    f"`{name}` must be a fixed value before {type(self).__name__} can be called, "
                    f"got {setting!r}."
                )
        return self.values({})
