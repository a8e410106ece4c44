"""The segments of one path, for compiled code that follows paths by itself."""


cdef struct Table:
    # `TableauColumns`, with the width of its columns
    Py_ssize_t n_base
    Py_ssize_t width
    const double* y
    const double* costs
    const double* alpha
    const Py_ssize_t* slot
    const double* columns


cdef struct Path:
    # One path of `Paths`, with the row of each array that belongs to it
    Py_ssize_t row
    Py_ssize_t watched
    const double* own
    double own_square
    double whole
    double* remaining
    double* margin
    double* value
    double* lower
    double* upper
    signed char* kind
    Py_ssize_t* changed
    Py_ssize_t* n_changed
    Py_ssize_t* n_in_bound
    Py_ssize_t* segments
    Py_ssize_t* wanted
    double* beyond
    double* certificate


cdef struct Scratch:
    # Room for the columns of p and D in one piece, for the direction and the rates of the watched
    # rows, and for the system of the rows of p and D
    double* memory
    double* direction
    double* rates
    double* system
    double* c
    int* pivots
    Py_ssize_t* rows


cdef signed char follow(
    const Table* table,
    Path* path,
    Scratch* scratch,
    double largest_alpha,
    bint complete,
    Py_ssize_t most_segments,
) noexcept nogil
