"""Encode the columns of a table as features: a column of text becomes columns of 0 and 1."""

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from span_hpo.io.tables import Table, listed, shown_cell
from span_hpo.runtime import ArgumentError, IndexArray

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


def fitted_column(table: Table, name: str, is_category: bool) -> EncodedColumn:
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
