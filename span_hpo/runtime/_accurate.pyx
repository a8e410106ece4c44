"""Sums of products beyond double precision, number by number; see `accurate`."""

import numpy as np

from span_hpo.runtime import accurate

cdef double SPLITTER = accurate._SPLITTER


def accurate_dots(A, x):
    """Return ``A @ x`` as if it were computed with twice the digits and rounded once."""
    cdef const double[:, ::1] matrix = np.ascontiguousarray(A)
    cdef const double[::1] vector = np.ascontiguousarray(x)
    cdef Py_ssize_t m = matrix.shape[0], n = matrix.shape[1], i
    result = np.zeros(m)
    if m == 0 or n == 0:
        return result
    cdef double[::1] high = np.empty(n), low = np.empty(n), dots = result
    with nogil:
        split(&vector[0], n, &high[0], &low[0])
        for i in range(m):
            dots[i] = accurate_dot(&matrix[i, 0], &vector[0], &high[0], &low[0], n)
    return result


cdef void split(const double* x, Py_ssize_t n, double* high, double* low) noexcept nogil:
    """Split doubles into two halves whose products are exact."""
    cdef Py_ssize_t j
    cdef double spread
    for j in range(n):
        spread = SPLITTER * x[j]
        high[j] = spread - (spread - x[j])
        low[j] = x[j] - high[j]


cdef double accurate_dot(
    const double* a, const double* x, const double* x_high, const double* x_low, Py_ssize_t n
) noexcept nogil:
    """Return the sum of the products of two vectors, the second of which is also given in halves."""
    cdef double total = 0.0, error = 0.0, product, spread, high, low, sums, virtual
    cdef Py_ssize_t j
    for j in range(n):
        product = a[j] * x[j]
        spread = SPLITTER * a[j]
        high = spread - (spread - a[j])
        low = a[j] - high
        error += high * x_high[j] - product + high * x_low[j] + low * x_high[j] + low * x_low[j]
        sums = total + product
        virtual = sums - total
        error += (total - (sums - virtual)) + (product - virtual)
        total = sums
    return total + error
