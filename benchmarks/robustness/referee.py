"""The exact truth of a row that is in dispute, in rational numbers or in many digits.

Kernel matrix and costs are taken as they are: every double is a rational number. The dual problem
of `benchmarks.robustness.reference` is solved by principal pivoting. Rows inside their bounds are
stationary, one row at a time moves downhill while they answer, and ties are broken by the lowest
index after a step of length 0, so that no state is seen twice. The conditions of a solution are
checked at the end. In rational numbers nothing is rounded, and a margin of 0 is 0. With many rows,
numbers of `DIGITS` digits take their place.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

import mpmath

DIGITS = 120  # of the numbers that replace rational ones
_ZERO = mpmath.mpf(10) ** -60  # what is below this share of its terms is 0 in many digits
RATIONAL_ROWS = 16  # most rows of a problem that is solved in rational numbers by default
_STEPS = 60  # most steps for each row
Number = Any  # a Fraction or an mpf
Matrix = list[list[Number]]


class RefereeError(RuntimeError):
    """The matrix is so far from positive semi-definite that pivoting finds no solution."""


class Arithmetic(Protocol):
    """The numbers in which the referee computes."""

    def number(self, value: Any) -> Number:
        """Return the value as a number, without rounding if it is a double or a rational."""

    def is_zero(self, value: Number, size: Number) -> bool:
        """Return whether a value is 0, given the size of the terms that it was computed from."""

    def solved(self, A: Matrix, right: list[list[Number]]) -> list[list[Number]] | None:
        """Return the solutions of ``A x = r`` for each r, or None if A is singular."""


class Rational:
    """Rational numbers: nothing is rounded."""

    def number(self, value: Any) -> Fraction:
        """Return the value as a fraction."""
        return Fraction(value)

    def is_zero(self, value: Fraction, size: Fraction) -> bool:
        """Return whether the value is 0."""
        return value == 0

    def solved(
        self, A: list[list[Fraction]], right: list[list[Fraction]]
    ) -> list[list[Fraction]] | None:
        """Return the solutions of ``A x = r`` for each r, by elimination in integers (Bareiss)."""
        n = len(A)
        rows = []
        for i in range(n):
            exact = [*A[i], *(column[i] for column in right)]
            common = math.lcm(*(value.denominator for value in exact))
            rows.append([value.numerator * (common // value.denominator) for value in exact])
        previous = 1
        for k in range(n):
            place = next((i for i in range(k, n) if rows[i][k]), None)
            if place is None:
                return None
            rows[k], rows[place] = rows[place], rows[k]
            pivot_row, pivot = rows[k], rows[k][k]
            for i in range(n):
                if i == k:
                    continue
                factor, row = rows[i][k], rows[i]
                rows[i] = [
                    (pivot * value - factor * other) // previous
                    for value, other in zip(row, pivot_row, strict=True)
                ]
            previous = pivot
        return [[Fraction(rows[i][n + c], rows[i][i]) for i in range(n)] for c in range(len(right))]


class Digits:
    """Floating-point numbers of `DIGITS` digits; use within ``mpmath.workdps(DIGITS)``."""

    def number(self, value: Any) -> Any:
        """Return the value as a number of mpmath."""
        if isinstance(value, Fraction):
            return mpmath.mpf(value.numerator) / value.denominator
        return mpmath.mpf(value)

    def is_zero(self, value: Any, size: Any) -> bool:
        """Return whether the value is below what the digits resolve."""
        return bool(abs(value) <= _ZERO * size)

    def solved(self, A: Matrix, right: list[list[Number]]) -> list[list[Number]] | None:
        """Return the solutions of ``A x = r`` for each r, by elimination with scaled pivots."""
        n = len(A)
        rows = [[*A[i], *(column[i] for column in right)] for i in range(n)]
        sizes = [max(abs(value) for value in A[i]) for i in range(n)]
        for k in range(n):
            place = max(range(k, n), key=lambda i: abs(rows[i][k]) / sizes[i] if sizes[i] else 0)
            if not sizes[place] or abs(rows[place][k]) <= _ZERO * sizes[place]:
                return None
            rows[k], rows[place] = rows[place], rows[k]
            sizes[k], sizes[place] = sizes[place], sizes[k]
            pivot_row = rows[k]
            for i in range(k + 1, n):
                factor = rows[i][k] / pivot_row[k]
                if factor:
                    row = rows[i]
                    for c in range(k, n + len(right)):
                        row[c] -= factor * pivot_row[c]
        found = []
        for c in range(len(right)):
            x = [mpmath.mpf(0)] * n
            for i in range(n - 1, -1, -1):
                total = rows[i][n + c]
                for k in range(i + 1, n):
                    total -= rows[i][k] * x[k]
                x[i] = total / rows[i][i]
            found.append(x)
        return found


class _Program:
    """A dual problem and a feasible point that moves to its solution.

    `rows` are inside their bounds (or were put there), affinely independent and, between steps,
    stationary. All others are at a bound.
    """

    def __init__(
        self, arithmetic: Arithmetic, K: Matrix, y: Sequence[float], costs: Sequence[Number]
    ) -> None:
        number = arithmetic.number
        self.arithmetic, self.K = arithmetic, K
        self.y = [number(value) for value in y]
        zero = number(0)
        ends = [label * number(cost) for label, cost in zip(self.y, costs, strict=True)]
        self.lower = [min(zero, end) for end in ends]
        self.upper = [max(zero, end) for end in ends]
        self.beta = [zero for _ in self.y]
        self.rows: list[int] = []
        self.E = [-label for label in self.y]
        self.sizes = [abs(label) for label in self.y]

    def refresh(self) -> None:
        """Compute E anew, and the sizes of its terms."""
        support = [k for k, value in enumerate(self.beta) if value]
        for i, row in enumerate(self.K):
            terms = [row[k] * self.beta[k] for k in support]
            self.E[i] = sum(terms, -self.y[i])
            self.sizes[i] = sum((abs(term) for term in terms), abs(self.y[i]))

    def differences(self, j: int) -> list[Number]:
        """Return inner products of the differences to the first row, of the rows with row j."""
        K, r = self.K, self.rows[0]
        return [K[i][j] - K[i][r] - K[r][j] + K[r][r] for i in self.rows[1:]]

    def solved(self, right: list[list[Number]]) -> list[list[Number]]:
        """Solve with the Gram matrix of the differences to the first row."""
        found = self.arithmetic.solved([self.differences(i) for i in self.rows[1:]], right)
        if found is None:
            raise RefereeError("The rows inside their bounds are not independent.")
        return found

    def shares(self, j: int) -> tuple[list[Number], Number, Number]:
        """Return lambda of the rows for row j, S_j^2, and the size of its terms."""
        K, r = self.K, self.rows[0]
        right = self.differences(j)
        own = K[j][j] - 2 * K[r][j] + K[r][r]
        size = abs(K[j][j]) + 2 * abs(K[r][j]) + abs(K[r][r])
        (found,) = self.solved([right])
        terms = [a * b for a, b in zip(right, found, strict=True)]
        first = self.arithmetic.number(1) - sum(found)
        return [first, *found], own - sum(terms), size + sum(abs(term) for term in terms)

    def settle(self) -> None:
        """Make the rows stationary; rows that reach a bound leave."""
        while self.rows:
            self.refresh()
            E = self.E
            if len(self.rows) == 1:
                return
            (found,) = self.solved([[E[self.rows[0]] - E[i] for i in self.rows[1:]]])
            steps = [-sum(found), *found]
            length, first = self.arithmetic.number(1), None
            for i, step in zip(self.rows, steps, strict=True):
                share = self.share_to_bound(i, step)
                if share is not None and share < length:
                    length, first = share, i
            for i, step in zip(self.rows, steps, strict=True):
                self.beta[i] += length * step
            if first is None:
                self.refresh()
                return
            self.fix(first, upwards=dict(zip(self.rows, steps, strict=True))[first] > 0)

    def share_to_bound(self, i: int, step: Number) -> Number | None:
        """Return the share of a step at which row i reaches a bound; None if it stands still."""
        if step > 0:
            return (self.upper[i] - self.beta[i]) / step
        if step < 0:
            return (self.lower[i] - self.beta[i]) / step
        return None

    def fix(self, i: int, *, upwards: bool) -> None:
        """Put row i at a bound."""
        self.beta[i] = self.upper[i] if upwards else self.lower[i]
        self.rows.remove(i)

    def drive(self, j: int) -> bool:
        """Move row j downhill until it is stationary or at a bound; return whether it moved."""
        moved = False
        for _ in range(_STEPS):
            shares, square, size = self.shares(j)
            slope = self.E[j] - self.E[self.rows[0]]
            upwards = slope < 0
            sign = 1 if upwards else -1
            length = self.upper[j] - self.beta[j] if upwards else self.beta[j] - self.lower[j]
            first, joins = j, False
            if square > 0 and not self.arithmetic.is_zero(square, size):
                end = abs(slope) / square
                if end <= length:
                    length, joins = end, True
            for i, share in sorted(zip(self.rows, shares, strict=True)):
                reach = self.share_to_bound(i, -sign * share)
                if reach is not None and reach < length:
                    length, first, joins = reach, i, False
            moved = moved or bool(length)
            self.beta[j] += sign * length
            signs = dict(zip(self.rows, shares, strict=True))
            for i, share in signs.items():
                self.beta[i] -= sign * length * share
            self.refresh()
            if joins:
                self.rows.append(j)
                return moved
            if first == j:
                self.beta[j] = self.upper[j] if upwards else self.lower[j]
                return moved
            self.fix(first, upwards=-sign * signs[first] > 0)
            if not self.rows:
                self.rows = [j]
                return moved
        raise RefereeError("A row has moved through too many steps.")

    def start(self, beta: Sequence[float]) -> None:
        """Go to a point near the given one whose rows are independent and stationary."""
        number = self.arithmetic.number
        inside = []
        for i, value in enumerate(beta):
            self.beta[i] = min(max(number(float(value)), self.lower[i]), self.upper[i])
            width = self.upper[i] - self.lower[i]
            if self.beta[i] - self.lower[i] < width / 10**11:
                self.beta[i] = self.lower[i]
            elif self.upper[i] - self.beta[i] < width / 10**11:
                self.beta[i] = self.upper[i]
            else:
                inside.append(i)
        rest = -sum(self.beta)
        for i in [*inside, *range(len(beta))]:
            moved = min(max(self.beta[i] + rest, self.lower[i]), self.upper[i])
            rest -= moved - self.beta[i]
            self.beta[i] = moved
        self.refresh()
        inside = [i for i in range(len(beta)) if self.lower[i] < self.beta[i] < self.upper[i]]
        loose = []
        for i in inside:
            if self.rows:
                _, square, size = self.shares(i)
                if square <= 0 or self.arithmetic.is_zero(square, size):
                    loose.append(i)
                    continue
            self.rows.append(i)
        self.settle()
        for i in loose:
            if self.rows:
                self.drive(i)

    def violation(self) -> tuple[Number, int, int] | None:
        """Return the offset's two strictest rows (grow, fall) if they contradict each other."""
        grow = [i for i in range(len(self.y)) if self.beta[i] < self.upper[i]]
        fall = [i for i in range(len(self.y)) if self.beta[i] > self.lower[i]]
        i = min(grow, key=lambda k: self.E[k])
        j = max(fall, key=lambda k: self.E[k])
        excess = self.E[j] - self.E[i]
        if excess <= 0 or self.arithmetic.is_zero(excess, self.sizes[i] + self.sizes[j]):
            return None
        return excess, i, j

    def solve(self) -> None:
        """Move to the solution."""
        careful = False  # after a step of length 0, the lowest index enters
        for _ in range(_STEPS * len(self.y)):
            found = self.violation()
            if found is None:
                return
            _, i, j = found
            if not self.rows:
                self.rows = [i]
                careful = not self.drive(j)
                continue
            middle = self.E[self.rows[0]]
            candidates = [
                k
                for k in range(len(self.y))
                if k not in self.rows and self.lower[k] < self.upper[k] and self.can_enter(k)
            ]
            if not candidates:
                raise RefereeError("Rows inside their bounds are not stationary.")
            if careful:
                entering = candidates[0]
            else:
                entering = max(candidates, key=lambda k: abs(self.E[k] - middle))
            careful = not self.drive(entering)
        raise RefereeError("The solution was not reached within the limit of steps.")

    def check(self) -> None:
        """Make sure that the point is a solution: E anew, the bounds, the sum and all margins."""
        self.refresh()
        zero = self.arithmetic.is_zero
        excess = [
            max(low - value, value - high, low - low)
            for low, value, high in zip(self.lower, self.beta, self.upper, strict=True)
        ]
        widths = [high - low for low, high in zip(self.lower, self.upper, strict=True)]
        if (
            not zero(sum(self.beta), sum(widths))
            or not all(zero(*pair) for pair in zip(excess, widths, strict=True))
            or self.violation() is not None
        ):
            raise RefereeError("The point that was reached is not a solution.")

    def can_enter(self, k: int) -> bool:
        """Return whether row k, at a bound, contradicts the offset of the rows."""
        r = self.rows[0]
        slope = self.E[k] - self.E[r]
        if self.arithmetic.is_zero(slope, self.sizes[k] + self.sizes[r]):
            return False
        return bool(self.beta[k] < self.upper[k] if slope < 0 else self.beta[k] > self.lower[k])

    def offsets(self) -> tuple[Number, Number]:
        """Return the ends of the interval of optimal offsets."""
        everyone = range(len(self.y))
        low = max(-self.E[i] for i in everyone if self.beta[i] < self.upper[i])
        high = min(-self.E[i] for i in everyone if self.beta[i] > self.lower[i])
        return low, high

    def value(self, p: int) -> Number:
        """Return the decision value of row p, with the middle of the optimal offsets."""
        low, high = self.offsets()
        value = self.E[p] + self.y[p] + (low + high) / 2
        size = self.sizes[p] + abs(low) + abs(high)
        return self.arithmetic.number(0) if self.arithmetic.is_zero(value, size) else value


