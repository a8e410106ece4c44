"""Check rows, labels, scores and groups from users once, and hold them in one form."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from span_hpo.runtime import ArgumentError, Array, FloatArray, IndexArray, read_only

ONLY_SCORE = "score"  # name of the scores if they are given as a single array


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training data that have been checked, copied and protected from changes.

    A `SpanObjective` makes its `data` from its arguments, and passes them on to weightings.

    Attributes
    ----------
    X
        Features, shape (l, d), as an array or a sparse matrix in compressed rows; or the kernel
        matrix, shape (l, l), if the kernel is precomputed.
    codes
        Class of each row as a position in `classes`, shape (l,).
    labels
        Labels as the user gave them, shape (l,).
    classes
        The different labels in sorted order.
    scores
        Scores by name, each of shape (l,).
    groups
        Group of each row, shape (l,), or None if there are no groups.
    feature_names
        Column names if the features came as a DataFrame, or None.

    Examples
    --------
    >>> from span_hpo import SpanObjective
    >>> X, y = [[0.0], [1.0], [2.0]], ["no", "yes", "yes"]
    >>> data = SpanObjective(X, y, scores=[0.9, 0.5, 1.0]).data
    >>> len(data), data.classes.tolist()
    (3, ['no', 'yes'])
    >>> data.y.tolist()
    [-1.0, 1.0, 1.0]
    >>> data.score(None).tolist()
    [0.9, 0.5, 1.0]
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
        """Labels as numbers, shape (l,): -1 and +1 for two classes, the codes for more."""
        codes = self.codes.astype(float)
        return read_only(2 * codes - 1 if len(self.classes) == 2 else codes)

    def take(self, rows: IndexArray) -> "Dataset":
        """Return the data of the given rows, with all columns of `X`."""
        return replace(
            self,
            X=self.X[rows],
            codes=self.codes[rows],
            labels=self.labels[rows],
            scores={name: values[rows] for name, values in self.scores.items()},
            groups=None if self.groups is None else self.groups[rows],
        )

    def score(self, name: str | None) -> FloatArray:
        """Return the scores called `name`, which may be None if there is only one score."""
        if name is None and len(self.scores) == 1:
            return next(iter(self.scores.values()))
        if name is not None and name in self.scores:
            return self.scores[name]
        known = sorted(self.scores) or "none"
        if name is None and self.scores:
            raise ValueError(
                f"`score` must be one of {known}, because several scores are given, got None."
            )
        wanted = "one score per row" if name is None else f"a score called {name!r}"
        raise ValueError(f"`scores` must hold {wanted} for this weighting, got {known}.")

    @cached_property
    def grouped(self) -> tuple[tuple[Any, ...], IndexArray]:
        """The different groups in sorted order, and the number of the group of each row."""
        if self.groups is None:
            raise ArgumentError("groups", "must hold one group for each row, got none.")
        values = self.groups.tolist()
        try:
            names = list(dict.fromkeys(values))
        except TypeError as error:
            raise ArgumentError("groups", f"must hold names or numbers ({error}).") from error
        try:
            names = sorted(names)
        except TypeError:  # names of several types
            names = sorted(names, key=lambda name: (type(name).__name__, repr(name)))
        places = {name: place for place, name in enumerate(names)}
        return tuple(names), np.array([places[value] for value in values], dtype=np.intp)

    @cached_property
    def nested_order(self) -> IndexArray:
        """A fixed permutation of the rows in which every prefix keeps the share of each class.

        The rows of each class are shuffled with a fixed seed, and row j of the n_c rows of a class
        gets the place ``(j + 1/2) / n_c``, with j from 0. The permutation sorts the places.
        """
        rng = np.random.default_rng(0)
        place = np.empty(len(self))
        for code in range(len(self.classes)):
            of_class = rng.permutation(np.flatnonzero(self.codes == code))
            place[of_class] = (np.arange(len(of_class)) + 0.5) / len(of_class)
        return np.argsort(place, kind="stable")

    @cached_property
    def least_rows(self) -> int:
        """Least number of rows at the beginning of `nested_order` that includes every class."""
        order = self.codes[self.nested_order]
        return 1 + max(int((order == code).argmax()) for code in range(len(self.classes)))


def as_dataset(X: Any, y: Any, *, scores: Any = None, groups: Any = None) -> Dataset:
    """Check the user's data and return them in one form.

    Parameters
    ----------
    X
        Features, shape (l, d): an array, a DataFrame of numbers or a sparse matrix.
    y
        Labels, shape (l,): two or more different values of any type that can be sorted.
    scores
        One number for each row; or several scores, as a mapping from names to such arrays or as a
        DataFrame.
    groups
        One label for each row.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described. The message names it and says what was received.
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
    """Return `values` as finite float64 numbers of shape (count,), all of them at least 0."""
    numbers = as_numbers(values, name, count)
    if (numbers < 0).any():
        row = int(numbers.argmin())
        raise ValueError(f"`{name}` must not be negative, got {numbers[row]} in row {row}.")
    return numbers


