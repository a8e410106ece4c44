"""Checks of the states at which paths have stopped, without Python's lock; see `check`."""

from libc.math cimport INFINITY, fabs, sqrt

import numpy as np

from span_hpo.loo import ends
from span_hpo.loo.path import check, segments
from span_hpo.runtime import ROUNDING_UNIT as PYTHON_ROUNDING_UNIT
from span_hpo.runtime.loops cimport maximum, minimum
from span_hpo.solver import NEGLIGIBLE_GAP as PYTHON_NEGLIGIBLE_GAP
from span_hpo.solver import ROUNDED_UP as PYTHON_ROUNDED_UP

cdef signed char END = segments.END, ERROR = segments.ERROR
cdef double ROUNDING_UNIT = PYTHON_ROUNDING_UNIT, ROUNDED_UP = PYTHON_ROUNDED_UP
cdef double NEGLIGIBLE_GAP = PYTHON_NEGLIGIBLE_GAP, FEW_ROUNDINGS = check._FEW_ROUNDINGS
cdef double SOLVED = check._SOLVED, IMBALANCE = check._IMBALANCE
cdef double SQUARE_ROUNDING = ends._SQUARE_ROUNDING, LEAST_ROOM = ends._LEAST_ROOM


cdef class Rows:
    """The arrays of a `View` and what is computed on its rows for one path after the other."""

    cdef const Py_ssize_t[:] place
    cdef const double[::1] y, costs, alpha, excess, rounding, roots, distances
    cdef const double[:, ::1] own, products, imbalance
    cdef const unsigned char[:, ::1] holders
    cdef const double[::1] whole, left, products_of_p, square, spread, K_pp, rounding_of_p
    cdef const double[::1] distance_of_p
    cdef const double[:, :] K_p
    cdef double unit
    cdef double[2] allowed
    cdef Py_ssize_t n_base, width, count
    cdef const double[::1] table_y, margin_of_path, start_margin
    cdef const Py_ssize_t[::1] row
    cdef const signed char[::1] outcome
    # The state of one path, as in `_CheckedState`, and the costs of its rows, 0 for the removed one
    cdef double[::1] new_alpha, new_excess, new_rounding, new_costs
    cdef double margin, margin_rounding, movement, level

    def __init__(self, view, table, paths):
        self.place = view.place
        self.y, self.costs, self.alpha, self.excess = view.y, view.costs, view.alpha, view.excess
        self.rounding, self.roots, self.distances = view.rounding, view.roots, view.distances
        self.own, self.products = np.ascontiguousarray(view.own), view.products
        self.imbalance = np.ascontiguousarray(view.imbalance)
        self.holders = np.ascontiguousarray(view.holders).view(np.uint8)
        self.whole, self.left, self.products_of_p = view.whole, view.left, view.products_of_p
        self.square, self.spread, self.K_pp = view.square, view.spread, view.K_pp
        self.rounding_of_p, self.distance_of_p = view.rounding_of_p, view.distance_of_p
        self.K_p = view.K_p
        self.unit = view.n_terms * ROUNDING_UNIT + FEW_ROUNDINGS
        self.allowed[0], self.allowed[1] = view.allowed
        self.n_base, self.width, self.count = table.n_base, view.own.shape[1], len(view.y)
        self.table_y, self.row = table.y, paths.row
        self.margin_of_path, self.start_margin = paths.margin, paths.start_margin
        self.outcome = paths.outcome
        self.new_alpha, self.new_excess, self.new_rounding, self.new_costs = np.empty(
            (4, self.count)
        )

    cdef void enter_state(self, Py_ssize_t k, Py_ssize_t i) noexcept nogil:
        """Enter the state of path k, which is number i of the view."""
        cdef Py_ssize_t place = self.place[i], n_holders = 0, t
        cdef double y_p = self.table_y[self.row[k]], unit = self.unit, spread = self.spread[i]
        cdef double shift, total = 0.0, low, high, most, of_spread
        cdef const double* y = &self.y[0]
        cdef const double* before = &self.excess[0]
        cdef const double* rounding_before = &self.rounding[0]
        cdef const double* roots = &self.roots[0]
        cdef const double* products = &self.products[i, 0]
        cdef double* excess = &self.new_excess[0]
        cdef double* rounding = &self.new_rounding[0]
        for t in range(self.width):
            self.new_alpha[t] = self.own[i, t]
        for t in range(self.width, self.count):
            self.new_alpha[t] = self.alpha[t]
        for t in range(self.count):
            self.new_costs[t] = self.costs[t]
            excess[t] = before[t] + y[t] * products[t]
        if place >= 0:
            self.new_alpha[place] = self.new_costs[place] = 0.0
        self.margin = self.start_margin[k] + y_p * self.products_of_p[i]
        for t in range(self.width):
            if self.holders[i, t]:
                n_holders += 1
                total += y[t] * excess[t]
        if n_holders > 0:
            # In-bound rows have margin 1.
            shift = -total / n_holders
        elif self.outcome[k] == END:
            # No row holds the offset: take the middle of the interval that the rows allow.
            low, high = -INFINITY, INFINITY
            for t in range(self.count):
                if t != place:
                    low = maximum(low, self.lower_end(t))
                    high = minimum(high, self.upper_end(t))
            shift = (low + high) / 2
        else:
            shift = y_p * (self.margin_of_path[k] - self.margin)
        of_spread = unit * spread
        for t in range(self.count):
            rounding[t] = rounding_before[t] + of_spread * roots[t]
            rounding[t] += FEW_ROUNDINGS * (
                1 + fabs(shift) + fabs(before[t]) + fabs(excess[t])
            )
        self.movement = sqrt(
            (0.0 if 0.0 > self.square[i] else self.square[i]) + 2 * unit * (spread * spread)
        )
        total, most = 0.0, -INFINITY
        for t in range(self.n_base):
            total += products[t]
            most = maximum(most, rounding[t])
        self.level = fabs(total / self.n_base + shift) + most
        for t in range(self.count):
            excess[t] += shift * y[t]
        self.margin_rounding = self.rounding_of_p[i] + of_spread * sqrt(fabs(self.K_pp[i]))
        self.margin_rounding += FEW_ROUNDINGS * (1 + fabs(shift) + 2 * fabs(self.margin))
        self.margin += y_p * shift

    cdef inline double lower_end(self, Py_ssize_t t) noexcept nogil:
        """Return the lower limit that a row puts on the offset, as `offset_ends` does."""
        cdef double alpha = self.new_alpha[t], y = self.y[t]
        if (alpha < self.costs[t]) if y > 0 else (alpha > 0):
            return y - (y + y * self.new_excess[t])
        return -INFINITY

    cdef inline double upper_end(self, Py_ssize_t t) noexcept nogil:
        """Return the upper limit that a row puts on the offset, as `offset_ends` does."""
        cdef double alpha = self.new_alpha[t], y = self.y[t]
        if (alpha > 0) if y > 0 else (alpha < self.costs[t]):
            return y - (y + y * self.new_excess[t])
        return INFINITY

    cdef double least_gap(
        self, Py_ssize_t i, double largest, double least_eigenvalue, double radius
    ) noexcept nogil:
        """Return how far the dual may be from its maximum, by the better bound of `solver.gaps`."""
        cdef double gap = 0.0, curved, length, level, change_of_p
        cdef Py_ssize_t t
        for t in range(self.count):
            gap += row_gap(
                self.new_excess[t],
                self.new_rounding[t],
                self.new_alpha[t],
                self.new_costs[t] - self.new_alpha[t],
            )
        if least_eigenvalue > 0 and gap * largest > NEGLIGIBLE_GAP:
            curved = self.curved_gap(i, least_eigenvalue, radius, &length, &level)
            # Rows outside the view must not be concerned either.
            if (
                self.movement + length <= self.allowed[0]
                and self.level + level + length * radius <= self.allowed[1]
            ):
                change_of_p = length * (self.distance_of_p[i] + radius) + level
                curved += self.left[i] * change_of_p
                gap = curved if curved < gap else gap
        return gap * ROUNDED_UP

    cdef double curved_gap(
        self, Py_ssize_t i, double least_eigenvalue, double radius, double* length, double* level
    ) noexcept nogil:
        """Return the bound that uses the curvature, and enter the length of v and the largest g."""
        cdef double size, above, others = 0.0, squares = 0.0, centre = -INFINITY
        cdef Py_ssize_t t
        level[0] = 0.0
        for t in range(self.n_base):
            size = 0.0
            if self.new_alpha[t] > 0 and self.new_costs[t] - self.new_alpha[t] > 0:
                size = fabs(self.new_excess[t]) + self.new_rounding[t]
            squares += size * size
            level[0] = maximum(level[0], size)
            centre = maximum(centre, self.roots[t])
        length[0] = sqrt(squares / least_eigenvalue)
        for t in range(self.count):
            above = self.new_costs[t] - self.new_alpha[t]
            if t < self.n_base and self.new_alpha[t] > 0 and above > 0:
                continue
            others += row_gap(
                self.new_excess[t],
                self.new_rounding[t] + length[0] * (self.distances[t] + radius) + level[0],
                self.new_alpha[t],
                above,
            )
        # The offset changes with the weight vector, which counts where the sum y'alpha is not 0.
        return (
            others
            + 0.5 * length[0] * length[0]
            + self.bound_on_imbalance(i) * (length[0] * centre + level[0])
        )

    cdef inline double bound_on_imbalance(self, Py_ssize_t i) noexcept nogil:
        """Return an upper bound of ``|y'alpha|``."""
        return fabs(self.imbalance[i, 0]) + self.imbalance[i, 1]

    cdef double repair(self, double imbalance) noexcept nogil:
        """Return how much the dual may fall when the dual variables are made to balance exactly."""
        cdef double price, raises = INFINITY, lowers = INFINITY
        cdef bint can_grow, can_fall
        cdef Py_ssize_t t
        for t in range(self.count):
            price = fabs(self.new_excess[t]) + self.new_rounding[t]
            price += 0.5 * imbalance * self.roots[t] * self.roots[t]
            can_grow = self.new_costs[t] - self.new_alpha[t] >= imbalance
            can_fall = self.new_alpha[t] >= imbalance
            if can_grow if self.y[t] > 0 else can_fall:
                raises = minimum(raises, price)
            if can_fall if self.y[t] > 0 else can_grow:
                lowers = minimum(lowers, price)
        return imbalance * (lowers if lowers > raises else raises)

    cdef double end_error(self, Py_ssize_t i, double gap, double imbalance) noexcept nogil:
        """Return the least bound on the error of the margin of p that a watched row gives."""
        cdef double alpha, room, square, S, excess, left, q, root, error, K_kk, least = INFINITY
        cdef double K_pp = self.K_pp[i]
        cdef Py_ssize_t t
        for t in range(self.width):
            alpha = self.new_alpha[t]
            room = minimum(alpha, self.new_costs[t] - alpha) - imbalance
            if not room > LEAST_ROOM:
                continue
            K_kk = self.roots[t] * self.roots[t]
            square = maximum(K_pp + K_kk - 2 * self.K_p[i, t], 0.0)
            square += SQUARE_ROUNDING * (fabs(K_pp) + fabs(K_kk))
            excess = fabs(self.new_excess[t]) + self.new_rounding[t]
            left = imbalance * self.roots[t]
            q = gap + 0.5 * left * left + excess * imbalance
            S, root = sqrt(square), sqrt(2 * q)
            error = S * root if root <= room * S else 0.5 * room * square + q / room
            least = minimum(least, (error + S * left + excess) * ROUNDED_UP)
        return least

    cdef bint is_solved(self) noexcept nogil:
        """Return whether no margin is violated by more than a solution may violate it."""
        cdef double too_low, too_high
        cdef Py_ssize_t t
        for t in range(self.count):
            too_low = -self.new_excess[t] * (self.new_alpha[t] < self.new_costs[t])
            too_high = self.new_excess[t] * (self.new_alpha[t] > 0)
            if not maximum(too_low, too_high) <= SOLVED + self.new_rounding[t]:
                return False
        return True


