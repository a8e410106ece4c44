"""End a long computation at a moment that its caller has set.

Loops that may take long call `check_time` once per round. The limit belongs to the thread that has
set it, and computations without a limit are not affected.
"""

import math
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_limits = threading.local()


class OutOfTimeError(Exception):
    """A computation was given up because its time was over."""


class Deadline:
    """A moment of `time.monotonic`, which may be brought forward while computations run.

    Parameters
    ----------
    end
        The moment; None is never.
    """

    def __init__(self, end: float | None = None) -> None:
        self.end = math.inf if end is None else end


@contextmanager
def time_limit(end: Deadline | float | None) -> Iterator[None]:
    """Let computations of this thread end at a moment of `time.monotonic`, or never if it is None.

    Within another limit, the new limit holds until the block is left.
    """
    before = getattr(_limits, "deadline", None)
    _limits.deadline = end if isinstance(end, Deadline) else Deadline(end)
    try:
        yield
    finally:
        _limits.deadline = before


def check_time() -> None:
    """Raise an `OutOfTimeError` if the time of this thread is over."""
    deadline = getattr(_limits, "deadline", None)
    if deadline is not None and time.monotonic() > deadline.end:
        raise OutOfTimeError("The time for this computation is over.")


@contextmanager
def over_at_ctrl_c(*deadlines: Deadline) -> Iterator[None]:
    """Bring deadlines forward to now if Ctrl-C interrupts the main thread.

    The main thread would otherwise wait until the computations of other threads have ended. Whether
    Ctrl-C interrupts is up to the handler that is installed when the block begins. In other threads
    than the main one, and if signals are handled outside of Python, nothing happens.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return

    def pressed(*arguments: Any) -> None:
        try:
            handler(*arguments)
        except KeyboardInterrupt:
            for deadline in deadlines:
                deadline.end = -math.inf
            raise

    signal.signal(signal.SIGINT, pressed)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
