# The tableau of a base set, as in `tableau`: its rows in order, and its columns.


cdef class Tableau:
    """The tableau of a base set, and what paths start with.

    The arrays of numbers of all rows stand one after the other in `numbers`.
    """

    cdef Base base
    cdef double* numbers
    cdef double* Z_of_all
    cdef double* value
    cdef double* lower
    cdef double* upper
    cdef Py_ssize_t* order
    cdef signed char* kind
    cdef object arrays  # keeps the arrays alive to which pointers lead

    def __dealloc__(self):
        free(self.numbers)
        free(self.Z_of_all)
        free(self.order)
        free(self.kind)
        free(<void*> self.base.Z)
        free(self.base.columns)
        free(self.base.spreads)
        free(self.base.z)

    cdef bint reserve(self, Py_ssize_t n, Py_ssize_t count) noexcept:
        """Make room for all arrays, and return whether there is memory."""
        cdef Base* base = &self.base
        cdef Py_ssize_t m = count - n
        self.numbers = <double*> malloc((14 * count + n) * sizeof(double))
        self.Z_of_all = <double*> malloc((m * n + 1) * sizeof(double))
        base.Z = <double*> malloc((m * n + 1) * sizeof(double))
        base.z = <double*> malloc(n * AT_ONCE * sizeof(double))
        self.order = <Py_ssize_t*> malloc(3 * count * sizeof(Py_ssize_t))
        self.kind = <signed char*> malloc(count)
        if self.numbers == NULL or self.Z_of_all == NULL or base.Z == NULL or base.z == NULL:
            return False
        if self.order == NULL or self.kind == NULL:
            return False
        base.y, base.costs = self.numbers, self.numbers + count
        base.alpha, base.excess = self.numbers + 2 * count, self.numbers + 3 * count
        base.rounding, base.roots = self.numbers + 4 * count, self.numbers + 5 * count
        base.sizes, base.distances = self.numbers + 6 * count, self.numbers + 7 * count
        base.squares, base.to_centroid = self.numbers + 8 * count, self.numbers + 9 * count
        base.K_h = self.numbers + 10 * count
        self.value, self.lower = self.numbers + 11 * count, self.numbers + 12 * count
        self.upper, base.ones = self.numbers + 13 * count, self.numbers + 14 * count
        base.rows, base.slot = self.order, self.order + count
        base.twin = self.order + 2 * count
        return True


cdef Tableau prepared(problem, K, state, base_rows, double largest):
    """Return the tableau of a state, or None if it cannot be made.

    That happens without memory, or if the kernel does not seem to be positive semi-definite.
    """
    in_bound, parked, gram, least_eigenvalue = base_rows
    cdef Tableau tableau = Tableau()
    cdef Base* base = &tableau.base
    cdef const double[:, ::1] matrix = K
    cdef const Py_ssize_t[::1] inside = in_bound, aside = parked
    cdef const double[::1] means = gram.row_means, costs = problem.costs
    cdef const double[::1] excess = state.excess
    cdef Py_ssize_t l = matrix.shape[0], n = inside.shape[0], m = 0, j
    # The hull of a single row is a point: all products with its Gram matrix vanish.
    L = gram.L if n > 1 else np.ones((1, 1), order="F")
    cdef const double[::1, :] factor = L
    among_others = np.ones(l, dtype=bool)
    among_others[in_bound] = False
    cdef const unsigned char[::1] is_other = among_others.view(np.uint8)
    others = np.empty(l, dtype=np.intp)
    cdef Py_ssize_t[::1] other = others
    for j in range(l):
        if is_other[j] and costs[j] > 0:
            other[m] = j
            m += 1
    if not tableau.reserve(n, n + m) or n + m < 2:
        return None
    base.l, base.n, base.count = l, n, n + m
    base.K, base.L, base.mean = &matrix[0, 0], &factor[0, 0], gram.mean
    tableau.arrays = (K, L)
    distances = np.empty((4, m))
    cdef double[:, ::1] of_others = distances
    cdef double limit = INDEFINITE * max(largest, fabs(gram.mean) + gram.scale)
    cdef bint is_definite
    base.is_definite = True
    if m:
        with nogil:
            is_definite = enter_distances(
                base, &inside[0], &other[0], m, &means[0], &excess[0], limit, tableau.Z_of_all,
                &of_others[0, 0])
        if not is_definite:
            return None
    order = distances[3].argsort(kind="stable")
    cdef const Py_ssize_t[::1] in_order = order
    cdef double scale = gram.scale
    if n == 1:
        scale = distances[1].mean()
    scale = max(scale, NEAR * largest)
    base.unit = exp2(round(log2(scale))) if scale > 0 else 1.0
    base.imbalance, base.largest = state.imbalance * base.unit, largest / base.unit
    base.least_eigenvalue = least_eigenvalue / base.unit
    cdef const double[::1] y = problem.y, alpha = state.alpha, rounding = state.rounding
    with nogil:
        enter_rows(tableau, &inside[0], &other[0], &in_order[0] if m else NULL, &means[0], &y[0],
                   &costs[0], &alpha[0], &excess[0], &rounding[0], &of_others[0, 0] if m else NULL)
        for j in range(aside.shape[0]):
            park(tableau, aside[j])
        finish(tableau)
        find_twins(base)
    return tableau


