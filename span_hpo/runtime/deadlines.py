"""End a long computation at a moment that its caller has set.

Loops that may take long call `check_time` once per round. The limit belongs to the thread that has
set it, and computations without a limit are not affected.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_limits = threading.local()


class OutOfTimeError(Exception):
    """A computation was given up because its time was over."""


@contextmanager
def time_limit(end: float | None) -> Iterator[None]:
    """Let computations of this thread end at a moment of `time.monotonic`, or never if it is None.

    Within another limit, the new limit holds until the block is left.
    """
    before = getattr(_limits, "end", None)
    _limits.end = end
    try:
        yield
    finally:
        _limits.end = before


def check_time() -> None:
    """Raise an `OutOfTimeError` if the time of this thread is over."""
    end = getattr(_limits, "end", None)
    if end is not None and time.monotonic() > end:
        raise OutOfTimeError("The time for this computation is over.")
