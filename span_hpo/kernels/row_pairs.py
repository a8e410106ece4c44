"""Pairs of rows, for kernels of which no part can be computed before the hyperparameters."""

from dataclasses import dataclass
from typing import Any

from span_hpo.runtime import IndexArray


@dataclass(frozen=True, eq=False)
class RowPairs:
    """All pairs of a row of one set of features with a row of another.

    Attributes
    ----------
    first
        Features, shape (l, d), dense or sparse.
    second
        Other features, shape (m, d), or None if they are the same rows.
    """

    first: Any
    second: Any = None

    @property
    def sides(self) -> tuple[Any, Any]:
        """The features of both sides."""
        return self.first, self.first if self.second is None else self.second

    def among(self, rows: IndexArray) -> "RowPairs":
        """Return the pairs of some rows with each other; both sides must be the same."""
        return RowPairs(self.first[rows])

    def between(self, rows: IndexArray, columns: IndexArray) -> "RowPairs":
        """Return the pairs of some rows of the first side with some of the second."""
        first, second = self.sides
        return RowPairs(first[rows], second[columns])
