# What the state of a path proves about the row that it removes.


cdef void judge(
    Base* base, const Path* path, const Scratch* scratch, State* now, signed char outcome,
    double* margin, double* accuracy,
) noexcept nogil:
    """Enter the margin or the bound that a state proves, and the accuracy of the margin."""
    if not enter_moved(base, path, outcome == END, now):
        return
    enter_sums(base, path, now)
    enter_balance(base, now)
    if not now.imbalance <= IMBALANCE * path.whole:
        return
    enter_margin(base, path, now, now.errors)
    enter_errors(base, now)
    enter_movement(base, now)
    enter_gap(base, now)
    if not isfinite(now.gap):
        return
    if outcome == END:
        judge_end(base, path, now, margin, accuracy)
    elif outcome == ERROR:
        judge_error(base, now, margin)
    else:
        judge_success(base, path, scratch, now, margin)


cdef void judge_end(
    Base* base, const Path* path, State* now, double* margin, double* accuracy
) noexcept nogil:
    """Bound the error of the margin at ``alpha_p = 0``, as in `ends`."""
    cdef Py_ssize_t t, p = now.p
    cdef double best = INFINITY, room, square, left, excess, q, S, root, error, K_pp
    cdef const double* K_p = base.K + base.rows[p] * base.l
    K_pp = base.roots[p] * base.roots[p]
    for t in range(base.width):
        if t == p:
            continue
        # A state that is farther from the solution than its bounds tell is improved first.
        error = SOLVED + now.errors[t]
        if now.excess[t] < -error and now.alpha[t] < base.costs[t]:
            return
        if now.excess[t] > error and now.alpha[t] > 0:
            return
        room = min(now.alpha[t], base.costs[t] - now.alpha[t]) - now.imbalance
        if not room > LEAST_ROOM:
            continue
        square = K_pp + base.roots[t] * base.roots[t]
        square = max(square - 2 * K_p[base.rows[t]] / base.unit, 0.0) + 2 * SQUARE_ROUNDING * square
        left, excess = now.imbalance * base.roots[t], fabs(now.excess[t]) + now.errors[t]
        q = now.gap + 0.5 * left * left + excess * now.imbalance
        S, root = sqrt(square), sqrt(2 * q)
        error = S * root if root <= room * S else 0.5 * room * square + q / room
        best = min(best, error + S * left + excess)
    best *= ROUNDED_UP
    if best > SHARP or best > 0.5 * fabs(now.margin):
        best = min(best, sharp_error(base, path, now))
    best += now.margin_error
    if fabs(now.margin) > best:
        margin[0], accuracy[0] = now.margin, best


cdef void judge_error(Base* base, const State* now, double* margin) noexcept nogil:
    """Bound the margin from above, after the dual variables are made to balance exactly."""
    cdef Py_ssize_t t
    cdef double raises = INFINITY, lowers = INFINITY, price, left = now.imbalance, bound
    cdef bint can_grow, can_fall
    for t in range(base.width):
        if t == now.p:
            continue
        price = fabs(now.excess[t]) + now.errors[t]
        price += 0.5 * left * base.roots[t] * base.roots[t]
        can_grow = base.costs[t] - now.alpha[t] >= left
        can_fall = now.alpha[t] >= left
        if base.y[t] < 0:
            can_grow, can_fall = can_fall, can_grow
        if can_grow and price < raises:
            raises = price
        if can_fall and price < lowers:
            lowers = price
    bound = now.gap + left * max(raises, lowers)
    bound = now.margin + now.margin_error + bound / now.left * ROUNDED_UP
    if bound < 0:
        margin[0] = bound


cdef struct Certificate:
    # The point beyond alpha_p = 0 to which the direction of a path leads.
    double length  # by which alpha_p falls
    double size  # sum of |changes| of the other rows
    double total  # sum of y times the changes
    double spread  # sum of |changes| times sqrt(K_jj)
    double clipped  # as in `State`
    double of_prices  # sum of |changes| times the excess with its error
    double room  # largest room of a row that has moved
    Py_ssize_t holder  # this row


cdef inline double target(
    Base* base, const State* now, const Path* path, Py_ssize_t t, Certificate* point
) noexcept nogil:
    """Return how far a row moves to the point, and add what this costs."""
    cdef double wanted = now.alpha[t] + point.length * path.certificate[t]
    cdef double reached = min(max(wanted, 0.0), base.costs[t]), change = reached - now.alpha[t]
    cdef double room = min(reached, base.costs[t] - reached)
    point.clipped += (fabs(wanted - reached) + 4 * UNIT_ROUNDING * fabs(wanted)) * base.roots[t]
    point.size += fabs(change)
    point.spread += fabs(change) * base.roots[t]
    point.total += base.y[t] * change
    point.of_prices += fabs(change) * (fabs(now.excess[t]) + now.errors[t])
    if room > point.room:
        point.room, point.holder = room, t
    return change


