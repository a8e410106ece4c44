# A sharper bound at the end of a path, where rounding does not decide which rows are inside.

cdef enum:
    MOST_JOINED = 32  # largest number of rows that have joined the base


cdef inline bint is_free(Base* base, const State* now, Py_ssize_t t) noexcept nogil:
    """Return whether a row is inside its box and does not merely follow a base row."""
    return 0 < now.alpha[t] < base.costs[t] and not follows_another(base, now, t)


cdef double sharp_error(Base* base, const Path* path, State* now) noexcept nogil:
    """Return a bound on the error of the margin at the end of a path, apart from its rounding.

    Let A be the rows inside their boxes. If the dual variables of A can be changed so that all of A
    have margin 1, remain inside their boxes, and no other row comes to the wrong side of its
    margin, then the result is the solution. The change is at most ``|g_A| / mu`` for the curvature
    mu of A, and the weight vector moves by at most ``|g_A| / sqrt(mu)``. The error is infinite if
    this cannot be shown. It is infinite, too, if the kernel matrix is slightly indefinite, because
    other points may then satisfy all conditions as well, with other margins.
    """
    cdef Py_ssize_t[MOST_JOINED] joined
    cdef Py_ssize_t t, m = 0
    cdef double mu, squares = 0.0, level = 0.0, room = INFINITY, size, length, widest = 0.0
    cdef bint any_inside = False
    if not base.is_definite:
        return INFINITY
    for t in range(base.n, base.width):
        if t != now.p and is_free(base, now, t):
            if m == MOST_JOINED or path.kind[t] != IN_BOUND or base.slot[t] < 0:
                return INFINITY
            joined[m] = t
            m += 1
    mu = curvature(base, joined, m)
    if not mu > 0:
        return INFINITY
    for t in range(base.width):
        if t == now.p or not is_free(base, now, t):
            continue
        any_inside = any_inside or t < base.n
        size = fabs(now.excess[t]) + now.errors[t]
        # One of the rows makes up for what is left of y'alpha.
        size += now.imbalance * base.roots[t] * 2 * base.largest_root
        squares += size * size
        level = max(level, size)
        room = min(room, min(now.alpha[t], base.costs[t] - now.alpha[t]))
        widest = max(widest, base.roots[t])
    length = sqrt(squares / mu) * ROUNDED_UP
    if not any_inside or not (length / sqrt(mu) + now.imbalance) * ROUNDED_UP < room:
        return INFINITY
    length += now.imbalance * widest
    if not are_settled(base, now, length, level):
        return INFINITY
    return (length * (base.distances[now.p] + base.radius) + level) * ROUNDED_UP


cdef bint are_settled(Base* base, const State* now, double length, double level) noexcept nogil:
    """Return whether no row at a bound comes to the wrong side of its margin."""
    cdef Py_ssize_t t
    cdef double error, excess, alpha
    for t in range(base.count):
        if t == now.p or follows_another(base, now, t):
            continue
        if t < base.width:
            alpha, excess, error = now.alpha[t], now.excess[t], now.errors[t]
            if 0 < alpha < base.costs[t]:
                continue
        else:
            alpha, excess = base.alpha[t], base.excess[t]
            error = base.rounding[t] + now.level + now.movement * (
                base.distances[t] + base.radius)
            error += FEW_ROUNDINGS * (1 + fabs(excess) + now.level)
        error += (length * (base.distances[t] + base.radius) + level)
        error *= ROUNDED_UP
        if (alpha == 0 and excess < error) or (alpha != 0 and excess > -error):
            return False
    return True


cdef double curvature(Base* base, const Py_ssize_t* joined, Py_ssize_t m) noexcept nogil:
    """Return a lower bound of ``x'K x / x'x`` over all x on base and joined rows whose sum is 0.

    With ``x = (u - Lambda x_J, x_J)`` for the affine weights Lambda of the joined rows, ``x'K x`` is
    ``u'K u + x_J'Q x_J``, where Q is the tableau of the joined rows, and ``|x|^2`` is at most
    ``(2 + |Lambda|^2) (|u|^2 + |x_J|^2)``.
    """
    cdef double[MOST_JOINED * MOST_JOINED] Q
    cdef Py_ssize_t i, j, k, t, n = base.n
    cdef double mu = base.least_eigenvalue, weights = 0.0, error = 0.0, widest = 0.0, total, trace
    cdef const double* column
    if m == 0 or not mu > 0:
        return mu
    for j in range(m):
        column = base.columns + base.slot[joined[j]] * base.width
        for t in range(n):
            weights += column[t] * column[t]
        error = max(error, column_error(base, 1, base.spreads[base.slot[joined[j]]]))
        widest = max(
            widest, base.sizes[joined[j]] + base.spreads[base.slot[joined[j]]] * base.reach)
        for i in range(j, m):
            Q[i * m + j] = column[joined[i]]
    weights = sqrt(weights) + m * sqrt(<double> n) * error * base.reach / mu
    # The Cholesky factor of Q, and the trace of its inverse.
    for j in range(m):
        total = Q[j * m + j]
        for k in range(j):
            total -= Q[j * m + k] * Q[j * m + k]
        if not total > 0:
            return 0.0
        Q[j * m + j] = sqrt(total)
        for i in range(j + 1, m):
            total = Q[i * m + j]
            for k in range(j):
                total -= Q[i * m + k] * Q[j * m + k]
            Q[i * m + j] = total / Q[j * m + j]
    trace = 0.0
    for j in range(m):
        # Column j of the inverse of the factor, in place of the upper half of Q.
        for i in range(j, m):
            total = 1.0 if i == j else 0.0
            for k in range(j, i):
                total -= Q[i * m + k] * (1 / Q[j * m + j] if k == j else Q[j * m + k])
            total /= Q[i * m + i]
            trace += total * total
            if i > j:
                Q[j * m + i] = total
    total = 0.99 / trace - 4 * m * error * widest
    if not total > 0:
        return 0.0
    return 0.99 * min(mu, total) / (2 + weights * weights)
