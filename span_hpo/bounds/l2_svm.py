"""The L2-SVM, whose slacks are squared, and its radius-margin bounds.

It minimises ``1/2 |w|^2 + 1/2 sum_i C_i xi_i^2``. In the space in which row i is
``(x_i, e_i / sqrt(C_i))``, with a coordinate of its own for each row, it is an SVM with a hard
margin. Its kernel matrix is ``K + diag(1 / C_i)``, and its weight vector ``w~`` satisfies
``|w~|^2 = |w|^2 + sum_i C_i xi_i^2 = sum_i alpha_i`` with ``alpha_i = C_i xi_i``.

The bounds are those of Chung, Kao, Sun, Wang and Lin, "Radius margin bounds for support vector
machines with the RBF kernel", 2003, with a cost per row. As there, they are numbers of rows rather
than shares, and without the factor 4 that makes two of them bounds of the number of leave-one-out
errors: `l2_radius_margin`, and `l2_distance_bound` if all costs are equal. They judge the L2-SVM
that they belong to, not an SVM whose slacks are not squared. A row with cost 0 takes no part in the
fit, and neither in the radius nor in a sum.
"""

from dataclasses import dataclass

import numpy as np

from span_hpo.bounds.ball import EnclosingBall, fit_ball
from span_hpo.errors import SolverError
from span_hpo.kernels import ALL, KernelMatrix, is_held
from span_hpo.runtime import FloatArray, Printable, rows_of
from span_hpo.solver import DEFAULT_MAX_ITER, DEFAULT_TOL, DualSolution, Problem, solve

_SPACE = 2.0  # upper bound of the dual variables in units of a value that they never exceed


@dataclass(frozen=True, eq=False, repr=False)
class L2Solution(Printable):
    """The solution of an L2-SVM.

    Attributes
    ----------
    problem
        The problem that was solved, with the costs ``C_i``.
    hard_margin
        The same fit as an SVM with a hard margin, on the kernel matrix ``K + diag(1 / C_i)``.

    Examples
    --------
    >>> from span_hpo import Linear, Problem, bounds
    >>> fit = bounds.l2_solution(Problem(Linear()([[0], [2]]), y=[-1, 1], costs=[1, 1]))
    >>> fit.alpha.round(3).tolist(), fit.decision_values.round(3).tolist()
    ([0.333, 0.333], [-0.667, 0.667])
    """

    problem: Problem
    hard_margin: DualSolution

    @property
    def alpha(self) -> FloatArray:
        """The dual variables, shape (l,)."""
        return self.hard_margin.alpha

    @property
    def b(self) -> float:
        """The offset, which is always unique."""
        return self.hard_margin.b

    @property
    def slacks(self) -> FloatArray:
        """The slacks ``xi_i = alpha_i / C_i``, and 0 for rows with cost 0, shape (l,)."""
        costs = self.problem.costs
        return np.divide(self.alpha, costs, out=np.zeros(len(costs)), where=costs > 0)

    @property
    def decision_values(self) -> FloatArray:
        """The values ``f(x_i)`` of all rows, shape (l,)."""
        values: FloatArray = self.hard_margin.decision_values - self.problem.y * self.slacks
        return values

    @property
    def squared_norm(self) -> float:
        """The squared length ``|w~|^2``, which is twice the value of the minimum."""
        return float(self.alpha.sum())

    def _summary(self) -> tuple[str, dict[str, str]]:
        title, lines = self.hard_margin._summary()
        return title.replace("DualSolution", "L2Solution"), lines


def l2_solution(
    problem: Problem, *, tol: float = DEFAULT_TOL, max_iter: int = DEFAULT_MAX_ITER
) -> L2Solution:
    """Fit an L2-SVM, in double precision.

    `solve` fits the SVM with a hard margin. Its dual variables have no upper bound, but their sum
    is ``|w~|^2``, which is at most ``4 P N / (P + N)``, the value of the best constant, for the
    sums P and N of the costs of the two classes. Each of them is at most half of this sum.

    Parameters
    ----------
    problem
        Kernel matrix, which must be in memory, labels and costs ``C_i``.
    tol, max_iter
        Tolerance and step limit of `solve`.

    Returns
    -------
    The solution. If it has not converged, a `ConvergenceWarning` is issued.

    Raises
    ------
    ValueError
        If the kernel matrix is not in memory.
    SolverError
        If the solver cannot give an answer, or if rows with tiny costs make ``1 / C_i`` overflow.

    Examples
    --------
    The slope of the decision function is 2/3. Without squares it would be 1.

    >>> from span_hpo import Linear, Problem, bounds
    >>> fit = bounds.l2_solution(Problem(Linear()([[0], [2]]), y=[-1, 1], costs=[1, 1]))
    >>> fit.slacks.round(3).tolist(), round(fit.squared_norm, 3)
    ([0.333, 0.333], 0.667)
    """
    if not is_held(problem.K):
        raise ValueError("`problem` must have a kernel matrix in memory, got one that is not.")
    costs, y = problem.costs, problem.y
    values = np.array(problem.K.block(ALL, ALL))
    kept = rows_of(costs)
    with np.errstate(over="ignore"):
        values[kept, kept] += 1 / costs[kept]
    if not np.isfinite(values[kept, kept]).all():
        raise SolverError("The inverse of a cost overflows. Raise the costs, or set them to 0.")
    of_classes = [float(costs[y == label].sum()) for label in (-1.0, 1.0)]
    largest = 2 / sum(1 / total for total in of_classes)
    box = np.where(costs > 0, _SPACE * largest, 0.0)
    fit = solve(
        Problem.of_checked(KernelMatrix(values), y, box),
        tol=tol,
        max_iter=max_iter,
    )
    if fit.bounded.any():
        raise SolverError("The fit of the L2-SVM has ended far from its solution.")
    return L2Solution(problem, fit)


