"""What a fit with in-bound rows proves at once, in one call; see `immediate`.

The formulas are stated in `ends` and `certificates`.
"""

import numpy as np

include "_certificates.pxi"

cdef Py_ssize_t CANDIDATES = certificates._CANDIDATES


cdef struct Fit:
    Py_ssize_t l
    const double* K
    const double* y
    const double* costs
    const double* alpha
    const double* values
    const double* excess
    const double* rounding
    const double* gaps
    double imbalance


cdef struct Ledger:
    # The arrays of `Proofs`
    double* margin
    double* accuracy
    unsigned char* solved
    unsigned char* proven


include "_ends.pxi"


def parts_of_proofs(
    K, y, costs, alpha, values, excess, rounding, gaps, double imbalance, bint optimal, bint others
):
    """Return the parts of `Proofs` and the number of values without a proof."""
    cdef const double[:, ::1] matrix = K
    cdef const double[::1] labels = y, limits = costs, duals = alpha, decisions = values
    cdef const double[::1] g = excess, noise = rounding, without = gaps
    cdef Py_ssize_t n_open = 0, l = labels.shape[0]
    cdef Fit fit
    cdef Ledger ledger
    cdef Able able
    cdef bint ready
    margin, accuracy = np.zeros(l), np.empty(l)
    solved, proven = np.zeros((2, l), dtype=np.uint8)
    cdef double[::1] margins = margin, accuracies = accuracy
    cdef unsigned char[::1] is_solved = solved, is_proven = proven
    fit.l, fit.K, fit.y, fit.costs = l, &matrix[0, 0], &labels[0], &limits[0]
    fit.alpha, fit.values, fit.excess = &duals[0], &decisions[0], &g[0]
    fit.rounding, fit.gaps, fit.imbalance = &noise[0], &without[0], imbalance
    ledger.margin, ledger.accuracy = &margins[0], &accuracies[0]
    ledger.solved, ledger.proven = &is_solved[0], &is_proven[0]
    with nogil:
        ready = prepare(&able, CANDIDATES)
        if ready:
            n_open = enter_values(&fit, optimal, &ledger)
            if others:
                enter_upper_bounds(&fit, &ledger)
                enter_lower_bounds(&fit, -1.0, &able, &ledger)
                enter_lower_bounds(&fit, 1.0, &able, &ledger)
        release(&able)
    if not ready:
        raise MemoryError
    return margin, accuracy, solved.view(bool), proven.view(bool), n_open


cdef Py_ssize_t enter_values(const Fit* fit, bint optimal, Ledger* ledger) noexcept nogil:
    """Enter values that are known and errors by definition; return how many are not proven."""
    cdef Py_ssize_t p, k, n_open = 0
    cdef Py_ssize_t[2] count, last
    cdef Holders holders
    cdef double margin, error
    count[0] = count[1] = 0
    select_holders(fit, &holders)
    for p in range(fit.l):
        ledger.accuracy[p] = INFINITY
        if fit.costs[p] > 0:
            k = fit.y[p] > 0
            count[k] += 1
            last[k] = p
        if fit.costs[p] == 0 or (optimal and fit.alpha[p] == 0):
            margin, error = fit.y[p] * fit.values[p], value_error(fit, &holders, p)
            ledger.margin[p], ledger.accuracy[p], ledger.solved[p] = margin, error, True
            ledger.proven[p] = margin > error or margin <= -error
            n_open += not ledger.proven[p]
    for k in range(2):
        if count[k] == 1:
            p = last[k]
            ledger.margin[p], ledger.accuracy[p] = -1.0, 0.0
            ledger.solved[p] = ledger.proven[p] = True
    return n_open


cdef void enter_upper_bounds(const Fit* fit, Ledger* ledger) noexcept nogil:
    """Enter the upper bounds that prove errors of rows whose value is not known."""
    cdef double of_balance = repair(fit), bound
    cdef Py_ssize_t p
    for p in range(fit.l):
        if ledger.solved[p] or not fit.alpha[p] > 0:
            continue
        bound = (fit.gaps[p] + of_balance) / fit.alpha[p]
        bound += fit.y[p] * fit.values[p] + fit.rounding[p]
        if bound < 0:
            ledger.margin[p], ledger.proven[p] = bound, True


cdef double repair(const Fit* fit) noexcept nogil:
    """Return how much the dual may fall when the dual variables are made to balance exactly."""
    cdef double left = fabs(fit.imbalance), best = INFINITY, second = INFINITY, room, price
    cdef Py_ssize_t i
    if left == 0:
        return 0.0
    for i in range(fit.l):
        if (fit.y[i] > 0) == (fit.imbalance > 0):
            room = fit.alpha[i]
        else:
            room = fit.costs[i] - fit.alpha[i]
        if room >= left:
            price = fabs(fit.excess[i]) + fit.rounding[i] + 0.5 * left * fit.K[i * fit.l + i]
            if price < best:
                best, second = price, best
            elif price < second:
                second = price
    return left * second


cdef void enter_lower_bounds(
    const Fit* fit, double label, Able* able, Ledger* ledger
) noexcept nogil:
    """Enter the lower bounds that prove the class of rows of one class that are still open."""
    cdef Py_ssize_t j, p, place
    cdef double margin, bound
    select_able(fit, label, able)
    if able.n == 0:
        return
    for p in range(fit.l):
        margin = fit.y[p] * fit.values[p] - fit.rounding[p]
        if fit.y[p] != label or ledger.solved[p] or ledger.proven[p]:
            continue
        # If no row has a negative price, the bound is at most the margin.
        if margin <= 0 and able.cheapest >= 0:
            continue
        place = -1
        for j in range(able.n):
            # Rows of able ones are read from one end to the other while p runs over all rows.
            able.K_pa[j] = fit.K[able.rows[j] * fit.l + p]
            if able.rows[j] == p:
                place = j
        bound = greedy_bound(
            able, place, able.K_pa, fit.K[p * fit.l + p], fit.alpha[p], margin, fit.gaps[p],
            fabs(fit.imbalance),
        )
        if bound > 0:
            ledger.margin[p], ledger.proven[p] = bound, True


cdef void select_able(const Fit* fit, double label, Able* able) noexcept nogil:
    """Select rows that can take over from rows of one class: those with margins closest to 1."""
    cdef Py_ssize_t i, j, k, n = 0
    cdef double room, size
    for i in range(fit.l):
        room = fit.costs[i] - fit.alpha[i] if fit.y[i] == label else fit.alpha[i]
        size = fabs(fit.excess[i])
        if room == 0 or (n == CANDIDATES and not size < able.keys[n - 1]):
            continue
        j = n if n < CANDIDATES else n - 1
        while j > 0 and able.keys[j - 1] > size:  # the first of equal rows stays first
            able.keys[j], able.rows[j] = able.keys[j - 1], able.rows[j - 1]
            able.room[j] = able.room[j - 1]
            j -= 1
        able.keys[j], able.rows[j], able.room[j] = size, i, room
        n = n + 1 if n < CANDIDATES else n
    able.n, able.dearest = n, 0.0
    for j in range(n):
        i = able.rows[j]
        able.price[j] = label * fit.y[i] * fit.excess[i] + fit.rounding[i]
        able.dearest = maximum(able.dearest, fabs(fit.excess[i]) + fit.rounding[i])
        for k in range(n):
            able.K_aa[j * n + k] = fit.K[i * fit.l + able.rows[k]]
    summarise(able)
