"""Encode the columns of a table as features: a column of text becomes columns of 0 and 1."""

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from span_hpo.io.libsvm_text import read_libsvm
from span_hpo.io.numbering import Numbering, on_used_columns
from span_hpo.io.tables import Table, file_format, listed, read_table, shown_cell
from span_hpo.runtime import ArgumentError, Array, FloatArray, IndexArray

_MOST_CATEGORIES = 100  # largest number of categories in a column; more of them look like names
_MOST_CLASSES = 100  # largest number of classes among the labels
_MOST_DENSE = 2**24  # entries above which features are sparse if most of them are zeros of texts
_SPARSE_SHARE = 0.25  # share of columns among the features below which most of these are zeros
_FORMATTED = re.compile(r"[-+]?(?=\D*\d)[\d.,' ]+%?")  # formatted numbers, such as 0,5 or 12%


@dataclass(frozen=True)
class EncodedColumn:
    """A column of a table that is used as a feature.

    Attributes
    ----------
    name
        Name of the column.
    categories
        Texts that the column may hold, each of which becomes a feature of 0 and 1; None for a
        column of numbers.
    """

    name: str
    categories: tuple[str, ...] | None = None

    @property
    def feature_names(self) -> list[str]:
        """Names of the features that the column becomes."""
        if self.categories is None:
            return [self.name]
        return [f"{self.name}={category}" for category in self.categories]

    def codes(self, table: Table) -> IndexArray:
        """Return the position of each row's text in `categories`, or -1 if it is not there."""
        place = {text: code for code, text in enumerate(self.categories or ())}
        texts = table.texts(self.name)
        unknown = sorted(set(texts) - set(place))
        if unknown:
            shown = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
            warnings.warn(
                f"column {self.name!r} of {table.source} has categories that do not occur in "
                f"the training rows: {shown}.",
                stacklevel=3,
            )
        return np.array([place.get(text, -1) for text in texts], dtype=np.int64)


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become features, and which column holds the labels.

    Attributes
    ----------
    target
        Name of the column with the labels.
    features
        Columns that are used as features, in their order.
    """

    target: str
    features: tuple[EncodedColumn, ...]

    @property
    def feature_names(self) -> list[str]:
        """Names of all features, in their order."""
        return [name for column in self.features for name in column.feature_names]

    def encoded(self, table: Table) -> Any:
        """Return the features of all rows, shape (l, d).

        A category that does not occur in the training rows is encoded as 0 in all features of its
        column, and a warning is issued.

        Returns
        -------
        An array; or, if it would be large and consist mostly of the zeros of categories, sparse
        rows.

        Raises
        ------
        ValueError, TypeError
            If a column or a cell is missing, or a column of numbers holds text.
        """
        missing = [column.name for column in self.features if column.name not in table.columns]
        if missing:
            raise ValueError(
                f"{table.source} must have the columns {listed(missing)}, got "
                f"{listed(table.columns)}."
            )
        sizes = [1 if c.categories is None else len(c.categories) for c in self.features]
        starts = np.cumsum([0, *sizes]).tolist()
        shape = (len(table), starts[-1])
        if shape[0] * shape[1] > _MOST_DENSE and len(sizes) < _SPARSE_SHARE * shape[1]:
            return self._encoded_sparse(table, starts, shape)
        features = np.zeros(shape)
        for column, start in zip(self.features, starts, strict=False):
            if column.categories is None:
                features[:, start] = table.numbers(column.name)
            else:
                codes = column.codes(table)
                known = np.flatnonzero(codes >= 0)
                features[known, start + codes[known]] = 1.0
        return features

    def _encoded_sparse(self, table: Table, starts: list[int], shape: tuple[int, int]) -> Any:
        """Return the features of all rows as sparse rows, which have one entry in each column."""
        values = np.ones((shape[0], len(self.features)))
        places = np.empty(values.shape, dtype=np.int64)
        for j, (column, start) in enumerate(zip(self.features, starts, strict=False)):
            if column.categories is None:
                values[:, j], places[:, j] = table.numbers(column.name), start
            else:
                codes = column.codes(table)
                values[:, j], places[:, j] = codes >= 0, start + np.maximum(codes, 0)
        ends = np.arange(shape[0] + 1) * len(self.features)
        features = sparse.csr_array((values.ravel(), places.ravel(), ends), shape=shape)
        features.eliminate_zeros()
        return features

    def content(self) -> dict[str, Any]:
        """Return the encoding as a mapping that JSON can hold."""
        features = [
            {"name": column.name}
            | ({} if column.categories is None else {"categories": list(column.categories)})
            for column in self.features
        ]
        return {"target": self.target, "features": features}

    @classmethod
    def of_content(cls, content: Mapping[str, Any]) -> "Encoding":
        """Return the encoding that `content` has written and a schema has checked."""
        return cls(
            content["target"],
            tuple(
                EncodedColumn(
                    column["name"],
                    None if column.get("categories") is None else tuple(column["categories"]),
                )
                for column in content["features"]
            ),
        )


@dataclass(frozen=True, eq=False)
class Samples:
    """Content of a file of training rows.

    Attributes
    ----------
    X
        Features, shape (l, d), as an array or a sparse matrix.
    y
        Labels, shape (l,).
    scores
        Scores by name, each of shape (l,), or None.
    groups
        Group of each row, shape (l,), or None.
    columns
        Encoding that has turned a table into features; None for LIBSVM's format, which has no
        named columns.
    lines
        Line number of each row in a CSV file, or None.
    numbering
        Which of many numbered features have a column in `X`, or None if all of them have.
    """

    X: Any
    y: Array
    scores: dict[str, FloatArray] | None = None
    groups: Array | None = None
    columns: Encoding | None = None
    lines: Sequence[int] | None = None
    numbering: Numbering | None = None

    @property
    def n_features(self) -> int:
        """Number of features, with those that have no column."""
        count: int = self.X.shape[1]
        return count if self.numbering is None else self.numbering.count


def read_samples(
    path: str | Path,
    *,
    target: str | None = None,
    score: str | None = None,
    group: str | None = None,
    drop: Sequence[str] = (),
    category: Sequence[str] = (),
) -> Samples:
    """Read training rows from a file.

    Parameters
    ----------
    path
        Path of the file, whose suffix determines the format.
    target
        Name of the column with the labels; required for a table.
    score, group
        Names of the columns with a score and with the group of each row. These columns are not
        used as features.
    drop
        Names of columns that are not used.
    category
        Names of columns that hold categories even if these look like numbers.

    Returns
    -------
    The rows with their labels, and with scores and groups if columns are named for them.

    Raises
    ------
    ValueError, TypeError, OSError, ImportError
        If the file cannot be read, or lacks a column that is named.
    """
    roles = {
        "target": [] if target is None else [target],
        "score": [] if score is None else [score],
        "group": [] if group is None else [group],
        "drop": drop,
        "category": category,
    }
    if file_format(path) == "libsvm":
        _check_no_roles(roles)
        return _numbered_samples(path)
    table = read_table(path)
    if target is None:
        raise ArgumentError(
            "target", f"must name the column with the labels, one of {listed(table.columns)}."
        )
    _check_roles(table, roles)
    other = dict.fromkeys(name for name in (target, score, group, *drop) if name is not None)
    categories = set(category)
    y = _checked_labels(table.labels(target), f"column {target!r} of {table.source}")
    features = [
        _fitted_column(table, name, name in categories)
        for name in table.columns
        if name not in other
    ]
    if not features:
        raise ValueError(
            f"{table.source} must have a column for features, got only {listed(other)}."
        )
    columns = Encoding(target, tuple(features))
    return Samples(
        columns.encoded(table),
        y,
        None if score is None else {score: _unit_score(table, score)},
        None if group is None else np.array(table.texts(group), dtype=object),
        columns,
        table.lines,
    )


def _numbered_samples(path: str | Path) -> Samples:
    """Read training rows in LIBSVM's format, without columns for features that no row uses."""
    X, y = read_libsvm(path)
    labels = _checked_labels(y, f"labels of {path}")
    if not sparse.issparse(X):
        return Samples(X, labels)
    (used,), features = on_used_columns(X)
    if used.shape == X.shape:
        return Samples(used, labels)
    return Samples(used, labels, numbering=Numbering(features, X.shape[1]))


