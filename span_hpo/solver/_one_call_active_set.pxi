# Rounds of the active-set method, as in `active_set`.


cdef Py_ssize_t working_rows(Fit *fit) noexcept nogil:
    cdef Py_ssize_t i, n = 0
    for i in range(fit.l):
        if fit.working[i]:
            fit.W[n] = i
            n += 1
    return n


cdef inline bint is_inside(Fit *fit, Py_ssize_t i) noexcept nogil:
    return 0.0 < fit.alpha[i] < fit.costs[i]


cdef void move(Fit *fit, Py_ssize_t n, const double *alpha) noexcept nogil:
    """Move the n rows W to new dual variables."""
    cdef Py_ssize_t k, i, count = 0
    cdef double change
    # The rows that change are collected at the beginning of W, which is not needed again.
    for k in range(n):
        i = fit.W[k]
        change = fit.y[i] * (alpha[k] - fit.alpha[i])
        fit.alpha[i] = alpha[k]
        if change != 0.0:
            fit.W[count] = i
            fit.d[count] = change
            count += 1
    add_rows(fit.K, fit.l, fit.l, fit.W, fit.d, count, fit.F)
    fit.work += count * <double>fit.l


cdef void limits(Fit *fit, double *lower, double *upper, Py_ssize_t *at_lower, Py_ssize_t *at_upper
) noexcept nogil:
    """Find the limits of the offset, and the first rows that set them."""
    cdef Py_ssize_t i
    cdef double offset
    cdef bint can_grow, can_fall
    lower[0], upper[0] = -INFINITY, INFINITY
    at_lower[0] = at_upper[0] = 0
    for i in range(fit.l):
        can_grow = fit.alpha[i] < fit.costs[i]
        can_fall = fit.alpha[i] > 0
        if fit.y[i] < 0:
            can_grow, can_fall = can_fall, can_grow
        offset = fit.y[i] - fit.F[i]
        if can_grow and offset > lower[0]:
            lower[0] = offset
            at_lower[0] = i
        if can_fall and offset < upper[0]:
            upper[0] = offset
            at_upper[0] = i


cdef bint pairs_in_box(Fit *fit, Py_ssize_t n, double tol, Py_ssize_t steps) noexcept nogil:
    """Let pairs of W move in the box to `moved`; rows that reach a bound leave W.

    The result is whether there is such a row.
    """
    cdef Pairs *part = &fit.part
    cdef Py_ssize_t k, i
    cdef bint reached = False
    cdef double gap = 0.0
    part.n = fit.gram.stride
    part.K = fit.K_WW.data
    part.stride = fit.gram.stride
    part.where = NULL
    for k in range(n):
        i = fit.W[k]
        enter(part, k, fit.y[i], fit.costs[i], fit.alpha[i], fit.y[i] - fit.F[i],
              fit.K[i * fit.l + i])
    finish(part, n)
    fit.work += WORK_OF_A_STEP * part.n * pair_steps(part, tol, steps, &gap)
    for k in range(n):
        i = fit.W[k]
        fit.moved[k] = fabs(part.beta[k])
        if fit.moved[k] != fit.alpha[i] and (fit.moved[k] == 0 or fit.moved[k] == fit.costs[i]):
            fit.working[i] = False
            reached = True
    return reached


cdef void first_bound(Fit *fit, Py_ssize_t n) noexcept nogil:
    """Go towards `wanted` up to the first bound, to `moved`; rows that reach it leave W."""
    cdef Py_ssize_t k, i
    cdef double step, reach, least = INFINITY
    for k in range(n):
        i = fit.W[k]
        step = fit.wanted[k] - fit.alpha[i]
        if step != 0:
            reach = ((fit.costs[i] if step > 0 else 0.0) - fit.alpha[i]) / step
            least = min(least, reach)
    for k in range(n):
        i = fit.W[k]
        step = fit.wanted[k] - fit.alpha[i]
        if step != 0 and ((fit.costs[i] if step > 0 else 0.0) - fit.alpha[i]) / step <= least:
            fit.moved[k] = fit.costs[i] if step > 0 else 0.0
            fit.working[i] = False
        else:
            fit.moved[k] = min(max(fit.alpha[i] + least * step, 0.0), fit.costs[i])


