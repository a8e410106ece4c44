"""Fits that stop as soon as their answer is proven, without Python's lock; see `stopping`."""

from libc.math cimport INFINITY, fabs, sqrt
from libc.stdlib cimport qsort

import numpy as np

from scipy.linalg.cython_blas cimport ddot, dgemv

from span_hpo.loo import stopping
from span_hpo.runtime import ROUNDING_UNIT as PYTHON_ROUNDING_UNIT
from span_hpo.runtime.loops cimport maximum, minimum
from span_hpo.solver import FEW_OPERATIONS as PYTHON_FEW_OPERATIONS

cdef Py_ssize_t CHECK_EVERY = stopping._CHECK_EVERY
cdef double LEAST_CURVATURE = stopping._LEAST_CURVATURE, ROUNDING_UNIT = PYTHON_ROUNDING_UNIT
cdef double FEW_OPERATIONS = PYTHON_FEW_OPERATIONS
cdef int ONE = 1
cdef double UNITY = 1.0, NOUGHT = 0.0


cdef struct End:
    # The offset at which a row reaches its margin
    double offset
    Py_ssize_t row


cdef struct Fit:
    # The arguments of `optimise_until_proven`, and room for numbers of each row
    Py_ssize_t n
    Py_ssize_t r
    const double* K
    const double* y
    const double* costs
    double* alpha
    double* F
    double* beta
    double* values
    double H
    const double* diagonal
    const double* curvature
    double* signed_alpha
    double* target
    double* gains
    End* ends


def optimise_until_proven(
    K,
    y,
    costs,
    Py_ssize_t r,
    alpha,
    F,
    bint watch,
    double tol,
    Py_ssize_t max_iter,
):
    """Raise the dual pair by pair, and H row by row if it is watched, in place."""
    cdef const double[:, ::1] matrix = np.ascontiguousarray(K)
    cdef const double[::1] labels = np.ascontiguousarray(y), of_costs = np.ascontiguousarray(costs)
    cdef const double[::1] diagonal = np.diag(K).copy()
    cdef const double[::1] curvature = np.maximum(
        np.diag(K) - 2 * K[r] + K[r, r], stopping._LEAST_CURVATURE
    )
    cdef double[::1] of_alpha = alpha, of_F = F
    cdef double[::1] beta = alpha.copy(), values = F.copy()
    cdef double[:, ::1] scratch = np.empty((3, len(y)))
    cdef char[::1] ends = np.empty(len(y) * sizeof(End), dtype=np.int8)
    cdef Fit fit
    cdef double b = 0.0
    cdef bint is_proven
    fit.n, fit.r, fit.H = len(y), r, 0.0
    fit.K, fit.y, fit.costs = &matrix[0, 0], &labels[0], &of_costs[0]
    fit.alpha, fit.F, fit.beta, fit.values = &of_alpha[0], &of_F[0], &beta[0], &values[0]
    fit.diagonal, fit.curvature = &diagonal[0], &curvature[0]
    fit.signed_alpha, fit.target, fit.gains = &scratch[0, 0], &scratch[1, 0], &scratch[2, 0]
    fit.ends = <End*> &ends[0]
    with nogil:
        is_proven = optimise(&fit, watch, tol, max_iter, &b)
    return bool(is_proven), b


cdef bint optimise(
    Fit* fit, bint watch, double tol, Py_ssize_t max_iter, double* b
) noexcept nogil:
    """Go on until the class of r is proven, or the fit is, or the iterations are used up."""
    cdef Py_ssize_t iteration
    if watch:
        enter_boundary_dual(fit, fit.F)
    for iteration in range(max_iter):
        if not take_step(fit, tol):
            break
        if not watch:
            continue
        raise_boundary_dual(fit)
        if iteration % CHECK_EVERY == 0 and is_below(fit, b):
            # Compare once more, without the rounding that the steps have accumulated.
            enter_product(fit, fit.alpha, fit.F)
            enter_product(fit, fit.beta, fit.target)
            enter_boundary_dual(fit, fit.target)
            if is_below(fit, b):
                return True
    b[0] = 0.0
    return False


