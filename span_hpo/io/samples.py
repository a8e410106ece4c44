"""Read training rows from files: features, labels, scores and groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from span_hpo.io.encoding import Encoding, fitted_column
from span_hpo.io.libsvm_text import read_libsvm
from span_hpo.io.numbering import Numbering, on_used_columns
from span_hpo.io.table_files import file_format, read_table
from span_hpo.io.tables import Table, listed
from span_hpo.io.targets import checked_labels
from span_hpo.runtime import ArgumentError, Array, FloatArray


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
    classify: bool = False,
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
    classify
        Accept labels that look like a quantity, and any number of classes.

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
        return _numbered_samples(path, classify)
    table = read_table(path)
    if target is None:
        raise ArgumentError(
            "target", f"must name the column with the labels, one of {listed(table.columns)}."
        )
    _check_roles(table, roles)
    other = dict.fromkeys(name for name in (target, score, group, *drop) if name is not None)
    categories = set(category)
    what = f"column {target!r} of {table.source}"
    y = checked_labels(table.labels(target), what, classify=classify)
    features = [
        fitted_column(table, name, name in categories)
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


def _numbered_samples(path: str | Path, classify: bool) -> Samples:
    """Read training rows in LIBSVM's format, without columns for features that no row uses."""
    X, y = read_libsvm(path)
    labels = checked_labels(y, f"the labels of {path}", classify=classify)
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


def _unit_score(table: Table, name: str) -> FloatArray:
    scores = table.numbers(name)
    outside = np.flatnonzero((scores < 0) | (scores > 1))
    if len(outside):
        row = int(outside[0])
        raise ValueError(
            f"{table.place(row, name)} must be a score in [0, 1], got {scores[row]:g}."
        )
    return scores
