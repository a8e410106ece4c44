# The state of a path as a sum of columns, with bounds on all rounding errors.


cdef inline double declared(Base* base, const Path* path, Py_ssize_t t) noexcept nogil:
    """Return the dual variable of a row outside the base, or at a bound, where a path stands."""
    if path.kind[t] == IN_BOUND:
        return min(max(path.value[t], 0.0), base.costs[t])
    if path.kind[t] == PARKED:
        return base.alpha[t]
    return 0.0 if path.kind[t] == ZERO else base.costs[t]


cdef bint enter_moved(Base* base, const Path* path, bint at_end, State* now) noexcept nogil:
    """Enter which rows have moved, and how far, in the coordinates that are fixed at the base."""
    cdef Py_ssize_t t, m = 0, p = path.row, n = base.n
    cdef double by, alpha
    now.p = p
    now.left = 0.0 if at_end else path.remaining[0]
    for t in range(n):
        if t == p:
            by = path.margin[0] - (1 + base.excess[p])
        elif path.kind[t] == IN_BOUND:
            continue
        else:
            by = path.value[t]
        if by != 0:
            now.moved[m], now.by[m] = t, by
            m += 1
    for t in range(n, path.watched):
        if t == p:
            continue
        alpha = declared(base, path, t)
        if alpha != base.alpha[t]:
            now.moved[m], now.by[m] = t, alpha - base.alpha[t]
            m += 1
    if p >= n:
        now.moved[m], now.by[m] = p, now.left - base.alpha[p]
        m += 1
    now.n_moved = m
    for t in range(m):
        if base.slot[now.moved[t]] < 0:
            return False
    return True


cdef void enter_sums(Base* base, const Path* path, State* now) noexcept nogil:
    """Enter the dual variables and the excesses of all rows of the tableau."""
    cdef Py_ssize_t t, i, k, n = base.n, width = base.width, p = now.p
    cdef int size = width
    cdef double spread = 0.0, of_base = 0.0, wanted
    cdef double* x
    # Columns hold changes of alpha in the base, and of the excess elsewhere.
    memcpy(now.alpha, base.alpha, width * sizeof(double))
    memcpy(now.excess, base.excess, width * sizeof(double))
    memcpy(now.errors, base.alpha, n * sizeof(double))
    memcpy(now.errors + n, base.excess + n, (width - n) * sizeof(double))
    for i in range(now.n_moved):
        k = now.moved[i]
        x = base.columns + base.slot[k] * width
        daxpy(&size, &now.by[i], x, &ONE, now.errors, &ONE)
        spread += fabs(now.by[i]) * base.spreads[base.slot[k]]
        if k < n:
            of_base += fabs(now.by[i])
    memcpy(now.alpha, now.errors, n * sizeof(double))
    memcpy(now.excess + n, now.errors + n, (width - n) * sizeof(double))
    for i in range(now.n_moved):
        k = now.moved[i]
        if k < n:
            now.excess[k] = base.excess[k] + now.by[i]
        elif k < width and k != p:
            now.alpha[k] = declared(base, path, k)
    if n <= p < width:
        now.alpha[p] = now.left
    now.clipped = 0.0
    for t in range(n):
        if t == p:
            wanted = now.left
        elif path.kind[t] == IN_BOUND:
            wanted = min(max(now.alpha[t], 0.0), base.costs[t])
        else:
            wanted = declared(base, path, t)
        now.clipped += fabs(now.alpha[t] - wanted) * base.roots[t]
        now.alpha[t] = wanted
    now.column_error = column_error(base, now.n_moved, spread)
    now.level_error = (now.n_moved + FEW) * UNIT_ROUNDING * of_base


cdef inline double column_error(Base* base, Py_ssize_t terms, double spread) noexcept nogil:
    """Return the error of decision values, per unit of `sizes`, for a sum of columns."""
    return RESIDUAL * (base.n + terms + FEW) * UNIT_ROUNDING * base.reach * spread


cdef inline double error_of_change(Base* base, const State* now, Py_ssize_t t) noexcept nogil:
    """Return a bound on the error of the change of a decision value since the base."""
    return (
        now.column_error * base.sizes[t] + now.clipped * base.roots[t] + now.level_error
    ) * ROUNDED_UP


