"""Scale the features of an estimator before its fit."""

from typing import Any

from scipy.sparse import issparse
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

SCALES = ("minmax", "standard", None)


def as_scale(scale: Any) -> str | None:
    """Return the checked name of a scaling, or None for no scaling."""
    if scale not in SCALES:
        raise ValueError(f"`scale` must be one of {list(SCALES)}, got {scale!r}.")
    name: str | None = scale
    return name


def fitted_scaler(scale: str | None, X: Any) -> Any:
    """Return scikit-learn's scaler of this name, fitted to the features, or None."""
    if scale is None:
        return None
    if scale == "standard":
        return StandardScaler(with_mean=not issparse(X)).fit(X)
    return (MaxAbsScaler() if issparse(X) else MinMaxScaler()).fit(X)
