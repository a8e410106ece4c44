"""Radius-margin values of a fit: the size of the data in feature space, relative to the margin.

Except for `radius_margin`, they come from Chung, Kao, Sun, Wang and Lin, "Radius margin bounds for
support vector machines with the RBF kernel", 2003, with a cost per row. As there, they are numbers
of rows rather than shares. They are meant to be minimised, and their minimum, not their value,
is what matters: only `diameter_slack_bound` bounds the number of leave-one-out errors, as long as
the kinds of the support vectors stay the same. The paper finds that the better minima belong to
looser bounds, which keep the search away from tiny costs.

R is the radius of the smallest ball around the rows of positive cost. The slacks are
``xi_i = max(0, 1 - y_i f(x_i))``. A row with cost 0 takes no part in the fit, and neither in the
radius nor in a sum. Where the offset of a fit is not unique, neither is the sum of its slacks, and
the middle of the interval of offsets counts; ``sum_i C_i xi_i`` is always unique.
"""

import numpy as np

from span_hpo.bounds.ball import EnclosingBall, fit_ball
from span_hpo.runtime import FloatArray, real
from span_hpo.solver import DualSolution, Problem


def radius_margin(solution: DualSolution, *, ball: EnclosingBall | None = None) -> float:
    """Return ``R^2 |w|^2``, which is ``R^2 / M^2`` for the margin ``M = 1 / |w|``.

    For a hard margin, it estimates the dimension that matters for the error of the fit (eq. 1 of
    Chapelle and Vapnik, "Model selection for support vector machines", 1999). For a soft margin, it
    ignores the slacks and is least for tiny costs, so that only fits with one set of costs should
    be compared by it. See `smooth_radius_margin` otherwise.

    Parameters
    ----------
    solution
        Solution of a two-class problem, as `solve` returns it.
    ball
        The smallest ball around the rows of positive cost, if it is known already. It depends only
        on the kernel; see `enclosing_ball`.

    Raises
    ------
    ValueError
        If `ball` is not given and the kernel matrix is not in memory.

    Examples
    --------
    The points 0 and 2 have the margin 1, and the ball has the radius 3/2.

    >>> from span_hpo import Linear, Problem, bounds, solve
    >>> fit = solve(Problem(Linear()([[0], [2], [3]]), y=[-1, 1, 1], costs=[9, 9, 9]))
    >>> round(bounds.radius_margin(fit), 3)
    2.25
    """
    return fit_ball(solution.problem, ball).squared_radius * squared_norm(solution)


def diameter_slack_bound(solution: DualSolution, *, ball: EnclosingBall | None = None) -> float:
    """Return ``D^2 sum_i alpha_i + sum_i xi_i`` with the diameter ``D = 2 R``.

    If the kinds of the support vectors stay the same when row p is left out, and p is then an
    error, ``alpha_p D^2 + xi_p >= 1`` (eq. 1.9 of the paper). Its minima lie at too small costs and
    too wide kernels.

    Parameters
    ----------
    solution
        Solution of a two-class problem, as `solve` returns it.
    ball
        The smallest ball around the rows of positive cost, if it is known already. It depends only
        on the kernel; see `enclosing_ball`.

    Raises
    ------
    ValueError
        If `ball` is not given and the kernel matrix is not in memory.

    References
    ----------
    Chung, Kao, Sun, Wang and Lin, "Radius margin bounds for support vector machines with the RBF
    kernel", 2003.

    Examples
    --------
    The points 0 and 2 have ``alpha = 1/4`` and the slack 1/2.

    >>> from span_hpo import Linear, Problem, bounds, solve
    >>> fit = solve(Problem(Linear()([[0], [2]]), y=[-1, 1], costs=[0.25, 0.25]))
    >>> round(bounds.diameter_slack_bound(fit), 3)  # 4 (1/4 + 1/4) + 1/2 + 1/2
    3.0
    """
    R2 = fit_ball(solution.problem, ball).squared_radius
    return 4 * R2 * float(solution.alpha.sum()) + float(slacks(solution).sum())


def radius_slack_bound(solution: DualSolution, *, ball: EnclosingBall | None = None) -> float:
    """Return ``R^2 sum_i alpha_i + sum_i xi_i`` (eq. 3.1 of the paper).

    Compared with `diameter_slack_bound`, slacks count four times as much.

    Parameters
    ----------
    solution
        Solution of a two-class problem, as `solve` returns it.
    ball
        The smallest ball around the rows of positive cost, if it is known already. It depends only
        on the kernel; see `enclosing_ball`.

    Raises
    ------
    ValueError
        If `ball` is not given and the kernel matrix is not in memory.

    References
    ----------
    Chung, Kao, Sun, Wang and Lin, "Radius margin bounds for support vector machines with the RBF
    kernel", 2003.

    Examples
    --------
    >>> from span_hpo import Linear, Problem, bounds, solve
    >>> fit = solve(Problem(Linear()([[0], [2]]), y=[-1, 1], costs=[0.25, 0.25]))
    >>> round(bounds.radius_slack_bound(fit), 3)  # 1/4 + 1/4 + 1/2 + 1/2
    1.5
    """
    R2 = fit_ball(solution.problem, ball).squared_radius
    return R2 * float(solution.alpha.sum()) + float(slacks(solution).sum())


