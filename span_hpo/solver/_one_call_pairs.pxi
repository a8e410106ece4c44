# Pairwise steps, as in `smo`: from a start to the tolerance, or in the box of a working set.


cdef inline void set_bars(Pairs *pairs, Py_ssize_t t) noexcept nogil:
    pairs.bar_growth[t] = 0.0 if pairs.beta[t] < pairs.upper[t] else -INFINITY
    pairs.bar_fall[t] = 0.0 if pairs.beta[t] > pairs.lower[t] else INFINITY


cdef inline void enter(
    Pairs *pairs, Py_ssize_t t, double y, double cost, double alpha, double v, double K_tt
) noexcept nogil:
    """Enter a row."""
    pairs.lower[t] = 0.0 if y > 0 else -cost
    pairs.upper[t] = cost if y > 0 else 0.0
    pairs.beta[t] = y * alpha
    pairs.v[t] = v
    pairs.diagonal[t] = K_tt
    set_bars(pairs, t)


cdef void finish(Pairs *pairs, Py_ssize_t n) noexcept nogil:
    """Set the least squared distances of n rows, and fill up to a multiple of LANES."""
    cdef Py_ssize_t t
    cdef double largest = 0.0
    for t in range(n):
        if pairs.diagonal[t] > largest:
            largest = pairs.diagonal[t]
    if largest == 0.0:
        largest = 1.0
    for t in range(n):
        pairs.flat[t] = FLAT * (pairs.diagonal[t] if pairs.diagonal[t] > 0 else largest)
    for t in range(n, pairs.n):
        pairs.v[t] = pairs.beta[t] = pairs.lower[t] = pairs.upper[t] = 0.0
        pairs.diagonal[t] = 0.0
        pairs.flat[t] = FLAT * largest
        set_bars(pairs, t)


cdef inline const double *row_of(Pairs *pairs, Py_ssize_t t) noexcept nogil:
    """Return a row of the kernel matrix, of which a copy is made at its first use if needed."""
    cdef double *copy
    cdef const double *K_t
    cdef Py_ssize_t s
    if pairs.where == NULL:
        return pairs.K + t * pairs.stride
    if pairs.slot[t] < 0:
        copy = pairs.copies + pairs.n_copies * pairs.n
        K_t = pairs.K + pairs.where[t] * pairs.stride
        for s in range(pairs.n):
            copy[s] = K_t[pairs.where[s]]
        pairs.slot[t] = pairs.n_copies
        pairs.n_copies += 1
    return pairs.copies + pairs.slot[t] * pairs.n


cdef Py_ssize_t pair_steps(
    Pairs *pairs, double tol, Py_ssize_t steps, double *gap
) noexcept nogil:
    """Take at most `steps` steps in place, and return their number and the remaining gap.

    If fewer steps leave a gap above `tol`, rounding allows no further step.
    """
    cdef Py_ssize_t i, j, n = pairs.n, taken = 0
    cdef const double *K_i = row_of(pairs, 0)
    cdef const double *K_j
    cdef double top, bottom, step, room_i, room_j, distance, least
    cdef double *beta = pairs.beta
    span_hpo_moved(
        n, 0.0, K_i, K_i, pairs.bar_growth, pairs.bar_fall, pairs.v, &top, &bottom)
    while True:
        gap[0] = top - bottom
        if not gap[0] > tol or taken == steps:
            return taken
        i = span_hpo_position(n, pairs.v, pairs.bar_growth, top)
        K_i = row_of(pairs, i)
        j = span_hpo_partner(
            n, top, pairs.diagonal[i], pairs.flat[i], K_i, pairs.diagonal, pairs.flat,
            pairs.bar_fall, pairs.v, pairs.gains)
        K_j = row_of(pairs, j)
        distance = pairs.diagonal[i] + pairs.diagonal[j] - 2 * K_i[j]
        least = pairs.flat[i] + pairs.flat[j]
        step = (top - pairs.v[j]) / (distance if distance > least else least)
        room_i = pairs.upper[i] - beta[i]
        room_j = beta[j] - pairs.lower[j]
        step = min(step, min(room_i, room_j))
        if beta[i] + step == beta[i] and beta[j] - step == beta[j]:
            return taken
        beta[i] = pairs.upper[i] if step == room_i else beta[i] + step
        beta[j] = pairs.lower[j] if step == room_j else beta[j] - step
        set_bars(pairs, i)
        set_bars(pairs, j)
        span_hpo_moved(
            n, step, K_i, K_j, pairs.bar_growth, pairs.bar_fall, pairs.v, &top, &bottom)
        taken += 1


