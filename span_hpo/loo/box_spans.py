"""Spans of support vectors under the box constraints: all of them, or only the largest.

The squared span of a support vector p is the minimum of ``|x_p - sum_i lambda_i x_i|^2`` over
``sum_i lambda_i = 1`` and ``0 <= alpha_i + y_i y_p alpha_p lambda_i <= C_i``, where i runs over the
in-bound rows I without p.
"""

import functools
import heapq

import numpy as np

from span_hpo.errors import SolverError
from span_hpo.loo.span_rule import span_exists, terms_of_program
from span_hpo.runtime import BoolArray, FloatArray, IndexArray, rows_of, runs_machine_code
from span_hpo.solver import BoxQP, DualSolution, shortened_in_box

_SINGLE_POINT = 1e-9  # slack of the sum, relative to the bounds, below which the box is one point
_SUM_ROUNDING = 1e-9  # rounding error of sum(lambda); a larger one comes from a singular matrix
_TIES = 1e-7  # relative difference below which two spans count as equal, to save programs
_PIVOTS = 20  # largest number of exchanges between the box and its boundary for one row
_SHORTENING_STEPS = 100_000  # largest number of steps of pairs of variables for one row
_SHORTENING_GAP = 1e-10  # gap at which pairs stop, for a matrix with a unit mean diagonal


def box_squared_spans(solution: DualSolution, *, in_bound_only: bool = False) -> FloatArray:
    """Return the squared spans of all support vectors under the box constraints.

    One quadratic program is solved for each support vector p:
    ``S_p^2 = min |x_p - sum_i lambda_i x_i|^2`` over ``sum_i lambda_i = 1`` and
    ``0 <= alpha_i + y_i y_p alpha_p lambda_i <= C_i``, where i runs over the in-bound rows I
    without p. An in-bound p stays among the variables, with ``lambda_p = -1`` and a sum of 0, so
    that all programs share one matrix.

    Parameters
    ----------
    solution
        Solution of a two-class problem, as `solve` returns it.
    in_bound_only
        Leave the spans of bounded rows out, so that they are NaN. Those of in-bound rows are then
        computed by exchanges between the box and its boundary, and by a program only where these
        do not end, which takes less time.

    Returns
    -------
    Squared spans, shape (l,): 0 for zero rows, and NaN where no ``lambda`` is feasible (see
    `span_exists`). They are never smaller than the free squared spans.

    Raises
    ------
    SolverError
        If the kernel is not positive semi-definite.

    Examples
    --------
    The points 1 and 3 are bounded. Their free spans are 0, but the box keeps them from being
    replaced.

    >>> from span_hpo import Linear, Problem, box_squared_spans, solve
    >>> solution = solve(Problem(Linear()([[0], [1], [3], [4]]), [-1, -1, 1, 1], [0.2] * 4))
    >>> box_squared_spans(solution).round(3).tolist()
    [16.0, 0.25, 0.25, 16.0]
    """
    squared = np.zeros(len(solution.problem))
    support = rows_of(solution.alpha)
    squared[support] = np.nan
    if not solution.in_bound.any():
        return squared
    box, has_span = BoxPrograms(solution), span_exists(solution)
    if not in_bound_only:
        for p in support[has_span[support]]:
            squared[p] = box.squared_span(p)
        return squared
    with_span = rows_of(has_span[box.in_bound])
    bounds = UpperBounds(box) if len(with_span) > 2 else None
    for k in with_span:
        p = box.in_bound[k]
        found, is_minimum = bounds.of_row(k) if bounds else (np.inf, False)
        squared[p] = found if is_minimum else min(found, box.squared_span(p))
    return squared