cdef bint enter_distances(
    Base* base, const Py_ssize_t* inside, const Py_ssize_t* other, Py_ssize_t m,
    const double* means, const double* excess, double limit, double* Z, double* found,
) noexcept nogil:
    """Enter ``L^-1 G_IO`` and, one after the other for all m rows, four kinds of numbers.

    These are the mean kernel value with the base, ``G_OO``, the squared distance from the hull of
    the base, and how far paths must reach to change the kind of a row. The result is whether no
    squared distance is clearly negative. `base.is_definite` says whether all of them are at least 0
    up to their rounding.
    """
    cdef Py_ssize_t i, o, n = base.n, l = base.l
    cdef const double* row
    cdef double* z
    cdef double total, square, mean = base.mean, rounding
    cdef int size = n
    for o in range(m):
        row, z, total = base.K + other[o] * l, Z + o * n, 0.0
        for i in range(n):
            z[i] = row[inside[i]]
            total += z[i]
        total /= n
        for i in range(n):
            z[i] = z[i] - means[i] - total + mean if n > 1 else 0.0
        found[o] = total
        found[m + o] = row[other[o]] - 2 * total + mean
    solve(b"N", n, m, base.L, n, Z, n)
    for o in range(m):
        square = found[m + o] - ddot(&size, Z + o * n, &ONE, Z + o * n, &ONE)
        if square < -limit:
            return False
        rounding = fabs(base.K[other[o] * (l + 1)]) + 2 * fabs(found[o]) + fabs(mean)
        if square < -RESIDUAL * (n + FEW) * UNIT_ROUNDING * rounding:
            base.is_definite = False
        square = max(square, 0.0)
        found[2 * m + o] = square
        total = sqrt(max(square + HULL_CHANGES / n * found[m + o], LEAST_SQUARE))
        found[3 * m + o] = max(fabs(excess[other[o]]) - ON_MARGIN, 0.0) / total
    return True


cdef void enter_rows(
    Tableau tableau, const Py_ssize_t* inside, const Py_ssize_t* other, const Py_ssize_t* order,
    const double* means, const double* y, const double* costs, const double* alpha,
    const double* excess, const double* rounding, const double* of_others,
) noexcept nogil:
    """Enter what is known of all rows, in tableau order."""
    cdef Base* base = &tableau.base
    cdef Py_ssize_t n = base.n, count = base.count, m = count - n, t, o, j
    cdef double* numbers = tableau.numbers
    cdef double own, unit = base.unit, diagonal
    cdef Py_ssize_t* rows = tableau.order
    for t in range(count):
        if t < n:
            j = inside[t]
            diagonal = fabs(base.K[j * base.l + j])
            own, numbers[8 * count + t], numbers[9 * count + t] = (
                base.K[j * base.l + j] - 2 * means[t] + base.mean, 0.0, means[t])
        else:
            o = order[t - n]
            j = other[o]
            diagonal = fabs(base.K[j * base.l + j])
            own = of_others[m + o]
            numbers[8 * count + t] = of_others[2 * m + o]
            numbers[9 * count + t] = of_others[o]
            memcpy(<double*> base.Z + (t - n) * n, tableau.Z_of_all + o * n, n * sizeof(double))
        rows[t] = j
        base.slot[t] = base.twin[t] = -1
        numbers[t] = y[j]
        numbers[count + t] = costs[j] * unit
        numbers[2 * count + t] = alpha[j] * unit
        numbers[3 * count + t] = excess[j]
        numbers[4 * count + t] = rounding[j]
        numbers[5 * count + t] = sqrt(diagonal / unit)
        numbers[7 * count + t] = max(own, 0.0) / unit  # becomes a distance later
        numbers[10 * count + t] = base.K[inside[0] * base.l + j] / unit
        if t < n:
            tableau.kind[t] = IN_BOUND
            tableau.value[t], tableau.lower[t] = alpha[j] * unit, 0.0
            tableau.upper[t] = costs[j] * unit
        elif alpha[j] == 0:
            tableau.kind[t] = ZERO
            tableau.value[t], tableau.lower[t], tableau.upper[t] = excess[j], 0.0, INFINITY
        else:
            tableau.kind[t] = BOUNDED
            tableau.value[t], tableau.lower[t], tableau.upper[t] = excess[j], -INFINITY, 0.0


