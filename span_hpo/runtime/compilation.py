"""Choose between functions that were compiled with the package and their Python twins."""

import functools
import importlib
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from types import ModuleType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_SHARED = "span_hpo.runtime._memoryviews"  # module that all compiled ones import
_marked: set[str] = set()  # compiled modules whose twins have been imported
_interpreted = ContextVar(
    "interpreted", default=os.environ.get("SPAN_HPO_INTERPRETED", "0") not in ("", "0")
)


@contextmanager
def interpreted() -> Iterator[None]:
    """Run the Python twins of compiled functions in this block, as if nothing were compiled.

    The environment variable ``SPAN_HPO_INTERPRETED=1`` does the same for a whole process.
    """
    token = _interpreted.set(True)
    try:
        yield
    finally:
        _interpreted.reset(token)


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate the Python twin of a compiled function, which is called in its place.

    The compiled functions of ``package/module.py`` stand in ``package/_module.pyx``. They have the
    same names and arguments, give the same answers, and release Python's lock. They are imported by
    `load_compiled` or at the first call. If they were not built, the twin runs.
    """
    package, _, name = function.__module__.rpartition(".")
    of_module = f"{package}._{name}"
    _marked.add(of_module)

    @functools.cache
    def machine_code() -> Callable[P, T] | None:
        module = extension(of_module)
        return None if module is None else getattr(module, function.__name__)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        chosen = None if _interpreted.get() else machine_code()
        return (chosen or function)(*args, **kwargs)

    return call


def load_compiled() -> None:
    """Import the compiled modules, so that the first fit does not wait for them.

    Modules that cannot be imported are left to their first use, which says so.
    """
    if _interpreted.get():
        return
    for name in sorted(_marked):
        with suppress(ImportError, TypeError):
            importlib.import_module(name)


def runs_machine_code() -> bool:
    """Return whether compiled functions run as machine code in the current context."""
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
    """Warn in one line that the compiled core is missing, once in a process."""
    if _warned:
        return
    _warned.append(error)
    message = (
        "span_hpo runs without its compiled core, and takes longer. "
        f"Install a C compiler, and then span-hpo once more. ({error})"
    )
    # The caller's line, which a plain warning would print as well, says nothing about the reason.
    warnings.warn_explicit(message, RuntimeWarning, "span_hpo", 1)
