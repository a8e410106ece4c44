"""A ledger of what is proven about the leave-one-out values of some rows."""

from dataclasses import dataclass

import numpy as np

from span_hpo.runtime import BoolArray, FloatArray, IndexArray, rows_of


@dataclass(eq=False)
class Proofs:
    """Proofs about k rows, which the stages of leave-one-out enter in place.

    Attributes
    ----------
    margin
        Margin ``y_p f^p(x_p)`` of each row, or a bound that proves its sign, shape (k,).
    exact
        Mask of the rows whose margin is the exact value and not a bound, shape (k,).
    proven
        Mask of the rows for which the sign of the margin is proven, shape (k,). For all other rows
        the margin is meaningless.
    """

    margin: FloatArray
    exact: BoolArray
    proven: BoolArray

    @classmethod
    def none(cls, count: int) -> "Proofs":
        """Return a ledger in which nothing is proven yet."""
        return cls(np.zeros(count), np.zeros(count, dtype=bool), np.zeros(count, dtype=bool))

    @property
    def open(self) -> IndexArray:
        """The positions of the rows that are not proven yet."""
        return rows_of(~self.proven)

    def put(self, positions: IndexArray, found: "Proofs") -> None:
        """Enter the proofs that were found for the rows at some positions."""
        self.margin[positions] = found.margin
        self.exact[positions] = found.exact
        self.proven[positions] = found.proven
