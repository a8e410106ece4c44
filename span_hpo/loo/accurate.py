"""Leave-one-out values of single rows beyond double precision.

Where rows differ by orders of magnitude, or a value is close to 0, the rounding of margins leaves
the sign of a leave-one-out value open. A point of `span_hpo.solver.extended` is then improved until
the bounds of `span_hpo.loo.ends` decide the sign, or no step makes it better.
"""

import math
from dataclasses import dataclass

import numpy as np

from span_hpo.loo.ends import end_errors, upper_squares
from span_hpo.loo.proofs import ACCURATE
from span_hpo.runtime import FloatArray, IndexArray, are_short, rows_of
from span_hpo.solver import (
    ONE_ROUNDING,
    ROUNDED_UP,
    ExtendedPoint,
    Problem,
    kernel_rounding,
    row_gaps,
)

_STEPS = 60  # largest number of steps
_MOST_PRODUCTS = 5_000_000  # number of exact products, about half a second, to give up after
_UNDERFLOW = 1e-250  # absolute error of a value whose digits may have underflowed


@dataclass(frozen=True)
class AccurateValue:
    """A leave-one-out value and a bound on its error.

    Attributes
    ----------
    margin
        Margin ``y_p f^p(x_p)``.
    accuracy
        Proven bound on the error of the margin; infinite if nothing is proven.
    kernel_error
        Bound on the error of the margin if the kernel values are rounded themselves, in any way
        that leaves the matrix positive semi-definite; 0 if they seem exact.
    """

    margin: float
    accuracy: float
    kernel_error: float = 0.0

    @property
    def is_proven(self) -> bool:
        """Whether the sign of the margin is proven, where 0 counts as negative."""
        return self.margin > self.accuracy or self.margin <= -self.accuracy

    @property
    def allowance(self) -> float:
        """What the accuracy allows for the rounding of kernel values.

        Rounding can make the matrix slightly indefinite. The accuracy becomes worse because of it,
        but neither the proven sign nor the kind of the value changes.
        """
        return min(self.kernel_error, ACCURATE, abs(self.margin) / 2)

    def allowing_for_kernel(self) -> "AccurateValue":
        """Return the value with an accuracy that allows for the rounding of kernel values."""
        return AccurateValue(self.margin, max(self.accuracy, self.allowance))


def accurate_value(
    problem: Problem, p: int, alpha: FloatArray, wanted: float = ACCURATE
) -> AccurateValue:
    """Return the leave-one-out value of one row, accurate enough to prove its sign if possible.

    Parameters
    ----------
    problem
        Kernel matrix, labels and costs.
    p
        The row, whose class must keep another row with a positive cost.
    alpha
        Dual variables that are close to the solution without p, shape (l,).
    wanted
        Accuracy to be reached in addition to a proof of the sign, in units of the margin, if the
        rounding of kernel values allows for it.
    """
    start = alpha.copy()
    start[p] = 0.0
    point = ExtendedPoint(problem.K, problem.y, problem.without(p).costs, start)
    best = AccurateValue(0.0, math.inf)
    for _ in point.steps(_STEPS, _MOST_PRODUCTS):
        value = _value if point.inside.any() else _free_value
        found = value(problem, point, p)
        best = min(best, found, key=lambda value: value.accuracy)
        # Digits beyond those of the kernel values would not improve the accuracy.
        if found.is_proven and found.accuracy <= max(wanted, found.allowance):
            break
    return best.allowing_for_kernel()


def _value(problem: Problem, point: ExtendedPoint, p: int) -> AccurateValue:
    """Return the value of p, and what is proven about it, if some row is inside its box."""
    row, rows = np.array([p]), rows_of(point.inside)
    minus = [-number for number in point.offset]
    margin = float(point.y[p] * point.sums([(row, 1.0)], np.zeros(1), minus)[0])
    excess = -point.y * point.residual
    gaps = row_gaps(excess, point.error, point.alpha, point.above)
    diagonal = point.diagonal
    squares = upper_squares(diagonal[p], diagonal[rows], problem.K.block(row, rows)[0])

    def least_error(gap: float) -> float:
        errors = end_errors(
            np.array(gap * ROUNDED_UP),
            squares,
            np.minimum(point.alpha, point.above)[rows],
            np.abs(excess[rows]) + point.error[rows],
            point.roots[rows],
            abs(point.imbalance) * ROUNDED_UP,
        )
        return float(errors.min())

    error = least_error(float(gaps.sum()))
    with_kernel = least_error(_gap_with_kernel(point))
    return _judged(problem, point, np.append(rows, p), margin, error, with_kernel)


def _gap_with_kernel(point: ExtendedPoint) -> float:
    """Return how far the dual may be from its maximum if the kernel values are rounded."""
    rounding = kernel_rounding(point.roots * (point.alpha @ point.roots))
    excess = -point.y * point.residual
    return float(row_gaps(excess, point.error + rounding, point.alpha, point.above).sum())


def _judged(
    problem: Problem,
    point: ExtendedPoint,
    rows: IndexArray,
    margin: float,
    error: float,
    with_kernel: float,
) -> AccurateValue:
    """Return a value with its bounds; a class that depends on rounded last bits is not proven."""
    if margin:
        error += ONE_ROUNDING * abs(margin) + _UNDERFLOW
    support = rows_of(point.alpha)
    # One row is enough to see that kernel values are rounded.
    if all(are_short(problem.K.block(part, support)) for part in (rows[:1], rows)):
        return AccurateValue(margin, error)
    error += float(kernel_rounding(point.roots[rows].max() * (point.alpha @ point.roots)))
    return AccurateValue(margin, error, with_kernel)


def _free_value(problem: Problem, point: ExtendedPoint, p: int) -> AccurateValue:
    """Return the value of p with the middle of the offsets, if no row is inside its box.

    If the dual variables balance exactly and the limits of the offset agree, they are optimal, and
    the sign of the value is that of an exact sum.
    """
    lower, upper = point.limits
    if point.imbalance != 0 or point.worst_conflict()[2] > 0:
        return AccurateValue(0.0, math.inf)
    low, high = point.largest(lower, 1.0), point.largest(-upper, -1.0)
    terms = [(np.array([j]), factor) for j, factor in ((p, 2.0), (low, -1.0), (high, -1.0))]
    ends = np.array([point.y[low] + point.y[high]])
    margin = float(point.y[p] * point.sums(terms, ends, [])[0] / 2)
    with_kernel = 2 * float(point.roots.max()) * math.sqrt(2 * _gap_with_kernel(point))
    return _judged(problem, point, np.array([low, high, p]), margin, 0.0, with_kernel)