cdef void judge_success(
    Base* base, const Path* path, const Scratch* scratch, State* now, double* margin
) noexcept nogil:
    """Bound the margin from below, by a point with ``alpha_p < 0`` in the direction of the path."""
    cdef Py_ssize_t t, i, p = now.p, n = base.n, m = path.n_changed[0]
    cdef double* changes = scratch.rates
    cdef Certificate point
    cdef double terms = n + m + FEW, square, imbalance, path_length, bound, rounding
    point.length = now.left + path.beyond[0]
    point.size = point.total = point.spread = point.clipped = point.of_prices = 0.0
    point.room, point.holder = 0.0, -1
    for t in range(n):
        changes[t] = 0.0
        if t != p and path.kind[t] == IN_BOUND:
            changes[t] = target(base, now, path, t, &point)
    for i in range(m):
        t = path.changed[i]
        if t >= n and path.kind[t] == IN_BOUND:
            changes[t] = target(base, now, path, t, &point)
    point.spread += point.length * base.roots[p]
    rounding = terms * UNIT_ROUNDING * (point.size + point.length)
    point.total = fabs(point.total - base.y[p] * point.length) + rounding
    imbalance = now.imbalance + point.total
    if point.holder < 0 or not point.room > imbalance:
        return
    square = square_of_step(base, path, scratch, now, &point, changes)
    path_length = sqrt(square) + imbalance * base.roots[point.holder]
    bound = 0.5 * path_length * path_length + point.of_prices + now.gap
    bound += imbalance * (fabs(now.excess[point.holder]) + now.errors[point.holder])
    bound = now.margin - now.margin_error - bound / path.beyond[0] * ROUNDED_UP
    if bound > 0:
        margin[0] = bound


cdef double square_of_step(
    Base* base, const Path* path, const Scratch* scratch, const State* now,
    const Certificate* point, double* changes,
) noexcept nogil:
    """Return a bound on the squared movement of the weight vector to the point.

    It is the sum of the changes of alpha times those of the excess, which are 0 for rows in bounds
    up to rounding.
    """
    cdef Py_ssize_t t, i, j, p = now.p, n = base.n, m = path.n_changed[0], width = base.width
    cdef const double* direction = scratch.direction
    cdef double spread = 0.0, of_base = 0.0, error, level, square = 0.0, change, of_p
    cdef double length = point.length
    of_p = direction[p] if p < n else -1.0
    spread = fabs(of_p) * base.spreads[base.slot[p]]
    if p < n:
        of_base = fabs(of_p)
    for i in range(m):
        t = path.changed[i]
        spread += fabs(direction[t]) * base.spreads[base.slot[t]]
        if t < n:
            of_base += fabs(direction[t])
    error = column_error(base, m + 1, spread * length)
    level = (m + FEW) * UNIT_ROUNDING * of_base * length
    for t in range(n):
        square += fabs(changes[t]) * (error * base.sizes[t] + point.clipped * base.roots[t] + level)
    for i in range(m):
        t = path.changed[i]
        if t < n or path.kind[t] != IN_BOUND:
            continue
        change = of_p * base.columns[base.slot[p] * width + t]
        for j in range(m):
            change += direction[path.changed[j]] * (
                base.columns[base.slot[path.changed[j]] * width + t])
        square += fabs(changes[t]) * (
            length * fabs(change) + error * base.sizes[t] + point.clipped * base.roots[t] + level)
    if p < n:
        change = length * direction[p]
        level += error * base.sizes[p] + point.clipped * base.roots[p]
    else:
        change = relative_change(base, p, path.changed, m, changes, -length)
        if path.kind[0] != IN_BOUND:
            change += base.y[0] * length * direction[0]
        level += error * base.sizes[0] + point.clipped * base.roots[0]
        level += (n + m + 2 * FEW) * UNIT_ROUNDING * point.spread * (base.roots[p] + base.roots[0])
    square += length * (fabs(change) + level)
    # The offset that columns leave open counts where the changes do not balance.
    square += point.total * (point.spread * base.R + of_base * length + level)
    square += (n + m + 2 * FEW) * UNIT_ROUNDING * point.spread * point.spread
    return square * ROUNDED_UP
