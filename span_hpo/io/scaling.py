"""What happens to features before they reach a model."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from span_hpo.runtime import FloatArray


@dataclass(frozen=True, eq=False)
class Scaling:
    """What happened to the features before the fit: ``(x - shift) * factor``.

    Attributes
    ----------
    shift, factor
        One number for each feature.
    """

    shift: FloatArray
    factor: FloatArray


def scaling_of(scaler: Any, count: int) -> Scaling:
    """Return what a fitted scaler of scikit-learn does to so many features."""
    if getattr(scaler, "n_features_in_", count) != count:
        raise ValueError(
            f"`scaler` must scale the {count} features of the model, got {scaler.n_features_in_}."
        )
    if hasattr(scaler, "min_"):  # MinMaxScaler: x * scale_ + min_
        if scaler.clip:
            raise ValueError("`scaler` must not clip: that is not a scaling.")
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
