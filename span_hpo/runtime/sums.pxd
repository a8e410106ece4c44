"""Sums beyond double precision for compiled code; see `accurate`."""

from libc.math cimport fabs

cdef extern from "sums.h" nogil:
    # The sum of products a x; x is also given in two halves, which `split` makes
    double accurate_dot "span_hpo_accurate_dot"(
        Py_ssize_t n, const double* a, const double* x, const double* x_high, const double* x_low)
    double SPLITTER "SPAN_HPO_SPLITTER"

cdef enum:
    MOST_PARTS = 64  # no sum of finite doubles has more parts that do not overlap


cdef inline void split(
    const double* x, Py_ssize_t n, double* high, double* low
) noexcept nogil:
    """Split doubles into two halves whose products are exact."""
    cdef Py_ssize_t j
    cdef double spread
    for j in range(n):
        spread = SPLITTER * x[j]
        high[j] = spread - (spread - x[j])
        low[j] = x[j] - high[j]


cdef inline double accurate_sum(const double* x, Py_ssize_t n) noexcept nogil:
    """Return the sum of some numbers with twice the digits, or infinity if it overflows."""
    cdef double total = 0.0, error = 0.0, sums, virtual
    cdef Py_ssize_t j
    for j in range(n):
        sums = total + x[j]
        virtual = sums - total
        error += (total - (sums - virtual)) + (x[j] - virtual)
        total = sums
    return total + error if error == error else total


cdef inline double exact_sum(const double* x, Py_ssize_t n) noexcept nogil:
    """Return the double next to the exact sum of some finite numbers, as `math.fsum` does.

    It is the sum of parts that do not overlap (J. R. Shewchuk, "Adaptive precision floating-point
    arithmetic and fast robust geometric predicates", 1997).
    """
    cdef double[MOST_PARTS] parts
    cdef Py_ssize_t t, i, j, count = 0
    cdef double high, low, one, other
    for t in range(n):
        one, i = x[t], 0
        for j in range(count):
            other = parts[j]
            if fabs(one) < fabs(other):
                one, other = other, one
            high = one + other
            low = other - (high - one)
            if low != 0:
                parts[i] = low
                i += 1
            one = high
        count = i
        if one != 0 and count < MOST_PARTS:
            parts[count] = one
            count += 1
    return rounded_once(parts, count)


cdef inline double rounded_once(const double* parts, Py_ssize_t count) noexcept nogil:
    """Return the rounded sum of parts that do not overlap, the least first."""
    cdef double high = 0.0, low = 0.0, before
    while count > 0:
        count -= 1
        before = high
        high = before + parts[count]
        low = parts[count] - (high - before)
        if low != 0:
            break
    # Half of a last place is rounded to even, unless a smaller part decides.
    if count > 0 and ((low < 0 and parts[count - 1] < 0) or (low > 0 and parts[count - 1] > 0)):
        low *= 2
        before = high + low
        if low == before - high:
            return before
    return high
