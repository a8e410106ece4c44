"""Forecast the memory and the time of a search on many rows, each in one line."""

import logging
import math
import threading
import time
from collections.abc import Callable

from span_hpo.objective import SpanObjective

MANY_ROWS = 3000  # rows above which a search is forecast
_FIRST_TRIALS = 3  # trials after which the time is forecast
_logger = logging.getLogger(__name__)


class Forecast:
    """The lines about one search; without many rows there are none.

    Parameters
    ----------
    objective
        Objective that is minimised.
    n_trials
        Number of trials that this search will make; infinity if only the time is limited.
    timeout
        Seconds after which the search ends, or None.
    threads
        Number of threads that run trials.
    report
        Function that is called with each line; by default, the logger of this module gets it.
    """

    def __init__(
        self,
        objective: SpanObjective,
        *,
        n_trials: float,
        timeout: float | None,
        threads: int,
        report: Callable[[str], None] | None = None,
    ) -> None:
        self._objective, self._n_trials, self._threads = objective, n_trials, threads
        self._timeout = math.inf if timeout is None else timeout
        self._report = _logger.info if report is None else report
        self._lock = threading.Lock()
        self._done, self._start = 0, time.monotonic()

    def begin(self) -> None:
        """Report the memory that the search will take."""
        if self._is_wanted:
            self._start = time.monotonic()
            self._report(memory_line(self._objective, self._threads))

    def trial_done(self) -> None:
        """Report the time that is left, once some trials have been made."""
        with self._lock:
            self._done += 1
            done = self._done
        if self._is_wanted and done == max(_FIRST_TRIALS, self._threads) < self._n_trials:
            self._report(
                time_line(done, self._n_trials, time.monotonic() - self._start, self._timeout)
            )

    @property
    def _is_wanted(self) -> bool:
        return len(self._objective.data) > MANY_ROWS


def memory_line(objective: SpanObjective, threads: int) -> str:
    """Return a sentence about the memory that kernel matrices will take."""
    found, rows = objective.memory(threads), f"{len(objective.data):,} rows"
    if not found.is_held:
        return (
            f"The kernel matrices of {rows} would take {_size(found.matrices)}, more than the "
            f"`memory_limit` of {_size(found.limit)}. Fits therefore work on the features, which "
            "takes longer."
        )
    return (
        f"The kernel matrices of {rows} take {_size(found.matrices)} of memory, and trials with "
        f"many support vectors up to {_size(found.peak)} in all."
    )


def time_line(done: int, n_trials: float, seconds: float, timeout: float = math.inf) -> str:
    """Return a sentence about the time that a search will still take.

    Parameters
    ----------
    done
        Number of trials so far.
    n_trials
        Number of all trials, or infinity.
    seconds
        Time that the trials have taken.
    timeout
        Seconds after which the search ends in any case.
    """
    so_far = f"The first {done} trials have taken {_duration(seconds)}"
    by_trials = seconds / done * (n_trials - done)
    left = max(timeout - seconds, 0.0)
    if by_trials <= left:
        return f"{so_far}; the other {n_trials - done:.0f} will take about {_duration(by_trials)}."
    more = left / max(seconds, 1e-9) * done
    return f"{so_far}; about {more:.0f} more will be made in the {_duration(left)} that are left."


def _size(megabytes: float) -> str:
    return f"{megabytes / 1000:.1f} GB" if megabytes >= 1000 else f"{megabytes:.0f} MB"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 120 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
