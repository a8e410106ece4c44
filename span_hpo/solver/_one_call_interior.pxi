# The interior-point method of the active set: it minimises over the box of the working set.
#
# With ``x = scale beta`` and ``G`` the Gram matrix about the centroid over its scale, the problem
# is ``min 1/2 (x - x0)'G (x - x0) - r'(x - x0)`` in the box with ``1'(x - x0) = -imbalance``. The
# steps are those of Mehrotra's predictor-corrector method: one aims at the solution itself, and the
# next at a point on the central path, corrected for the curvature that the first one met.

cdef struct Interior:
    Py_ssize_t n
    double scale
    double mean_start
    double b
    double mu  # mean product of distances and multipliers
    double worst  # largest residual
    double total  # how far the sum is off
    double *x
    double *below  # distances from the bounds
    double *above
    double *z_below  # multipliers of the bounds
    double *z_above
    double *residual
    double *ones
    double *step
    double *aim_below
    double *M


cdef Status minimum_in_box(
    Fit *fit, Py_ssize_t n, double imbalance, bint *found
) noexcept nogil:
    """Minimise over the box of the n rows W, to `moved`; rows that reach a bound leave W.

    Note in `found` whether there is such a point.
    """
    cdef Interior inside
    cdef Status status
    cdef int iteration
    found[0] = False
    if not reserve(&fit.columns, fit.gram.stride * fit.gram.stride):
        return NO_MEMORY
    begin_inside(fit, n, &inside)
    for iteration in range(INTERIOR_STEPS):
        fit.work += work_of_factor(n) + 6 * <double>n * n
        status = allowed(fit)
        if status != FITTED:
            return status
        find_residual(fit, imbalance, &inside)
        if (inside.mu < SMALL_PRODUCT * inside.mean_start * inside.mean_start
                and inside.worst < SMALL_RESIDUAL):
            break
        if not isfinite(inside.mu) or not factor_inside(fit, &inside):
            return FITTED
        step_inside(fit, &inside)
    found[0] = set_to_bounds(fit, imbalance, &inside)
    return FITTED


cdef void begin_inside(Fit *fit, Py_ssize_t n, Interior *inside) noexcept nogil:
    """Start near the point, but not too near the bounds."""
    cdef Pairs *part = &fit.part  # its vectors are free
    cdef Py_ssize_t i, k
    cdef double positive = 0.0, negative = 0.0, most, high, start
    inside.n = n
    inside.scale = fit.gram.scale
    inside.b = inside.mean_start = 0.0
    inside.x = part.beta
    inside.below = part.lower
    inside.above = part.upper
    inside.z_below = part.bar_growth
    inside.z_above = part.bar_fall
    inside.residual = part.v
    inside.ones = part.diagonal
    inside.step = part.flat
    inside.aim_below = part.gains
    inside.M = fit.columns.data
    for i in range(fit.l):
        if fit.y[i] > 0:
            positive += fit.costs[i]
        else:
            negative += fit.costs[i]
    # No dual variable can exceed the sum of the costs of the other class.
    most = 2 * min(positive, negative)
    for k in range(n):
        i = fit.W[k]
        high = min(fit.costs[i], most) * inside.scale
        start = min(START, 0.25 * high)
        inside.mean_start += start / n
        inside.x[k] = min(max(fit.alpha[i] * inside.scale, start), high - start)
        inside.below[k] = inside.x[k]
        inside.above[k] = high - inside.x[k]
        if fit.y[i] < 0:
            inside.below[k], inside.above[k] = inside.above[k], inside.below[k]
            inside.x[k] = -inside.x[k]
    for k in range(n):
        inside.z_below[k] = START * inside.mean_start / inside.below[k]
        inside.z_above[k] = START * inside.mean_start / inside.above[k]


