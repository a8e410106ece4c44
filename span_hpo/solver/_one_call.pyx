"""A whole fit in one call: pairwise steps, active set, Cholesky factor and spans, without the GIL.

`span_hpo.solver.one_call` says what is computed. The steps are those of `span_hpo.solver.smo`,
`span_hpo.solver.active_set` and `span_hpo.solver.centred_gram`, where the formulas are stated.
Where a fit needs more than these steps, the call gives up, and the caller turns to those modules.

Matrices of the working set are symmetric or in Fortran order, with a leading dimension that is a
multiple of `LANES`, so that loops over their rows need no remainder.
"""

import numpy as np

from libc.math cimport INFINITY, NAN, fabs, isfinite
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from scipy.linalg.cython_blas cimport dsymv, dtrsm
from scipy.linalg.cython_lapack cimport dpotrf, dpotrs, dtrtri

from span_hpo.solver.rounding import (
    ALPHA_ROUNDING,
    AT_BOUND,
    INDEFINITE,
    MARGIN_NOISE,
    NOISE_FACTOR,
    SOLVED,
)


cdef extern from "Python.h":
    int PyErr_CheckSignals() noexcept  # sets an exception, which the caller raises, and returns -1


cdef extern from "one_call.h" nogil:
    void span_hpo_moved(
        Py_ssize_t n, double step, const double *K_i, const double *K_j, const double *bar_growth,
        const double *bar_fall, double *v, double *top, double *bottom)
    Py_ssize_t span_hpo_position(
        Py_ssize_t n, const double *v, const double *bar_growth, double top)
    Py_ssize_t span_hpo_partner(
        Py_ssize_t n, double top, double K_ii, double flat_i, const double *K_i,
        const double *diagonal, const double *flat, const double *bar_fall, const double *v,
        double *gains)
    void span_hpo_add_four(
        Py_ssize_t n, double a, const double *x, double b, const double *z, double c,
        const double *u, double d, const double *w, double *y)


cdef enum:
    LANES = 16
    AT_ONCE = 128  # bounded rows whose spans are computed at once
    FEW = 8  # up to this many rows outside the box are dropped faster one by one
    ROUNDS = 300  # rounds of the active set to give up after, most of them on a few rows
    PAIR_STEPS = 200  # steps in the box after which Newton's method is faster
    INTERIOR_STEPS = 50  # largest number of steps of the interior-point method
    LARGEST_COPY = 4096  # as in `smo`
    LEAST_PATIENCE = 100  # least and largest number of steps before rows are set aside
    MOST_PATIENCE = 200
    LONGEST_PATIENCE = 10000  # largest number of steps before the work is checked
    STEPS_WITHOUT_DRIFT = 1000  # as in `smo`

cdef enum Status:
    FITTED = 0
    NO_MEMORY = 1
    NOT_FINITE = 2
    SINGULAR = 3
    TOO_MANY_ROUNDS = 4
    NEGATIVE_SPAN = 5
    TOO_MUCH_WORK = 6
    INTERRUPTED = 7

cdef double FLAT = 1e-12  # as in `smo`
cdef double OPEN_SHARE = 0.75  # as in `smo`
cdef double PAIR_GAP = 1e-6  # as in `active_set`
cdef double START = 0.1  # distance from the bounds at which the interior-point method starts
cdef double SMALL_PRODUCT = 1e-15  # product of distance and multiplier at which it stops
cdef double SMALL_RESIDUAL = 1e-7  # residual, in units of the margin, at which it stops
cdef double NEARLY = 0.995  # share of the way to the boundary
cdef double FIRST_JITTER = 1e-14  # as in `centred_gram`
cdef double PIVOT_NOISE = 10 * 2.220446049250313e-16  # as in `centred_gram`
cdef double DEPENDENT = 1e-13  # as in `centred_gram`
cdef double WORK_OF_A_STEP = 4  # multiplications of a pairwise step, for each row
cdef double WORK_OF_LAPACK = 0.2  # time of a multiplication in a factorisation, in others
cdef double WORK_BETWEEN_CHECKS = 5e8  # about a tenth of a second, after which Ctrl-C is noticed
cdef double ALPHA_ROUNDING_ = ALPHA_ROUNDING
cdef double AT_BOUND_ = AT_BOUND
cdef double INDEFINITE_ = INDEFINITE
cdef double MARGIN_NOISE_ = MARGIN_NOISE
cdef double NOISE_FACTOR_ = NOISE_FACTOR
cdef double SOLVED_ = SOLVED


cdef struct Buffer:
    double *data
    Py_ssize_t size