cdef inline double change_of_alpha(Base* base, const State* now, Py_ssize_t t) noexcept nogil:
    return (now.left if t == now.p else now.alpha[t]) - base.alpha[t]


cdef void enter_balance(Base* base, State* now) noexcept nogil:
    """Enter what is left of ``y'alpha``, and the sizes of the changes of alpha."""
    cdef Py_ssize_t t, i
    cdef double change, total = 0.0, size = 0.0, spread = 0.0, rounding
    for t in range(base.n):
        change = change_of_alpha(base, now, t)
        total += base.y[t] * change
        size += fabs(change)
        spread += fabs(change) * base.roots[t]
    for i in range(now.n_moved):
        t = now.moved[i]
        if t >= base.n:
            change = change_of_alpha(base, now, t)
            total += base.y[t] * change
            size += fabs(change)
            spread += fabs(change) * base.roots[t]
    rounding = (base.n + now.n_moved + FEW) * UNIT_ROUNDING * (size + fabs(base.imbalance))
    now.spread = spread * ROUNDED_UP
    now.imbalance = fabs(base.imbalance + total) + rounding
    now.imbalance_of_change = fabs(total) + rounding


cdef double relative_change(
    Base* base, Py_ssize_t p, const Py_ssize_t* rows, Py_ssize_t count, const double* changes,
    double change_of_p,
) noexcept nogil:
    """Return the change of ``f(x_p) - f(x_h)``, where h is the first row of the base.

    The changes of alpha are those of the base rows and of those of the given rows that are neither
    in the base nor p, at their places in the tableau.
    """
    cdef Py_ssize_t t, i
    cdef const double* K_p = base.K + base.rows[p] * base.l
    cdef double total
    total = base.y[p] * change_of_p * (K_p[base.rows[p]] / base.unit - base.K_h[p])
    for t in range(base.n):
        if changes[t] != 0:
            total += base.y[t] * changes[t] * (K_p[base.rows[t]] / base.unit - base.K_h[t])
    for i in range(count):
        t = rows[i]
        if t >= base.n and t != p:
            total += base.y[t] * changes[t] * (K_p[base.rows[t]] / base.unit - base.K_h[t])
    return total


cdef void enter_margin(Base* base, const Path* path, State* now, double* changes) noexcept nogil:
    """Enter the margin of the removed row, and a bound on its error.

    The margin of a row outside the base is computed from the kernel, relative to the first row. The
    memory of `changes` is overwritten.
    """
    cdef Py_ssize_t t, i, p = now.p
    cdef double start = 1 + base.excess[p], change
    if p < base.n:
        now.margin = path.margin[0]
        now.margin_error = error_of_change(base, now, p)
    else:
        for t in range(base.n):
            changes[t] = now.alpha[t] - base.alpha[t]
        for i in range(now.n_moved):
            t = now.moved[i]
            if t >= base.n and t != p:
                changes[t] = now.alpha[t] - base.alpha[t]
        change = relative_change(
            base, p, now.moved, now.n_moved, changes, now.left - base.alpha[p])
        change += base.y[0] * (now.excess[0] - base.excess[0])
        now.margin = start + base.y[p] * change
        now.margin_error = error_of_change(base, now, 0) + (
            (base.n + now.n_moved + 2 * FEW) * UNIT_ROUNDING * now.spread
            * (base.roots[p] + base.roots[0])
        )
    now.margin_error += base.rounding[p]
    now.margin_error += FEW_ROUNDINGS * (1 + fabs(start) + 2 * fabs(now.margin))


cdef void enter_errors(Base* base, State* now) noexcept nogil:
    """Enter bounds on the errors of the excesses of all rows of the tableau."""
    cdef Py_ssize_t t
    for t in range(base.width):
        now.errors[t] = (
            base.rounding[t] + now.column_error * base.sizes[t] + now.clipped * base.roots[t]
            + now.level_error
            + FEW_ROUNDINGS * (1 + fabs(base.excess[t]) + fabs(now.excess[t]))
        ) * ROUNDED_UP