cdef void park(Tableau tableau, Py_ssize_t row) noexcept nogil:
    """Enter that a row is in-bound, but not in the base."""
    cdef Py_ssize_t t
    for t in range(tableau.base.n, tableau.base.count):
        if tableau.base.rows[t] == row:
            tableau.kind[t] = PARKED
            tableau.value[t] = tableau.lower[t] = tableau.upper[t] = 0.0


cdef void finish(Tableau tableau) noexcept nogil:
    """Compute the distances and sizes on which the error bounds rely."""
    cdef Base* base = &tableau.base
    cdef Py_ssize_t n = base.n, count = base.count, t
    cdef double* distances = tableau.numbers + 7 * count
    cdef double* sizes = tableau.numbers + 6 * count
    cdef double* ones = tableau.numbers + 14 * count
    cdef double widest = 0.0, mean = 0.0, rounding
    base.R = base.radius = base.largest_root = 0.0
    for t in range(n):
        base.R = max(base.R, base.roots[t])
        widest = max(widest, distances[t])
        mean += distances[t] / n
        ones[t] = 1.0
    # Row t of L has the squared length G_tt + scale, where scale is the mean of all G_tt.
    base.reach = max(sqrt(widest + mean), base.R)
    for t in range(count):
        rounding = base.roots[t] * base.roots[t] + base.R * base.R
        rounding *= (4 * n + FEW) * UNIT_ROUNDING
        distances[t] = sqrt(distances[t] + rounding)
        sizes[t] = max(base.roots[t] + base.R, base.reach)
        base.largest_root = max(base.largest_root, base.roots[t])
        if t < n:
            base.radius = max(base.radius, distances[t])
    solve(b"N", n, 1, base.L, n, ones, n)


cdef void find_twins(Base* base) noexcept nogil:
    """Enter which rows on their margin have the label and the kernel values of a base row.

    The margins of such a row and of the base row are the same, whatever the dual variables are.
    """
    cdef Py_ssize_t t, a, n = base.n, l = base.l
    cdef const double* K_t
    for t in range(n, base.count):
        if fabs(base.excess[t]) > ON_MARGIN + base.rounding[t]:
            continue
        K_t = base.K + base.rows[t] * l
        for a in range(n):
            if K_t[base.rows[a]] != K_t[base.rows[t]] or base.y[a] != base.y[t]:
                continue
            if memcmp(K_t, base.K + base.rows[a] * l, l * sizeof(double)) == 0:
                base.twin[t] = a
                break


cdef Py_ssize_t n_watched(Tableau tableau, Py_ssize_t p, bint complete, double factor) noexcept nogil:
    """Return how many leading rows the path of a removed row should watch, as in `tableau`."""
    cdef Base* base = &tableau.base
    cdef Py_ssize_t low = base.n, high = base.count, middle
    cdef double radius, reach, margin = max(1 + base.excess[p], 0.0)
    if complete:
        radius = base.alpha[p] * hull_distance(base, p)
    else:
        radius = sqrt(base.alpha[p] * margin)
    radius *= factor
    while low < high:
        middle = (low + high) // 2
        reach = max(fabs(base.excess[middle]) - ON_MARGIN, 0.0) / hull_distance(base, middle)
        if reach <= radius:
            low = middle + 1
        else:
            high = middle
    return low


cdef inline double hull_distance(Base* base, Py_ssize_t t) noexcept nogil:
    """Return the distance of a row from the hull of the base, or of a base row from the centroid.

    Some base rows leave the hull along a path.
    """
    cdef double distance = base.distances[t]
    if t < base.n:
        return distance
    return sqrt(max(base.squares[t] / base.unit + HULL_CHANGES / base.n * distance * distance,
                    LEAST_SQUARE))


cdef void solve(
    char transposed, Py_ssize_t n, Py_ssize_t m, const double* L, Py_ssize_t stride, double* B,
    Py_ssize_t stride_of_B,
) noexcept nogil:
    """Solve triangular systems with a lower factor in Fortran order, in place."""
    cdef char left = b"L", lower = b"L", plain = b"N"
    cdef int height = n, count = m, of_L = stride, of_B = stride_of_B
    if m == 1:
        dtrsv(&lower, &transposed, &plain, &height, <double*> L, &of_L, B, &ONE)
        return
    dtrsm(&left, &lower, &transposed, &plain, &height, &count, &UNITY, <double*> L, &of_L, B, &of_B)


