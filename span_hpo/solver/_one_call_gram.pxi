# The factor of the Gram matrix about the centroid, and the spans, as in `centred_gram`.


cdef Status factor(Fit *fit, Py_ssize_t n) noexcept nogil:
    """Copy the matrix of the n rows W, and factor it about their centroid."""
    cdef Py_ssize_t i, j, stride = padded(n), l = fit.l
    cdef Gram *gram = &fit.gram
    cdef double *K_WW
    cdef double *H
    cdef double *row_means = gram.row_means
    cdef const double *K_i
    cdef double total, mean, size, scale, trace, noise, limit, shift, jitter = 0.0
    cdef int order = <int>n, leading = <int>stride, info, attempt
    cdef char lower = b"L"
    if not (reserve(&fit.K_WW, stride * stride) and reserve(&fit.H, stride * stride)):
        return NO_MEMORY
    K_WW, H = fit.K_WW.data, fit.H.data
    mean = size = trace = gram.largest = 0.0
    for i in range(n):
        K_i = fit.K + fit.W[i] * l
        total = 0.0
        for j in range(n):
            K_WW[i * stride + j] = K_i[fit.W[j]]
            total += K_i[fit.W[j]]
        for j in range(n, stride):
            K_WW[i * stride + j] = 0.0
        row_means[i] = total / n
        mean += row_means[i]
        trace += K_i[fit.W[i]]
        size += fabs(K_i[fit.W[i]])
        gram.largest = max(gram.largest, fabs(K_i[fit.W[i]]))
    mean /= n
    size /= n
    if size == 0.0:
        size = 1.0
    scale = trace / n - mean
    if scale <= PIVOT_NOISE * size:
        scale = size  # all rows coincide up to rounding, and any positive scale will do
    noise, limit = PIVOT_NOISE * size, INDEFINITE_ * size
    for attempt in range(2):
        for j in range(n):
            shift = row_means[j] - (mean + scale)
            for i in range(j, n):
                H[j * stride + i] = K_WW[j * stride + i] - row_means[i] - shift
            H[j * stride + j] += jitter
        dpotrf(&lower, &order, H, &leading, &info)
        fit.work += work_of_factor(n)
        if info == 0:
            for i in range(n):
                if not H[i * stride + i] * H[i * stride + i] >= noise:
                    info = 1
            if info == 0:
                gram.n = n
                gram.stride = stride
                gram.mean = mean
                gram.scale = scale
                gram.jitter = jitter
                gram.L = H
                return FITTED
        jitter = min(limit, max(FIRST_JITTER * scale, 2 * noise))
    return SINGULAR


cdef double solved(Gram *gram, const double *rhs, double total, double *x) noexcept nogil:
    """Solve ``K_WW x + b 1 = rhs`` with ``1'x = total`` for x, and return b."""
    cdef Py_ssize_t i, n = gram.n
    cdef int order = <int>n, leading = <int>gram.stride, one = 1, info
    cdef char lower = b"L"
    cdef double level = 0.0, missing = 0.0, b
    for i in range(n):
        x[i] = rhs[i] - (gram.row_means[i] - gram.mean) * total
        level += x[i]
    level /= n
    for i in range(n):
        x[i] -= level
    dpotrs(&lower, &order, &one, gram.L, &leading, x, &order, &info)
    for i in range(n):
        missing += x[i]
    # In exact arithmetic, the sum would be zero.
    missing = (total - missing) / n
    b = level
    for i in range(n):
        x[i] += missing
        b -= gram.row_means[i] * x[i]
    return b


cdef Status squared_spans(Fit *fit) noexcept nogil:
    """Compute the free squared spans of all rows from the factor."""
    cdef Py_ssize_t i, j, k, count, done = 0, m = 0, n = fit.gram.n, stride = fit.gram.stride
    cdef Gram *gram = &fit.gram
    cdef double *inverse
    cdef double *column
    cdef double *means = fit.wanted  # of the kernel values of a bounded row with the in-bound rows
    cdef double *squares = fit.moved
    cdef const double *K_i
    cdef const Py_ssize_t *rows
    cdef double total, border, centre, worst, size, one = 1.0
    cdef int order = <int>n, leading = <int>stride, n_rows, at_once = AT_ONCE, info
    cdef char lower = b"L", right = b"R", plain = b"N", transposed = b"T"
    for i in range(fit.l):
        fit.spans[i] = 0.0
        if fit.alpha[i] > 0 and not is_inside(fit, i):
            fit.spans[i] = NAN
            fit.bounded[m] = i
            m += 1
    if n == 0:
        return FITTED
    if not reserve(&fit.columns, max(stride * AT_ONCE, stride * stride)):
        return NO_MEMORY
    worst, size = 0.0, fabs(gram.mean) + gram.scale
    while done < m:
        # One column for each in-bound row, so that rows of K are read from left to right.
        rows = fit.bounded + done
        count = min(AT_ONCE, m - done)
        for k in range(count):
            means[k] = squares[k] = 0.0
        for i in range(n):
            K_i = fit.K + fit.W[i] * fit.l
            column = fit.columns.data + i * AT_ONCE
            for k in range(count):
                column[k] = K_i[rows[k]]
            for k in range(count):
                means[k] += column[k]
        for k in range(count):
            means[k] /= n
        for i in range(n):
            column = fit.columns.data + i * AT_ONCE
            centre = gram.row_means[i] - gram.mean
            for k in range(count):
                column[k] = column[k] - means[k] - centre
        n_rows = <int>count
        dtrsm(&right, &lower, &transposed, &plain, &n_rows, &order, &one, gram.L, &leading,
              fit.columns.data, &at_once)
        for i in range(n):
            column = fit.columns.data + i * AT_ONCE
            for k in range(count):
                squares[k] += column[k] * column[k]
        for k in range(count):
            total = fit.K[rows[k] * fit.l + rows[k]]
            size = max(size, fabs(total))
            total = total - 2 * means[k] + gram.mean - squares[k]
            worst = min(worst, total)
            # A value slightly below zero is due to rounding: the row lies in the hull.
            fit.spans[rows[k]] = max(total, 0.0)
        done += count
    if worst < -INDEFINITE_ * size:
        return NEGATIVE_SPAN
    inverse = fit.columns.data
    for j in range(n):
        memcpy(inverse + j * stride + j, gram.L + j * stride + j, (n - j) * sizeof(double))
    dtrtri(&lower, &plain, &order, inverse, &leading, &info)
    border = 1 / (n * (n * gram.scale + gram.jitter))
    for j in range(n):
        total = 0.0
        for i in range(j, n):
            total += inverse[j * stride + i] * inverse[j * stride + i]
        fit.inverse_diagonal[j] = total
        fit.spans[fit.W[j]] = 1 / (total - border) if n > 1 else NAN
    return FITTED
