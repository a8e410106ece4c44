"""Scale the features of an estimator before its fit."""

import re
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

SCALES = ("auto", "minmax", "standard", "none")  # words of the command line
_NEEDED = ("fit", "transform", "get_params")  # methods of a transformer of scikit-learn


def as_scale(scale: Any, X: Any) -> Any:
    """Return the checked scaling of some features: "minmax", "standard", a transformer, or None.

    Parameters
    ----------
    scale
        What the user gave: "auto" (which is "minmax" for dense and None for sparse features),
        "minmax", "standard", None, which is also called "none", or a transformer of scikit-learn.
    X
        Features, dense or sparse.

    Raises
    ------
    ValueError, TypeError
        If `scale` is none of these.
    """
    if scale is None or (isinstance(scale, str) and scale == "none"):
        return None
    if isinstance(scale, str) and scale == "auto":
        # Scaling makes a rare feature of a sparse row large, by the value of that very row.
        return None if issparse(X) else "minmax"
    if isinstance(scale, str) and scale in SCALES:
        return scale
    if isinstance(scale, type) and is_transformer(scale):
        raise TypeError(
            f"`scale` must be a transformer and not its class, got {scale.__name__}. Use "
            f"{scale.__name__}()."
        )
    if not is_transformer(scale):
        raise ValueError(
            f"`scale` must be one of {list(SCALES)}, None or a transformer of scikit-learn such as "
            f"RobustScaler(), got {scale!r}."
        )
    return scale


def check_unscaled(scale: Any) -> None:
    """Raise if a transformer is given for a kernel matrix, which is never scaled."""
    if as_scale(scale, None) is not None and not isinstance(scale, str):
        raise ValueError(
            "`scale` must not be a transformer for a precomputed kernel, which is not scaled, got "
            f"{scale_name(scale)}. Use None."
        )


def is_transformer(scale: Any) -> bool:
    """Return whether an object has the methods of scikit-learn's transformers."""
    return all(callable(getattr(scale, method, None)) for method in _NEEDED)


def scale_name(scale: Any) -> str | None:
    """Return the name of a checked scaling, which is the same in every process."""
    if scale is None or isinstance(scale, str):
        return scale
    return re.sub(r" at 0x[0-9a-f]+", "", " ".join(repr(scale).split()))


def fitted_scaler(scale: Any, X: Any, y: Any = None) -> Any:
    """Return the scaler of scikit-learn that is fitted to some rows, or None.

    Parameters
    ----------
    scale
        A scaling that `as_scale` accepts. A transformer is cloned.
    X
        Features, shape (l, d), dense or sparse.
    y
        Labels, shape (l,), which are passed to a transformer.
    """
    scale = as_scale(scale, X)
    if scale is None:
        return None
    if scale == "standard":
        return StandardScaler(with_mean=not issparse(X)).fit(X)
    if scale == "minmax":
        return (MaxAbsScaler() if issparse(X) else MinMaxScaler()).fit(X)
    return clone(scale).fit(X, y)


def scaled(scaler: Any, X: Any) -> Any:
    """Return the features that a fitted scaler makes of some rows, as an array or sparse rows.

    Raises
    ------
    ValueError
        If the scaler returns another number of rows, or numbers that are not finite.
    """
    if scaler is None:
        return X
    found = scaler.transform(X)
    features = found if issparse(found) else np.asarray(found, dtype=np.float64)
    count = X.shape[0]
    if features.ndim != 2 or features.shape[0] != count:
        raise ValueError(
            f"`scale` must give one row of features for each of the {count} rows, got shape "
            f"{features.shape} from {scale_name(scaler)}."
        )
    numbers: Any = features.data if issparse(features) else features
    finite = np.isfinite(numbers)
    if not finite.all():
        raise ValueError(
            f"`scale` must give finite numbers, got {numbers[~finite][0]} from "
            f"{scale_name(scaler)}."
        )
    return features


def check_fits_in_a_file(scaler: Any) -> None:
    """Raise if a model file cannot hold a fitted scaler, because it is not known to be linear."""
    if scaler is None or type(scaler) in (MaxAbsScaler, MinMaxScaler, StandardScaler):
        return
    raise ValueError(
        "`scale` must be 'auto', 'minmax', 'standard', None or a MinMaxScaler, MaxAbsScaler or "
        f"StandardScaler for a model in a file, got {scale_name(scaler)}. Keep this model with "
        "joblib instead."
    )