cdef bint take_step(Fit* fit, double tol) noexcept nogil:
    """Move the pair that gains most, unless the limits of the offset agree within `tol`."""
    cdef const double* y = fit.y
    cdef double* alpha = fit.alpha
    cdef const double* K_i
    cdef const double* K_j
    cdef Py_ssize_t n = fit.n, i = 0, j = 0, t
    cdef double lower = -INFINITY, upper, gap, most = 0.0, bend, gain, best = -1.0
    cdef double gap_j = 0.0, bend_j = 1.0, room_i, room_j, step
    for t in range(n):
        if ((alpha[t] < fit.costs[t]) if y[t] > 0 else (alpha[t] > 0)) and y[t] - fit.F[t] > lower:
            i, lower = t, y[t] - fit.F[t]
    K_i = fit.K + i * n
    for t in range(n):
        upper = INFINITY
        if (alpha[t] > 0) if y[t] > 0 else (alpha[t] < fit.costs[t]):
            upper = y[t] - fit.F[t]
        gap = maximum(lower - upper, 0.0)
        most = maximum(most, gap)
        bend = maximum(fit.diagonal[i] + fit.diagonal[t] - 2 * K_i[t], LEAST_CURVATURE)
        gain = gap * gap / bend
        if gain > best:
            j, best, gap_j, bend_j = t, gain, gap, bend
    if most <= tol:
        return False
    K_j = fit.K + j * n
    room_i = fit.costs[i] - alpha[i] if y[i] > 0 else alpha[i]
    room_j = alpha[j] if y[j] > 0 else fit.costs[j] - alpha[j]
    step = gap_j / bend_j
    step = room_i if room_i < step else step
    step = room_j if room_j < step else step
    alpha[i] += y[i] * step
    alpha[j] -= y[j] * step
    # The bounds must be met exactly, or the pair would be chosen again.
    if step == room_i:
        alpha[i] = fit.costs[i] if y[i] > 0 else 0.0
    if step == room_j:
        alpha[j] = 0.0 if y[j] > 0 else fit.costs[j]
    for t in range(n):
        fit.F[t] += step * (K_i[t] - K_j[t])
    return True


cdef void raise_boundary_dual(Fit* fit) noexcept nogil:
    """Move the row that raises H most."""
    cdef const double* K_r = fit.K + fit.r * fit.n
    cdef const double* K_k
    cdef Py_ssize_t k = 0, t
    cdef double slope, target, change, gain, best = -INFINITY, step
    for t in range(fit.n):
        slope = 1 - fit.y[t] * fit.values[t]
        target = minimum(maximum(fit.beta[t] + slope / fit.curvature[t], 0.0), fit.costs[t])
        change = target - fit.beta[t]
        gain = change * slope - 0.5 * change * change * fit.curvature[t]
        fit.target[t], fit.gains[t] = target, gain
        if gain > best:
            k, best = t, gain
    fit.H += fit.gains[k]
    step = fit.y[k] * (fit.target[k] - fit.beta[k])
    fit.beta[k] = fit.target[k]
    K_k = fit.K + k * fit.n
    for t in range(fit.n):
        fit.values[t] += step * (K_k[t] - K_r[k] - K_r[t] + K_r[fit.r])


cdef bint is_below(Fit* fit, double* b) noexcept nogil:
    """Return whether the primal is below H in spite of rounding, and enter its best offset."""
    cdef double primal = least_primal(fit, b)
    # If the offset is free, F may equal F_0, and rounding must not decide.
    return primal < fit.H - rounding_of(fit, b[0])