def largest_box_squared_span(solution: DualSolution) -> float:
    """Return the largest squared span of an in-bound row under the box constraints.

    Every feasible ``lambda`` gives an upper bound of its span, and rows are visited in decreasing
    order of such bounds. The first bound comes from the free minimum, drawn back into the box. The
    second comes from exchanges of variables between the box and its boundary, which usually end at
    the minimum. Where they do not, a third bound comes from moving pairs of variables, if that runs
    as machine code. A quadratic program is solved only for a row that is still on top after this.

    Parameters
    ----------
    solution
        Solution of a two-class problem.

    Returns
    -------
    The largest of `box_squared_spans` over the in-bound rows that have a span; 0 if none has one.

    Raises
    ------
    SolverError
        If the kernel is not positive semi-definite.
    """
    in_bound = rows_of(solution.in_bound)
    with_span = rows_of(span_exists(solution)[in_bound])
    if not len(with_span):
        return 0.0
    box = BoxPrograms(solution)
    if len(with_span) <= 2:
        return max(box.squared_span(p) for p in in_bound[with_span])
    bounds = UpperBounds(box)
    # The largest bound is on top; entries are (-bound, which bound it is, in-bound row).
    heap = [(-bound, 0, k) for bound, k in zip(bounds.of_all()[with_span], with_span, strict=True)]
    heapq.heapify(heap)
    largest = 0.0
    while heap and -heap[0][0] > largest * (1 + _TIES):
        bound, step, k = heapq.heappop(heap)
        if step == 0:
            squared, is_minimum = bounds.of_row(k)
            if is_minimum and squared <= -bound * (1 + _TIES):
                largest = max(largest, squared)
            else:
                heapq.heappush(heap, (max(bound, -squared), 1, k))
        elif step == 1 and runs_machine_code():
            heapq.heappush(heap, (max(bound, -bounds.by_pairs(k)), 2, k))
        else:
            largest = max(largest, min(-bound, box.squared_span(in_bound[k])))
    return largest