cdef bint has_room(Base* base, Py_ssize_t more) noexcept nogil:
    """Make room for more columns, and return whether there is memory for them."""
    cdef Py_ssize_t most = base.most_entries // base.width + 1, wanted
    cdef void* grown
    if base.filled + more <= base.capacity:
        return True
    if base.filled + more > most:
        return False
    wanted = min(max(base.filled + more, 2 * base.capacity), most)
    grown = realloc(base.columns, wanted * base.width * sizeof(double))
    if grown == NULL:
        return False
    base.columns = <double*> grown
    grown = realloc(base.spreads, wanted * sizeof(double))
    if grown == NULL:
        return False
    base.spreads = <double*> grown
    base.capacity = wanted
    return True


cdef Py_ssize_t add_own_columns(
    Base* base, const Py_ssize_t* at, const Py_ssize_t* order, Py_ssize_t start, Py_ssize_t end
) noexcept nogil:
    """Compute the columns of some removed rows, and return the position after the last of them."""
    cdef Py_ssize_t[512] wanted
    cdef Py_ssize_t count = 0, i = start, k
    while i < end and i - start < AT_ONCE:
        if base.slot[at[order[i]]] < 0:
            # Base rows come first; a batch has rows of one kind only.
            if count and (wanted[0] < base.n) != (at[order[i]] < base.n):
                break
            wanted[count] = at[order[i]]
            count += 1
        i += 1
    if count and not has_room(base, count):
        # Start anew with the memory that there is.
        for k in range(base.count):
            base.slot[k] = -1
        base.filled = 0
        i, count = start, 0
        while i < end and i - start < AT_ONCE:
            if count and (wanted[0] < base.n) != (at[order[i]] < base.n):
                break
            wanted[count] = at[order[i]]
            count += 1
            i += 1
        if not has_room(base, count):
            return start
    if count and not add_columns(base, wanted, count):
        return start
    return i


cdef bint add_columns(Base* base, const Py_ssize_t* wanted, Py_ssize_t m) noexcept nogil:
    """Compute the columns of m rows that are all in the base or all outside it."""
    cdef Py_ssize_t n = base.n, width = base.width, c, t, k, first
    cdef bint in_base = wanted[0] < n
    cdef double* z = base.z
    cdef double* column
    cdef const double* row
    cdef double share = 1.0 / n, total, factor
    cdef char transposed = b"T", plain = b"N"
    cdef int others = width - n, height = n, count = m, stride = width
    if not has_room(base, m):
        return False
    if in_base:
        # L^-1 e_i is 0 before i, and the mean is subtracted from the solution.
        first = n
        for c in range(m):
            first = min(first, wanted[c])
        for t in range(n * m):
            z[t] = 0.0
        for c in range(m):
            z[c * n + wanted[c]] = 1.0
        solve(b"N", n - first, m, base.L + first * (n + 1), n, z + first, n)
        for c in range(m):
            for t in range(n):
                z[c * n + t] -= share * base.ones[t]
    else:
        for c in range(m):
            memcpy(z + c * n, base.Z + (wanted[c] - n) * n, n * sizeof(double))
    column = base.columns + base.filled * width
    if others and m == 1:
        dgemv(&transposed, &height, &others, &UNITY, <double*> base.Z, &height, z, &ONE, &NOUGHT,
              column + n, &ONE)
    elif others:
        dgemm(&transposed, &plain, &others, &count, &height, &UNITY, <double*> base.Z, &height, z,
              &height, &NOUGHT, column + n, &stride)
    solve(b"T", n, m, base.L, n, z, n)
    for c in range(m):
        column = base.columns + (base.filled + c) * width
        k = wanted[c]
        total = 0.0
        for t in range(n):
            total += z[c * n + t]
        total /= n  # exact arithmetic would keep the sum at zero
        if in_base:
            for t in range(n):
                column[t] = (z[c * n + t] - total) * base.unit
            for t in range(n, width):
                column[t] += share
        else:
            for t in range(n):
                column[t] = -(z[c * n + t] - total + share)
            row = base.K + base.rows[k] * base.l
            factor = base.to_centroid[k] - base.mean
            for t in range(n, width):
                column[t] = (row[base.rows[t]] - base.to_centroid[t] - factor - column[t])
                column[t] /= base.unit
        total = 0.0
        for t in range(n):
            total += fabs(column[t])
        if not in_base:
            total += 1 + base.sizes[k] / base.reach
        base.spreads[base.filled + c] = total
        for t in range(width):
            column[t] *= base.y[t] * base.y[k]
        base.slot[k] = base.filled + c
    base.filled += m
    return True
