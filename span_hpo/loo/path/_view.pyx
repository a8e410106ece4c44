"""What the coordinates of stopped paths say about their states; see `view`."""

from libc.math cimport INFINITY, fabs, sqrt

import numpy as np

from span_hpo.loo.path import segments, view
from span_hpo.runtime.loops cimport largest, maximum, minimum
from span_hpo.solver import ALPHA_ROUNDING as PYTHON_ALPHA_ROUNDING

cdef signed char ZERO = segments.ZERO, IN_BOUND = segments.IN_BOUND, BOUNDED = segments.BOUNDED
cdef signed char PARKED = segments.PARKED, END = segments.END
cdef double CLEARLY_INSIDE = view._CLEARLY_INSIDE, NEARLY_AT_BOUND = view._NEARLY_AT_BOUND
cdef double OUTSIDE = view._OUTSIDE, ALPHA_ROUNDING = PYTHON_ALPHA_ROUNDING


def _enter_stops(table, paths, some, start, stops):
    """Fill in the `stops` of some paths; `start` is ``g`` of the watched rows at the base."""
    cdef Py_ssize_t n = table.n_base, width = len(start), i, k, p
    cdef const double[::1] y = table.y, costs = table.costs, at_base = table.alpha
    cdef const double[::1] start_excess = np.ascontiguousarray(start)
    cdef const Py_ssize_t[::1] row = paths.row
    cdef const double[::1] remaining = paths.remaining, margin = paths.margin
    cdef const double[::1] start_margin = paths.start_margin
    cdef const double[:, ::1] value = paths.value
    cdef const signed char[:, ::1] kind = paths.kind
    cdef const signed char[::1] outcome = paths.outcome
    cdef const Py_ssize_t[:] chosen = some
    cdef double[:, ::1] stop_alpha = stops.alpha, moves = stops.moves
    cdef unsigned char[:, ::1] holders = stops.holders.view(np.uint8)
    cdef unsigned char[::1] offset_free = stops.offset_free.view(np.uint8)
    cdef unsigned char[::1] sound = stops.sound.view(np.uint8)
    cdef double largest_at_base, change_of_p
    cdef bint held, at_bounds, at_end
    if chosen.shape[0] == 0:
        return
    with nogil:
        largest_at_base = largest(&at_base[0], at_base.shape[0])
        for i in range(chosen.shape[0]):
            k = chosen[i]
            p, change_of_p = row[k], margin[k] - start_margin[k]
            enter_alpha(
                &kind[k, 0], &value[k, 0], &costs[0], &at_base[0], &stop_alpha[i, 0], width
            )
            if p < width:
                stop_alpha[i, p] = remaining[k]
            enter_moves(
                &kind[k, 0], &value[k, 0], &start_excess[0], &y[0], &at_base[0],
                &stop_alpha[i, 0], p, change_of_p, remaining[k], n, width, &moves[i, 0],
            )
            sound[i] = is_inside(
                &kind[k, 0], &stop_alpha[i, 0], &costs[0], width, OUTSIDE * largest_at_base
            )
            at_bounds = enter_holders(
                &kind[k, 0], &stop_alpha[i, 0], &costs[0], largest_at_base, width, &holders[i, 0],
                &held,
            )
            at_end = outcome[k] == END
            offset_free[i] = at_end and at_bounds and not held
            sound[i] = sound[i] and (held or at_bounds or not at_end)
            move_into_box(
                &kind[k, 0], &stop_alpha[i, 0], &costs[0], at_bounds and not held, width
            )
            if p < width:
                stop_alpha[i, p] = 0.0


cdef void enter_alpha(
    const signed char* kind,
    const double* value,
    const double* costs,
    const double* at_base,
    double* alpha,
    Py_ssize_t width,
) noexcept nogil:
    """Enter the dual variables of the watched rows but that of the removed row."""
    cdef Py_ssize_t t
    for t in range(width):
        if kind[t] == IN_BOUND:
            alpha[t] = value[t]
        elif kind[t] == BOUNDED:
            alpha[t] = costs[t]
        elif kind[t] == PARKED:
            alpha[t] = at_base[t]
        else:
            alpha[t] = 0.0


cdef void enter_moves(
    const signed char* kind,
    const double* value,
    const double* start,
    const double* y,
    const double* at_base,
    const double* alpha,
    Py_ssize_t p,
    double change_of_p,
    double remaining,
    Py_ssize_t n,
    Py_ssize_t width,
    double* moves,
) noexcept nogil:
    """Enter the movements of the weight vector and of the centroid of the n base rows."""
    cdef double square = 0.0, total = 0.0, change
    cdef Py_ssize_t t
    for t in range(width):
        if t == p:
            change = change_of_p
        elif kind[t] == PARKED:
            change = 0.0
        elif kind[t] == ZERO or kind[t] == BOUNDED:
            change = value[t] - start[t]
        else:
            change = -start[t]
        square += (alpha[t] - at_base[t]) * change
        if t < n:
            total += y[t] * change
    if p >= width:
        square += (remaining - at_base[p]) * change_of_p
    moves[0] = sqrt(0.0 if 0.0 > square else square)
    moves[1] = fabs(total) / n


cdef bint is_inside(
    const signed char* kind,
    const double* alpha,
    const double* costs,
    Py_ssize_t width,
    double allowed,
) noexcept nogil:
    """Return whether no in-bound row is farther outside its box than allowed."""
    cdef double outside = -INFINITY
    cdef Py_ssize_t t
    for t in range(width):
        if kind[t] == IN_BOUND:
            outside = maximum(outside, maximum(-alpha[t], alpha[t] - costs[t]))
        else:
            outside = maximum(outside, 0.0)
    return outside <= allowed


cdef bint enter_holders(
    const signed char* kind,
    const double* alpha,
    const double* costs,
    double largest_at_base,
    Py_ssize_t width,
    unsigned char* holders,
    bint* held,
) noexcept nogil:
    """Enter which rows hold the offset and if any does; return if all in-bound rows are at a bound.
    """
    cdef double largest_now = largest(alpha, width), room, size, size_now
    cdef bint at_bounds = True
    cdef Py_ssize_t t
    held[0] = False
    for t in range(width):
        holders[t] = False
        if kind[t] == IN_BOUND or kind[t] == PARKED:
            room = minimum(alpha[t], costs[t] - alpha[t])
            size = minimum(costs[t], largest_at_base)
            size_now = minimum(costs[t], largest_now)
            if room > maximum(CLEARLY_INSIDE * size, NEARLY_AT_BOUND * size_now):
                holders[t] = held[0] = True
            if fabs(room) > ALPHA_ROUNDING * size:
                at_bounds = False
    return at_bounds


cdef void move_into_box(
    const signed char* kind,
    double* alpha,
    const double* costs,
    bint to_bounds,
    Py_ssize_t width,
) noexcept nogil:
    """Move the dual variables into the box, and those of in-bound rows to a bound on request."""
    cdef Py_ssize_t t
    for t in range(width):
        alpha[t] = minimum(maximum(alpha[t], 0.0), costs[t])
        if to_bounds and kind[t] == IN_BOUND:
            alpha[t] = 0.0 if alpha[t] < costs[t] - alpha[t] else costs[t]
