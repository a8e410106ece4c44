"""Segments of dual paths, without Python's lock; see `segments`."""

from libc.math cimport INFINITY, fabs
from libc.string cimport memcpy

import numpy as np

from scipy.linalg.cython_blas cimport dgemv
from scipy.linalg.cython_lapack cimport dgesv

from span_hpo.loo.path import segments as twin
from span_hpo.runtime.loops cimport cloned, largest
from span_hpo.solver import ALPHA_ROUNDING as PYTHON_ALPHA_ROUNDING

cdef signed char ZERO = twin.ZERO, IN_BOUND = twin.IN_BOUND, BOUNDED = twin.BOUNDED
cdef signed char PARKED = twin.PARKED
cdef signed char ERROR = twin.ERROR, SUCCESS = twin.SUCCESS, END = twin.END
cdef signed char NEEDS_COLUMN = twin.NEEDS_COLUMN, LONG = twin.LONG, LOST = twin.LOST
cdef Py_ssize_t MOST_CHANGED = twin.MOST_CHANGED
cdef double STILL = twin._STILL, TOUCHING = twin._TOUCHING, NOTHING = twin._NOTHING
cdef double FINISHED = twin._FINISHED, NEGATIVE_SPAN = twin._NEGATIVE_SPAN
cdef double SPAN_ROUNDING = twin._SPAN_ROUNDING, LEAST_BEYOND = twin._LEAST_BEYOND
cdef double CLEAR = twin._CLEAR, ALPHA_ROUNDING = PYTHON_ALPHA_ROUNDING

cdef int ONE = 1
cdef double UNITY = 1.0, NOUGHT = 0.0


def follow_paths(table, paths, todo, bint complete, Py_ssize_t most_segments):
    """Follow some of the paths until each of them has an outcome."""
    cdef const double[::1] y = table.y, costs = table.costs, alpha = table.alpha
    cdef const Py_ssize_t[::1] slot = table.slot
    cdef const double[:, ::1] columns = table.columns
    cdef const Py_ssize_t[::1] row = paths.row, watched = paths.watched
    cdef const double[:, ::1] own = paths.own
    cdef const double[::1] own_square = paths.own_square, whole = paths.whole
    cdef double[::1] remaining = paths.remaining, margin = paths.margin, beyond = paths.beyond
    cdef double[:, ::1] value = paths.value, lower = paths.lower, upper = paths.upper
    cdef double[:, ::1] direction = paths.direction
    cdef signed char[:, ::1] kind = paths.kind
    cdef signed char[::1] outcome = paths.outcome
    cdef Py_ssize_t[:, ::1] changed = paths.changed
    cdef Py_ssize_t[::1] n_changed = paths.n_changed, n_in_bound = paths.n_in_bound
    cdef Py_ssize_t[::1] n_segments = paths.segments, wanted = paths.wanted
    cdef const Py_ssize_t[:] chosen = todo
    cdef Py_ssize_t width = own.shape[1], most = MOST_CHANGED + 1, i, k
    cdef double[::1] numbers = np.empty((most + 2) * width + most * most + most)
    cdef Py_ssize_t[::1] positions = np.empty(most, dtype=np.intp)
    cdef int[::1] pivots = np.empty(most, dtype=np.intc)
    cdef Table base
    cdef Path path
    cdef Scratch scratch
    cdef double largest_alpha
    if chosen.shape[0] == 0:
        return
    base.n_base, base.width = table.n_base, columns.shape[1]
    base.y, base.costs, base.alpha, base.slot = &y[0], &costs[0], &alpha[0], &slot[0]
    base.columns = &columns[0, 0] if columns.shape[0] else NULL
    scratch.memory = &numbers[0]
    scratch.direction = scratch.memory + most * width
    scratch.rates = scratch.direction + width
    scratch.system = scratch.rates + width
    scratch.c = scratch.system + most * most
    scratch.pivots, scratch.rows = &pivots[0], &positions[0]
    with nogil:
        largest_alpha = largest(base.alpha, alpha.shape[0])
        for i in range(chosen.shape[0]):
            k = chosen[i]
            path.row, path.watched = row[k], watched[k]
            path.own, path.own_square, path.whole = &own[k, 0], own_square[k], whole[k]
            path.remaining, path.margin = &remaining[k], &margin[k]
            path.value, path.lower, path.upper = &value[k, 0], &lower[k, 0], &upper[k, 0]
            path.kind, path.changed = &kind[k, 0], &changed[k, 0]
            path.n_changed, path.n_in_bound = &n_changed[k], &n_in_bound[k]
            path.segments, path.wanted = &n_segments[k], &wanted[k]
            path.beyond, path.certificate = &beyond[k], &direction[k, 0]
            outcome[k] = follow(&base, &path, &scratch, largest_alpha, complete, most_segments)