cdef void find_residual(Fit *fit, double imbalance, Interior *inside) noexcept nogil:
    """Compute the gradient without the bounds, and how far all conditions are from holding."""
    cdef Gram *gram = &fit.gram
    cdef Py_ssize_t i, k, n = inside.n
    cdef int order = <int>n, leading = <int>gram.stride, one = 1
    cdef char lower = b"L"
    cdef double unit = 1.0, zero = 0.0, level = 0.0, total = 0.0
    cdef double *change = inside.step
    inside.mu = inside.worst = 0.0
    for k in range(n):
        i = fit.W[k]
        change[k] = inside.x[k] / inside.scale - fit.y[i] * fit.alpha[i]
        total += change[k]
        level += gram.row_means[k] * change[k]
        inside.mu += (inside.z_below[k] * inside.below[k] + inside.z_above[k] * inside.above[k]) / (
            2 * n)
    dsymv(&lower, &order, &unit, fit.K_WW.data, &leading, change, &one, &zero, inside.residual,
          &one)
    for k in range(n):
        i = fit.W[k]
        inside.residual[k] = (
            inside.residual[k] - level - (gram.row_means[k] - gram.mean) * total
            - fit.y[i] + fit.F[i] + inside.b)
        inside.worst = max(
            inside.worst, fabs(inside.residual[k] - inside.z_below[k] + inside.z_above[k]))
    inside.total = (total + imbalance) * inside.scale


cdef bint factor_inside(Fit *fit, Interior *inside) noexcept nogil:
    """Factor ``G + 11'`` plus the curvature of the bounds; return whether it was possible."""
    cdef Gram *gram = &fit.gram
    cdef Py_ssize_t j, k, stride = gram.stride
    cdef int order = <int>inside.n, leading = <int>stride, info
    cdef char lower = b"L"
    cdef double shift
    cdef double *M = inside.M
    cdef const double *K_WW = fit.K_WW.data
    for j in range(inside.n):
        shift = gram.row_means[j] - gram.mean
        for k in range(j, inside.n):
            M[j * stride + k] = (
                (K_WW[j * stride + k] - gram.row_means[k] - shift) / inside.scale + 1)
        M[j * stride + j] += (
            inside.z_below[j] / inside.below[j] + inside.z_above[j] / inside.above[j])
    dpotrf(&lower, &order, M, &leading, &info)
    return info == 0


cdef double balanced(Fit *fit, Interior *inside, double sum_of_ones) noexcept nogil:
    """Solve for the step whose right-hand side is in `step`, and return its change of b."""
    cdef Py_ssize_t k
    cdef double level = inside.total
    solve_factored(fit, inside, inside.step)
    for k in range(inside.n):
        level += inside.step[k]
    level /= sum_of_ones
    for k in range(inside.n):
        inside.step[k] -= level * inside.ones[k]
    return level - inside.total


cdef void solve_factored(Fit *fit, Interior *inside, double *x) noexcept nogil:
    cdef int order = <int>inside.n, leading = <int>fit.gram.stride, one = 1, info
    cdef char lower = b"L"
    dpotrs(&lower, &order, &one, inside.M, &leading, x, &order, &info)


cdef inline double longest(double value, double step) noexcept nogil:
    """Return the length of a step at which a positive value becomes zero."""
    return -value / step if step < 0 else INFINITY


