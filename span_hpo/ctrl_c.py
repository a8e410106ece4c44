"""End the command line by Ctrl-C with one line and exit code 130, from its first instruction on.

The package imports this module before any other, and importing it arms the process if it is the
command ``span-hpo`` or ``python -m span_hpo``. It imports only what Python itself needs to start.
"""

import os
import signal
import sys

TYPE_CHECKING = False  # as in `typing`, which takes time to import
if TYPE_CHECKING:
    from typing import Any, NoReturn

INTERRUPTED = 130  # exit code of a process that SIGINT has ended, as shells report it
_MODULE, _COMMAND = "span_hpo", "span-hpo"


def end_at_once(*_: "Any") -> "NoReturn":
    """Print one line and end the process, without any step that could raise another error."""
    os.write(2, f"{_COMMAND}: Interrupted.\n".encode())
    os._exit(INTERRUPTED)


def is_command() -> bool:
    """Return whether this process was started as the command line."""
    first = sys.argv[0] if sys.argv else ""
    if first == "-m":  # Python is still looking for the module
        given = sys.orig_argv
        return _MODULE in given[1:] and given[given.index(_MODULE) - 1] == "-m"
    name = os.path.basename(first).removesuffix(".exe").removesuffix("-script.py")
    in_package = os.path.basename(os.path.dirname(first)) == _MODULE
    return name == _COMMAND or (name == "__main__.py" and in_package)


def arm() -> None:
    """Let Ctrl-C end the process at once, unless signals are ignored or handled by others."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end_at_once)


def is_armed() -> bool:
    """Return whether Ctrl-C ends the process at once."""
    return signal.getsignal(signal.SIGINT) is end_at_once


def ignore() -> None:
    """Ignore Ctrl-C while an armed process ends, because everything is done."""
    if is_armed():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


class RaisedOnce:
    """Context in which the first Ctrl-C raises a `KeyboardInterrupt`.

    The second one ends the process at once, so that there is never an interrupt while another one
    is being handled.
    """

    def __enter__(self) -> None:
        self.before = signal.getsignal(signal.SIGINT)
        if self.before is not signal.SIG_IGN:  # as it is for a job in the background
            signal.signal(signal.SIGINT, self.pressed)

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self.before)

    def pressed(self, *_: object) -> None:
        """Raise the interrupt, and prepare for the next one."""
        signal.signal(signal.SIGINT, end_at_once)
        raise KeyboardInterrupt


def end_unraisable(unraisable: "Any") -> None:
    """End the process if an interrupt was raised where Python can only print it."""
    if unraisable.exc_type is KeyboardInterrupt:
        end_at_once()
    sys.__unraisablehook__(unraisable)


if is_command():
    arm()