def as_features(X: Any, name: str = "X", *, least_rows: int = 2) -> Any:
    """Return features as finite float64 numbers, in an array or in compressed sparse rows.

    Parameters
    ----------
    X
        Features, shape (l, d): an array, a DataFrame of numbers or a sparse matrix.
    name
        Name of the argument in error messages.
    least_rows
        Least number of rows that is allowed.

    Raises
    ------
    TypeError, ValueError
        If `X` is not as described.
    """
    if sparse.issparse(X):
        _check_shape(X.shape, name, least_rows)
        return _as_sparse_features(X, name)
    features = _unmasked(X, name)
    _check_shape(features.shape, name, least_rows)
    return read_only(np.ascontiguousarray(_finite(features, name)))


def _as_sparse_features(X: Any, name: str) -> Any:
    """Return a float64 copy in compressed rows that are sorted and have no repeated entries."""
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
        # LIBSVM needs indices of 32 bits.
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
        is_text = name == "X" and (text or values.dtype.kind in "US")
        remedy = " Encode categories, or give SpanSVC a DataFrame with them." if is_text else ""
        raise TypeError(f"`{name}` must hold real numbers, got {kind}.{remedy}")
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
    """Return labels as an array of their plain type, if they are objects that share one."""
    if labels.dtype.kind != "O":
        return labels
    kinds = {type(label) for label in labels.tolist()}
    return np.array(labels.tolist()) if kinds in ({int}, {float}, {str}, {bool}) else labels


def _classes(labels: Array) -> Array:
    _check_present(labels, "y")
    try:
        classes = np.unique(labels)
    except TypeError as error:
        raise TypeError(
            f"`y` must hold labels of one type that can be sorted, got other labels ({error})."
        ) from error
    if len(classes) < 2:
        raise ValueError(f"`y` must have two classes or more, got only {classes.tolist()[0]!r}.")
    return classes


def _as_groups(groups: Any, count: int) -> Array:
    column = as_column(groups, "groups", count)
    _check_present(column, "groups")
    return column.copy()


def _check_present(column: Array, name: str) -> None:
    """Raise an error if a label is None, NaN (also in an array of objects), NaT or infinite."""
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
    """Return whether a value is None, or NaN, NaT or pandas' NA, which do not equal themselves."""
    try:
        return value is None or not value == value  # noqa: SIM201  NaN != NaN
    except TypeError:
        return True  # pandas' NA == NA is neither true nor false


def _score_argument(name: str) -> str:
    return "scores" if name == ONLY_SCORE else f"scores[{name!r}]"


def named_scores(scores: Any, count: int) -> dict[str, FloatArray]:
    """Return the checked scores of all rows by name, from an array, a mapping or a DataFrame."""
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
