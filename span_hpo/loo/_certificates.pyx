"""Lower bounds of leave-one-out margins from the fit alone; see `certificates`."""

from libc.math cimport INFINITY, fabs, sqrt
from libc.stdlib cimport free, malloc

import numpy as np

from span_hpo.loo import certificates
from span_hpo.runtime.loops cimport maximum, minimum
from span_hpo.solver import FEW_OPERATIONS as PYTHON_FEW_OPERATIONS
from span_hpo.solver import ROUNDED_UP as PYTHON_ROUNDED_UP
from span_hpo.runtime import ROUNDING_UNIT as PYTHON_ROUNDING_UNIT

cdef double LEAST_ROOM = certificates._LEAST_ROOM
cdef double ROUNDED_UP = PYTHON_ROUNDED_UP
cdef double ROUNDING_UNIT = PYTHON_ROUNDING_UNIT
cdef Py_ssize_t FEW_OPERATIONS = PYTHON_FEW_OPERATIONS


def _greedy_bounds(places, K_pa, K_aa, K_pp, alpha, margin, gap, room, price, dearest, imbalance):
    """Return the lower bounds for rows of one class."""
    cdef const Py_ssize_t[::1] own = np.ascontiguousarray(places)
    cdef const double[:, ::1] to_able = np.ascontiguousarray(K_pa), among = K_aa
    cdef const double[::1] diagonal = np.ascontiguousarray(K_pp)
    cdef const double[::1] alphas = np.ascontiguousarray(alpha)
    cdef const double[::1] margins = np.ascontiguousarray(margin)
    cdef const double[::1] gaps = np.ascontiguousarray(gap)
    cdef const double[::1] rooms = np.ascontiguousarray(room)
    cdef const double[::1] prices = np.ascontiguousarray(price)
    cdef double dear = dearest, left = imbalance
    cdef Py_ssize_t p, n = among.shape[0], count = own.shape[0]
    bounds = np.empty(count)
    cdef double[::1] found = bounds
    cdef double* roots = <double*> malloc(5 * n * sizeof(double))
    cdef Py_ssize_t* order = <Py_ssize_t*> malloc(n * sizeof(Py_ssize_t))
    if roots == NULL or order == NULL:
        free(roots)
        free(order)
        raise MemoryError
    with nogil:
        for p in range(n):
            roots[p] = sqrt(fabs(among[p, p]))
        for p in range(count):
            found[p] = greedy_bound(
                own[p], &to_able[p, 0], &among[0, 0], diagonal[p], alphas[p], margins[p], gaps[p],
                &rooms[0], &prices[0], dear, left, n, roots, order,
            )
    free(roots)
    free(order)
    return bounds


cdef double greedy_bound(
    Py_ssize_t own, const double* K_pa, const double* K_aa, double K_pp, double alpha,
    double margin, double gap, const double* room, const double* price, double dearest,
    double imbalance, Py_ssize_t n, double* roots, Py_ssize_t* order,
) noexcept nogil:
    cdef double* squares = roots + n
    cdef double* keys = roots + 2 * n
    cdef double* weights = roots + 3 * n
    cdef double* mine = roots + 4 * n
    cdef double mean = 0.0, total = 0.0, widest = 0.0, L, s, key, before = 0.0, capacity, wanted
    cdef double square, size, of_prices = 0.0, inner, left, path, lost
    cdef Py_ssize_t i, j, k, used = 0
    for j in range(n):
        mine[j] = 0.0 if j == own else room[j]
        squares[j] = K_pp + K_aa[j * n + j] - 2 * K_pa[j]
        mean += squares[j]
        total += mine[j]
        widest = maximum(widest, roots[j])
    wanted = sqrt(2 * gap / (mean / n))
    wanted = alpha + (wanted if wanted > alpha else alpha)
    L = minimum(wanted, total * (1 - LEAST_ROOM))
    s = L - alpha
    for j in range(n):
        key = 0.5 * L * squares[j] + price[j]
        i = j
        # The fewest rows are out of place, so that insertion is fast; equal keys keep their order.
        while i > 0 and keys[order[i - 1]] > key:
            order[i] = order[i - 1]
            i -= 1
        order[i] = j
        keys[j] = key
    for i in range(n):
        j = order[i]
        capacity = mine[j] / L
        weights[i] = minimum(maximum(1 - before, 0.0), capacity)
        before += capacity
        if weights[i] != 0:
            used = i + 1
    square, size = K_pp, sqrt(fabs(K_pp))
    for i in range(used):
        j = order[i]
        inner = -2 * K_pa[j]
        for k in range(used):
            inner += weights[k] * K_aa[order[k] * n + j]
        square += weights[i] * inner
        size += weights[i] * roots[j]
        of_prices += weights[i] * price[j]
    square = maximum(square, 0.0) + (2 * n + FEW_OPERATIONS) * ROUNDING_UNIT * size * size
    left = imbalance + L * (n + FEW_OPERATIONS) * ROUNDING_UNIT
    path = L * sqrt(square) + left * widest
    lost = 0.5 * path * path + L * of_prices + left * dearest + gap
    # Without room beyond alpha_p there is no s > 0.
    if s > LEAST_ROOM * alpha and left < LEAST_ROOM / 2 * total:
        return margin - lost / s * ROUNDED_UP
    return -INFINITY