cdef struct Pairs:
    # Rows that pairwise steps may move, and how their rows of the kernel matrix are found.
    Py_ssize_t n  # a multiple of LANES, unless the rows are those of the whole matrix
    const double *K
    Py_ssize_t stride
    Py_ssize_t *where  # rows of K, or NULL if they are 0, ..., n - 1
    Py_ssize_t *slot  # row of `copies` that holds a row of K, or -1
    double *copies
    Py_ssize_t n_copies
    double *v
    double *beta
    double *lower
    double *upper
    double *bar_growth
    double *bar_fall
    double *diagonal
    double *flat
    double *gains


cdef struct Gram:
    Py_ssize_t n
    Py_ssize_t stride
    double mean
    double scale
    double jitter
    double largest
    double *row_means
    double *L


cdef struct Fit:
    Py_ssize_t l
    const double *K
    const double *y
    const double *costs
    double *alpha
    double *F
    double *spans
    double *d
    double *wanted
    double *moved
    Py_ssize_t *W
    Py_ssize_t *bounded
    char *working
    double *vectors
    Py_ssize_t *indices
    char *flags
    Pairs pairs
    Pairs part
    Gram gram
    Buffer copies
    Buffer K_WW
    Buffer H
    Buffer columns
    double *inverse_diagonal
    Py_ssize_t steps
    int rounds
    bint is_only
    double work
    double most_work
    double next_check
    double noise
    double b
    double gap


cdef inline Py_ssize_t padded(Py_ssize_t n) noexcept nogil:
    return (n + LANES - 1) // LANES * LANES


cdef inline double work_of_factor(double n) noexcept nogil:
    return WORK_OF_LAPACK * n * n * n / 3


cdef Status allowed(Fit *fit) noexcept nogil:
    """Return FITTED if the fit may go on, or the reason to stop."""
    if fit.work > fit.most_work:
        return TOO_MUCH_WORK
    if fit.work > fit.next_check:
        fit.next_check = fit.work + WORK_BETWEEN_CHECKS
        with gil:
            if PyErr_CheckSignals():
                return INTERRUPTED
    return FITTED


cdef int raise_what_is_set() except -1:
    return -1


cdef int reserve(Buffer *buffer, Py_ssize_t size) noexcept nogil:
    """Make room for `size` numbers, whose values are lost, and return whether there is memory."""
    if size > buffer.size:
        free(buffer.data)
        buffer.data = <double *>malloc(size * sizeof(double))
        buffer.size = size if buffer.data != NULL else 0
    return buffer.data != NULL


cdef void lay_out(Pairs *pairs, double *vectors, Py_ssize_t room) noexcept nogil:
    """Divide memory for nine vectors."""
    pairs.v = vectors
    pairs.beta = vectors + room
    pairs.lower = vectors + 2 * room
    pairs.upper = vectors + 3 * room
    pairs.bar_growth = vectors + 4 * room
    pairs.bar_fall = vectors + 5 * room
    pairs.diagonal = vectors + 6 * room
    pairs.flat = vectors + 7 * room
    pairs.gains = vectors + 8 * room


include "_one_call_pairs.pxi"
include "_one_call_gram.pxi"
include "_one_call_interior.pxi"
include "_one_call_active_set.pxi"


cdef int prepare(Fit *fit, Py_ssize_t l) noexcept nogil:
    """Allocate everything that has one entry for each row; return whether there is memory."""
    cdef Py_ssize_t room = padded(l)
    memset(fit, 0, sizeof(Fit))
    fit.l = l
    fit.vectors = <double *>malloc(26 * room * sizeof(double))
    fit.indices = <Py_ssize_t *>malloc(4 * room * sizeof(Py_ssize_t))
    fit.flags = <char *>malloc(room)
    if fit.vectors == NULL or fit.indices == NULL or fit.flags == NULL:
        return False
    lay_out(&fit.pairs, fit.vectors, room)
    lay_out(&fit.part, fit.vectors + 9 * room, room)
    fit.alpha = fit.vectors + 18 * room
    fit.F = fit.vectors + 19 * room
    fit.spans = fit.vectors + 20 * room
    fit.d = fit.vectors + 21 * room
    fit.wanted = fit.vectors + 22 * room
    fit.moved = fit.vectors + 23 * room
    fit.gram.row_means = fit.vectors + 24 * room
    fit.inverse_diagonal = fit.vectors + 25 * room
    fit.W = fit.indices
    fit.bounded = fit.indices + room
    fit.part.where = fit.indices + 2 * room
    fit.part.slot = fit.indices + 3 * room
    fit.working = fit.flags
    return True


cdef void release(Fit *fit) noexcept nogil:
    free(fit.vectors)
    free(fit.indices)
    free(fit.flags)
    free(fit.copies.data)
    free(fit.K_WW.data)
    free(fit.H.data)
    free(fit.columns.data)