def radius_cost_bound(solution: DualSolution, *, ball: EnclosingBall | None = None) -> float:
    """Return ``R^2 sum_i alpha_i + sum_i alpha_i / C_i``.

    With one cost, this is ``(R^2 + 1 / C) sum_i alpha_i`` (eq. 3.2 of the paper). It is never less
    than `radius_slack_bound` with one cost, and keeps the minimum away from tiny costs.

    Parameters
    ----------
    solution
        Solution of a two-class problem, as `solve` returns it.
    ball
        The smallest ball around the rows of positive cost, if it is known already. It depends only
        on the kernel; see `enclosing_ball`.

    Raises
    ------
    ValueError
        If `ball` is not given and the kernel matrix is not in memory.

    References
    ----------
    Chung, Kao, Sun, Wang and Lin, "Radius margin bounds for support vector machines with the RBF
    kernel", 2003.

    Examples
    --------
    >>> from span_hpo import Linear, Problem, bounds, solve
    >>> fit = solve(Problem(Linear()([[0], [2]]), y=[-1, 1], costs=[0.25, 0.25]))
    >>> round(bounds.radius_cost_bound(fit), 3)  # 1/4 + 1/4 + 1 + 1
    2.5
    """
    R2, kept = fit_ball(solution.problem, ball).squared_radius, solution.alpha > 0
    relative = solution.alpha[kept] / solution.problem.costs[kept]
    return R2 * float(solution.alpha.sum()) + float(relative.sum())


def smooth_radius_margin(
    solution: DualSolution, *, penalty: float = 1.0, ball: EnclosingBall | None = None
) -> float:
    """Return ``(R^2 + penalty * mean(1 / C_i)) (|w|^2 + 2 sum_i C_i xi_i)``.

    The mean is over the rows of positive cost. With one cost, this is eq. 3.3 of the paper. Both
    factors are optimal values of programs, so that they have derivatives almost everywhere, which
    `smooth_radius_margin_derivatives` gives.

    Parameters
    ----------
    solution
        Solution of a two-class problem, as `solve` returns it.
    penalty
        Weight of the inverse costs, which the paper calls Delta.
    ball
        The smallest ball around the rows of positive cost, if it is known already. It depends only
        on the kernel; see `enclosing_ball`.

    Raises
    ------
    ValueError
        If `penalty` is not a number of at least 0, or `ball` is not given and the kernel matrix is
        not in memory.

    References
    ----------
    Chung, Kao, Sun, Wang and Lin, "Radius margin bounds for support vector machines with the RBF
    kernel", 2003.

    Examples
    --------
    The weight vector has the length 1/2.

    >>> from span_hpo import Linear, Problem, bounds, solve
    >>> fit = solve(Problem(Linear()([[0], [2]]), y=[-1, 1], costs=[0.25, 0.25]))
    >>> round(bounds.smooth_radius_margin(fit), 3)  # (1 + 4) (1/4 + 1/2)
    3.75
    """
    penalty = real("penalty", penalty, at_least=0)
    R2 = fit_ball(solution.problem, ball).squared_radius
    return (R2 + penalty * mean_inverse_cost(solution.problem)) * twice_the_optimum(solution)


def squared_norm(solution: DualSolution) -> float:
    """Return ``|w|^2``, which is ``sum_i y_i alpha_i f(x_i)`` because ``sum(y alpha)`` is 0."""
    return float((solution.problem.y * solution.alpha) @ solution.decision_values)


def slacks(solution: DualSolution, b: float | None = None) -> FloatArray:
    """Return ``xi_i = max(0, 1 - y_i f(x_i))``, and 0 for rows with cost 0, shape (l,).

    Another optimal offset may be given in place of that of the solution.
    """
    problem, shift = solution.problem, 0.0 if b is None else b - solution.b
    lacking = np.maximum(0.0, -solution.excess - shift * problem.y)
    return np.where(problem.costs > 0, lacking, 0.0)


def twice_the_optimum(solution: DualSolution) -> float:
    """Return ``|w|^2 + 2 sum_i C_i xi_i = 2 sum_i alpha_i - |w|^2``."""
    return 2 * float(solution.alpha.sum()) - squared_norm(solution)


def mean_inverse_cost(problem: Problem) -> float:
    """Return the mean of ``1 / C_i`` over the rows of positive cost."""
    return float(np.mean(1 / problem.costs[problem.costs > 0]))
