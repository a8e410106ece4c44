"""One BLAS thread while a fit is analysed.

The matrices are small: a second BLAS thread gains nothing, doubles the CPU time, and waits actively
for its turn on a busy machine, where a trial can then take twenty times as long. One thread also
gives the same number in every process.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
T = TypeVar("T")


def one_blas_thread(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function to run with one BLAS thread; the user's setting is restored after it."""

    @functools.wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        blas = _blas_controller()
        if all(library.num_threads == 1 for library in blas.lib_controllers):
            return function(*args, **kwargs)
        with blas.limit(limits=1):
            return function(*args, **kwargs)

    return limited


@functools.cache
def _blas_controller() -> ThreadpoolController:
    """Return the BLAS libraries of this process; they are found once, which takes milliseconds."""
    return ThreadpoolController().select(user_api="blas")