cdef Status run(Fit *fit, double tol, Py_ssize_t max_iter) noexcept nogil:
    cdef Status status = start(fit, tol, max_iter)
    cdef Py_ssize_t i, at_lower, at_upper, count = 0
    cdef double lower, upper, total = 0.0
    if status == FITTED:
        status = polish(fit)
    if status == FITTED:
        working_rows(fit)
        settle(fit)
        status = squared_spans(fit)
    if status == FITTED:
        limits(fit, &lower, &upper, &at_lower, &at_upper)
        fit.gap = lower - upper
        for i in range(fit.l):
            if is_inside(fit, i):
                total += fit.y[i] - fit.F[i]
                count += 1
        fit.b = total / count if count else (lower + upper) / 2
        fit.is_only = has_no_other(fit)
        if not isfinite(fit.b):
            status = NOT_FINITE
    return status


cdef bint has_no_other(Fit *fit) noexcept nogil:
    """Return whether no other dual variables are optimal, as in `optimal_face`."""
    cdef Py_ssize_t i, j
    cdef double total = 0.0, largest = 0.0, least = INFINITY, noise
    if fit.gram.n == 0 or fit.gram.jitter > 0:
        return False
    for j in range(fit.gram.n):
        least = min(least, fit.gram.L[j * fit.gram.stride + j])
    if least * least <= DEPENDENT * fit.gram.largest:
        return False
    for i in range(fit.l):
        total += fit.alpha[i]
        largest = max(largest, fabs(fit.K[i * fit.l + i]))
    noise = min(NOISE_FACTOR_ * MARGIN_NOISE_ * (1 + total * largest), SOLVED_)
    for i in range(fit.l):
        if is_inside(fit, i):
            if min(fit.alpha[i], fit.costs[i] - fit.alpha[i]) <= AT_BOUND_ * min(
                    fit.costs[i], total):
                return False
        elif fit.costs[i] > 0 and fabs(fit.y[i] - fit.F[i] - fit.b) <= noise:
            return False
    return True


cdef object copied(const double *values, Py_ssize_t n):
    array = np.empty(n)
    cdef double[::1] view = array
    if n:
        memcpy(&view[0], values, n * sizeof(double))
    return array


def parts_of_fit(K, y, costs, double tol, Py_ssize_t max_iter, alpha, F, double most_work):
    """Return the parts of a `OneCall`, or the number of the reason to give up."""
    cdef const double[:, ::1] matrix = K
    cdef const double[::1] labels = y, limits = costs
    cdef Py_ssize_t i, j, n, l = matrix.shape[0]
    cdef Fit fit
    cdef Status status = NO_MEMORY
    cdef bint begins_at_zero = alpha is None
    cdef const double[::1] alpha_view, F_view
    cdef double[::1, :] L_view
    if matrix.shape[1] != l or labels.shape[0] != l or limits.shape[0] != l or l == 0:
        raise ValueError("`K`, `y` and `costs` must agree in the number of rows.")
    if alpha is not None:
        alpha_view, F_view = alpha, F
        if alpha_view.shape[0] != l or F_view.shape[0] != l:
            raise ValueError("`K` and the start must agree in the number of rows.")
    with nogil:
        if prepare(&fit, l):
            fit.K = &matrix[0, 0]
            fit.y = &labels[0]
            fit.costs = &limits[0]
            fit.most_work = most_work
            fit.next_check = WORK_BETWEEN_CHECKS
            if begins_at_zero:
                memset(fit.alpha, 0, l * sizeof(double))
                memset(fit.F, 0, l * sizeof(double))
            else:
                memcpy(fit.alpha, &alpha_view[0], l * sizeof(double))
                memcpy(fit.F, &F_view[0], l * sizeof(double))
            status = run(&fit, tol, max_iter)
    try:
        if status == INTERRUPTED:
            raise_what_is_set()
        if status != FITTED:
            return <int>status
        n = fit.gram.n
        factor = None
        if n:
            L = np.zeros((n, n), order="F")
            L_view = L
            for j in range(n):
                memcpy(&L_view[j, j], fit.gram.L + j * fit.gram.stride + j,
                       (n - j) * sizeof(double))
            factor = (
                copied(fit.gram.row_means, n),
                fit.gram.mean,
                fit.gram.scale,
                L,
                fit.gram.jitter,
                fit.gram.largest,
                copied(fit.inverse_diagonal, n),
            )
        return (
            copied(fit.alpha, l),
            copied(fit.F, l),
            fit.b,
            fit.gap,
            copied(fit.spans, l),
            <bint>fit.is_only,
            factor,
            fit.steps,
            fit.rounds,
            fit.work,
        )
    finally:
        release(&fit)
