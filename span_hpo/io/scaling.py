"""Describe the scaling of features, so that a model file can hold it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from span_hpo.runtime import FloatArray, IndexArray


@dataclass(frozen=True, eq=False)
class Scaling:
    """Linear scaling of the features before a fit, ``(x - shift) * factor``.

    Attributes
    ----------
    shift
        Number that is subtracted from each feature, shape (d,).
    factor
        Number by which each shifted feature is multiplied, shape (d,).
    features
        Features that are scaled, in increasing order and counted from 0, shape (d,), if there are
        others, which stay as they are; None if all features are scaled. Without the others, all
        shifts must be 0, so that sparse rows stay sparse.

    Examples
    --------
    >>> import numpy as np
    >>> from span_hpo import Scaling
    >>> scaling = Scaling(shift=np.array([1.0, 0.0]), factor=np.array([0.5, 2.0]))
    >>> ((np.array([[3.0, 4.0]]) - scaling.shift) * scaling.factor).tolist()
    [[1.0, 8.0]]
    """

    shift: FloatArray
    factor: FloatArray
    features: IndexArray | None = None

    @property
    def keeps_zeros(self) -> bool:
        """Whether all shifts are 0, so that sparse rows stay sparse."""
        return not self.shift.any()

    def scaled(self, rows: Any) -> Any:
        """Return scaled rows: sparse ones are sparse if the scaling keeps zeros.

        Numbers that are too large for a float become infinite.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            if sparse.issparse(rows) and self.keeps_zeros:
                found = sparse.csr_array(rows, dtype=float, copy=True)
                found.data *= self._factors_of(found.indices)
                return found
            found = np.array(rows.toarray() if sparse.issparse(rows) else rows, dtype=float)
            columns = slice(None) if self.features is None else self.features
            found[:, columns] = (found[:, columns] - self.shift) * self.factor
        return found

    def times(self, factors: FloatArray) -> "Scaling":
        """Return the scaling that also multiplies the scaled features by factors, shape (d,)."""
        return replace(self, factor=self.factor * factors)

    def content(self) -> dict[str, list[float]]:
        """Return the scaling as values that JSON can hold."""
        parts = {"shift": self.shift, "factor": self.factor, "features": self.features}
        return {name: part.tolist() for name, part in parts.items() if part is not None}

    def _factors_of(self, columns: IndexArray) -> FloatArray:
        """Return the factor of each of the given features."""
        if self.features is None:
            return self.factor[columns]
        places = np.searchsorted(self.features, columns)
        is_scaled = np.append(self.features, -1)[places] == columns
        return np.where(is_scaled, np.append(self.factor, 1.0)[places], 1.0)


def scaling_of(scaler: Any, count: int) -> Scaling:
    """Return the scaling of `count` features that a fitted scaler of scikit-learn applies."""
    if getattr(scaler, "n_features_in_", count) != count:
        raise ValueError(
            f"`scaler` must scale the {count} features of the model, got {scaler.n_features_in_}."
        )
    if hasattr(scaler, "min_"):  # MinMaxScaler: x * scale_ + min_
        if scaler.clip:
            raise ValueError(
                "`scaler` must not clip, because clipping is not linear, got clip=True."
            )
        return Scaling(-scaler.min_ / scaler.scale_, np.asarray(scaler.scale_, dtype=float))
    if hasattr(scaler, "with_mean") and hasattr(scaler, "scale_"):  # StandardScaler
        shift = scaler.mean_ if scaler.with_mean else np.zeros(count)
        scale = scaler.scale_ if scaler.with_std else np.ones(count)
        return Scaling(np.asarray(shift, dtype=float), 1 / np.asarray(scale, dtype=float))
    if hasattr(scaler, "max_abs_"):  # MaxAbsScaler: x / scale_
        return Scaling(np.zeros(count), 1 / np.asarray(scaler.scale_, dtype=float))
    raise TypeError(
        "`scaler` must be a fitted MinMaxScaler, MaxAbsScaler or StandardScaler, "
        f"got {type(scaler).__name__}."
    )
