"""Bounds on the rounding errors of decision values in one call; see `margin_errors`."""

from libc.math cimport fabs, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memset
from scipy.linalg.cython_blas cimport dsymv

import numpy as np

from span_hpo.runtime import ROUNDING_UNIT
from span_hpo.runtime.loops cimport cloned
from span_hpo.runtime.sums cimport accurate_dot, exact_sum, split
from span_hpo.solver import gaps, margin_errors, rounding
from span_hpo.solver._gaps cimport enter_plain_gaps, row_gap

cdef double UNIT = ROUNDING_UNIT, NEGLIGIBLE_GAP = gaps.NEGLIGIBLE_GAP
cdef double FEW_SUPPORT = 0.5  # below this share of support vectors, adding rows beats dsymv
cdef double NEAR_MARGIN = margin_errors._NEAR_MARGIN
cdef double KERNEL_ULPS = rounding._KERNEL_ULPS, ROUNDED_UP = rounding.ROUNDED_UP
cdef Py_ssize_t FEW_OPERATIONS = rounding.FEW_OPERATIONS


cdef struct Fit:
    Py_ssize_t l
    const double* K
    const double* y
    const double* costs
    const double* alpha
    const double* values
    double b
    double largest


cdef struct Found:
    double* rounding
    double* gaps
    double imbalance
    double gap


def errors_in_memory(K, y, costs, alpha, values, double b, double largest):
    """Return the bounds for a matrix in memory, in C order, with its largest ``|K_ii|``."""
    cdef const double[:, ::1] matrix = K
    cdef const double[::1] labels = y, limits = costs, duals = alpha, decisions = values
    cdef Py_ssize_t l = labels.shape[0]
    cdef Fit fit
    cdef Found found
    cdef bint done
    errors, without = np.empty(l), np.empty(l)
    cdef double[::1] error_view = errors, gap_view = without
    fit.l, fit.b, fit.largest, fit.K = l, b, largest, &matrix[0, 0]
    fit.y, fit.costs, fit.alpha, fit.values = &labels[0], &limits[0], &duals[0], &decisions[0]
    found.rounding, found.gaps = &error_view[0], &gap_view[0]
    with nogil:
        done = enter_errors(&fit, &found)
    if not done:
        raise MemoryError
    return errors, found.imbalance, without, found.gap


cdef bint enter_errors(const Fit* fit, Found* found) noexcept nogil:
    """Enter the bounds, and return whether there was memory for that."""
    cdef Py_ssize_t i, n = 0, l = fit.l
    cdef double* memory = <double*> malloc(6 * l * sizeof(double))
    cdef Py_ssize_t* support = <Py_ssize_t*> malloc(l * sizeof(Py_ssize_t))
    cdef double* beta = memory
    cdef double* sizes = memory + l
    cdef double* excess = memory + 2 * l
    cdef double* free_memory = memory + 3 * l
    cdef double total = 0.0
    if memory == NULL or support == NULL:
        free(memory)
        free(support)
        return False
    for i in range(l):
        sizes[i] = sqrt(fabs(fit.K[i * l + i]))
        total += fit.alpha[i] * sizes[i]
        excess[i] = fit.y[i] * fit.values[i] - 1
        if fit.alpha[i] != 0:
            support[n] = i
            beta[n] = fit.y[i] * fit.alpha[i]
            n += 1
    for i in range(l):
        sizes[i] *= total
    multiply(fit, support, beta, n, free_memory, free_memory + l)
    if not plain_errors(fit, excess, n, sizes, free_memory + l, found) <= NEGLIGIBLE_GAP:
        measure(fit, excess, support, beta, n, sizes, free_memory, found.rounding)
    found.imbalance = exact_sum(beta, n)
    found.gap = enter_plain_gaps(
        excess, found.rounding, fit.alpha, fit.costs, l, ROUNDED_UP, free_memory, found.gaps
    )
    free(memory)
    free(support)
    return True


