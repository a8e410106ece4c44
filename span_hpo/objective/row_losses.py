"""The row losses of evaluations, which an objective keeps for what is asked after a search."""

import threading
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from span_hpo.objective.evaluation import Evaluation
from span_hpo.runtime import Array, key_of
from span_hpo.space import Params

MOST_TRIALS = 300  # number of the best evaluations that are kept
_MOST_BYTES = 128e6  # memory for row losses, in which fewer evaluations are kept of many rows


@dataclass(frozen=True, eq=False)
class TrialRows:
    """The row losses of one evaluation on all rows, in compact form, and its place among others.

    Attributes
    ----------
    rank
        `Evaluation.rank`: the loss, the smooth error and the number of support vectors.
    losses
        Losses of the rows in each stratum of the first metric; see `RowLosses.compact`.
    smooth
        The same for the smooth error, which decides ties.
    """

    rank: tuple[float, float, float]
    losses: tuple[Array, ...]
    smooth: tuple[Array, ...]

    @property
    def size(self) -> int:
        """Memory of the row losses in bytes."""
        return sum(part.nbytes for part in (*self.losses, *self.smooth))


def rows_of_trial(evaluation: Evaluation) -> TrialRows:
    """Return the row losses of an evaluation.

    Raises
    ------
    ValueError
        If the loss is not a mean of row losses.
    """
    rows = evaluation.row_losses
    if rows is None:
        raise ValueError(
            f"`metric` must be a mean of losses of the rows, such as error or log_loss, got "
            f"{evaluation.metric.name}."
        )
    return TrialRows(evaluation.rank, rows.compact(), evaluation.smooth_losses.compact())


class KeptRows:
    """The row losses of the best evaluations, which threads share and pickles leave out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Hashable, TrialRows] = {}
        self._size = 0

    def __contains__(self, params: Params) -> bool:
        return self.get(params) is not None

    def get(self, params: Params) -> TrialRows | None:
        """Return the row losses of these hyperparameters, or None if they are not kept."""
        with self._lock:
            return self._kept.get(_key(params))

    def keep(self, evaluation: Evaluation) -> None:
        """Keep the row losses of an evaluation on all rows, unless many others are better."""
        if evaluation.row_losses is None:
            return
        key = _key(evaluation.params)
        with self._lock:
            if key in self._kept:
                return
        rows = rows_of_trial(evaluation)
        with self._lock:
            if key in self._kept:
                return
            self._kept[key] = rows
            self._size += rows.size
            while len(self._kept) > MOST_TRIALS or self._size > _MOST_BYTES:
                # Of equal ranks, the later ones are dropped, as in the order of trials.
                worst = max(reversed(self._kept), key=lambda key: self._kept[key].rank)
                self._size -= self._kept.pop(worst).size

    def __reduce__(self) -> tuple[Any, ...]:
        return KeptRows, ()


def _key(params: Params) -> Hashable:
    return key_of(dict(sorted(params.items())))
