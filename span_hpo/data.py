"""Rows, labels and what is known about each row, validated once at the border."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from span_hpo.runtime import Array, FloatArray, IndexArray, read_only

ONLY_SCORE = "score"  # the name of the scores when there is one array of them


@dataclass(frozen=True, eq=False)
class Dataset:
    """Checked training data: copies that nobody can change.

    Attributes
    ----------
    X
        Features, shape (l, d): an array, or sparse in compressed rows; or the kernel matrix.
    codes
        Class of each row, as a position in `classes`, shape (l,).
    labels
        Labels as the user gave them, shape (l,).
    classes
        The different labels in sorted order.
    scores
        Named scores, each of shape (l,).
    groups
        Group of each row, shape (l,), or None.
    feature_names
        Column names of a DataFrame, or None.
    """

    X: Any
    codes: IndexArray
    labels: Array
    classes: Array
    scores: Mapping[str, FloatArray]
    groups: Array | None
    feature_names: Array | None

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def y(self) -> FloatArray:
        """Labels as numbers: -1 and +1 of two classes, else the codes, shape (l,)."""
        codes = self.codes.astype(float)
        return read_only(2 * codes - 1 if len(self.classes) == 2 else codes)

    def take(self, rows: IndexArray) -> "Dataset":
        """Return the data of some rows; `X` keeps all its columns."""
        return replace(
            self,
            X=self.X[rows],
            codes=self.codes[rows],
            labels=self.labels[rows],
            scores={name: values[rows] for name, values in self.scores.items()},
            groups=None if self.groups is None else self.groups[rows],
        )

    def score(self, name: str | None) -> FloatArray:
        """Return the scores called `name`, or the only ones there are if `name` is None."""
        if name is None and len(self.scores) == 1:
            return next(iter(self.scores.values()))
        if name is not None and name in self.scores:
            return self.scores[name]
        known = sorted(self.scores) or "none"
        if name is None and self.scores:
            raise ValueError(
                f"`scores` holds several ({known}): name the one that the weighting should use."
            )
        wanted = "one score per row" if name is None else f"a score called {name!r}"
        raise ValueError(f"`scores` must hold {wanted} for this weighting, got {known}.")

    @cached_property
    def nested_order(self) -> IndexArray:
        """One fixed permutation of the rows whose every prefix keeps the share of each class.

        The rows of a class are shuffled with a fixed seed; the j-th of n_c rows then stands at
        ``(j + 1/2) / n_c`` on the way from the first to the last row.
        """
        rng = np.random.default_rng(0)
        place = np.empty(len(self))
        for code in range(len(self.classes)):
            of_class = rng.permutation(np.flatnonzero(self.codes == code))
            place[of_class] = (np.arange(len(of_class)) + 0.5) / len(of_class)
        return np.argsort(place, kind="stable")

    @cached_property
    def least_rows(self) -> int:
        """How many rows of the nested order hold every class."""
        order = self.codes[self.nested_order]
        return 1 + max(int((order == code).argmax()) for code in range(len(self.classes)))


def as_dataset(X: Any, y: Any, *, scores: Any = None, groups: Any = None) -> Dataset:
    """Check the user's data and bring them into one form.

    Parameters
    ----------
    X
        Features, shape (l, d): an array, a DataFrame of numbers or a sparse matrix.
    y
        Labels, shape (l,): two or more different values of any type that sorts.
    scores
        One number per row; or several, as a mapping of names to such arrays or a DataFrame.
    groups
        One label per row.

    Raises
    ------
    TypeError, ValueError
        With the name of the argument, what was received and what is wanted.
    """
    features = as_features(X)
    count = features.shape[0]
    labels = _plain(as_column(y, "y", count))
    classes = _classes(labels)
    return Dataset(
        X=features,
        codes=read_only(np.searchsorted(classes, labels)),
        labels=read_only(labels.copy()),
        classes=read_only(classes),
        scores={name: read_only(values) for name, values in named_scores(scores, count).items()},
        groups=None if groups is None else read_only(_as_groups(groups, count)),
        feature_names=_feature_names(X),
    )


def as_column(values: Any, name: str, count: int) -> Array:
    """Return `values` as an array of shape (count,)."""
    column = _unmasked(values, name)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.shape != (count,):
        raise ValueError(
            f"`{name}` must hold one value for each of the {count} rows, got shape {column.shape}."
        )
    return column


def as_numbers(values: Any, name: str, count: int) -> FloatArray:
    """Return `values` as finite float64 numbers of shape (count,)."""
    return _finite(as_column(values, name, count), name)


def not_negative(values: Any, name: str, count: int) -> FloatArray:
    """Return `values` as finite float64 numbers of shape (count,), none below 0."""
    numbers = as_numbers(values, name, count)
    if (numbers < 0).any():
        row = int(numbers.argmin())
        raise ValueError(f"`{name}` must not be negative, got {numbers[row]} in row {row}.")
    return numbers


def as_features(X: Any, name: str = "X", *, least_rows: int = 2) -> Any:
    """Return features as finite float64 numbers, dense or in compressed sparse rows.

    Parameters
    ----------
    X
        Features, shape (l, d): an array, a DataFrame of numbers or a sparse matrix.
    name
        Name of the argument, for messages.
    least_rows
        The least number of rows that is allowed.

    Raises
    ------
    TypeError, ValueError
        If X is not as described.
    """
    if sparse.issparse(X):
        _check_shape(X.shape, name, least_rows)
        return _as_sparse_features(X, name)
    features = _unmasked(X, name)
    _check_shape(features.shape, name, least_rows)
    return read_only(np.ascontiguousarray(_finite(features, name)))


def _as_sparse_features(X: Any, name: str) -> Any:
    """Return a copy in compressed rows, float64, sorted and without repeated entries."""
    features = sparse.csr_array(X, copy=True)
    features.data = _as_floats(features.data, name)
    features.sum_duplicates()
    finite = np.isfinite(features.data)
    if not finite.all():
        first = int((~finite).argmax())
        row = int(np.searchsorted(features.indptr, first, side="right")) - 1
        raise ValueError(
            f"`{name}` must be finite, got {features.data[first]} in row {row}, "
            f"column {features.indices[first]}."
        )
    if max(features.shape[1], features.nnz) < 2**31:
        # LIBSVM counts in 32 bits.
        features.indices = features.indices.astype(np.int32)
        features.indptr = features.indptr.astype(np.int32)
    for part in (features.data, features.indices, features.indptr):
        read_only(part)
    return features


def _check_shape(shape: tuple[int, ...], name: str, least_rows: int) -> None:
    if len(shape) != 2:
        raise ValueError(f"`{name}` must have two dimensions (rows, features), got shape {shape}.")
    if shape[0] < least_rows or shape[1] < 1:
        least = "two rows" if least_rows == 2 else "one row"
        raise ValueError(f"`{name}` must have at least {least} and one feature, got shape {shape}.")


def _unmasked(values: Any, name: str) -> Array:
    if np.ma.is_masked(values):
        raise ValueError(f"`{name}` must be complete, got a masked array with masked values.")
    return np.asarray(values)


def _as_floats(values: Array, name: str) -> FloatArray:
    text = values.dtype.kind == "O" and any(isinstance(value, str) for value in values.flat)
    if values.dtype.kind not in "fiubO" or text:
        kind = "text" if text else f"dtype {values.dtype}"
        raise TypeError(f"`{name}` must hold real numbers, got {kind}.")
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"`{name}` must hold real numbers, got objects ({error}).") from error


def _finite(values: Array, name: str) -> FloatArray:
    numbers = _as_floats(values, name)
    finite = np.isfinite(numbers)
    if not finite.all():
        where = np.argwhere(~finite)[0]
        place = f"row {where[0]}" + (f", column {where[1]}" if len(where) == 2 else "")
        raise ValueError(
            f"`{name}` must be finite, got {numbers[tuple(where)]} in {place} "
            f"({np.count_nonzero(~finite)} such values in all)."
        )
    return numbers


def _plain(labels: Array) -> Array:
    """Return labels in an array of objects in the plain type that they share, if there is one."""
    if labels.dtype.kind != "O":
        return labels
    kinds = {type(label) for label in labels.tolist()}
    return np.array(labels.tolist()) if kinds in ({int}, {float}, {str}, {bool}) else labels


def _classes(labels: Array) -> Array:
    _check_present(labels, "y")
    try:
        classes = np.unique(labels)
    except TypeError as error:
        raise TypeError(f"`y` must hold labels of one type that sorts ({error}).") from error
    if len(classes) < 2:
        raise ValueError(f"`y` must have two classes or more, got only {classes.tolist()[0]!r}.")
    return classes


def _as_groups(groups: Any, count: int) -> Array:
    column = as_column(groups, "groups", count)
    _check_present(column, "groups")
    return column.copy()


def _check_present(column: Array, name: str) -> None:
    """Raise if a row has no label: None, NaN (also inside objects), NaT or an infinity."""
    if column.dtype.kind == "f":
        missing = ~np.isfinite(column)
    else:
        missing = np.array([is_missing(value) for value in column.tolist()])
    if missing.any():
        row = int(missing.argmax())
        raise ValueError(
            f"`{name}` must have a label in every row, got {column[row]} in row {row}."
        )


def is_missing(value: Any) -> bool:
    """Tell whether a value is None, NaN, NaT or pandas' NA: only these do not equal themselves."""
    try:
        return value is None or not value == value  # noqa: SIM201  NaN != NaN
    except TypeError:
        return True  # NA == NA is neither true nor false


def _score_argument(name: str) -> str:
    return "scores" if name == ONLY_SCORE else f"scores[{name!r}]"


def named_scores(scores: Any, count: int) -> dict[str, FloatArray]:
    """Return the scores of all rows by name, checked: one array, a mapping or a DataFrame."""
    if scores is None:
        named: dict[str, Any] = {}
    elif isinstance(scores, Mapping):
        named = {str(name): values for name, values in scores.items()}
    elif hasattr(scores, "columns"):
        named = {str(name): scores[name] for name in scores.columns}
    else:
        named = {ONLY_SCORE: scores}
    return {
        name: as_numbers(values, _score_argument(name), count) for name, values in named.items()
    }


def _feature_names(X: Any) -> Array | None:
    columns = getattr(X, "columns", None)
    if columns is None or not all(isinstance(column, str) for column in columns):
        return None
    return np.asarray(list(columns), dtype=object)