def exact_value(
    K: Matrix,
    y: Sequence[float],
    costs: Sequence[Number],
    p: int,
    start: Sequence[float] | None = None,
    *,
    rational: bool | None = None,
) -> Number:
    """Return the decision value of row p by the solution of the problem with these costs.

    Parameters
    ----------
    K
        Kernel matrix of doubles, fractions, or numbers of mpmath (not rational).
    y
        Labels, -1 or +1.
    costs
        Upper bounds of the dual variables; 0 for row p if it is left out.
    p
        The row.
    start
        ``beta`` of a point near the solution.
    rational
        Compute in rational numbers, otherwise in `DIGITS` digits; None for rational numbers if
        there are at most `RATIONAL_ROWS` rows.
    """
    if rational is None:
        rational = len(y) <= RATIONAL_ROWS
    arithmetic: Arithmetic = Rational() if rational else Digits()
    with mpmath.workdps(DIGITS):
        numbers = [[arithmetic.number(value) for value in row] for row in K]
        program = _Program(arithmetic, numbers, y, costs)
        if start is not None:
            program.start(start)
        program.solve()
        program.check()
        return program.value(p)


def is_positive_semidefinite(K: Matrix, *, rational: bool | None = None) -> bool:
    """Return whether ``beta' K beta >= 0`` for every beta with sum 0.

    The dual problem has no other beta. Symmetric elimination in order of the largest pivots: the
    matrix is positive semi-definite if no pivot is negative, and if what is left is 0 where all
    pivots are 0.
    """
    if rational is None:
        rational = len(K) <= RATIONAL_ROWS
    arithmetic: Arithmetic = Rational() if rational else Digits()
    with mpmath.workdps(DIGITS):
        K = [[arithmetic.number(value) for value in row] for row in K]
        rest = range(1, len(K))
        A = {(i, j): K[i][j] - K[i][0] - K[0][j] + K[0][0] for i in rest for j in rest}
        sizes = {i: abs(K[i][i]) + 2 * abs(K[i][0]) + abs(K[0][0]) for i in rest}
        left = list(rest)
        while left:
            k = max(left, key=lambda i: A[i, i])
            flat = [i for i in left if arithmetic.is_zero(A[i, i], sizes[i])]
            if any(A[i, i] < 0 for i in left if i not in flat):
                return False
            if k in flat:
                return all(
                    arithmetic.is_zero(A[i, j] ** 2, sizes[i] * sizes[j])
                    for i in left
                    for j in left
                )
            left.remove(k)
            for i in left:
                factor = A[i, k] / A[k, k]
                for j in left:
                    A[i, j] -= factor * A[k, j]
    return True