def l2_ball(solution: L2Solution) -> EnclosingBall:
    """Return the smallest ball around the rows ``(x_i, e_i / sqrt(C_i))`` of positive cost.

    Examples
    --------
    >>> from span_hpo import Linear, Problem, bounds
    >>> fit = bounds.l2_solution(Problem(Linear()([[0], [2]]), y=[-1, 1], costs=[1, 1]))
    >>> round(bounds.l2_ball(fit).squared_radius, 3)  # (2^2 + 1 + 1) / 4
    1.5
    """
    return fit_ball(solution.hard_margin.problem)


def l2_radius_margin(solution: L2Solution, *, ball: EnclosingBall | None = None) -> float:
    """Return ``R~^2 |w~|^2``, the radius-margin bound of an L2-SVM.

    ``R~`` is the radius of the smallest ball around the rows ``(x_i, e_i / sqrt(C_i))``. Four times
    this value bounds the number of leave-one-out errors (eqs. 1.2 and 1.8 of the paper). If an RBF
    kernel becomes constant, the value approaches ``4 l1 l2 (l - 1) / l^2`` for classes of l1 and l2
    of l rows with one cost.

    Parameters
    ----------
    solution
        Solution of an L2-SVM, as `l2_solution` returns it.
    ball
        The `l2_ball` of the solution, if it is known already. It depends on the kernel and on the
        costs.

    References
    ----------
    Chung, Kao, Sun, Wang and Lin, "Radius margin bounds for support vector machines with the RBF
    kernel", 2003.

    Examples
    --------
    >>> from span_hpo import Linear, Problem, bounds
    >>> fit = bounds.l2_solution(Problem(Linear()([[0], [2]]), y=[-1, 1], costs=[1, 1]))
    >>> round(bounds.l2_radius_margin(fit), 3)  # 3/2 times 2/3
    1.0
    """
    return (ball or l2_ball(solution)).squared_radius * solution.squared_norm


def l2_distance_bound(solution: L2Solution, *, ball: EnclosingBall | None = None) -> float:
    """Return ``R^2 sum_i alpha_i + 1/2 sum_i alpha_i / C_i``.

    With one cost, this is ``(R^2 + 0.5 / C) |w~|^2`` (eq. 2.5 of the paper), which follows from the
    largest distance between two rows in place of the ball. The paper shows that minima of
    `l2_radius_margin` are better.

    Parameters
    ----------
    solution
        Solution of an L2-SVM, as `l2_solution` returns it.
    ball
        The smallest ball around the rows of positive cost, if it is known already. It depends only
        on the kernel; see `enclosing_ball`.

    References
    ----------
    Chung, Kao, Sun, Wang and Lin, "Radius margin bounds for support vector machines with the RBF
    kernel", 2003.

    Examples
    --------
    >>> from span_hpo import Linear, Problem, bounds
    >>> fit = bounds.l2_solution(Problem(Linear()([[0], [2]]), y=[-1, 1], costs=[1, 1]))
    >>> round(bounds.l2_distance_bound(fit), 3)  # (1 + 1/2) 2/3
    1.0
    """
    return _with_slacks(solution, 0.5, ball)


def l2_slack_bound(solution: L2Solution, *, ball: EnclosingBall | None = None) -> float:
    """Return ``R^2 sum_i alpha_i + 1/4 sum_i alpha_i / C_i``.

    With one cost, this is ``(R^2 + 0.25 / C) |w~|^2`` (eq. 2.7 of the paper), a quarter of
    ``D^2 sum_i alpha_i + sum_i xi_i``; see `diameter_slack_bound`. It is the least of the three
    values of the L2-SVM and has the worst minima, often where the kernel is constant. Even four
    times as much can be less than the number of leave-one-out errors: with a constant kernel and
    one cost, that is ``4 l1 l2 / l`` for classes of l1 and l2 of l rows.

    Parameters
    ----------
    solution
        Solution of an L2-SVM, as `l2_solution` returns it.
    ball
        The smallest ball around the rows of positive cost, if it is known already. It depends only
        on the kernel; see `enclosing_ball`.

    References
    ----------
    Chung, Kao, Sun, Wang and Lin, "Radius margin bounds for support vector machines with the RBF
    kernel", 2003.

    Examples
    --------
    >>> from span_hpo import Linear, Problem, bounds
    >>> fit = bounds.l2_solution(Problem(Linear()([[0], [2]]), y=[-1, 1], costs=[1, 1]))
    >>> round(bounds.l2_slack_bound(fit), 3)  # (1 + 1/4) 2/3
    0.833
    """
    return _with_slacks(solution, 0.25, ball)


def _with_slacks(solution: L2Solution, share: float, ball: EnclosingBall | None) -> float:
    ball = fit_ball(solution.problem, ball)
    return ball.squared_radius * solution.squared_norm + share * float(solution.slacks.sum())
