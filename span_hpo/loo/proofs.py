"""A ledger of what is proven about the leave-one-out values of some rows."""

from dataclasses import dataclass, field

import numpy as np

from span_hpo.runtime import BoolArray, FloatArray, IndexArray, rows_of

ACCURATE = 1e-2  # largest proven error, in units of the margin, of a value that is called exact


@dataclass(eq=False)
class Proofs:
    """Proofs about k rows, which the stages of leave-one-out enter in place.

    Attributes
    ----------
    margin
        Margin ``y_p f^p(x_p)`` of each row, or a bound that proves its sign, shape (k,).
    accuracy
        Proven bound on the error of each margin, shape (k,): infinite for a margin that is only a
        bound, or about which nothing is proven.
    solved
        Mask of the rows whose margin comes from a solution without the row, and is not a bound,
        shape (k,).
    proven
        Mask of the rows for which the sign of the margin is proven, shape (k,). A margin of 0
        counts as negative.
    ends
        Dual variables close to the solution without a row, for positions of rows whose margin they
        do not prove.
    """

    margin: FloatArray
    accuracy: FloatArray
    solved: BoolArray
    proven: BoolArray
    ends: dict[int, FloatArray] = field(default_factory=dict)

    @classmethod
    def none(cls, count: int) -> "Proofs":
        """Return a ledger in which nothing is proven yet."""
        solved, proven = np.zeros((2, count), dtype=bool)
        return cls(np.zeros(count), np.full(count, np.inf), solved, proven)

    @classmethod
    def of_values(cls, margin: FloatArray, accuracy: FloatArray) -> "Proofs":
        """Return what is proven by values at solutions and bounds on their errors."""
        proven = (margin > accuracy) | (margin <= -accuracy)
        return cls(margin, accuracy, np.ones(len(margin), dtype=bool), proven)

    @property
    def open(self) -> IndexArray:
        """The positions of the rows that are not proven yet."""
        return rows_of(~self.proven)

    @property
    def lost(self) -> IndexArray:
        """The positions of the rows that are not proven, and whose end is not known either."""
        open_rows = self.open
        return open_rows[[int(row) not in self.ends for row in open_rows]]

    @property
    def exact(self) -> BoolArray:
        """Mask of the rows whose value is accurate enough to be called exact."""
        exact: BoolArray = self.accuracy <= ACCURATE
        return exact

    def improve(self, positions: IndexArray, found: "Proofs") -> None:
        """Enter what was found where it proves more, or as much with a better accuracy."""
        proven, accuracy = self.proven[positions], self.accuracy[positions]
        better = found.proven & ~proven
        better |= (found.proven | ~proven) & (found.accuracy < accuracy)
        self.put(positions[better], found.take(rows_of(better)))

    def take(self, positions: IndexArray) -> "Proofs":
        """Return the proofs of the rows at some positions, without their ends."""
        return Proofs(
            self.margin[positions],
            self.accuracy[positions],
            self.solved[positions],
            self.proven[positions],
        )

    def set_to_zero(self, rows: BoolArray) -> None:
        """Report the margins of some rows as 0, and add to their accuracy what this changes."""
        self.accuracy[rows] += np.abs(self.margin[rows])
        self.margin[rows] = 0.0

    def put(self, positions: IndexArray, found: "Proofs") -> None:
        """Enter what was found for the rows at some positions."""
        self.margin[positions] = found.margin
        self.accuracy[positions] = found.accuracy
        self.solved[positions] = found.solved
        self.proven[positions] = found.proven
        for k, alpha in found.ends.items():
            self.ends[int(positions[k])] = alpha
