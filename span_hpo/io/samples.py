"""Read training rows from files: features, labels, scores and groups."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from span_hpo.io.dialects import HEADER_MISSING, Dialect
from span_hpo.io.encoding import Encoding, as_impute, check_not_empty, learned_encoding
from span_hpo.io.libsvm_text import read_libsvm
from span_hpo.io.numbering import Numbering, on_used_columns
from span_hpo.io.table_files import check_no_dialect, file_format, read_table
from span_hpo.io.tables import Table, listed
from span_hpo.io.targets import checked_labels
from span_hpo.runtime import ArgumentError, Array, FloatArray, rows_of


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
    n_dropped
        Number of rows that were left out because of missing values.
    """

    X: Any
    y: Array
    scores: dict[str, FloatArray] | None = None
    groups: Array | None = None
    columns: Encoding | None = None
    lines: Sequence[int] | None = None
    numbering: Numbering | None = None
    n_dropped: int = 0

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
    impute: str | None = None,
    drop_rows: bool = False,
    classify: bool = False,
    dialect: Dialect | None = None,
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
    impute
        How missing features are filled in; see `learned_encoding`.
    drop_rows
        Leave out rows with missing values: without a label, a score or a group, and, unless
        `impute` fills them in, without a feature.
    classify
        Accept labels that look like a quantity, and any number of classes.
    dialect
        How a CSV file writes the table, if it is unusual.

    Returns
    -------
    The rows with their labels, and with scores and groups if columns are named for them.

    Raises
    ------
    ValueError, OSError, ImportError
        If the file cannot be read, or lacks a column that is named.
    """
    dialect = dialect or Dialect()
    roles = {
        "target": [] if target is None else [target],
        "score": [] if score is None else [score],
        "group": [] if group is None else [group],
        "drop": drop,
        "category": category,
    }
    if file_format(path) == "libsvm":
        _check_no_roles(roles)
        _check_nothing_missing(impute, drop_rows)
        check_no_dialect(dialect, "a file in LIBSVM's format")
        return _numbered_samples(path, classify)
    table = read_table(path, dialect)
    if target is None:
        raise ArgumentError(
            "target",
            f"must name the column with the labels, one of {listed(table.columns)}"
            f"{HEADER_MISSING if table.headless else ''}.",
        )
    _check_roles(table, roles)
    special = [name for name in (target, score, group) if name is not None]
    other = {*special, *drop}
    features = [name for name in table.columns if name not in other]
    if not features:
        raise _no_features(table, [name for name in table.columns if name in other])
    table, n_dropped = _complete(table, special, features, as_impute(impute), drop_rows)
    columns = learned_encoding(table, features, target=target, category=category, impute=impute)
    what = f"column {target!r} of {table.source}"
    y = checked_labels(table.labels(target), what, classify=classify)
    if table.headless:
        warnings.warn(
            f"the first line of {table.source} looks like data, got {listed(table.columns)}"
            f"{HEADER_MISSING}. If so, add a line with the names of the columns.",
            stacklevel=2,
        )
    return Samples(
        columns.encoded(table),
        y,
        None if score is None else {score: _unit_score(table, score)},
        None if group is None else np.array(table.texts(group), dtype=object),
        columns,
        table.lines,
        n_dropped=n_dropped,
    )


def _no_features(table: Table, names: Sequence[str]) -> ValueError:
    """Return the error about a table without features, which may have another delimiter."""
    fault = f"{table.source} must have a column for features, got only {listed(names)}."
    if table.lines is None or len(table.columns) > 1:
        return ValueError(fault)
    return ArgumentError(
        "delimiter", "if it is unusual.", f"{fault} Give the character between cells in"
    )


def _complete(
    table: Table,
    special: Sequence[str],
    features: Sequence[str],
    impute: str | None,
    drop_rows: bool,
) -> tuple[Table, int]:
    """Return the rows that can be used, and the number of the others, which are left out.

    Parameters
    ----------
    table
        All rows.
    special
        Columns with labels, scores and groups, which nothing can fill in.
    features
        Columns that are used as features.
    impute, drop_rows
        What is done about missing values; see `read_samples`.
    """
    counts = table.missing_counts(special)
    if not drop_rows:
        if counts:  # the error about features may name more columns
            all_counts = table.missing_counts([*special, *([] if impute else features)])
            also = ", and fill in features with `impute`" if len(all_counts) > len(counts) else ""
            raise ArgumentError(
                "drop_rows",
                f"to leave these rows out{also}.",
                f"{table.source} must have a value in every cell, got none in "
                f"{table.about_missing(all_counts)}. Use",
            )
        return table, 0
    counts = table.missing_counts([*special, *([] if impute else features)])
    check_not_empty(table, counts)
    missing = np.zeros(len(table), dtype=bool)
    for name in counts:
        missing |= table.missing(name)
    if missing.all():
        raise ArgumentError(
            "impute",
            "instead of `drop_rows`.",
            f"{table.source} must have a row without missing values, got none of {len(table)}: "
            f"values are missing in {table.about_missing(counts)}. Use",
        )
    if not counts:
        return table, 0
    return table.take(rows_of(~missing)), int(np.count_nonzero(missing))


def _check_nothing_missing(impute: str | None, drop_rows: bool) -> None:
    """Raise if missing values are to be handled in a file that has none."""
    given: dict[str, Any] = {"impute": impute, "drop_rows": drop_rows or None}
    for argument, value in given.items():
        if value is not None:
            raise ArgumentError(
                argument,
                "must not be given for a file in LIBSVM's format, in which features that are not "
                f"written are 0, got {value!r}.",
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
        if unknown and len(table.columns) == 1 and table.lines is not None:
            raise ArgumentError(
                "delimiter",
                "if it is unusual.",
                f"{table.source} must have a column {unknown[0]!r}, got only one column, "
                f"{listed(table.columns)}. Give the character between cells in",
            )
        if unknown:
            raise ArgumentError(
                argument,
                f"must be a column of {table.source}, one of {listed(table.columns)}, got "
                f"{unknown[0]!r}{HEADER_MISSING if table.headless else ''}.",
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