cdef double plain_errors(
    const Fit* fit, const double* excess, Py_ssize_t n, const double* sizes,
    const double* products, Found* found,
) noexcept nogil:
    """Enter bounds from a plain product; return the gap times the largest kernel value."""
    cdef Py_ssize_t i
    cdef double gap = 0.0
    for i in range(fit.l):
        found.rounding[i] = fabs(fit.values[i] - fit.b - products[i])
        found.rounding[i] += (n + FEW_OPERATIONS) * UNIT * sizes[i]
        found.rounding[i] += margin_rounding(fit, i)
        gap += row_gap(
            excess[i], found.rounding[i], fit.alpha[i], fit.costs[i] - fit.alpha[i]
        )
    return gap * fit.largest


cdef inline double margin_rounding(const Fit* fit, Py_ssize_t i) noexcept nogil:
    """Return a bound on the rounding errors of a few sums of the margin, the offset and 1."""
    return FEW_OPERATIONS * UNIT * (1 + fabs(fit.b) + fabs(fit.values[i]))


cdef void multiply(
    const Fit* fit, const Py_ssize_t* support, const double* beta, Py_ssize_t n, double* everywhere,
    double* products,
) noexcept nogil:
    """Enter ``K (y alpha)``, which is faster with few support vectors."""
    cdef int l = <int> fit.l, one = 1
    cdef double unit = 1.0, nothing = 0.0
    cdef Py_ssize_t k
    memset(products, 0, fit.l * sizeof(double))
    if n > FEW_SUPPORT * fit.l:
        memset(everywhere, 0, fit.l * sizeof(double))
        for k in range(n):
            everywhere[support[k]] = beta[k]
        dsymv(
            "U", &l, &unit, <double*> fit.K, &l, everywhere, &one, &nothing, products, &one
        )
        return
    for k in range(0, n - 3, 4):
        add_four_rows(
            fit.l, &beta[k], fit.K + support[k] * fit.l, fit.K + support[k + 1] * fit.l,
            fit.K + support[k + 2] * fit.l, fit.K + support[k + 3] * fit.l, products,
        )
    for k in range(n - n % 4, n):
        add_row(fit.l, beta[k], fit.K + support[k] * fit.l, products)


cdef cloned add_four_rows(
    Py_ssize_t l, const double* beta, const double* a, const double* b, const double* c,
    const double* d, double* products,
) noexcept nogil:
    cdef Py_ssize_t i
    cdef double of_a = beta[0], of_b = beta[1], of_c = beta[2], of_d = beta[3]
    for i in range(l):
        products[i] += (of_a * a[i] + of_b * b[i]) + (of_c * c[i] + of_d * d[i])


cdef cloned add_row(
    Py_ssize_t l, double beta, const double* row, double* products
) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(l):
        products[i] += beta * row[i]


cdef void measure(
    const Fit* fit, const double* excess, const Py_ssize_t* support, const double* beta, Py_ssize_t n,
    const double* sizes, double* memory, double* errors,
) noexcept nogil:
    """Enter bounds from accurate products for rows that are in-bound or close to their margin."""
    cdef double* row = memory
    cdef double* high = memory + fit.l
    cdef double* low = memory + 2 * fit.l
    cdef const double* K_i
    cdef Py_ssize_t i, k
    cdef double plain, product
    split(beta, n, high, low)
    for i in range(fit.l):
        plain = (n + FEW_OPERATIONS) * UNIT * sizes[i]
        if not 0 < fit.alpha[i] < fit.costs[i]:
            if not fabs(excess[i]) <= NEAR_MARGIN * plain:
                continue
        K_i = fit.K + i * fit.l
        for k in range(n):
            row[k] = K_i[support[k]]
        product = accurate_dot(n, row, beta, high, low)
        errors[i] = fabs(fit.values[i] - fit.b - product)
        errors[i] += (4 * n + FEW_OPERATIONS) * UNIT * plain + KERNEL_ULPS * UNIT * sizes[i]
        errors[i] += margin_rounding(fit, i)