cdef inline double row_gap(
    double excess, double rounding, double alpha, double above
) noexcept nogil:
    """Return an upper bound on how much a row can still raise the dual, as `row_gaps` does."""
    return maximum(
        maximum(rounding - excess, 0.0) * above, maximum(rounding + excess, 0.0) * alpha
    )


def _check_paths(
    view,
    beyond,
    table,
    paths,
    some,
    sound,
    double largest,
    double least_eigenvalue,
    double radius,
    findings,
):
    """Enter what the states of some of the paths prove, none of which leaves the offset free."""
    cdef Rows rows = Rows(view, table, paths)
    cdef const Py_ssize_t[:] chosen = some
    cdef const unsigned char[::1] is_sound = sound.view(np.uint8)
    cdef double[::1] margin = findings.margin, accuracy = findings.accuracy
    cdef unsigned char[::1] solved = findings.solved.view(np.uint8)
    cdef unsigned char[::1] proven = findings.proven.view(np.uint8)
    cdef const Py_ssize_t[::1] place = beyond.place, moving = beyond.rows, holders = beyond.holder
    cdef const double[::1] step = beyond.step, square = beyond.square, lefts = beyond.imbalance
    cdef const double[:, ::1] sizes = beyond.sizes
    cdef double imbalance, gap, path, lost, left, price
    cdef Py_ssize_t i, k, j, t, holder
    with nogil:
        for i in range(chosen.shape[0]):
            k, imbalance = chosen[i], rows.bound_on_imbalance(i)
            if not is_sound[i] or imbalance > IMBALANCE * rows.whole[i]:
                continue
            rows.enter_state(k, i)
            if rows.movement > rows.allowed[0] or rows.level > rows.allowed[1]:
                continue
            gap = rows.least_gap(i, largest, least_eigenvalue, radius)
            if rows.outcome[k] == END:
                margin[k] = rows.margin
                accuracy[k] = rows.end_error(i, gap, imbalance) + rows.margin_rounding
                solved[k] = True
                # A state that is farther from the solution than its bounds tell is improved first.
                proven[k] = rows.is_solved() and fabs(rows.margin) > accuracy[k]
            elif rows.outcome[k] == ERROR:
                gap += rows.repair(imbalance)
                margin[k] = rows.margin + rows.margin_rounding + gap / rows.left[i]
                proven[k] = margin[k] < 0
            elif place[i] >= 0:
                j = place[i]
                holder, left = holders[j], lefts[j]
                if holder < 0:
                    continue
                path = sqrt(square[j]) + left * rows.roots[holder]
                lost = 0.0
                for t in range(moving.shape[0]):
                    price = fabs(rows.new_excess[moving[t]]) + rows.new_rounding[moving[t]]
                    lost += sizes[j, t] * price
                price = fabs(rows.new_excess[holder]) + rows.new_rounding[holder]
                lost = 0.5 * path * path + lost + left * price
                margin[k] = rows.margin - rows.margin_rounding
                margin[k] -= (lost + gap) / step[j] * ROUNDED_UP
                proven[k] = margin[k] > 0


