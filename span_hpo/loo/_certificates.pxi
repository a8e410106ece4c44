# Bounds of leave-one-out margins from the fit alone, row by row; see `certificates`.

from libc.math cimport INFINITY, NAN, fabs, sqrt
from libc.stdlib cimport free, malloc

from span_hpo.loo import certificates
from span_hpo.runtime import ROUNDING_UNIT as PYTHON_ROUNDING_UNIT
from span_hpo.runtime.loops cimport maximum, minimum
from span_hpo.solver import FEW_OPERATIONS as PYTHON_FEW_OPERATIONS
from span_hpo.solver import ROUNDED_UP as PYTHON_ROUNDED_UP

cdef double LEAST_ROOM_SHARE = certificates._LEAST_ROOM
cdef double ROUNDED_UP = PYTHON_ROUNDED_UP
cdef double ROUNDING_UNIT = PYTHON_ROUNDING_UNIT
cdef Py_ssize_t FEW_OPERATIONS = PYTHON_FEW_OPERATIONS

cdef enum:
    LANES = 4  # numbers that are compared at once


cdef struct Able:
    # The rows that can take over from a row of one class, with memory for one greedy bound
    Py_ssize_t n
    Py_ssize_t* rows
    double* room
    double* price
    double* roots
    double* diagonal
    double* K_aa
    double* K_pa
    double* mine
    double* squares
    double* keys
    double* weights
    Py_ssize_t* order
    double dearest
    double cheapest
    double widest


cdef bint prepare(Able* able, Py_ssize_t n) noexcept nogil:
    """Reserve memory for n rows that can take over, and return whether there is enough."""
    cdef Py_ssize_t room = (n + LANES - 1) // LANES * LANES
    able.rows = <Py_ssize_t*> malloc(2 * room * sizeof(Py_ssize_t))
    able.room = <double*> malloc((9 + room) * room * sizeof(double))
    if able.rows == NULL or able.room == NULL:
        return False
    able.order = able.rows + room
    able.price, able.roots = able.room + room, able.room + 2 * room
    able.K_pa, able.mine = able.room + 3 * room, able.room + 4 * room
    able.squares, able.keys = able.room + 5 * room, able.room + 6 * room
    able.weights, able.diagonal = able.room + 7 * room, able.room + 8 * room
    able.K_aa = able.room + 9 * room
    return True


cdef void release(Able* able) noexcept nogil:
    free(able.rows)
    free(able.room)


cdef void summarise(Able* able) noexcept nogil:
    """Enter what the bounds of all rows share."""
    cdef Py_ssize_t j
    able.cheapest, able.widest = INFINITY, 0.0
    for j in range(able.n):
        able.diagonal[j] = able.K_aa[j * able.n + j]
        able.roots[j] = sqrt(fabs(able.diagonal[j]))
        able.widest = maximum(able.widest, able.roots[j])
        able.cheapest = minimum(able.cheapest, able.price[j])


cdef double greedy_bound(
    Able* able, Py_ssize_t own, const double* K_pa, double K_pp, double alpha, double margin,
    double gap, double imbalance,
) noexcept nogil:
    """Return the lower bound for one row, which may be number `own` of the able rows."""
    cdef double mean = 0.0, total = 0.0, L, s, wanted
    cdef double square, size, of_prices = 0.0, inner, left, path, lost
    cdef Py_ssize_t i, j, k, used, n = able.n
    cdef const double* K_j
    for j in range(n):
        able.mine[j] = able.room[j]
        able.squares[j] = K_pp + able.diagonal[j] - 2 * K_pa[j]
    if own >= 0:
        able.mine[own] = 0.0
    for j in range(n):
        mean += able.squares[j]
        total += able.mine[j]
    wanted = sqrt(2 * gap / (mean / n))
    wanted = alpha + (wanted if wanted > alpha else alpha)
    L = minimum(wanted, total * (1 - LEAST_ROOM_SHARE))
    s = L - alpha
    left = imbalance + L * (n + FEW_OPERATIONS) * ROUNDING_UNIT
    # Without room beyond alpha_p there is no s > 0.
    if not (s > LEAST_ROOM_SHARE * alpha and left < LEAST_ROOM_SHARE / 2 * total):
        return -INFINITY
    used = fill(able, L)
    square, size = K_pp, sqrt(fabs(K_pp))
    for i in range(used):
        j = able.order[i]
        K_j = able.K_aa + j * n
        inner = -2 * K_pa[j]
        for k in range(used):
            inner += able.weights[k] * K_j[able.order[k]]
        square += able.weights[i] * inner
        size += able.weights[i] * able.roots[j]
        of_prices += able.weights[i] * able.price[j]
    square = maximum(square, 0.0) + (2 * n + FEW_OPERATIONS) * ROUNDING_UNIT * size * size
    path = L * sqrt(square) + left * able.widest
    lost = 0.5 * path * path + L * of_prices + left * able.dearest + gap
    return margin - lost / s * ROUNDED_UP


cdef Py_ssize_t fill(Able* able, double L) noexcept nogil:
    """Give weights to the rows that lower the bound least, in turn, and return how many get one.

    Only these rows are brought into order; of equal ones, the first comes first.
    """
    cdef double before = 0.0, capacity
    cdef double* keys = able.keys
    cdef Py_ssize_t i = 0, j, best, n = able.n
    for j in range(n):
        keys[j] = 0.5 * L * able.squares[j] + able.price[j]
    for j in range(n, (n + LANES - 1) // LANES * LANES):
        keys[j] = INFINITY
    while i < n and not before >= 1:
        best = first_least(keys, n)
        if best < 0:
            able.order[0], able.weights[0] = 0, NAN  # the order is not known: nothing is proven
            return 1
        keys[best] = INFINITY  # the row has its place
        capacity = able.mine[best] / L
        able.order[i] = best
        able.weights[i] = minimum(maximum(1 - before, 0.0), capacity)
        before += capacity
        i += 1
    return i


cdef inline Py_ssize_t first_least(const double* keys, Py_ssize_t n) noexcept nogil:
    """Return the place of the least key, or -1 if none is finite."""
    cdef double[LANES] least
    cdef double key
    cdef Py_ssize_t j, k
    for k in range(LANES):
        least[k] = INFINITY
    for j in range((n + LANES - 1) // LANES):
        for k in range(LANES):
            key = keys[LANES * j + k]
            least[k] = key if key < least[k] else least[k]
    for k in range(1, LANES):
        least[0] = least[k] if least[k] < least[0] else least[0]
    if least[0] < INFINITY:
        for j in range(n):
            if keys[j] == least[0]:
                return j
    return -1
