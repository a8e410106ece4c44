"""Derivatives of radius-margin values with respect to costs and kernel values.

These values are products of two factors, which are optimal values of programs, or such a value plus
a term in the costs. By Danskin's theorem, the derivative of an optimal value is the partial
derivative of the function at the optimum:

===============================================  ==================  ===============================
factor                                           by ``K_ij``         by ``C_i``
===============================================  ==================  ===============================
``R^2``                                          ``beta_i [i = j]    0
                                                 - beta_i beta_j``
``|w|^2 + 2 sum_i C_i xi_i``                     ``- y_i alpha_i     ``2 xi_i``
                                                 y_j alpha_j``
``R~^2`` of the L2-SVM                           as ``R^2``          ``(beta_i^2 - beta_i) / C_i^2``
``|w~|^2`` of the L2-SVM                         ``- y_i alpha_i     ``xi_i^2``
                                                 y_j alpha_j``
===============================================  ==================  ===============================

The first factor of `smooth_radius_margin` is ``R^2 + penalty / l sum_i 1 / C_i`` over the l rows of
positive cost, so that ``- penalty / (l C_i^2)`` is added to the derivative of ``R^2`` by ``C_i``.

Each derivative in the table is valid if the optimum is unique, or if all optimal points give the
same number:

- The slacks ``xi`` are unique if the offset is. Where it is not, no row is in-bound, and every
  offset of an interval is optimal. The derivative in a direction is then the least one over these
  offsets, because the factor is a minimum over ``(w, b)`` of a function that is linear in the
  costs. All slacks are linear in the offset there, because they are convex and their weighted sum
  is constant. So the value has a derivative by a hyperparameter if that is the same at both ends
  of the interval, as with one cost for all rows, and a kink otherwise.
- Several dual variables ``alpha`` or weights ``beta`` are optimal if rows are equal. All of them
  give the same derivative as long as equal rows stay equal, as they do when a hyperparameter
  changes. If other rows depend on each other exactly, as on a grid with a polynomial kernel, the
  weights of the kernel are only a subgradient.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from span_hpo.bounds.ball import EnclosingBall, fit_ball
from span_hpo.bounds.l2_svm import L2Solution, l2_ball
from span_hpo.bounds.radius_margin import mean_inverse_cost, slacks, twice_the_optimum
from span_hpo.kernels import WeightBlock
from span_hpo.runtime import FloatArray, read_only, real, rows_of
from span_hpo.solver import DualSolution

_ENTRIES_AT_ONCE = 1_000_000  # weights of kernel values that are in memory together
_KINK = "The offset of the fit is not unique, so the value has a kink in the cost of each row."
_NOT_CONVERGED = "The fit has not converged, so that nothing is known about derivatives."


@dataclass(frozen=True, eq=False)
class BoundDerivatives:
    """A radius-margin value and its derivatives.

    Attributes
    ----------
    value
        The value itself.
    by_costs_at_ends
        Derivative by the cost of each row, shape (l,), which is 0 for rows with cost 0: one array
        if the offset is unique, one for each end of the interval of optimal offsets if it is not,
        and none if the fit has not converged.
    reason
        Why there is no single derivative by the costs, as a sentence, or an empty text.
    ball_weights
        Weights ``beta`` of the ball, shape (l,).
    ball_factor
        Derivative of the value by the squared radius.
    dual_weights
        Values ``y_i alpha_i``, shape (l,).
    dual_factor
        Derivative of the value by the other factor.

    Examples
    --------
    The derivative by the scale of the kernel values is the sum of their weights times the values.

    >>> import numpy as np
    >>> from span_hpo import Linear, Problem, bounds, solve
    >>> K = Linear()([[0], [2]])
    >>> fit = solve(Problem(K, y=[-1, 1], costs=[9, 9]))
    >>> found = bounds.smooth_radius_margin_derivatives(fit, penalty=0)
    >>> total = sum(float((K[np.ix_(i, j)] * weights).sum()) for i, j, weights in found.by_kernel())
    >>> round(found.value, 3), abs(round(total, 3))
    (1.0, 0.0)
    """

    value: float
    by_costs_at_ends: tuple[FloatArray, ...]
    reason: str
    ball_weights: FloatArray
    ball_factor: float
    dual_weights: FloatArray
    dual_factor: float

    @property
    def by_costs(self) -> FloatArray | None:
        """The derivative by the cost of each row, or None if there is not a single one."""
        return self.by_costs_at_ends[0] if len(self.by_costs_at_ends) == 1 else None

    def by_kernel(self) -> Iterator[WeightBlock]:
        """Yield rows, columns and weights with ``dL = sum_ij weights_ij dK_ij``, block by block.

        A kernel value may be part of two blocks. Blocks are formed one after the other, to limit
        the memory. There is none if the fit has not converged.
        """
        if not self.by_costs_at_ends:
            return
        for weights, factor, has_diagonal in (
            (self.ball_weights, self.ball_factor, True),
            (self.dual_weights, self.dual_factor, False),
        ):
            rows = rows_of(weights)
            own = weights[rows]
            at_once = max(1, _ENTRIES_AT_ONCE // max(1, len(rows)))
            for start in range(0, len(rows), at_once):
                part = slice(start, start + at_once)
                block = np.multiply.outer(-factor * own[part], own)
                if has_diagonal:
                    places = np.arange(len(rows))[part]
                    block[places - start, places] += factor * own[part]
                yield rows[part], rows, block


def smooth_radius_margin_derivatives(
    solution: DualSolution, *, penalty: float = 1.0, ball: EnclosingBall | None = None
) -> BoundDerivatives:
    """Return `smooth_radius_margin` and its derivatives by costs and kernel values.

    Parameters
    ----------
    solution
        Solution of a two-class problem, as `solve` returns it.
    penalty
        Weight of the inverse costs.
    ball
        The smallest ball around the rows of positive cost, if it is known already.

    Raises
    ------
    ValueError
        If `penalty` is not a number of at least 0, or `ball` is not given and the kernel matrix is
        not in memory.

    References
    ----------
    Chung, Kao, Sun, Wang and Lin, "Radius margin bounds for support vector machines with the RBF
    kernel", 2003, section 4.1, for one cost. See the module for costs per row.

    Examples
    --------
    Both points have a slack, and the offset is not unique:

    >>> from span_hpo import Linear, Problem, bounds, solve
    >>> fit = solve(Problem(Linear()([[0], [2]]), y=[-1, 1], costs=[0.25, 0.25]))
    >>> found = bounds.smooth_radius_margin_derivatives(fit)
    >>> [by_costs.round(3).tolist() for by_costs in found.by_costs_at_ends]
    [[-6.0, 4.0], [4.0, -6.0]]
    >>> print(found.reason)
    The offset of the fit is not unique, so the value has a kink in the cost of each row.
    """
    penalty, problem = real("penalty", penalty, at_least=0), solution.problem
    ball, costs = fit_ball(problem, ball), problem.costs
    mean, optimum = mean_inverse_cost(problem), twice_the_optimum(solution)
    size = ball.squared_radius + penalty * mean
    by_costs: tuple[FloatArray, ...] = ()
    reason = _NOT_CONVERGED
    if solution.is_optimal:
        has_part = costs > 0
        inverse = np.divide(1.0, costs, out=np.zeros(len(costs)), where=has_part)
        of_mean = -penalty * optimum * inverse**2 / np.count_nonzero(has_part)
        ends = (solution.b,) if solution.b_unique else solution.offset_limits.interval
        by_costs = tuple(read_only(2 * size * slacks(solution, b) + of_mean) for b in ends)
        reason = "" if len(ends) == 1 else _KINK
    return BoundDerivatives(
        value=size * optimum,
        by_costs_at_ends=by_costs,
        reason=reason,
        ball_weights=ball.weights,
        ball_factor=optimum,
        dual_weights=read_only(problem.y * solution.alpha),
        dual_factor=size,
    )


def l2_radius_margin_derivatives(
    solution: L2Solution, *, ball: EnclosingBall | None = None
) -> BoundDerivatives:
    """Return `l2_radius_margin` and its derivatives by costs and kernel values.

    The offset of an L2-SVM is always unique, and so are its dual variables and the weights of its
    ball, so that all derivatives exist. The weights of kernel values are those of K; the diagonal
    ``1 / C_i`` that is added to it is part of the derivative by the costs.

    Parameters
    ----------
    solution
        Solution of an L2-SVM, as `l2_solution` returns it.
    ball
        The `l2_ball` of the solution, if it is known already.

    References
    ----------
    Chung, Kao, Sun, Wang and Lin, "Radius margin bounds for support vector machines with the RBF
    kernel", 2003.

    Examples
    --------
    The value of two rows is 1, whatever their costs:

    >>> from span_hpo import Linear, Problem, bounds
    >>> fit = bounds.l2_solution(Problem(Linear()([[0], [2]]), y=[-1, 1], costs=[1, 1]))
    >>> bounds.l2_radius_margin_derivatives(fit).by_costs.round(12).tolist()
    [0.0, 0.0]
    """
    problem, ball = solution.problem, ball or l2_ball(solution)
    costs, beta = problem.costs, ball.weights
    R2, norm = ball.squared_radius, solution.squared_norm
    by_costs: tuple[FloatArray, ...] = ()
    if solution.hard_margin.is_optimal:
        inverse = np.divide(1.0, costs, out=np.zeros(len(costs)), where=costs > 0)
        of_ball = norm * (beta**2 - beta) * inverse**2
        by_costs = (read_only(of_ball + R2 * solution.slacks**2),)
    return BoundDerivatives(
        value=R2 * norm,
        by_costs_at_ends=by_costs,
        reason="" if by_costs else _NOT_CONVERGED,
        ball_weights=beta,
        ball_factor=norm,
        dual_weights=read_only(problem.y * solution.alpha),
        dual_factor=R2,
    )
