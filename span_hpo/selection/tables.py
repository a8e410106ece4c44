"""The row losses of many trials in compact form, and their means over weighted rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from span_hpo.metrics import Rows, unpacked
from span_hpo.runtime import Array, BoolArray, FloatArray, IndexArray
from span_hpo.selection.bootstrap import BLOCK


@dataclass(frozen=True, eq=False)
class LossTable:
    """The row losses of T trials.

    Attributes
    ----------
    trials
        For each trial, the compact losses of each stratum; see `RowLosses.compact`.
    strata
        The rows of each stratum.
    """

    trials: Sequence[tuple[Array, ...]]
    strata: tuple[Rows, ...]

    @property
    def is_error_rate(self) -> bool:
        """Whether the loss is a plain mean of errors."""
        return len(self.strata) == 1 and self.trials[0][0].dtype == np.uint8

    def of(self, chosen: IndexArray) -> "LossTable":
        """Return the table of some of the trials."""
        return replace(self, trials=[self.trials[number] for number in chosen.tolist()])

    def stratum_means(self, weights: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Return the weighted means of the losses of the rows of each stratum.

        Parameters
        ----------
        weights
            Weights of all rows in each of some samples, shape (b, n).

        Returns
        -------
        means
            Means, shape (S, b, T); 0 where a sample has no row of the stratum.
        has_rows
            Whether a sample has rows of a stratum, shape (S, b).
        """
        means = np.zeros((len(self.strata), len(weights), len(self.trials)))
        has_rows = np.zeros(means.shape[:2], dtype=bool)
        for stratum, rows in enumerate(self.strata):
            own = weights[:, rows]
            total = own.sum(axis=1, keepdims=True)
            has_rows[stratum] = total[:, 0] > 0
            for part, losses in self._blocks(stratum, own.shape[1]):
                means[stratum] += own[:, part] @ losses.T
            np.divide(means[stratum], total, out=means[stratum], where=total > 0)
        return means, has_rows

    def _blocks(self, stratum: int, n_rows: int) -> Iterator[tuple[slice, FloatArray]]:
        """Yield parts of a stratum with the losses of all trials there, shape (T, rows)."""
        compact = [trial[stratum] for trial in self.trials]
        step = 8 * max(1, BLOCK // (8 * len(compact)))  # whole bytes of bits
        for begin in range(0, n_rows, step):
            size = min(step, n_rows - begin)
            losses = np.empty((len(compact), size))
            for row, own in zip(losses, compact, strict=True):
                first = begin // 8 if own.dtype == np.uint8 else begin
                row[:] = unpacked(own[first:], size)
            yield slice(begin, begin + size), losses