cdef void settle(Fit *fit) noexcept nogil:
    """Compute the dual variables and `F` from the in-bound and bounded rows alone.

    The answer then does not depend on where the fit began. W must hold the in-bound rows, and the
    factor must be theirs. If rounding would make the point worse, it stays as it is.
    """
    cdef Py_ssize_t i, k, m = 0, n = fit.gram.n, at_lower, at_upper
    cdef int order = <int>n, leading = <int>fit.gram.stride, one = 1
    cdef char lower_part = b"L"
    cdef double minus = -1.0, unit = 1.0, total = 0.0, most = 0.0, rest, lower, upper, before, after
    cdef double *F = fit.spans  # not needed yet
    cdef double *beta = fit.wanted
    cdef double *residual = fit.moved
    cdef double *weights = fit.part.v
    for i in range(fit.l):
        F[i] = 0.0
        if fit.alpha[i] > 0 and not is_inside(fit, i):
            fit.bounded[m] = i
            weights[m] = fit.y[i] * fit.alpha[i]
            total += weights[m]
            most = max(most, fit.alpha[i])
            m += 1
    add_rows(fit.K, fit.l, fit.l, fit.bounded, weights, m, F)
    if n:
        for k in range(n):
            residual[k] = fit.y[fit.W[k]] - F[fit.W[k]]
        solved(&fit.gram, residual, -total, beta)
        # One step of iterative refinement: the factor is rounded, or has some jitter.
        rest = total
        for k in range(n):
            rest += beta[k]
        dsymv(&lower_part, &order, &minus, fit.K_WW.data, &leading, beta, &one, &unit, residual,
              &one)
        solved(&fit.gram, residual, -rest, fit.d)
        for k in range(n):
            beta[k] += fit.d[k]
            most = max(most, fabs(beta[k]))
        for k in range(n):
            rest = fit.y[fit.W[k]] * beta[k]
            if not ALPHA_ROUNDING_ * most <= min(rest, fit.costs[fit.W[k]] - rest):
                return
        add_rows(fit.K, fit.l, fit.l, fit.W, beta, n, F)
    limits(fit, &lower, &upper, &at_lower, &at_upper)
    before = lower - upper
    # The old values are kept in `weights` until it is clear that the new ones are as good.
    memcpy(weights, fit.F, fit.l * sizeof(double))
    memcpy(fit.F, F, fit.l * sizeof(double))
    limits(fit, &lower, &upper, &at_lower, &at_upper)
    after = lower - upper
    if not after <= max(before, fit.noise):
        memcpy(fit.F, weights, fit.l * sizeof(double))
        return
    for k in range(n):
        fit.alpha[fit.W[k]] = fabs(beta[k])


cdef Status polish(Fit *fit) noexcept nogil:
    """Go on to the solution by rounds of an active-set method, and factor its Gram matrix."""
    cdef Py_ssize_t i, k, n, n_inside, outside, at_lower, at_upper, l = fit.l
    cdef double noise, sum_alpha, imbalance, largest = 0.0, most, b, lower, upper, rounding, margin
    cdef bint paired = False, crossed = False, violated, found, any_inside
    cdef Status status
    for i in range(l):
        if fit.costs[i] > 0:
            largest = max(largest, fabs(fit.K[i * l + i]))
        fit.working[i] = is_inside(fit, i)
    for fit.rounds in range(1, ROUNDS + 1):
        sum_alpha = imbalance = most = 0.0
        for i in range(l):
            sum_alpha += fit.alpha[i]
            imbalance += fit.y[i] * fit.alpha[i]
            most = max(most, fit.alpha[i])
        if not isfinite(sum_alpha):
            return NOT_FINITE
        noise = fit.noise = MARGIN_NOISE_ * (1 + sum_alpha * largest)
        n = working_rows(fit)
        if n == 0:
            limits(fit, &lower, &upper, &at_lower, &at_upper)
            if lower - upper <= noise:
                fit.gram.n = 0
                return FITTED
            fit.working[at_lower] = fit.working[at_upper] = True
            n = working_rows(fit)
        status = allowed(fit)
        if status == FITTED:
            status = factor(fit, n)
        if status != FITTED:
            return status
        for k in range(n):
            fit.moved[k] = fit.y[fit.W[k]] - fit.F[fit.W[k]]
        b = solved(&fit.gram, fit.moved, -imbalance, fit.d)
        outside = 0
        rounding = most
        for k in range(n):
            i = fit.W[k]
            fit.wanted[k] = fit.alpha[i] + fit.y[i] * fit.d[k]
            rounding = max(rounding, fit.wanted[k])
            if not 0 <= fit.wanted[k] <= fit.costs[i]:
                outside += 1
        if not isfinite(b):
            return NOT_FINITE
        if outside == 0:
            rounding *= ALPHA_ROUNDING_
            n_inside = 0
            for k in range(n):
                i = fit.W[k]
                if fit.wanted[k] < rounding:
                    fit.wanted[k] = 0.0
                if fit.costs[i] - fit.wanted[k] < rounding:
                    fit.wanted[k] = fit.costs[i]
                fit.working[i] = 0 < fit.wanted[k] < fit.costs[i]
                n_inside += fit.working[i]
            move(fit, n, fit.wanted)
            any_inside = n_inside > 0
            violated = False
            for i in range(l):
                margin = fit.y[i] * (fit.F[i] + b)
                if fit.costs[i] > 0 and (
                    (margin < 1 - noise and fit.alpha[i] == 0)
                    or (margin > 1 + noise and fit.alpha[i] == fit.costs[i])
                ):
                    violated = True
                    # Without in-bound rows, `b` is not determined, and the next round starts from
                    # a pair of rows whose limits contradict each other.
                    if any_inside:
                        fit.working[i] = True
            if not violated:
                k = working_rows(fit)
                if k == n or k == 0:
                    fit.gram.n = k
                    return FITTED
                return factor(fit, k)
            paired = crossed = False
            continue
        found = False
        if not paired:
            paired = True
            found = pairs_in_box(fit, n, PAIR_GAP, PAIR_STEPS)
        if not found and outside > FEW and not crossed:
            crossed = True
            status = minimum_in_box(fit, n, imbalance, &found)
            if status != FITTED:
                return status
        if not found:
            first_bound(fit, n)
        move(fit, n, fit.moved)
    return TOO_MANY_ROUNDS
