"""One BLAS thread while a fit is analysed.

The matrices are small: a second BLAS thread gains nothing, doubles the CPU time, and waits actively
for its turn on a busy machine, where a trial can then take fifty times as long. One thread also
gives the same number in every process.
"""

import functools
import threading
from contextlib import ContextDecorator
from typing import Any, Literal

from threadpoolctl import ThreadpoolController


class _OneBlasThread(ContextDecorator):
    """A limit that holds while any thread is inside, and is lifted by the last that leaves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._limit = _blas_controller().limit(limits=1)

    def __exit__(self, *exception: object) -> Literal[False]:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()
        return False


@functools.cache
def _blas_controller() -> ThreadpoolController:
    """Return the BLAS libraries of this process; they are found once, which takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")


one_blas_thread = _OneBlasThread()