cdef signed char follow(
    const Table* table,
    Path* path,
    Scratch* scratch,
    double largest_alpha,
    bint complete,
    Py_ssize_t most_segments,
) noexcept nogil:
    """Follow one path, and return its outcome."""
    cdef Py_ssize_t count = path.watched, m, t, first = 0, place
    cdef Py_ssize_t loaded = 0  # number of columns of D in the memory
    cdef Py_ssize_t* D = path.changed
    cdef double* memory = scratch.memory
    cdef double* direction = scratch.direction
    cdef double finished = FINISHED * path.whole + ALPHA_ROUNDING * largest_alpha
    cdef double fall, step, slope
    cdef bint sliding, at_end
    memcpy(memory, path.own, count * sizeof(double))
    if not complete and path.margin[0] <= -CLEAR:
        return ERROR  # also where the offset has slid before the path began
    while True:
        m = path.n_changed[0]
        while loaded < m:
            if table.slot[D[loaded]] < 0:
                path.wanted[0] = D[loaded]
                return NEEDS_COLUMN
            loaded += 1
            memcpy(
                memory + loaded * count,
                table.columns + table.slot[D[loaded - 1]] * table.width,
                count * sizeof(double),
            )
        sliding = path.n_in_bound[0] == 0
        if sliding:
            # No row is in-bound: the offset moves towards -y_p, and alpha does not change.
            slope, fall = -table.y[path.row], 1.0
            for t in range(count):
                direction[t] = slope * table.y[t]
        else:
            if not enter_direction(table, path, scratch, &fall):
                return LOST
            if not complete and certify(table, path, scratch, fall):
                return SUCCESS
        step = first_event(path, scratch, TOUCHING * path.whole, &first)
        if sliding and step == INFINITY:
            return LOST
        at_end = not sliding and path.remaining[0] - step <= finished
        if at_end:
            step = path.remaining[0]
        if step > 0:
            move(path.value, step, direction, count)
            path.margin[0] -= step * fall
            if not sliding:
                path.remaining[0] -= step
        path.segments[0] += 1
        if at_end:
            return END
        place = change_kind(table, path, first, direction[first] > 0)
        if place < m:
            # The last column takes the place of the one that has left.
            if place + 1 < m:
                memcpy(
                    memory + (place + 1) * count, memory + m * count, count * sizeof(double)
                )
            loaded = m - 1
        if not complete and path.margin[0] <= -CLEAR:
            return ERROR
        if path.n_changed[0] == MOST_CHANGED or path.segments[0] >= most_segments:
            return LONG


cdef bint enter_direction(
    const Table* table, Path* path, Scratch* scratch, double* fall
) noexcept nogil:
    """Enter how the watched rows move and how fast the margin of p falls, if both are valid."""
    cdef Py_ssize_t p = path.row, m = path.n_changed[0], count = path.watched, i, j
    cdef bint in_base = p < table.n_base
    cdef double* c = scratch.c
    cdef Py_ssize_t* rows = scratch.rows
    cdef const double* block = scratch.memory
    # The system has the rows of D, preceded by p if p is in the base.
    cdef Py_ssize_t start = 0 if in_base else 1
    cdef int size = m + 1 - start, info = 0, height = count, n_columns = m + 1
    cdef char plain = b"N"
    cdef double total = 0.0, term
    rows[0] = p
    for i in range(m):
        rows[i + 1] = path.changed[i]
    rows += start
    c[0] = -1.0
    if size > 0:
        for i in range(size):
            for j in range(size):
                scratch.system[i * size + j] = block[(i + start) * count + rows[j]]
            if in_base:
                c[i] = -1.0 if i == 0 else 0.0
            else:
                c[i + 1] = block[rows[i]]
        dgesv(&size, &ONE, scratch.system, &size, scratch.pivots, c + start, &size, &info)
        if info != 0:
            return False
    dgemv(
        &plain, &height, &n_columns, &UNITY, <double*> block, &height, c, &ONE, &NOUGHT,
        scratch.direction, &ONE,
    )
    for i in range(size):
        scratch.direction[rows[i]] = c[i + start]
    if in_base:
        fall[0] = -c[0]
    else:
        # Row p of the tableau equals column p, with the opposite sign in the base rows.
        for i in range(size):
            term = c[i + 1] * block[rows[i]]
            total += -term if rows[i] < table.n_base else term
        fall[0] = path.own_square - total
    if not fall[0] >= NEGATIVE_SPAN:
        return False
    if fall[0] < 0.0:
        fall[0] = 0.0  # a value slightly below zero is rounding: p lies in the hull
    return True


