"""Pairwise steps on a kernel matrix; see `smo`."""

from libc.math cimport INFINITY

import numpy as np

from span_hpo.runtime.loops cimport cloned, largest


def _pair_steps(K, diagonal, flat, lower, upper, beta, v, double tol, Py_ssize_t steps):
    """Take at most `steps` steps in place, and return their number and the remaining gap."""
    cdef const double[:, :] matrix = K
    cdef Py_ssize_t n = v.shape[0], taken = 0
    if n == 0:
        return 0, -INFINITY
    cdef const double[::1] of_diagonal = np.ascontiguousarray(diagonal)
    cdef const double[::1] of_flat = np.ascontiguousarray(flat)
    cdef const double[::1] of_lower = np.ascontiguousarray(lower)
    cdef const double[::1] of_upper = np.ascontiguousarray(upper)
    cdef double[::1] of_beta = beta, of_v = v
    cdef double[:, ::1] scratch = np.empty((7, n))
    cdef double gap = 0.0
    with nogil:
        taken = take_steps(
            matrix, &of_diagonal[0], &of_flat[0], &of_lower[0], &of_upper[0],
            &of_beta[0], &of_v[0], n, tol, steps, &scratch[0, 0], &gap,
        )
    return taken, gap


cdef Py_ssize_t take_steps(
    const double[:, :] K,
    const double* diagonal,
    const double* flat,
    const double* lower,
    const double* upper,
    double* beta,
    double* v,
    Py_ssize_t n,
    double tol,
    Py_ssize_t steps,
    double* scratch,
    double* gap,
) noexcept nogil:
    """Take the steps, and return their number; `scratch` has room for 7 n numbers."""
    cdef double* bar_growth = scratch
    cdef double* bar_fall = scratch + n
    cdef double* growth = scratch + 2 * n
    cdef double* fall = scratch + 3 * n
    cdef double* gains = scratch + 4 * n
    cdef double* copies = scratch + 5 * n
    cdef const double* K_i
    cdef const double* K_j
    cdef double top, step, room_i, room_j, distance, least
    cdef Py_ssize_t taken = 0, i, j, t
    # Added to v, these exclude the rows that may not grow, or may not fall, without a branch.
    for t in range(n):
        enter_bars(t, beta, lower, upper, bar_growth, bar_fall)
    while True:
        enter_slopes(v, bar_growth, bar_fall, growth, fall, n)
        top = largest(growth, n)
        gap[0] = top + largest(fall, n)
        if gap[0] <= tol or taken == steps:
            return taken
        i = position(growth, n, top)
        K_i = row_of(K, i, copies)
        enter_gains(K_i, diagonal, flat, fall, top, diagonal[i], flat[i], gains, n)
        j = position(gains, n, largest(gains, n))
        room_i, room_j = upper[i] - beta[i], beta[j] - lower[j]
        distance, least = diagonal[i] + diagonal[j] - 2 * K_i[j], flat[i] + flat[j]
        step = (top - v[j]) / (least if least > distance else distance)
        step = room_i if room_i < step else step
        step = room_j if room_j < step else step
        if beta[i] + step == beta[i] and beta[j] - step == beta[j]:
            return taken
        beta[i] = upper[i] if step == room_i else beta[i] + step
        beta[j] = lower[j] if step == room_j else beta[j] - step
        enter_bars(i, beta, lower, upper, bar_growth, bar_fall)
        enter_bars(j, beta, lower, upper, bar_growth, bar_fall)
        K_j = row_of(K, j, copies + n)
        move(v, step, K_i, K_j, n)
        taken += 1


cdef inline void enter_bars(
    Py_ssize_t t,
    const double* beta,
    const double* lower,
    const double* upper,
    double* bar_growth,
    double* bar_fall,
) noexcept nogil:
    """Enter 0 for what a row may do, and an infinity for what it may not."""
    bar_growth[t] = 0.0 if beta[t] < upper[t] else -INFINITY
    bar_fall[t] = 0.0 if beta[t] > lower[t] else INFINITY


cdef const double* row_of(const double[:, :] K, Py_ssize_t i, double* copy) noexcept nogil:
    """Return a row of the matrix in one piece, which is a copy if it is not stored so."""
    cdef Py_ssize_t t
    if K.strides[1] == sizeof(double):
        return &K[i, 0]
    for t in range(K.shape[1]):
        copy[t] = K[i, t]
    return copy


cdef cloned enter_slopes(
    const double* v,
    const double* bar_growth,
    const double* bar_fall,
    double* growth,
    double* fall,
    Py_ssize_t n,
) noexcept nogil:
    """Enter how much each row gains by growing and by falling, or minus infinity if it may not."""
    cdef Py_ssize_t t
    for t in range(n):
        growth[t] = v[t] + bar_growth[t]
    for t in range(n):
        fall[t] = -v[t] - bar_fall[t]


cdef cloned enter_gains(
    const double* K_i,
    const double* diagonal,
    const double* flat,
    const double* fall,
    double top,
    double K_ii,
    double flat_i,
    double* gains,
    Py_ssize_t n,
) noexcept nogil:
    """Enter what a step of row i with each of the other rows gains."""
    cdef Py_ssize_t t
    cdef double difference, distance, least
    for t in range(n):
        difference = top + fall[t]
        difference = 0.0 if 0.0 > difference else difference
        distance = K_ii + diagonal[t] - 2 * K_i[t]
        least = flat_i + flat[t]
        distance = least if least > distance else distance
        gains[t] = difference * difference / distance


cdef cloned move(
    double* v, double step, const double* K_i, const double* K_j, Py_ssize_t n
) noexcept nogil:
    """Let the gradient follow a step of two rows."""
    cdef Py_ssize_t t
    for t in range(n):
        v[t] -= step * (K_i[t] - K_j[t])


cdef Py_ssize_t position(const double* x, Py_ssize_t n, double value) noexcept nogil:
    """Return the first position of a value that the array contains."""
    cdef Py_ssize_t place = 0
    while place < n - 1 and x[place] != value:
        place += 1
    return place