cdef void step_inside(Fit *fit, Interior *inside) noexcept nogil:
    """Take one step that keeps all distances and multipliers positive."""
    cdef Py_ssize_t k, n = inside.n
    cdef double *below = inside.below
    cdef double *above = inside.above
    cdef double *z_below = inside.z_below
    cdef double *z_above = inside.z_above
    cdef double *step = inside.step
    cdef double *aim_below = inside.aim_below
    cdef double *aim_above = inside.residual  # which is not needed once the step is known
    cdef double sum_of_ones = 0.0, length = 1.0, reached = 0.0, share, aim, change_of_b, d
    for k in range(n):
        inside.ones[k] = 1.0
        step[k] = -inside.residual[k]
    solve_factored(fit, inside, inside.ones)
    for k in range(n):
        sum_of_ones += inside.ones[k]
    balanced(fit, inside, sum_of_ones)
    for k in range(n):
        length = min(length, longest(below[k], step[k]))
        length = min(length, longest(above[k], -step[k]))
        length = min(length, longest(z_below[k], -z_below[k] * (1 + step[k] / below[k])))
        length = min(length, longest(z_above[k], -z_above[k] * (1 - step[k] / above[k])))
    for k in range(n):
        reached += (below[k] + length * step[k]) * z_below[k] * (
            1 - length * (1 + step[k] / below[k]))
        reached += (above[k] - length * step[k]) * z_above[k] * (
            1 - length * (1 - step[k] / above[k]))
    share = reached / (2 * n * inside.mu)
    aim = share * share * share * inside.mu
    for k in range(n):
        d = step[k]
        aim_below[k] = aim + d * z_below[k] * (1 + d / below[k])
        step[k] = -inside.residual[k] + aim_below[k] / below[k]
        aim_above[k] = aim - d * z_above[k] * (1 - d / above[k])
        step[k] -= aim_above[k] / above[k]
    change_of_b = balanced(fit, inside, sum_of_ones)
    length = 1.0 / NEARLY
    for k in range(n):
        # From here on, the aims are the steps of the multipliers.
        aim_below[k] = (aim_below[k] - z_below[k] * step[k]) / below[k] - z_below[k]
        aim_above[k] = (aim_above[k] + z_above[k] * step[k]) / above[k] - z_above[k]
        length = min(length, longest(below[k], step[k]))
        length = min(length, longest(above[k], -step[k]))
        length = min(length, longest(z_below[k], aim_below[k]))
        length = min(length, longest(z_above[k], aim_above[k]))
    length *= NEARLY
    inside.b += length * change_of_b
    for k in range(n):
        z_below[k] += length * aim_below[k]
        z_above[k] += length * aim_above[k]
        inside.x[k] += length * step[k]
        below[k] += length * step[k]
        above[k] -= length * step[k]


cdef int set_to_bounds(Fit *fit, double imbalance, Interior *inside) noexcept nogil:
    """Set rows near a bound to it, while the others make up for the shift of the sum.

    An interior point never touches a bound. As in `active_set`, a row is set to a bound if its
    distance from the bound is less than its multiplier. The result is 0 if there is no room for the
    shift, and 1 otherwise.
    """
    cdef Py_ssize_t i, k
    cdef double cost, room, z_zero, z_cost, shift = imbalance, room_up = 0.0, room_down = 0.0
    for k in range(inside.n):
        i = fit.W[k]
        cost = fit.costs[i]
        fit.moved[k] = min(max(fit.y[i] * inside.x[k] / inside.scale, 0.0), cost)
        z_zero, z_cost = inside.z_below[k], inside.z_above[k]
        if fit.y[i] < 0:
            z_zero, z_cost = z_cost, z_zero
        if fit.moved[k] * inside.scale < z_zero:
            fit.moved[k] = 0.0
        elif (cost - fit.moved[k]) * inside.scale < z_cost:
            fit.moved[k] = cost
        elif fit.y[i] > 0:
            room_up += cost - fit.moved[k]
            room_down += fit.moved[k]
        else:
            room_up += fit.moved[k]
            room_down += cost - fit.moved[k]
        shift += fit.y[i] * (fit.moved[k] - fit.alpha[i])
    room = room_down if shift > 0 else room_up
    if not room >= fabs(shift):
        return 0
    for k in range(inside.n):
        i = fit.W[k]
        if not 0 < fit.moved[k] < fit.costs[i]:
            fit.working[i] = False
        elif fit.y[i] * shift > 0:
            fit.moved[k] -= fit.y[i] * shift * fit.moved[k] / room
        else:
            fit.moved[k] -= fit.y[i] * shift * (fit.costs[i] - fit.moved[k]) / room
    return 1
