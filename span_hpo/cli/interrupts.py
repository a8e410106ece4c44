"""Handle Ctrl-C during a search, which ends after the running trials, so that none is lost."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from span_hpo.ctrl_c import end_at_once


@contextmanager
def gentle_ctrl_c() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether Ctrl-C was pressed; only the second press interrupts.

    An interrupt in the middle of a trial would lose it, and may reach code that cannot pass it on.
    The third press ends the process at once.
    """
    presses = 0

    def pressed(*_: Any) -> None:
        nonlocal presses
        presses += 1
        if presses > 2:
            end_at_once()
        if presses > 1:
            raise KeyboardInterrupt

    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # true for a job in the background
    before = signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else pressed)
    try:
        yield lambda: presses > 0
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def noted_ctrl_c() -> Iterator[Callable[[], bool]]:
    """Yield a function that, after the block, returns whether Ctrl-C was pressed during it.

    It also counts if other code has handled the signal.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    pressed = False

    def was_pressed() -> bool:
        return pressed

    try:
        yield was_pressed
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)
        with open(reader, "rb") as numbers:
            pressed = signal.SIGINT in numbers.read()
