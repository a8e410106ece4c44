"""Describe the scaling of features, so that a model file can hold it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from span_hpo.runtime import FloatArray


@dataclass(frozen=True, eq=False)
class Scaling:
    """Linear scaling of the features before a fit, ``(x - shift) * factor``.

    Attributes
    ----------
    shift
        Number that is subtracted from each feature, shape (d,).
    factor
        Number by which each shifted feature is multiplied, shape (d,).

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
