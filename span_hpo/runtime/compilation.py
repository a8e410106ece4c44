"""Compile functions of NumPy arrays with Numba if it is installed."""

import functools
import importlib.util
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


_interpreted = ContextVar("interpreted", default=False)


@contextmanager
def interpreted() -> Iterator[None]:
    """Run compiled functions as plain Python in this block, as if Numba were not installed."""
    token = _interpreted.set(True)
    try:
        yield
    finally:
        _interpreted.reset(token)


def compiled(
    *helpers: Callable[..., Any], fastmath: Collection[str] = ()
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorate a function of NumPy arrays to be compiled by Numba when it is first called.

    Without Numba, the function runs as plain Python and gives the same answers more slowly. Numba
    is imported at the first call, so that programs that never need it do not wait for the import.
    The machine code runs without the GIL and is kept on disk for the next process if a folder for
    it can be written. It is compiled again when the file of the function changes, but not when the
    file of a helper or of a constant changes: remove the folders ``__pycache__`` then.

    Parameters
    ----------
    helpers
        Plain functions that the decorated function calls.
    fastmath
        Assumptions about floating-point numbers that LLVM may make, such as "nnan", which means
        that there is no NaN.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @functools.cache
        def machine_code() -> Callable[P, T]:
            return _machine_code(function, helpers, set(fastmath))

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            if runs_machine_code():
                return machine_code()(*args, **kwargs)
            return function(*args, **kwargs)

        return call

    return decorate


@functools.cache
def has_numba() -> bool:
    """Return whether Numba is installed."""
    return importlib.util.find_spec("numba") is not None


def runs_machine_code() -> bool:
    """Return whether compiled functions run as machine code in the current context."""
    return has_numba() and not _interpreted.get()


def _machine_code(
    function: Callable[P, T], helpers: tuple[Callable[..., Any], ...], fastmath: set[str]
) -> Callable[P, T]:
    import numba
    from numba.extending import register_jitable

    for helper in helpers:
        register_jitable(helper)
    # As in NumPy, a division by zero gives an infinity and does not raise an exception.
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
    machine_code: Callable[P, T]
    try:
        machine_code = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # Numba finds no folder to which it can write its cache
        machine_code = numba.njit(**options)(function)
    return machine_code
