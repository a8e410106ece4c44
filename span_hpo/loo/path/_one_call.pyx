"""Dual paths in one call: the tableau, the paths and the check of their stops, without the GIL.

`span_hpo.loo.path.one_call` says what is computed and bounds the rounding errors. Coordinates are
those of `span_hpo.loo.path.segments`, with kernel values divided by `unit` and dual variables
multiplied by it. Arrays of rows are in tableau order: base rows first, then the others, beginning
with those whose margin is most likely to become 1.
"""

from libc.math cimport INFINITY, NAN, exp2, fabs, isfinite, log2, round, sqrt
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy

import numpy as np

from scipy.linalg.cython_blas cimport daxpy, ddot, dgemm, dgemv, dtrsm, dtrsv

from span_hpo.loo import ends
from span_hpo.loo.path import check, one_call, segments, tableau
from span_hpo.loo.path._segments cimport Path, Scratch, Table, follow
from span_hpo.runtime import ROUNDING_UNIT as PYTHON_ROUNDING_UNIT
from span_hpo.runtime.loops cimport largest as largest_of
from span_hpo.solver import FEW_OPERATIONS as PYTHON_FEW_OPERATIONS
from span_hpo.solver import NEGLIGIBLE_GAP as PYTHON_NEGLIGIBLE_GAP
from span_hpo.solver import ROUNDED_UP as PYTHON_ROUNDED_UP
from span_hpo.solver.rounding import INDEFINITE as PYTHON_INDEFINITE

cdef signed char ZERO = segments.ZERO, IN_BOUND = segments.IN_BOUND, BOUNDED = segments.BOUNDED
cdef signed char PARKED = segments.PARKED, REMOVED = segments.REMOVED
cdef signed char ERROR = segments.ERROR, SUCCESS = segments.SUCCESS, END = segments.END
cdef signed char NEEDS_COLUMN = segments.NEEDS_COLUMN, LOST = segments.LOST
cdef Py_ssize_t MOST_CHANGED = segments.MOST_CHANGED, MOST_SEGMENTS = segments.MOST_SEGMENTS
cdef double LEAST_SQUARE = tableau._LEAST_SQUARE, NEAR = tableau._NEAR
cdef double ON_MARGIN = tableau._ON_MARGIN, HULL_CHANGES = tableau._HULL_CHANGES
cdef double SOLVED = check._SOLVED, IMBALANCE = check._IMBALANCE
cdef double SQUARE_ROUNDING = ends._SQUARE_ROUNDING, LEAST_ROOM = ends._LEAST_ROOM
cdef double RESIDUAL = one_call._RESIDUAL, WIDER = one_call._WIDER
cdef double SHARP = one_call._SHARP
cdef Py_ssize_t AT_ONCE = one_call._AT_ONCE
cdef double UNIT_ROUNDING = PYTHON_ROUNDING_UNIT, ROUNDED_UP = PYTHON_ROUNDED_UP
cdef double FEW = PYTHON_FEW_OPERATIONS, FEW_ROUNDINGS = check._FEW_ROUNDINGS
cdef double NEGLIGIBLE_GAP = PYTHON_NEGLIGIBLE_GAP, INDEFINITE = PYTHON_INDEFINITE

cdef int ONE = 1
cdef double UNITY = 1.0, NOUGHT = 0.0, MINUS = -1.0


cdef struct Base:
    # The tableau of a base set of n of `count` rows, whose columns have `width` entries.
    Py_ssize_t l, count, n, width
    const double* K  # of all l rows, in their own order
    const Py_ssize_t* rows  # indices of the rows in tableau order
    const double* y
    const double* costs
    const double* alpha
    const double* excess
    const double* rounding  # bounds on the rounding errors of `excess`
    const double* roots  # sqrt(K_jj)
    const double* sizes  # D_j of the error bounds
    const double* distances  # upper bounds of the distances from the centroid of the base
    const double* squares  # squared distances from the hull of the base in units of K
    const double* to_centroid  # mean kernel value with the base
    const double* L
    const double* Z  # L^-1 G_IO of the other rows, in tableau order
    const double* ones  # L^-1 1
    const double* K_h  # kernel values with the first base row, which fixes the offset
    double mean, unit, imbalance, least_eigenvalue, largest
    double reach  # B of the error bounds
    double R  # largest root in the base
    double largest_root  # of all rows
    double radius  # largest distance in the base
    bint is_definite  # no squared distance is negative by more than rounding
    # The columns that are known, stored one after the other, and their error sizes.
    double* columns
    double* spreads
    Py_ssize_t* slot
    Py_ssize_t filled, capacity, most_entries
    Py_ssize_t* twin  # base row of the same class with the same kernel values, or -1
    double* z  # room for AT_ONCE columns of n numbers


cdef struct State:
    # The state of a path, in tableau order; the arrays are those of the width of the tableau.
    double* alpha
    double* excess
    double* errors
    Py_ssize_t* moved  # rows whose columns make up the state
    double* by  # how far they have moved
    Py_ssize_t n_moved
    Py_ssize_t p
    double left  # alpha of the removed row
    double margin, margin_error
    double column_error  # error of decision values per unit of `sizes`
    double clipped  # sum of |alpha - alpha'| sqrt(K_jj) over rows that were moved into their box
    double level_error  # error of all decision values that does not depend on the row
    double imbalance, imbalance_of_change, spread
    double movement, level
    double gap


include "_one_call_tableau.pxi"
include "_one_call_check.pxi"
include "_one_call_sharp.pxi"
include "_one_call_outcomes.pxi"