cdef int set_aside(Pairs *part, Pairs *pairs, Py_ssize_t *scratch, Buffer *copies) noexcept nogil:
    """Keep only the rows that do not seem settled at a bound, if that is worth a copy.

    `part` may be `pairs`. The result is 1 if rows were set aside, 0 if not, and -1 without memory.
    """
    cdef Py_ssize_t t, s, kept = 0, n = pairs.n
    cdef double top = -INFINITY, bottom = INFINITY
    cdef bint may_grow, may_fall
    for t in range(n):
        if pairs.v[t] + pairs.bar_growth[t] > top:
            top = pairs.v[t]
        if pairs.v[t] + pairs.bar_fall[t] < bottom:
            bottom = pairs.v[t]
    for t in range(n):
        may_grow = pairs.bar_growth[t] == 0
        may_fall = pairs.bar_fall[t] == 0
        if (not may_grow and (pairs.v[t] > top or not may_fall)) or (
            not may_fall and pairs.v[t] < bottom
        ):
            continue
        scratch[kept] = t
        kept += 1
    if kept == 0 or kept > OPEN_SHARE * n or kept > LARGEST_COPY:
        return 0
    for s in range(kept):
        t = scratch[s]
        part.v[s] = pairs.v[t]
        part.beta[s] = pairs.beta[t]
        part.lower[s] = pairs.lower[t]
        part.upper[s] = pairs.upper[t]
        part.diagonal[s] = pairs.diagonal[t]
        part.where[s] = t if pairs.where == NULL else pairs.where[t]
        set_bars(part, s)
    part.n = padded(kept)
    for s in range(kept, part.n):
        part.where[s] = part.where[0]
    finish(part, kept)
    for s in range(part.n):
        part.slot[s] = -1
    part.K = pairs.K
    part.stride = pairs.stride
    part.n_copies = 0
    if not reserve(copies, part.n * part.n):
        return -1
    part.copies = copies.data
    return 1


cdef void bring_back(Fit *fit) noexcept nogil:
    """Enter the rows that went on by themselves, and compute the gradient of all rows."""
    cdef Pairs *pairs = &fit.pairs
    cdef Py_ssize_t t, count = 0
    note(fit)
    for t in range(pairs.n):
        if fit.moved[t] != pairs.beta[t]:
            fit.W[count] = t
            fit.d[count] = pairs.beta[t] - fit.moved[t]
            count += 1
            pairs.beta[t] = fit.moved[t]
            set_bars(pairs, t)
    add_rows(pairs.K, pairs.stride, pairs.n, fit.W, fit.d, count, pairs.v)


cdef void note(Fit *fit) noexcept nogil:
    """Note in `moved` how far the rows that go on by themselves have come."""
    cdef Pairs *part = &fit.part
    cdef Py_ssize_t s
    for s in range(part.n):
        if part.lower[s] < part.upper[s]:  # not filled up
            fit.moved[part.where[s]] = part.beta[s]


cdef void add_rows(
    const double *K, Py_ssize_t stride, Py_ssize_t n, const Py_ssize_t *rows, const double *weights,
    Py_ssize_t count, double *sums
) noexcept nogil:
    """Add the weighted rows of K to the sums."""
    cdef Py_ssize_t k = 0
    while count - k >= 4:
        span_hpo_add_four(
            n, weights[k], K + rows[k] * stride, weights[k + 1], K + rows[k + 1] * stride,
            weights[k + 2], K + rows[k + 2] * stride, weights[k + 3], K + rows[k + 3] * stride,
            sums)
        k += 4
    while k < count:
        span_hpo_add_four(
            n, weights[k], K + rows[k] * stride, 0.0, K, 0.0, K, 0.0, K, sums)
        k += 1


cdef void sum_up(Fit *fit) noexcept nogil:
    """Compute `F` from the dual variables."""
    cdef Py_ssize_t i, count = 0
    for i in range(fit.l):
        fit.F[i] = 0.0
        if fit.alpha[i] != 0.0:
            fit.W[count] = i
            fit.d[count] = fit.y[i] * fit.alpha[i]
            count += 1
    add_rows(fit.K, fit.l, fit.l, fit.W, fit.d, count, fit.F)


cdef Status start(Fit *fit, double tol, Py_ssize_t max_iter) noexcept nogil:
    """Move from where the fit begins to a point within the tolerance: `alpha` and `F`."""
    cdef Py_ssize_t i, l = fit.l, left = max_iter, with_all = 0, at_once, now_many, taken
    cdef Pairs *pairs = &fit.pairs
    cdef Pairs *part = &fit.part
    cdef Pairs *now = pairs
    cdef double gap = 0.0
    cdef int outcome
    cdef Status status
    pairs.n = l
    pairs.K = fit.K
    pairs.stride = l
    pairs.where = NULL
    for i in range(l):
        enter(pairs, i, fit.y[i], fit.costs[i], fit.alpha[i], fit.y[i] - fit.F[i],
              fit.K[i * l + i])
    finish(pairs, l)
    at_once = min(max(l // 2, LEAST_PATIENCE), MOST_PATIENCE)
    while left > 0:
        status = allowed(fit)
        if status != FITTED:
            return status
        now_many = min(at_once, left)
        taken = pair_steps(now, tol, now_many, &gap)
        fit.work += WORK_OF_A_STEP * taken * now.n
        left -= taken
        if now == pairs:
            with_all += taken
        if not isfinite(gap):
            return NOT_FINITE
        if gap <= tol or taken < now_many:
            if now == pairs:
                break
            bring_back(fit)
            now = pairs
            # In case some rows were not settled, wait longer before the next time.
            at_once = min(2 * at_once, LONGEST_PATIENCE)
            continue
        if now == pairs:
            memcpy(fit.moved, pairs.beta, l * sizeof(double))
        else:
            note(fit)
        outcome = set_aside(part, now, fit.W, &fit.copies)
        if outcome < 0:
            return NO_MEMORY
        if outcome:
            now = part
    if now == part:
        bring_back(fit)
    fit.steps = max_iter - left
    for i in range(l):
        fit.alpha[i] = fabs(pairs.beta[i])
        fit.F[i] = fit.y[i] - pairs.v[i]
    # While rows are set aside, the gradient of all rows does not change, and thus does not drift.
    if with_all >= STEPS_WITHOUT_DRIFT:
        sum_up(fit)
    return FITTED
