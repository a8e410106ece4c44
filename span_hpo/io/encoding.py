"""Encode the columns of a table as features, and fill in missing values.

A column of numbers is one feature, and so is a column of truth values, as 0 and 1. A column of text
becomes one feature of 0 and 1 for each category. The same rules hold for files and DataFrames.
"""

import re
import warnings
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from span_hpo.io.dialects import HEADER_MISSING
from span_hpo.io.tables import Table, listed, shown_cell
from span_hpo.runtime import ArgumentError, Array, FloatArray, IndexArray, rows_of

IMPUTE = ("median", "most_frequent", "indicator")  # rules that fill in missing values
_MOST_CATEGORIES = 100  # largest number of categories in a column; more of them look like names
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
    fill
        Number or category that takes the place of missing values; None if these are refused.
    has_flag
        Whether another feature is 1 where the value is missing, and 0 elsewhere.
    """

    name: str
    categories: tuple[str, ...] | None = None
    fill: float | str | None = None
    has_flag: bool = False

    def __post_init__(self) -> None:
        """Raise if a filling does not suit the column."""
        is_text = isinstance(self.fill, str)
        if self.fill is not None and is_text != (self.categories is not None):
            wanted = "a number" if self.categories is None else "one of its categories"
            raise ValueError(f"`fill` of column {self.name!r} must be {wanted}, got {self.fill!r}")
        if is_text and self.fill not in (self.categories or ()):
            raise ValueError(
                f"`fill` of column {self.name!r} must be one of its categories, got {self.fill!r}"
            )
        if self.has_flag and self.fill is None:
            raise ValueError(f"`fill` of column {self.name!r} must be given, because it has a flag")

    @property
    def feature_names(self) -> list[str]:
        """Names of the features that the column becomes."""
        names = [self.name]
        if self.categories is not None:
            names = [f"{self.name}={category}" for category in self.categories]
        return [*names, f"{self.name} is missing"] if self.has_flag else names

    @property
    def n_values(self) -> int:
        """Number of features without the flag of missing values."""
        return 1 if self.categories is None else len(self.categories)

    def numbers(self, table: Table, missing: Array) -> FloatArray:
        """Return the numbers of a table, filled in where they are missing."""
        if not missing.any():
            return table.numbers(self.name)
        found = np.full(len(table), self.fill, dtype=float)
        found[~missing] = table.present(self.name).numbers(self.name)
        return found

    def codes(self, table: Table, missing: Array) -> IndexArray:
        """Return the position of each row's text in `categories`, or -1 if it is not there."""
        place: dict[Any, int] = {text: code for code, text in enumerate(self.categories or ())}
        texts = table.present(self.name).texts(self.name)
        unknown = sorted(set(texts) - set(place))
        if unknown:
            shown = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
            warnings.warn(
                f"column {self.name!r} of {table.source} has categories that do not occur in "
                f"the training rows: {shown}.",
                stacklevel=4,
            )
        codes = np.full(len(table), place.get(self.fill, -1), dtype=np.int64)
        codes[~missing] = [place.get(text, -1) for text in texts]
        return codes


