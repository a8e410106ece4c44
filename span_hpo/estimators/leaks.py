"""Find transformers whose features depend on the labels of the rows.

A transformer that is fitted to all rows before the SVM is judged has seen the row that is left out.
As long as it looks at features only, this does little harm. One that looks at labels, such as a
selection of features, carries the label of the left-out row into the features of all rows, and the
leave-one-out error becomes far too low. The tags of scikit-learn do not tell such transformers from
others, but fits with exchanged labels do.
"""

import pickle
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import clone

from span_hpo.errors import LeakWarning
from span_hpo.runtime import Array

_SEED = 0  # of transformers that draw random numbers, and of the exchanged labels
_MOST_EXCHANGES = 8  # number of fits with exchanged labels where the features alone do not decide
_SAME = 1e-9  # difference of features, relative to the largest, that rounding may make


def depends_on_labels(transformer: Any, X: Any, y: Any) -> bool:
    """Return whether the features that a transformer makes of its training rows depend on `y`.

    Clones of the transformer are fitted to the rows, once with the labels and once with the same
    labels in another order. If both give the same features, but the fitted transformers differ in
    anything else, such as the scores of features, further orders are tried, because a selection may
    find the same features by chance. All fits draw the same random numbers. If a transformer has
    random numbers of its own, so that fits with the same labels differ too, nothing can be found
    out, and a `LeakWarning` says so.

    Parameters
    ----------
    transformer
        Transformer of scikit-learn, fitted or not, which stays as it is.
    X, y
        Rows as the transformer takes them, and their labels, shape (l,).
    """
    return _judged(transformer, X, y)[0]


def steps_that_depend_on_labels(
    steps: Sequence[tuple[str, Any]], X: Any, y: Any
) -> tuple[str, ...]:
    """Return the names of the steps before the last one whose features depend on the labels.

    Parameters
    ----------
    steps
        Steps of a ``Pipeline``, of which all but the last are transformers, "passthrough" or None.
    X, y
        Rows as the first step takes them, and their labels, shape (l,).
    """
    found = []
    for name, transformer in steps[:-1]:
        if transformer is None or isinstance(transformer, str):
            continue
        depends, X = _judged(transformer, X, y)
        if depends:
            found.append(name)
    return tuple(found)


def _judged(transformer: Any, X: Any, y: Any) -> tuple[bool, Any]:
    """Return whether a transformer depends on the labels, and the features that it makes."""
    labels = np.asarray(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit of the user has issued those that matter
        fitted, features = _fitted(transformer, X, labels)
        for exchanged in _exchanged(labels):
            other, other_features = _fitted(transformer, X, exchanged)
            if not _is_same(features, other_features):
                break
            if _state(fitted) == _state(other) is not None:
                return False, features
        else:
            return False, features
        if _is_same(features, _fitted(transformer, X, labels)[1]):
            return True, features
    warnings.warn(
        f"{type(transformer).__name__} makes other features in every fit, so that it cannot be "
        "seen whether they depend on the labels. If they do, leave-one-out errors are far too low. "
        "Give it a seed that makes its fits the same.",
        LeakWarning,
        stacklevel=2,
    )
    return False, features


def _fitted(transformer: Any, X: Any, y: Array) -> tuple[Any, Any]:
    """Return a fitted clone with a fixed seed, and the features that a pipeline gets from it."""
    twin = clone(transformer)
    drawn = {
        name: _SEED
        for name, value in twin.get_params().items()
        if name.rpartition("__")[2] == "random_state" and not isinstance(value, int | np.integer)
    }
    twin.set_params(**drawn)
    with _global_seed():
        if hasattr(twin, "fit_transform"):
            return twin, twin.fit_transform(X, y)
        twin = twin.fit(X, y)
        return twin, twin.transform(X)


@contextmanager
def _global_seed() -> Iterator[None]:
    """Let transformers without a seed draw the same numbers in every fit, and undo it after."""
    state = np.random.get_state()
    np.random.seed(_SEED)
    try:
        yield
    finally:
        np.random.set_state(state)


def _exchanged(y: Array) -> Iterator[Array]:
    """Yield the labels in other orders, in which other rows belong together."""
    codes = np.unique(y, return_inverse=True)[1]
    n_classes = codes.max() + 1
    rng = np.random.default_rng(_SEED)
    for _ in range(_MOST_EXCHANGES):
        order = rng.permutation(len(y))
        if len(np.unique(codes * n_classes + codes[order])) > n_classes:
            yield y[order]


def _is_same(features: Any, others: Any) -> bool:
    """Return whether two sets of features are equal up to rounding."""
    if np.shape(features) != np.shape(others):
        return False
    if issparse(features) or issparse(others):
        first, second = csr_array(features), csr_array(others)
        return bool(abs(first - second).max() <= _SAME * abs(first).max())
    first, second = np.asarray(features), np.asarray(others)
    if first.dtype.kind not in "fiub" or second.dtype.kind not in "fiub":
        return bool(np.array_equal(first, second))
    size = np.abs(first[np.isfinite(first)], dtype=float).max(initial=0.0)
    return bool(np.allclose(first, second, rtol=0, atol=_SAME * size, equal_nan=True))


def _state(transformer: Any) -> bytes | None:
    """Return what a fitted transformer has learned, or None if that cannot be written."""
    try:
        return pickle.dumps(transformer)
    except (AttributeError, TypeError, pickle.PicklingError):
        return None
