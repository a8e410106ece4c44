"""What is known about the leave-one-out values of some rows."""

from dataclasses import dataclass

import numpy as np

from span_hpo.runtime import BoolArray, FloatArray, IndexArray, rows_of


@dataclass(eq=False)
class Proofs:
    """A ledger of proofs, one entry for each of k rows; the stages fill it in place.

    Attributes
    ----------
    margin
        ``y_p f^p(x_p)`` or a bound that proves its sign, shape (k,).
    exact
        Mask of the rows whose margin is the value itself, shape (k,).
    proven
        Mask of the rows whose sign is proven, shape (k,). Elsewhere the margin means nothing.
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
        """The positions that are not proven."""
        return rows_of(~self.proven)

    def put(self, positions: IndexArray, found: "Proofs") -> None:
        """Enter what was found for some of the positions."""
        self.margin[positions] = found.margin
        self.exact[positions] = found.exact
        self.proven[positions] = found.proven