cdef void enter_movement(Base* base, State* now) noexcept nogil:
    """Enter bounds on the movements of the weight vector and of the centroid of the base.

    The squared movement is the sum of the changes of alpha times those of the excess.
    """
    cdef Py_ssize_t t, i, p = now.p
    cdef double change, square = 0.0, total = 0.0, offset, largest = 0.0
    for t in range(base.n):
        change = change_of_alpha(base, now, t)
        square += change * (now.excess[t] - base.excess[t])
        square += fabs(change) * error_of_change(base, now, t)
        total += base.y[t] * (now.excess[t] - base.excess[t])
        largest = max(largest, base.sizes[t])
    for i in range(now.n_moved):
        t = now.moved[i]
        if t == p and p >= base.n:
            change = now.left - base.alpha[p]
            square += change * (now.margin - 1 - base.excess[p])
            square += fabs(change) * now.margin_error
        elif t >= base.n:
            change = now.alpha[t] - base.alpha[t]
            square += change * (now.excess[t] - base.excess[t])
            square += fabs(change) * error_of_change(base, now, t)
    now.level = fabs(total) / base.n
    now.level += (now.column_error * largest + now.clipped * base.R + now.level_error)
    now.level *= ROUNDED_UP
    # The offset that columns leave open counts where the changes do not balance.
    offset = now.level + now.spread * base.R
    square += now.imbalance_of_change * offset
    square += (base.n + now.n_moved + FEW) * UNIT_ROUNDING * now.spread * now.spread
    now.movement = sqrt(max(square, 0.0)) * ROUNDED_UP


cdef inline double row_gap(
    double excess, double error, double alpha, double above
) noexcept nogil:
    """Return how much a row can still raise the dual, as in `gaps`."""
    cdef double growth = (error - excess) * above, fall = (error + excess) * alpha
    cdef double most = growth if growth > fall else fall
    return most if most > 0 else 0.0


cdef inline bint follows_another(Base* base, const State* now, Py_ssize_t t) noexcept nogil:
    """Return whether the margin of a row is always that of a base row inside its box."""
    cdef Py_ssize_t twin = base.twin[t]
    return twin >= 0 and twin != now.p and 0 < now.alpha[twin] < base.costs[twin]


cdef double sum_of_gaps(
    Base* base, const State* now, bint curved, double length, double level
) noexcept nogil:
    """Return how much all rows but p can raise the dual, as in `gaps`.

    If `curved`, base rows inside their box do not count, and the margins of the others may move
    further, by `length` times their distance from the base, and by `level`.
    """
    cdef Py_ssize_t t, p = now.p, n = base.n
    cdef double total = 0.0, error, above
    for t in range(base.width):
        if t == p:
            continue
        error, above = now.errors[t], base.costs[t] - now.alpha[t]
        if curved:
            if t < n and now.alpha[t] > 0 and above > 0:
                continue
            if follows_another(base, now, t):
                continue
            error += length * (base.distances[t] + base.radius) + level
        total += row_gap(now.excess[t], error, now.alpha[t], above)
    length, level = length + now.movement, level + now.level
    for t in range(base.width, base.count):
        if t == p or (curved and follows_another(base, now, t)):
            continue
        error = base.rounding[t] + level + length * (base.distances[t] + base.radius)
        error += FEW_ROUNDINGS * (1 + fabs(base.excess[t]) + level)
        total += row_gap(
            base.excess[t], error, base.alpha[t], base.costs[t] - base.alpha[t])
    return total


cdef void enter_gap(Base* base, State* now) noexcept nogil:
    """Enter how far the dual without p may be from its maximum, by the better bound of `gaps`."""
    cdef Py_ssize_t t
    cdef double squares = 0.0, level = 0.0, size, length, curved
    now.gap = sum_of_gaps(base, now, False, 0.0, 0.0)
    if base.least_eigenvalue > 0 and now.gap * base.largest > NEGLIGIBLE_GAP:
        for t in range(base.n):
            if t != now.p and 0 < now.alpha[t] < base.costs[t]:
                size = fabs(now.excess[t]) + now.errors[t]
                squares += size * size
                level = max(level, size)
        length = sqrt(squares / base.least_eigenvalue) * ROUNDED_UP
        curved = sum_of_gaps(base, now, True, length, level)
        curved += 0.5 * length * length + now.imbalance * (length * base.R + level)
        curved += now.left * (length * (base.distances[now.p] + base.radius) + level)
        now.gap = min(now.gap, curved)
    now.gap *= ROUNDED_UP
