"""What compiled loops share: functions that are compiled twice, maxima and minima."""

cdef extern from "loops.h" nogil:
    # A function of this type is compiled for any processor, and once more for those with AVX2.
    ctypedef void cloned "SPAN_HPO_CLONES void"
    double largest "span_hpo_largest"(const double* x, Py_ssize_t n)


cdef inline double maximum(double a, double b) noexcept nogil:
    """Return the larger number, or NaN if one of them is NaN, as np.maximum does."""
    return a if a > b or a != a else b


cdef inline double minimum(double a, double b) noexcept nogil:
    """Return the smaller number, or NaN if one of them is NaN, as np.minimum does."""
    return a if a < b or a != a else b