cdef cloned enter_rates(
    const double* direction,
    const double* value,
    const double* lower,
    const double* upper,
    double still,
    double least_room,
    double* rates,
    Py_ssize_t n,
) noexcept nogil:
    """Enter how fast each row uses up its room; a row that stands still has no positive rate.

    The twin takes the larger of the rates towards both ends. Only the one ahead can be positive.
    """
    cdef Py_ssize_t t
    cdef double room_ahead, room_behind, room
    for t in range(n):
        room_ahead, room_behind = upper[t] - value[t], value[t] - lower[t]
        room = room_ahead if direction[t] > 0 else room_behind
        room = least_room if least_room > room else room
        rates[t] = (fabs(direction[t]) - still) / room


cdef cloned move(
    double* value, double step, const double* direction, Py_ssize_t n
) noexcept nogil:
    """Move the coordinates of the watched rows by a step."""
    cdef Py_ssize_t t
    for t in range(n):
        value[t] += step * direction[t]


cdef double first_event(
    const Path* path, Scratch* scratch, double touching, Py_ssize_t* first
) noexcept nogil:
    """Enter the row that first reaches the end of its interval, and return the step or infinity."""
    cdef const double* direction = scratch.direction
    cdef Py_ssize_t count = path.watched, t = 0
    cdef double fastest, room
    enter_rates(
        direction, path.value, path.lower, path.upper, STILL, touching, scratch.rates, count
    )
    fastest = largest(scratch.rates, count)
    if fastest <= 0:
        return INFINITY
    while t < count - 1 and scratch.rates[t] != fastest:
        t += 1
    first[0] = t
    if direction[t] > 0:
        room = path.upper[t] - path.value[t]
    else:
        room = path.value[t] - path.lower[t]
    return (0.0 if 0.0 > room else room) / fabs(direction[t])


cdef bint certify(const Table* table, Path* path, Scratch* scratch, double fall) noexcept nogil:
    """Try the success certificate whose lambda is the direction, as far as the box allows."""
    cdef const double* direction = scratch.direction
    cdef double margin = path.margin[0], remaining = path.remaining[0]
    cdef double fastest = 0.0, rate, room, L, beyond
    cdef Py_ssize_t n = table.n_base, i, j, t
    fall += SPAN_ROUNDING
    if margin - 2 * remaining * fall <= CLEAR:
        return False  # even the best choice, L = 2 alpha_p, proves nothing
    enter_rates(direction, path.value, path.lower, path.upper, STILL, NOTHING, scratch.rates, n)
    for t in range(n):
        rate = scratch.rates[t] if path.kind[t] == IN_BOUND else 0.0
        fastest = rate if rate > fastest else fastest
    for i in range(path.n_changed[0]):
        j = path.changed[i]
        if j >= n and path.kind[j] == IN_BOUND:
            if direction[j] > 0:
                room = path.upper[j] - path.value[j]
            else:
                room = path.value[j] - path.lower[j]
            rate = (fabs(direction[j]) - STILL) / (NOTHING if NOTHING > room else room)
            fastest = rate if rate > fastest else fastest
    rate = 2 * remaining * fastest
    L = 2 * remaining / (1.0 if 1.0 > rate else rate)
    beyond = L - remaining
    if beyond <= LEAST_BEYOND * remaining:
        return False
    if margin - 0.5 * L * L * fall / beyond <= CLEAR:
        return False
    path.beyond[0] = beyond
    for t in range(n):
        path.certificate[t] = direction[t] if path.kind[t] == IN_BOUND else 0.0 * direction[t]
    for i in range(path.n_changed[0]):
        j = path.changed[i]
        if j >= n and path.kind[j] == IN_BOUND:
            path.certificate[j] = direction[j]
    return True


cdef Py_ssize_t change_kind(
    const Table* table, Path* path, Py_ssize_t row, bint ahead
) noexcept nogil:
    """Change the kind of a row that has reached the end of its interval, and update D.

    The result is the place of the row in D, as in the twin.
    """
    cdef signed char kind = path.kind[row]
    cdef Py_ssize_t* D = path.changed
    cdef Py_ssize_t m = path.n_changed[0], place = 0
    path.value[row] = 0.0
    if kind == IN_BOUND:
        path.n_in_bound[0] -= 1
        path.kind[row] = BOUNDED if ahead else ZERO
        path.lower[row] = -INFINITY if ahead else 0.0
        path.upper[row] = 0.0 if ahead else INFINITY
    else:
        path.n_in_bound[0] += 1
        if kind == BOUNDED:
            path.value[row] = table.costs[row]
        elif kind == PARKED:
            path.value[row] = table.alpha[row]
        path.kind[row] = IN_BOUND
        path.lower[row], path.upper[row] = 0.0, table.costs[row]
    while place < m and D[place] != row:
        place += 1
    if place < m:
        D[place] = D[m - 1]
        path.n_changed[0] = m - 1
    else:
        D[m] = row
        path.n_changed[0] = m + 1
    return place
