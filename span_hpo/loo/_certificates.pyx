"""Lower bounds of leave-one-out margins from the fit alone; see `certificates`."""

from libc.string cimport memcpy

import numpy as np

include "_certificates.pxi"


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
    cdef double left = imbalance
    cdef Py_ssize_t p, n = among.shape[0], count = own.shape[0]
    cdef Able able
    bounds = np.empty(count)
    cdef double[::1] found = bounds
    if not prepare(&able, n):
        release(&able)
        raise MemoryError
    able.n, able.dearest = n, dearest
    with nogil:
        memcpy(able.room, &rooms[0], n * sizeof(double))
        memcpy(able.price, &prices[0], n * sizeof(double))
        memcpy(able.K_aa, &among[0, 0], n * n * sizeof(double))
        summarise(&able)
        for p in range(count):
            found[p] = greedy_bound(
                &able, own[p], &to_able[p, 0], diagonal[p], alphas[p], margins[p], gaps[p], left
            )
    release(&able)
    return bounds