class BoxPrograms:
    """The quadratic programs of one fit, which share one matrix."""

    def __init__(self, solution: DualSolution) -> None:
        self.solution = solution
        self.in_bound = rows_of(solution.in_bound)
        problem = solution.problem
        self.y, self.alpha = problem.y[self.in_bound], solution.alpha[self.in_bound]
        self.room = problem.costs[self.in_bound] - self.alpha
        self.G = solution.gram.centred(problem.K.block(self.in_bound, self.in_bound))

    @functools.cached_property
    def scaled(self) -> FloatArray:
        """The matrix G, scaled to a unit mean diagonal."""
        return self.G / self.solution.gram.scale

    @functools.cached_property
    def qp(self) -> BoxQP:
        """The solver, with the matrix that all programs share."""
        return BoxQP(self.scaled)

    def limits(self, y_p: FloatArray, alpha_p: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the limits of ``lambda`` of the in-bound rows, with one column for each p."""
        is_same = self.y[:, None] == y_p
        give, take = self.alpha[:, None] / alpha_p, self.room[:, None] / alpha_p
        return np.where(is_same, -give, -take), np.where(is_same, take, give)

    def squared_span(self, p: int) -> float:
        """Return the squared span of support vector p, which must have one."""
        solution, gram, in_bound = self.solution, self.solution.gram, self.in_bound
        problem = solution.problem
        lower, upper = (side[:, 0] for side in self.limits(problem.y[[p]], solution.alpha[[p]]))
        if solution.in_bound[p]:
            lower[in_bound == p] = upper[in_bound == p] = -1.0
        G_Ip, G_pp, total = terms_of_program(solution, in_bound, p)
        if upper.sum() - total <= _SINGLE_POINT * np.abs(upper).sum():
            found = upper
        else:
            try:
                found = self.qp.solve(-G_Ip / gram.scale, total, lower, upper).x
            except SolverError:
                # Equal rows make the matrix singular. Pairs of variables make progress even then.
                share = (total - lower.sum()) / (upper - lower).sum()
                found = shortened_in_box(
                    self.scaled,
                    lower + share * (upper - lower),
                    lower,
                    upper,
                    _SHORTENING_GAP,
                    _SHORTENING_STEPS,
                    pull=G_Ip / gram.scale,
                )
        return max(0.0, float(G_pp - 2 * G_Ip @ found + found @ self.G @ found))


class UpperBounds:
    """Upper bounds of the squared spans of in-bound rows, from feasible points.

    Each column belongs to an in-bound row p. With ``lambda_p = -1`` and a sum of 0, the minimum of
    ``lambda' G lambda`` subject to ``lambda_F = v`` is at ``A_:F (A_FF)^-1 v``, where A is
    ``(M^-1)_II`` and F holds p and all other variables that are fixed.
    """

    def __init__(self, box: BoxPrograms) -> None:
        self.box = box
        self.A = box.solution.gram.precision()
        self.lower, self.upper = box.limits(box.y, box.alpha)
        # Eqs. 44, 45 and 50 of the paper: all rows take over the same share of their room.
        self.shared = np.where(self.upper > 0, self.upper, 0.0)
        np.fill_diagonal(self.shared, 0.0)
        total = self.shared.sum(axis=0)
        self.shared /= np.where(total > 0, total, 1.0)
        for limits in (self.lower, self.upper, self.shared):
            np.fill_diagonal(limits, -1.0)

    def of_all(self) -> FloatArray:
        """Return a bound for every in-bound row, from the free minimum drawn back into the box."""
        everyone = np.arange(len(self.A))
        points = self._feasible(-self.A / self.A.diagonal(), everyone)
        squared: FloatArray = np.einsum("ij,ij->j", points, self.box.G @ points)
        return np.maximum(squared, 0.0)

    def of_row(self, k: int) -> tuple[float, bool]:
        """Return a bound for the k-th in-bound row, and whether it is the minimum itself.

        Variables that leave the box are fixed at the limit that they have passed. Fixed variables
        whose multiplier has the wrong sign are released.
        """
        lower, upper = self.lower[:, k], self.upper[:, k]
        at_lower, at_upper = np.zeros(len(lower), bool), np.zeros(len(lower), bool)
        at_lower[k] = True  # row p itself, both of whose limits are -1
        ended = False
        for _ in range(_PIVOTS):
            fixed = rows_of(at_lower | at_upper)
            values = np.where(at_lower, lower, upper)[fixed]
            multipliers = _solved(self.A[np.ix_(fixed, fixed)], values)
            point = self.A[:, fixed] @ multipliers
            point[fixed] = values
            below, above = point < lower, point > upper
            below[fixed] = above[fixed] = False
            wrong = np.where(at_lower[fixed], multipliers < 0, multipliers > 0)
            wrong[fixed == k] = False
            ended = not (below.any() or above.any() or wrong.any())
            if ended:
                break
            at_lower[fixed[wrong]] = at_upper[fixed[wrong]] = False
            at_lower |= below
            at_upper |= above
        is_minimum = ended and bool(abs(point.sum()) <= _SUM_ROUNDING)
        found = point if is_minimum else self._feasible(point[:, None], np.array([k]))[:, 0]
        return max(0.0, float(found @ self.box.G @ found)), is_minimum

    def by_pairs(self, k: int) -> float:
        """Return a bound for the k-th in-bound row, by moving pairs of variables in the box.

        This converges slowly, but makes progress even with a nearly singular matrix.
        """
        start, lower, upper = (side[:, k] for side in (self.shared, self.lower, self.upper))
        found = shortened_in_box(
            self.box.scaled, start, lower, upper, _SHORTENING_GAP, _SHORTENING_STEPS
        )
        return max(0.0, float(found @ self.box.G @ found))

    def _feasible(self, points: FloatArray, columns: IndexArray) -> FloatArray:
        """Move from the shared room towards the given points, as far as the box allows."""
        start = self.shared[:, columns]
        is_sound = np.abs(points.sum(axis=0)) <= _SUM_ROUNDING
        step = np.where(is_sound, points - start, 0.0)
        room = np.where(step > 0, self.upper[:, columns] - start, start - self.lower[:, columns])
        size = np.abs(step)
        moves: BoolArray = size > room
        share = np.divide(room, size, out=np.ones_like(size), where=moves).min(axis=0)
        feasible: FloatArray = start + np.maximum(share, 0.0) * step
        return feasible


def _solved(A: FloatArray, values: FloatArray) -> FloatArray:
    """Return ``A^-1 values``, or the least-squares solution of least norm if A is singular."""
    found: FloatArray
    try:
        found = np.linalg.solve(A, values).astype(float, copy=False)
    except np.linalg.LinAlgError:
        found = np.linalg.lstsq(A, values)[0].astype(float, copy=False)
    return found
