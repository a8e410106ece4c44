"""Choose between kernels, which are compiled with the package, and their Python twins."""

import functools
import importlib
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_SHARED = "span_hpo.runtime._memoryviews"  # module that all kernels import
_interpreted = ContextVar(
    "interpreted", default=os.environ.get("SPAN_HPO_INTERPRETED", "0") not in ("", "0")
)


@contextmanager
def interpreted() -> Iterator[None]:
    """Run the Python twins of the kernels in this block, as if nothing were compiled.

    The environment variable ``SPAN_HPO_INTERPRETED=1`` does the same for a whole process.
    """
    token = _interpreted.set(True)
    try:
        yield
    finally:
        _interpreted.reset(token)


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate the Python twin of a kernel to call the kernel where it is compiled.

    The kernel of ``package/module.py`` stands in ``package/_module.pyx``. It has the same name and
    the same arguments, gives the same answers, and releases Python's lock. It is imported at the
    first call.
    """

    @functools.cache
    def kernel() -> Callable[P, T] | None:
        package, _, name = function.__module__.rpartition(".")
        module = extension(f"{package}._{name}")
        return None if module is None else getattr(module, function.__name__)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        machine_code = None if _interpreted.get() else kernel()
        return (machine_code or function)(*args, **kwargs)

    return call


def runs_machine_code() -> bool:
    """Return whether kernels run as machine code in the current context."""
    return not _interpreted.get() and extension("span_hpo.runtime._accurate") is not None


@functools.cache
def extension(name: str) -> ModuleType | None:
    """Return a compiled module, or None with a warning if it cannot be used."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if error.name not in (name, _SHARED):
            raise  # the module is there, but what it imports is not
        _warn_once(error)
    except TypeError as error:  # the module was compiled for other routines than SciPy has now
        _warn_once(error)
    return None


_warned: list[Exception] = []


def _warn_once(error: Exception) -> None:
    """Warn in one line that kernels are missing, once in a process."""
    if _warned:
        return
    _warned.append(error)
    message = (
        "span_hpo runs without its compiled core: the answers are the same, but take longer. "
        f"Install a C compiler, and then span-hpo once more. ({error})"
    )
    # The caller's line, which a plain warning would print as well, says nothing about the reason.
    warnings.warn_explicit(message, RuntimeWarning, "span_hpo", 1)
