"""Compute Cholesky factors and solve triangular systems without holding Python's lock.

SciPy's own wrappers hold the lock, so that trials in threads would wait for each other. This module
calls the same LAPACK routines through the pointers that SciPy exports for Cython. For small
matrices, or if the pointers are not as expected, it falls back on the wrappers.
"""

import ctypes
import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.linalg import cython_lapack, lapack

from span_hpo.runtime import FloatArray

_SMALL = 100  # number of rows below which a call through a pointer costs more than the lock


def cholesky(H: FloatArray) -> FloatArray | None:
    """Return L of ``H = L L'`` in Fortran order, or None if H is not positive definite.

    Parameters
    ----------
    H
        Symmetric matrix, shape (n, n).
    """
    n = len(H)
    routine = None if n < _SMALL else lapack_routine("dpotrf", "cidii")
    if routine is None:
        L, info = lapack.dpotrf(H, lower=1, clean=1)
        return L if info == 0 else None
    L = np.array(H, dtype=float, order="F")
    info = routine(b"L", n, L, n)
    return np.triu(L.T).T if info == 0 else None  # in Fortran order, unlike np.tril(L)


def solve_triangular(
    L: FloatArray, B: FloatArray, *, transposed: bool = False, overwrite: bool = False
) -> FloatArray:
    """Return ``L^-1 B`` or, if `transposed`, ``L'^-1 B``.

    Parameters
    ----------
    L
        Lower factor, shape (n, n), Fortran order.
    B
        Right-hand sides, shape (n, m) or (n,).
    transposed
        Solve with ``L'`` in place of ``L``.
    overwrite
        Allow B to be overwritten if it is in Fortran order.
    """
    n = len(L)
    routine = None if n < _SMALL else lapack_routine("dtrtrs", "ccciididii")
    if routine is None or B.ndim == 1 or B.shape[1] == 0:
        X: FloatArray
        X, _ = lapack.dtrtrs(L, B, lower=1, trans=int(transposed), overwrite_b=int(overwrite))
        return X
    L = np.asfortranarray(L)
    X = B if overwrite and B.flags.f_contiguous else np.array(B, dtype=float, order="F")
    routine(b"L", b"T" if transposed else b"N", b"N", n, X.shape[1], L, n, X, n)
    return X


def inverse_of_triangular(L: FloatArray) -> FloatArray:
    """Return the inverse of a lower factor L in Fortran order, shape (n, n)."""
    n = len(L)
    routine = None if n < _SMALL else lapack_routine("dtrtri", "ccidii")
    if routine is None:
        inverse: FloatArray
        inverse, _ = lapack.dtrtri(L, lower=1)
        return inverse
    inverse = L.copy(order="F")
    routine(b"L", b"N", n, inverse, n)
    return inverse


@functools.cache
def lapack_routine(name: str, kinds: str) -> Callable[..., int] | None:
    """Return a LAPACK routine that releases the lock, or None if its arguments are unexpected.

    Parameters
    ----------
    name
        Name of the routine.
    kinds
        Types of its arguments, one letter each: "c" for a character, "i" for a whole number and
        "d" for doubles. The last argument is `info`, which the returned function computes.
    """
    capsule = getattr(cython_lapack, "__pyx_capi__", {}).get(name)
    if capsule is None:
        return None
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = api.PyCapsule_GetName(capsule)
    types = re.findall(rb"(char|int|lapack_d) \*", signature)
    if "".join({b"char": "c", b"int": "i", b"lapack_d": "d"}[kind] for kind in types) != kinds:
        return None
    # A function of this type releases the lock while it runs.
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(kinds))
    function = prototype(api.PyCapsule_GetPointer(capsule, signature))

    def call(*values: Any) -> int:
        info = ctypes.c_int(0)
        arguments = [
            value.ctypes.data
            if kind == "d"
            else ctypes.byref(ctypes.c_int(value))
            if kind == "i"
            else value
            for kind, value in zip(kinds, values, strict=False)
        ]
        function(*arguments, ctypes.byref(info))
        return info.value

    return call