def _check_free_ends(view, table, paths, some, sound, balanced, findings):
    """Enter what ends prove at which no row is strictly inside its box; see `loo.ends`."""
    cdef Rows rows = Rows(view, table, paths)
    cdef const Py_ssize_t[:] chosen = some
    cdef const unsigned char[::1] is_sound = sound.view(np.uint8)
    cdef const unsigned char[::1] is_balanced = balanced.view(np.uint8)
    cdef double[::1] margin = findings.margin, accuracy = findings.accuracy
    cdef unsigned char[::1] solved = findings.solved.view(np.uint8)
    cdef unsigned char[::1] proven = findings.proven.view(np.uint8)
    cdef double low, low_least, low_most, high, high_least, high_most, end, rounding, error
    cdef Py_ssize_t i, k, t
    with nogil:
        for i in range(chosen.shape[0]):
            k = chosen[i]
            if not is_sound[i]:
                continue
            rows.enter_state(k, i)
            margin[k] = rows.margin
            solved[k] = True
            low = low_least = low_most = -INFINITY
            high = high_least = high_most = INFINITY
            for t in range(rows.count):
                if t == rows.place[i]:
                    continue
                rounding, end = rows.new_rounding[t], rows.lower_end(t)
                low = maximum(low, end)
                low_least = maximum(low_least, end - rounding)
                low_most = maximum(low_most, end + rounding)
                end = rows.upper_end(t)
                high = minimum(high, end)
                high_least = minimum(high_least, end - rounding)
                high_most = minimum(high_most, end + rounding)
            if is_balanced[i] and low_most <= high_least:
                error = larger(low_most - low, low - low_least)
                error += larger(high_most - high, high - high_least)
                accuracy[k] = 0.5 * error * ROUNDED_UP + rows.margin_rounding
                proven[k] = fabs(rows.margin) > accuracy[k]


cdef inline double larger(double a, double b) noexcept nogil:
    """Return the larger number, as Python's max does."""
    return b if b > a else a
