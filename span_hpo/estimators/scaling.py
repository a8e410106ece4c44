"""The scaling that an estimator does before its fit."""

from typing import Any

from scipy.sparse import issparse
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

SCALES = ("minmax", "standard", None)


def as_scale(scale: Any) -> str | None:
    """Return the name of a scaling, or None for none."""
    if scale not in SCALES:
        raise ValueError(f"`scale` must be one of {list(SCALES)}, got {scale!r}.")
    name: str | None = scale
    return name


def fitted_scaler(scale: str | None, X: Any) -> Any:
    """Return scikit-learn's scaler of this name for features, or None."""
    if scale is None:
        return None
    if scale == "standard":
        return StandardScaler(with_mean=not issparse(X)).fit(X)
    return (MaxAbsScaler() if issparse(X) else MinMaxScaler()).fit(X)
