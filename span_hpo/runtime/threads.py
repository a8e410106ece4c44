"""Limit BLAS to one thread while a fit is analysed.

The matrices are small, so a second BLAS thread gains nothing and doubles the CPU time. On a busy
machine it waits actively for its turn, and a trial can then take twenty times as long. One thread
also gives the same numbers in every process.
"""

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import threadpoolctl

P = ParamSpec("P")
T = TypeVar("T")


def one_blas_thread(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function to run with one BLAS thread and then restore the user's setting.

    The setting belongs to the process. If several threads are in such functions, the first one to
    enter changes the setting, and the last one to leave restores it.
    """

    @functools.wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        entered = False
        try:
            entered = _stays.enter()
            return function(*args, **kwargs)
        finally:
            if entered:
                _stays.leave()

    return limited


class _Stays:
    """The number of threads inside decorated functions, and the limit that they share."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start with no thread inside, as after a fork, and lift a limit that was inherited."""
        limiter = getattr(self, "_limiter", None)
        self._lock = threading.Lock()
        self._count = 0
        self._limiter: Any = None
        if limiter is not None:
            _restore(limiter)

    def enter(self) -> bool:
        """Limit BLAS to one thread, and return whether `leave` has to undo that."""
        with self._lock:
            if self._count == 0:
                blas = _blas_controller()
                if all(library.num_threads == 1 for library in blas.lib_controllers):
                    return False
                _take_control()
                self._limiter = blas.limit(limits=1)
            self._count += 1
        return True

    def leave(self) -> None:
        """Restore the user's setting if no other thread is inside."""
        with self._lock:
            self._count -= 1
            if self._count == 0:
                _restore(self._limiter)
                self._limiter = None


def _restore(limiter: Any) -> None:
    _take_control()
    limiter.restore_original_limits()
    _take_control()  # leaves no thread in control, because another thread may be next


_stays = _Stays()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_stays.forget)


def _take_control() -> None:
    """Let this thread change the setting, which threadpoolctl 3.8 reserves for one thread."""
    controller = getattr(threadpoolctl, "OpenBLASController", None)
    clear = getattr(controller, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


@functools.cache
def _blas_controller() -> threadpoolctl.ThreadpoolController:
    """Return the BLAS libraries of this process, which take milliseconds to find."""
    return threadpoolctl.ThreadpoolController().select(user_api="blas")
