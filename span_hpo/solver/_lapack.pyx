"""Cholesky factors and triangular systems without Python's lock; see `lapack`."""

import numpy as np

from scipy.linalg.cython_lapack cimport dpotrf, dtrtri, dtrtrs


def cholesky(H):
    """Return L of ``H = L L'`` in Fortran order, or None if H is not positive definite."""
    factor = np.array(H, dtype=float, order="F")
    cdef double[::1, :] L = factor
    cdef int n = L.shape[0], info = 0
    cdef char lower = b"L"
    cdef Py_ssize_t i, j
    if n == 0:
        return factor
    with nogil:
        dpotrf(&lower, &n, &L[0, 0], &n, &info)
        if info == 0:
            for j in range(1, n):
                for i in range(j):
                    L[i, j] = 0.0
    return factor if info == 0 else None


def solve_triangular(L, B, *, bint transposed=False, bint overwrite=False):
    """Return ``L^-1 B`` or, if `transposed`, ``L'^-1 B``."""
    cdef const double[::1, :] factor = np.asfortranarray(L)
    if overwrite and B.flags.f_contiguous and B.flags.writeable:
        solution = B
    else:
        solution = np.array(B, dtype=float, order="F")
    cdef double[::1, :] X = solution if solution.ndim == 2 else solution[:, None]
    cdef int n = X.shape[0], m = X.shape[1], info = 0
    cdef char lower = b"L", trans = b"T" if transposed else b"N", unit = b"N"
    if n == 0 or m == 0:
        return solution
    with nogil:
        dtrtrs(&lower, &trans, &unit, &n, &m, <double*> &factor[0, 0], &n, &X[0, 0], &n, &info)
    return solution


def inverse_of_triangular(L):
    """Return the inverse of a lower factor L in Fortran order, shape (n, n)."""
    inverse = np.array(L, dtype=float, order="F")
    cdef double[::1, :] X = inverse
    cdef int n = X.shape[0], info = 0
    cdef char lower = b"L", unit = b"N"
    if n == 0:
        return inverse
    with nogil:
        dtrtri(&lower, &unit, &n, &X[0, 0], &n, &info)
    return inverse