@dataclass(frozen=True)
class Encoding:
    """How the columns of a table become features, and which column holds the labels.

    Attributes
    ----------
    target
        Name of the column with the labels, or None if it is not known.
    features
        Columns that are used as features, in their order.
    """

    target: str | None
    features: tuple[EncodedColumn, ...]

    @property
    def feature_names(self) -> list[str]:
        """Names of all features, in their order."""
        return [name for column in self.features for name in column.feature_names]

    def is_raw(self, shape: tuple[int, ...]) -> bool:
        """Return whether rows of this shape hold the numbers of the columns, before encoding."""
        is_text = any(column.categories is not None for column in self.features)
        return not is_text and len(shape) == 2 and shape[1] == len(self.features)

    def encoded_numbers(self, rows: Any) -> Any:
        """Return the features of rows that hold one number, or NaN, for each column."""
        values = np.asarray(rows, dtype=float)
        names = [column.name for column in self.features]
        return self.encoded(Table.of(dict(zip(names, values.T, strict=True))))

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
        ValueError
            If a column is missing, a cell is missing in a column without a filling, or a column of
            numbers holds text.
        """
        unknown = [column.name for column in self.features if column.name not in table.columns]
        if unknown:
            raise ValueError(
                f"{table.source} must have the columns {listed(unknown)}, got "
                f"{listed(table.columns)}{HEADER_MISSING if table.headless else ''}."
            )
        missing = {column.name: table.missing(column.name) for column in self.features}
        self._check_filled(table, missing)
        sizes = [len(column.feature_names) for column in self.features]
        starts = np.cumsum([0, *sizes]).tolist()
        shape = (len(table), starts[-1])
        if shape[0] * shape[1] > _MOST_DENSE and len(sizes) < _SPARSE_SHARE * shape[1]:
            return self._encoded_sparse(table, missing, starts, shape)
        features = np.zeros(shape)
        for column, start in zip(self.features, starts, strict=False):
            empty = missing[column.name]
            if column.categories is None:
                features[:, start] = column.numbers(table, empty)
            else:
                codes = column.codes(table, empty)
                known = rows_of(codes >= 0)
                features[known, start + codes[known]] = 1.0
            if column.has_flag:
                features[:, start + column.n_values] = empty
        return features

    def _check_filled(self, table: Table, missing: Mapping[str, Array]) -> None:
        """Raise if values are missing in columns without a filling, and name all of these."""
        counts = {
            column.name: int(np.count_nonzero(missing[column.name]))
            for column in self.features
            if column.fill is None and missing[column.name].any()
        }
        if counts:
            raise table.refused(
                f"{table.source} must have a value in every cell that the model uses, got none in "
                f"{table.about_missing(counts)}.",
                ("impute", "if such rows are to be predicted.", "Fill them in, or fit with"),
                "Fill them in, or fit with `impute` if such rows are to be predicted.",
            )

    def _encoded_sparse(
        self, table: Table, missing: Mapping[str, Array], starts: list[int], shape: tuple[int, int]
    ) -> Any:
        """Return the features as sparse rows, with one entry per column and one per flag."""
        parts: list[tuple[FloatArray, IndexArray]] = []
        for column, start in zip(self.features, starts, strict=False):
            empty = missing[column.name]
            if column.categories is None:
                parts.append((column.numbers(table, empty), np.full(shape[0], start)))
            else:
                codes = column.codes(table, empty)
                parts.append(((codes >= 0).astype(float), start + np.maximum(codes, 0)))
            if column.has_flag:
                flags = np.full(shape[0], start + column.n_values)
                parts.append((empty.astype(float), flags))
        values = np.stack([value for value, _ in parts], axis=1)
        places = np.stack([place for _, place in parts], axis=1)
        ends = np.arange(shape[0] + 1) * len(parts)
        features = sparse.csr_array((values.ravel(), places.ravel(), ends), shape=shape)
        features.eliminate_zeros()
        return features

    def content(self) -> dict[str, Any]:
        """Return the encoding as a mapping that JSON can hold."""
        features = [
            {"name": column.name}
            | ({} if column.categories is None else {"categories": list(column.categories)})
            | ({} if column.fill is None else {"fill": column.fill})
            | ({"flag": True} if column.has_flag else {})
            for column in self.features
        ]
        return {"target": self.target, "features": features}

    @classmethod
    def of_content(cls, content: Mapping[str, Any]) -> "Encoding":
        """Return the encoding that `content` has written and a schema has checked."""
        return cls(
            content.get("target"),
            tuple(
                EncodedColumn(
                    column["name"],
                    None if column.get("categories") is None else tuple(column["categories"]),
                    column.get("fill"),
                    bool(column.get("flag")),
                )
                for column in content["features"]
            ),
        )


def as_impute(impute: Any) -> str | None:
    """Return the checked name of a rule that fills in missing values, or None."""
    if impute is not None and impute not in IMPUTE:
        raise ArgumentError("impute", f"must be one of {[*IMPUTE, None]}, got {impute!r}.")
    name: str | None = impute
    return name


def learned_encoding(
    table: Table,
    names: Sequence[str],
    *,
    target: str | None = None,
    category: Collection[str] = (),
    impute: str | None = None,
) -> Encoding:
    """Learn from training rows how columns become features.

    Parameters
    ----------
    table
        Training rows.
    names
        Columns that are used as features.
    target
        Name of the column with the labels, for the record.
    category
        Columns that hold categories even if these look like numbers.
    impute
        How missing values are filled in, also in new rows: "median" takes the median of numbers and
        the most frequent one of categories and truth values, "most_frequent" takes the most
        frequent value (the least one of several), and "indicator" does as "median" and adds a
        feature of 0 and 1 for each column that has missing values in the training rows. None
        refuses missing values.

    Raises
    ------
    ValueError
        If values are missing and `impute` is None, or a column has no value at all, or holds
        something that cannot be a feature.
    """
    counts = table.missing_counts(names)
    if counts and impute is None:
        raise table.refused(
            f"{table.source} must have a value in every cell, got none in "
            f"{table.about_missing(counts)}.",
            (
                "impute",
                "median, leave these rows out with `drop_rows`, or these columns with `drop`.",
                "Fill them in with",
            ),
            'Fill in NaN and None with impute="median", or leave these rows or columns out.',
        )
    check_not_empty(table, counts)
    is_category = {*category, *table.categorical}
    return Encoding(
        target,
        tuple(
            _learned_column(table.present(name), name, name in is_category, impute, name in counts)
            for name in names
        ),
    )


def check_not_empty(table: Table, counts: Mapping[str, int]) -> None:
    """Raise if a column has no value in any row; `counts` are those of `Table.missing_counts`."""
    empty = [name for name, count in counts.items() if count == len(table)]
    if empty:
        raise table.refused(
            f"{table.source} must have a value in some row of each column, got none in "
            f"{listed(empty)}.",
            ("drop", "for these columns.", "Use"),
            "Leave these columns out.",
        )


def _learned_column(
    table: Table, name: str, is_category: bool, impute: str | None, has_missing: bool
) -> EncodedColumn:
    """Return the encoding of a column, from the rows that have a value there."""
    kind = "text" if is_category else table.kind_of(name)
    has_flag = impute == "indicator" and has_missing
    if kind != "text":
        fill = None
        if impute is not None:
            numbers = table.numbers(name)
            by_median = impute != "most_frequent" and kind == "number"
            fill = float(np.median(numbers)) if by_median else _most_frequent(numbers.tolist())
        return EncodedColumn(name, None, fill, has_flag)
    texts = table.texts(name)
    categories = sorted(set(texts))
    if not is_category:
        _check_texts(table, name, categories)
    if len(categories) > _MOST_CATEGORIES:
        raise table.refused(
            f"column {name!r} of {table.source} must hold numbers or at most {_MOST_CATEGORIES} "
            f"categories, got {len(categories)} different texts such as "
            f"{shown_cell(categories[0])}.",
            ("drop", "it.", "If it says nothing about the labels,"),
            "If it says nothing about the labels, leave it out.",
        )
    most = None if impute is None else _most_frequent(texts)
    return EncodedColumn(name, tuple(categories), most, has_flag)


def _most_frequent(values: list[Any]) -> Any:
    """Return the most frequent value, and the least one of several."""
    counts = Counter(values)
    most = max(counts.values())
    return min(value for value, count in counts.items() if count == most)


def _check_texts(table: Table, name: str, categories: list[str]) -> None:
    """Raise with advice if texts are not categories but numbers or timestamps in disguise."""
    table.check_no_timestamps(name, categories)
    if not all(_FORMATTED.fullmatch(text) for text in categories):
        return
    cell = table.columns[name].tolist()[0]
    fault = f"{table.place(0, name)} must be a number such as 1234{table.decimal}5"
    if table.has_decimal_comma(categories):
        raise ArgumentError(
            "decimal",
            "',' to read them, or name the column in `category` if it holds categories.",
            f"{fault}, got {shown_cell(cell)}: the column looks like numbers with decimal commas. "
            "Set",
        )
    raise table.refused(
        f"{fault}, got {shown_cell(cell)}.",
        ("category", "if it holds categories.", "Name the column in"),
        'Give the column the dtype "category" if it holds categories.',
    )