cdef double least_primal(Fit* fit, double* b) noexcept nogil:
    """Return the primal at its best offset, and this offset, where the slope changes its sign."""
    cdef Py_ssize_t n = fit.n, t, place = 0
    cdef int size = n
    cdef double positive = 0.0, slope = 0.0, hinges = 0.0
    for t in range(n):
        fit.ends[t].offset, fit.ends[t].row = fit.y[t] - fit.F[t], t
        positive += fit.costs[t] if fit.y[t] > 0 else 0.0
        fit.signed_alpha[t] = 0.5 * (fit.y[t] * fit.alpha[t])
    qsort(fit.ends, n, sizeof(End), compare)
    while place < n - 1:  # rounding may leave the slope below 0 everywhere
        slope += fit.costs[fit.ends[place].row]
        if slope - positive >= 0.0:
            break
        place += 1
    b[0] = fit.ends[place].offset
    for t in range(n):
        hinges += fit.costs[t] * maximum(1 - fit.y[t] * (fit.F[t] + b[0]), 0.0)
    return ddot(&size, fit.signed_alpha, &ONE, fit.F, &ONE) + hinges


cdef int compare(const void* one, const void* other) noexcept nogil:
    """Order ends by their offsets, and equal ones by their rows."""
    cdef const End* a = <const End*> one
    cdef const End* b = <const End*> other
    if a.offset < b.offset:
        return -1
    if a.offset > b.offset:
        return 1
    return -1 if a.row < b.row else 1


cdef void enter_boundary_dual(Fit* fit, const double* F) noexcept nogil:
    """Enter ``k' (y beta)`` of every row and ``H(beta)``, given ``F = K (y beta)``."""
    cdef const double* K_r = fit.K + fit.r * fit.n
    cdef Py_ssize_t t
    cdef int size = fit.n
    cdef double total = 0.0, of_beta = 0.0
    for t in range(fit.n):
        total += fit.y[t] * fit.beta[t]
        of_beta += fit.beta[t]
        fit.signed_alpha[t] = 0.5 * (fit.y[t] * fit.beta[t])
    for t in range(fit.n):
        fit.values[t] = F[t] - K_r[t] * total - F[fit.r] + K_r[fit.r] * total
    fit.H = of_beta - ddot(&size, fit.signed_alpha, &ONE, fit.values, &ONE)


cdef void enter_product(Fit* fit, const double* alpha, double* product) noexcept nogil:
    """Enter ``K (y alpha)``."""
    cdef Py_ssize_t t
    cdef int size = fit.n
    cdef char transposed = b"T"
    for t in range(fit.n):
        fit.signed_alpha[t] = fit.y[t] * alpha[t]
    dgemv(
        &transposed, &size, &size, &UNITY, <double*> fit.K, &size, fit.signed_alpha, &ONE, &NOUGHT,
        product, &ONE,
    )


cdef double rounding_of(Fit* fit, double b) noexcept nogil:
    """Return a bound on the rounding errors of the primal and of H together."""
    cdef double unit = (fit.n + FEW_OPERATIONS) * ROUNDING_UNIT
    cdef double root_r = sqrt(fabs(fit.diagonal[fit.r]))
    cdef double root, of_F, hinge, alpha_roots = 0.0, beta_roots = 0.0, of_beta = 0.0, reach
    cdef double of_alpha = 0.0, of_costs = 0.0, dual = 0.0
    cdef Py_ssize_t t
    for t in range(fit.n):
        root = sqrt(fabs(fit.diagonal[t]))
        alpha_roots += fit.alpha[t] * root
        beta_roots += fit.beta[t] * root
        of_beta += fit.beta[t]
    reach = beta_roots + root_r * of_beta
    for t in range(fit.n):
        root = sqrt(fabs(fit.diagonal[t]))
        of_F = unit * root * alpha_roots
        hinge = 1 + fabs(fit.F[t]) + fabs(b)
        of_alpha += fit.alpha[t] * (of_F + unit * fabs(fit.F[t]))
        of_costs += fit.costs[t] * (of_F + FEW_OPERATIONS * ROUNDING_UNIT * hinge + unit * hinge)
        dual += fit.beta[t] * (unit + unit * (root + root_r) * reach + unit * fabs(fit.values[t]))
    return of_alpha + of_costs + dual
