"""Compute Cholesky factors and solve triangular systems without holding Python's lock.

SciPy's own wrappers hold the lock, so that trials in threads would wait for each other. Compiled
functions call the same LAPACK routines through SciPy's interface for Cython.
"""

from scipy.linalg import lapack

from span_hpo.runtime import FloatArray, compiled


@compiled
def cholesky(H: FloatArray) -> FloatArray | None:
    """Return L of ``H = L L'`` in Fortran order, or None if H is not positive definite.

    Parameters
    ----------
    H
        Symmetric matrix, shape (n, n).
    """
    L, info = lapack.dpotrf(H, lower=1, clean=1)
    return L if info == 0 else None


@compiled
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
    X: FloatArray
    X, _ = lapack.dtrtrs(L, B, lower=1, trans=int(transposed), overwrite_b=int(overwrite))
    return X


@compiled
def inverse_of_triangular(L: FloatArray) -> FloatArray:
    """Return the inverse of a lower factor L in Fortran order, shape (n, n)."""
    inverse: FloatArray
    inverse, _ = lapack.dtrtri(L, lower=1)
    return inverse
