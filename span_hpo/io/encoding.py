"""Encode the columns of a table as features: a column of text becomes columns of 0 and 1."""

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from span_hpo.io.libsvm_text import read_libsvm
from span_hpo.io.tables import Table, file_format, listed, read_table, shown_cell
from span_hpo.runtime import ArgumentError, Array, FloatArray

_MOST_CATEGORIES = 100  # largest number of categories in a column; more of them look like names
_MOST_CLASSES = 100  # largest number of classes among the labels
_FORMATTED = re.compile(r"[-+]?[\d.,' ]*\d[\d.,' ]*%?")  # formatted numbers, such as 0,5 or 12%


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

    def features(self, table: Table) -> FloatArray:
        """Return the features of all rows, shape (l, n); see `Encoding.encoded`."""
        if self.categories is None:
            return table.numbers(self.name)[:, None]
        texts = np.array(table.texts(self.name), dtype=object)
        unknown = sorted(set(texts) - set(self.categories))
        if unknown:
            shown = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
            warnings.warn(
                f"column {self.name!r} of {table.source} has categories that do not occur in "
                f"the training rows: {shown}.",
                stacklevel=3,
            )
        return np.column_stack([texts == category for category in self.categories]).astype(float)


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

    def encoded(self, table: Table) -> FloatArray:
        """Return the features of all rows, shape (l, d).

        A category that does not occur in the training rows is encoded as 0 in all features of its
        column, and a warning is issued.

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
        return np.hstack([column.features(table) for column in self.features])

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
        """Return the encoding that `content` has written; anything else raises an exception."""
        features = []
        for column in content["features"]:
            categories = column.get("categories")
            if categories is not None:
                if not categories or not all(isinstance(text, str) for text in categories):
                    raise ValueError(f"categories of {column['name']!r} must be texts")
                categories = tuple(categories)
            features.append(EncodedColumn(str(column["name"]), categories))
        return cls(str(content["target"]), tuple(features))


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
    """

    X: Any
    y: Array
    scores: dict[str, FloatArray] | None = None
    groups: Array | None = None
    columns: Encoding | None = None
    lines: Sequence[int] | None = None


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
        X, y = read_libsvm(path)
        return Samples(X, _checked_labels(y, f"labels of {path}"))
    table = read_table(path)
    if target is None:
        raise ArgumentError(
            "target", f"must name the column with the labels, one of {listed(table.columns)}."
        )
    _check_roles(table, roles)
    other = [name for name in (target, score, group, *drop) if name is not None]
    y = _checked_labels(table.labels(target), f"column {target!r} of {table.source}")
    features = [
        _fitted_column(table, name, name in category) for name in table.columns if name not in other
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
            f"which is {classes.tolist()[0]!r}."
        )
    return labels
