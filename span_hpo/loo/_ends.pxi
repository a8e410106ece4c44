# Bounds on the errors of values of rows with ``alpha_p = 0``, row by row; see `ends`.

from span_hpo.loo import ends

cdef enum:
    MOST_HOLDERS = 16

cdef double SQUARE_ROUNDING = ends._SQUARE_ROUNDING, LEAST_ROOM = ends._LEAST_ROOM
cdef Py_ssize_t HOLDERS = ends._HOLDERS
assert HOLDERS <= MOST_HOLDERS


cdef struct Holders:
    # The in-bound rows with the most room, and what their bounds need
    Py_ssize_t n
    Py_ssize_t[MOST_HOLDERS] rows
    double[MOST_HOLDERS] room
    double[MOST_HOLDERS] excess
    double[MOST_HOLDERS] diagonal
    double[MOST_HOLDERS] roots


cdef void select_holders(const Fit* fit, Holders* holders) noexcept nogil:
    """Select the in-bound rows with the most room."""
    cdef Py_ssize_t i, j, k, n = 0
    cdef double room
    for i in range(fit.l):
        if not 0 < fit.alpha[i] < fit.costs[i]:
            continue
        room = minimum(fit.alpha[i], fit.costs[i] - fit.alpha[i])
        k = n
        while k > 0 and holders.room[k - 1] < room:  # the first of equal rows stays first
            k -= 1
        if k == HOLDERS:
            continue
        n = n + 1 if n < HOLDERS else HOLDERS
        for j in range(n - 1, k, -1):
            holders.rows[j] = holders.rows[j - 1]
            holders.room[j] = holders.room[j - 1]
        holders.rows[k] = i
        holders.room[k] = room
    holders.n = n
    for k in range(n):
        i = holders.rows[k]
        holders.excess[k] = fabs(fit.excess[i]) + fit.rounding[i]
        holders.diagonal[k] = fit.K[i * fit.l + i]
        holders.roots[k] = sqrt(fabs(holders.diagonal[k]))


cdef double value_error(const Fit* fit, const Holders* holders, Py_ssize_t p) noexcept nogil:
    """Return the least bound that the holders give for the value of a row."""
    cdef double K_pp = fit.K[p * fit.l + p], least = INFINITY, square, K_kk
    cdef Py_ssize_t k
    for k in range(holders.n):
        K_kk = holders.diagonal[k]
        # Rows of holders are read from one end to the other if p runs over all rows.
        square = maximum(K_pp + K_kk - 2 * fit.K[holders.rows[k] * fit.l + p], 0.0)
        square += SQUARE_ROUNDING * (fabs(K_pp) + fabs(K_kk))
        least = minimum(
            end_error(
                fit.gaps[p], square, holders.room[k], holders.excess[k], holders.roots[k],
                fabs(fit.imbalance),
            ),
            least,
        )
    return least + fit.rounding[p]


cdef inline double end_error(
    double gap, double square, double room, double excess, double root, double imbalance
) noexcept nogil:
    """Return a bound on the error of ``y_p f(x_p)`` by one in-bound row, as `end_errors` does."""
    cdef double left = imbalance * root
    cdef double q = gap + 0.5 * left * left + excess * imbalance
    cdef double largest = room - imbalance, S, of_gap, error
    if not largest > LEAST_ROOM:
        return INFINITY
    S, of_gap = sqrt(square), sqrt(2 * q)
    if of_gap <= largest * S:
        error = S * of_gap
    else:
        error = 0.5 * largest * square + q / largest
    return (error + S * left + excess) * ROUNDED_UP