def _check_no_roles(roles: Mapping[str, Sequence[str]]) -> None:
    """Raise if an argument names a column of a file that has no named columns."""
    for argument, names in roles.items():
        if names:
            raise ArgumentError(
                argument,
                "must not be given for a file in LIBSVM's format, which has no named columns, got "
                f"{listed(names)}. The name of a table ends in .csv, .tsv or .parquet.",
            )


def _check_roles(table: Table, roles: Mapping[str, Sequence[str]]) -> None:
    """Raise if an argument names a column that a table does not have, or a column has no name."""
    for argument, names in roles.items():
        unknown = [name for name in names if name not in table.columns]
        if unknown:
            raise ArgumentError(
                argument,
                f"must be a column of {table.source}, one of {listed(table.columns)}, got "
                f"{unknown[0]!r}.",
            )
    if "" in table.columns and "" not in roles["drop"]:
        raise ArgumentError(
            "drop",
            "''.",
            f"the columns of {table.source} must have names, got one without a name, perhaps an "
            "index. Name it, or leave it out with",
        )


def _fitted_column(table: Table, name: str, is_category: bool) -> EncodedColumn:
    """Return the encoding of a column of training rows."""
    if not is_category and table.holds_numbers(name):
        return EncodedColumn(name)
    categories = sorted(set(table.texts(name)))
    if not is_category and all(_FORMATTED.fullmatch(text) for text in categories):
        raise ArgumentError(
            "category",
            "if it holds categories.",
            f"{table.place(0, name)} must be a number such as 1234.5, got "
            f"{shown_cell(table.texts(name)[0])}. Name the column in",
        )
    if len(categories) > _MOST_CATEGORIES:
        raise ArgumentError(
            "drop",
            "it.",
            f"column {name!r} of {table.source} must hold numbers or at most {_MOST_CATEGORIES} "
            f"categories, got {len(categories)} different texts such as "
            f"{shown_cell(categories[0])}. If it says nothing about the labels,",
        )
    return EncodedColumn(name, tuple(categories))


def _unit_score(table: Table, name: str) -> FloatArray:
    scores = table.numbers(name)
    outside = np.flatnonzero((scores < 0) | (scores > 1))
    if len(outside):
        row = int(outside[0])
        raise ValueError(
            f"{table.place(row, name)} must be a score in [0, 1], got {scores[row]:g}."
        )
    return scores


def _checked_labels(labels: Array, what: str) -> Array:
    classes = np.unique(labels)
    if not 2 <= len(classes) <= _MOST_CLASSES:
        raise ValueError(
            f"{what} must hold from 2 to {_MOST_CLASSES} classes, got {len(classes)}, the first of "
            f"which is {shown_cell(classes.tolist()[0])}."
        )
    return labels
