"""How far a point of the dual may be from its maximum, row by row; see `gaps`.

Sums have twice the digits, so that a difference of two of them is still accurate.
"""

from libc.math cimport fabs, sqrt
from libc.stdlib cimport free, malloc

import numpy as np

from span_hpo.runtime.loops cimport maximum
from span_hpo.runtime.sums cimport accurate_sum
from span_hpo.solver import rounding as rounding_of_fits

cdef double ROUNDED_UP = rounding_of_fits.ROUNDED_UP


def plain_gaps(excess, rounding, alpha, costs):
    """Return the gaps without each row, and with all rows, without the curvature."""
    cdef const double[::1] g = excess, errors = rounding, duals = alpha, limits = costs
    cdef Py_ssize_t l = g.shape[0]
    without, gaps = np.empty((2, l))
    cdef double[::1] others = without, own = gaps
    cdef double total
    with nogil:
        total = enter_plain_gaps(
            &g[0], &errors[0], &duals[0], &limits[0], l, ROUNDED_UP, &own[0], &others[0]
        )
    return without, total


def largest_violation(excess, alpha, costs):
    """Return the largest violation of the KKT conditions."""
    cdef const double[::1] g = excess, duals = alpha, limits = costs
    cdef double worst = 0.0
    cdef Py_ssize_t i
    with nogil:
        for i in range(g.shape[0]):
            if duals[i] < limits[i]:
                worst = maximum(worst, -g[i])
            if duals[i] > 0:
                worst = maximum(worst, g[i])
    return worst


def curved_gaps(excess, rounding, alpha, costs, diagonal, double least_eigenvalue,
                double imbalance):
    """Return the gaps without each row, and with all rows, by the curvature of in-bound rows."""
    cdef const double[::1] g = excess, errors = rounding, duals = alpha, limits = costs
    cdef const double[:] squares = diagonal
    cdef Py_ssize_t i, n = 0, l = g.shape[0]
    without = np.empty(l)
    cdef double[::1] others = without
    cdef double centre, length, level = 0.0, common, total
    cdef double* own = <double*> malloc(3 * l * sizeof(double))
    cdef double* far = own + l
    cdef double* inside = own + 2 * l
    if own == NULL:
        raise MemoryError
    with nogil:
        for i in range(l):
            far[i] = sqrt(fabs(squares[i]))
            if 0 < duals[i] < limits[i]:
                inside[n] = fabs(g[i]) + errors[i]
                level = maximum(level, inside[n])
                inside[n] *= inside[n]
                own[n] = far[i]
                n += 1
        centre = accurate_sum(own, n) / n
        length = sqrt(accurate_sum(inside, n) / least_eigenvalue)
        for i in range(l):
            far[i] = length * (far[i] + centre) + level
            own[i] = 0.0
            if not 0 < duals[i] < limits[i]:
                own[i] = row_gap(g[i], errors[i] + far[i], duals[i], limits[i] - duals[i])
        common = 0.5 * length * length + imbalance * (length * centre + level)
        total = (accurate_sum(own, l) + common) * ROUNDED_UP
        enter_sums_of_others(own, l, &others[0])
        for i in range(l):
            others[i] = (others[i] + common + duals[i] * far[i]) * ROUNDED_UP
        free(own)
    return without, total
