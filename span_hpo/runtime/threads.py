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

from span_hpo.runtime.checks import ArgumentError, whole

P = ParamSpec("P")
T = TypeVar("T")


def thread_count(name: str, n_jobs: Any) -> int:
    """Return a number of threads, where -1 stands for all cores that this process may use.

    Parameters
    ----------
    name
        Name of the argument, for messages.
    n_jobs
        Number of threads, or -1.

    Raises
    ------
    ArgumentError
        If the value is neither -1 nor a positive whole number.
    """
    try:
        number = whole(name, n_jobs, at_least=-1)
    except ArgumentError:
        number = 0
    if number == 0:
        raise ArgumentError(
            name, f"must be a whole number of at least 1, or -1 for all cores, got {n_jobs!r}."
        )
    return usable_cores() if number == -1 else number


def usable_cores() -> int:
    """Return the number of cores that this process may use, which others may use too."""
    if hasattr(os, "sched_getaffinity"):  # not on all systems
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def one_blas_thread(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function to run with one BLAS thread and then restore the user's setting.

    The setting belongs to the process. If several threads are in such functions, the first one to
    enter changes the setting, and the last one to leave restores it.
    """

    @functools.wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        with OneBlasThread():
            return function(*args, **kwargs)

    return limited


class OneBlasThread:
    """A block that runs with one BLAS thread, so that decorated functions in it change nothing."""

    def __enter__(self) -> None:
        _stays.enter()

    def __exit__(self, *error: object) -> None:
        _stays.leave()


class _Stays:
    """The number of threads inside decorated functions, and the limit that they share."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Start with no thread inside, as after a fork, and lift a limit that was inherited."""
        before = getattr(self, "_before", [])
        self._lock = threading.Lock()
        self._count = 0
        self._before: list[tuple[Any, int]] = []
        _set_threads(before)

    def enter(self) -> None:
        """Limit BLAS to one thread, if it is not limited yet."""
        with self._lock:
            if self._count == 0:
                before = [(library, library.num_threads) for library in blas_libraries()]
                self._before = [entry for entry in before if entry[1] != 1]
                _set_threads([(library, 1) for library, _ in self._before])
            self._count += 1

    def leave(self) -> None:
        """Restore the user's setting if no other thread is inside."""
        with self._lock:
            self._count -= 1
            if self._count == 0:
                _set_threads(self._before)
                self._before = []


def _set_threads(numbers: list[tuple[Any, int]]) -> None:
    """Set the number of threads of some libraries."""
    if numbers:
        _take_control()
        # A limiter of threadpoolctl does the same, but takes several times as long to set up.
        for library, number in numbers:
            library.set_num_threads(number)
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
def blas_libraries() -> list[Any]:
    """Return the BLAS libraries of this process, which take milliseconds to find at first."""
    found: list[Any] = threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers
    return found