cdef void enter_start(Tableau tableau, Path* path) noexcept nogil:
    """Enter the start of the path of its row."""
    cdef Base* base = &tableau.base
    cdef Py_ssize_t p = path.row, width = base.width
    path.remaining[0], path.margin[0] = path.whole, 1 + base.excess[p]
    memcpy(path.value, tableau.value, width * sizeof(double))
    memcpy(path.lower, tableau.lower, width * sizeof(double))
    memcpy(path.upper, tableau.upper, width * sizeof(double))
    memcpy(path.kind, tableau.kind, width)
    if p < width:
        path.lower[p], path.upper[p] = -INFINITY, INFINITY
        path.kind[p] = REMOVED
    path.n_changed[0] = path.segments[0] = 0
    path.n_in_bound[0] = base.n - (p < base.n)


cdef signed char follow_with_columns(
    Base* base, Table* table, Path* path, Scratch* scratch, double largest_alpha, bint complete
) noexcept nogil:
    """Follow a path, compute the columns that it needs, and return its outcome."""
    cdef signed char outcome
    while True:
        table.columns = base.columns
        path.own = base.columns + base.slot[path.row] * base.width
        outcome = follow(table, path, scratch, largest_alpha, complete, MOST_SEGMENTS)
        if outcome != NEEDS_COLUMN:
            return outcome
        if not add_columns(base, path.wanted, 1):
            return LOST


def followed(
    problem, K, state, base_rows, rows, bint complete, double largest, Py_ssize_t most_entries
):
    """Return the margins of rows, or bounds that prove their signs, and their accuracies."""
    margins, accuracies = np.full(len(rows), np.nan), np.full(len(rows), np.inf)
    cdef Tableau tableau = prepared(problem, K, state, base_rows, largest)
    if tableau is None:
        return margins, accuracies
    cdef Base* base = &tableau.base
    cdef Py_ssize_t most = MOST_CHANGED + 1, i, k, t, start, end, n_rows = len(rows)
    position = np.empty(base.l, dtype=np.intp)
    removed, watched = np.empty((2, n_rows), dtype=np.intp)
    cdef Py_ssize_t[::1] place = position, at = removed, counts = watched
    cdef const Py_ssize_t[::1] wanted_rows = rows
    for t in range(base.count):
        place[base.rows[t]] = t
    base.width, base.most_entries = base.n, most_entries
    for k in range(n_rows):
        at[k] = place[wanted_rows[k]]
        counts[k] = n_watched(tableau, at[k], complete, 1.0)
        base.width = max(base.width, n_watched(tableau, at[k], complete, WIDER))
    cdef Py_ssize_t width = base.width
    cdef double[::1] margin = margins, accuracy = accuracies
    cdef double[::1] numbers = np.empty((most + 9) * width + most * most + 2 * most)
    cdef double[::1] by = np.empty(width + 1)
    cdef Py_ssize_t[::1] positions = np.empty(2 * most + width + 1, dtype=np.intp)
    cdef int[::1] pivots = np.empty(most, dtype=np.intc)
    cdef signed char[::1] kinds = np.empty(width, dtype=np.int8)
    order_of_paths = np.argsort(removed, kind="stable")
    cdef const Py_ssize_t[::1] order = order_of_paths
    cdef Table table
    cdef Path path
    cdef Scratch scratch
    cdef State now
    cdef double largest_alpha, remaining, margin_now, beyond
    cdef Py_ssize_t n_changed, n_in_bound, n_segments, wanted
    cdef signed char outcome
    cdef int attempt
    table.n_base, table.width = base.n, width
    table.y, table.costs, table.alpha, table.slot = base.y, base.costs, base.alpha, base.slot
    scratch.memory = &numbers[0]
    scratch.direction = scratch.memory + most * width
    scratch.rates = scratch.direction + width
    path.value = scratch.rates + width
    path.lower = path.value + width
    path.upper = path.lower + width
    path.certificate = path.upper + width
    now.alpha = path.certificate + width
    now.excess = now.alpha + width
    now.errors = now.excess + width
    scratch.system = now.errors + width
    scratch.c = scratch.system + most * most
    scratch.pivots, scratch.rows = &pivots[0], &positions[0]
    path.changed, now.moved, now.by = &positions[most], &positions[2 * most], &by[0]
    path.kind = &kinds[0]
    path.remaining, path.margin, path.beyond = &remaining, &margin_now, &beyond
    path.n_changed, path.n_in_bound = &n_changed, &n_in_bound
    path.segments, path.wanted = &n_segments, &wanted
    with nogil:
        largest_alpha = largest_of(base.alpha, base.count)
        start = 0
        while start < n_rows:
            end = add_own_columns(base, &at[0], &order[0], start, n_rows)
            if end <= start:
                break  # there is no memory
            for i in range(start, end):
                k = order[i]
                path.row, path.watched = at[k], counts[k]
                path.own_square = base.squares[at[k]] / base.unit
                path.whole = base.alpha[at[k]]
                # A path that proves nothing is followed once more, with more rows and to its end.
                for attempt in range(2):
                    enter_start(tableau, &path)
                    outcome = follow_with_columns(
                        base, &table, &path, &scratch, largest_alpha, complete or attempt)
                    if outcome == ERROR or outcome == SUCCESS or outcome == END:
                        judge(base, &path, &scratch, &now, outcome, &margin[k], &accuracy[k])
                    if isfinite(margin[k]):
                        break
                    path.watched = width
            start = end
    return margins, accuracies
