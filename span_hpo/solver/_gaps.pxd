"""Gaps of single rows and their sums, for compiled code; see `gaps`."""

from span_hpo.runtime.loops cimport maximum
from span_hpo.runtime.sums cimport accurate_sum


cdef inline double row_gap(
    double excess, double rounding, double alpha, double above
) noexcept nogil:
    """Return an upper bound on how much a row can still raise the dual, as `row_gaps` does."""
    return maximum(
        maximum(rounding - excess, 0.0) * above, maximum(rounding + excess, 0.0) * alpha
    )


cdef inline void enter_sums_of_others(const double* gaps, Py_ssize_t l, double* sums) noexcept nogil:
    """Enter the sum of all other gaps for each row, without cancellation for the largest one."""
    cdef double total = accurate_sum(gaps, l)
    cdef Py_ssize_t i, largest = 0
    for i in range(l):
        sums[i] = total - gaps[i]
        if gaps[i] > gaps[largest]:
            largest = i
    sums[largest] = accurate_sum(gaps, largest) + accurate_sum(
        gaps + largest + 1, l - largest - 1
    )


cdef inline double enter_plain_gaps(
    const double* excess, const double* rounding, const double* alpha, const double* costs,
    Py_ssize_t l, double rounded_up, double* memory, double* without,
) noexcept nogil:
    """Enter the gap without each row, and return that with all rows."""
    cdef Py_ssize_t i
    for i in range(l):
        memory[i] = row_gap(excess[i], rounding[i], alpha[i], costs[i] - alpha[i])
    enter_sums_of_others(memory, l, without)
    for i in range(l):
        without[i] *= rounded_up
    return accurate_sum(memory, l) * rounded_up
