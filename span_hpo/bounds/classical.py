"""Classical bounds and estimates of the leave-one-out error from one fit.

Each of them is a function of the solution of a two-class problem, as `solve` returns it, and
returns a share of all rows. A row with cost 0, which takes no part in the fit, always counts as an
error if the fit misclassifies it.

None of them is a proof for weighted fits; each docstring says why. The bounds that are proven are
in `LeaveOneOut.error_bounds`. Where a problem has several solutions, as with equal rows, these
functions describe the solution that was found.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from span_hpo.errors import SolverError
from span_hpo.kernels import ALL, KernelBlocks, as_kernel_blocks, entry_range, is_held
from span_hpo.loo import largest_box_squared_span, span_exists
from span_hpo.runtime import BoolArray, FloatArray, read_only, real, rows_of
from span_hpo.solver import (
    DEFAULT_MAX_ITER,
    INDEFINITE,
    DualSolution,
    factored_gram,
    one_class_weights,
)

_BALL_TOLERANCE = 1e-6  # tolerance of squared distances, relative to the largest between two rows


def support_vectors(solution: DualSolution) -> float:
    """Return the share ``n / l`` of the support vectors of a solution.

    This is a bound wherever the offset is unique, because the removal of any other row does not
    change the fit (Vapnik, "Statistical learning theory", 1998).

    Examples
    --------
    The points 0 and 2 are support vectors; the point 3, which lies behind 2, is not.

    >>> from span_hpo import Linear, Problem, bounds, solve
    >>> problem = Problem(Linear()([[0], [2], [3]]), y=[-1, 1, 1], costs=[1, 1, 1])
    >>> round(bounds.support_vectors(solve(problem)), 3)
    0.667
    """
    return float(np.mean((solution.alpha > 0) | _is_outside_and_wrong(solution)))


def jaakkola_haussler(solution: DualSolution) -> float:
    """Return the share ``mean[alpha_p K_pp - y_p f(x_p) >= 0]`` of the rows of a solution.

    This is a bound for fits without an offset, and an estimate otherwise.

    References
    ----------
    Jaakkola and Haussler, "Probabilistic kernel regression models", 1999.

    Examples
    --------
    The points 0 and 2 have ``alpha_p = 1/2`` and ``y_p f(x_p) = 1``, and ``K_pp`` is 0 and 4.

    >>> from span_hpo import Problem, bounds, solve
    >>> bounds.jaakkola_haussler(solve(Problem([[0, 0], [0, 4]], y=[-1, 1], costs=[1, 1])))
    0.5
    """
    K_pp = solution.problem.K.diagonal()
    margins = solution.problem.y * solution.decision_values
    return float(np.mean(solution.alpha * K_pp - margins >= 0))


def opper_winther(solution: DualSolution) -> float:
    """Return ``mean[alpha_p / (K_SV^-1)_pp >= 1]`` over the kernel matrix of the support vectors.

    This is an estimate, which assumes that the support vectors stay the same, that all of them are
    at the margin, and that there is no offset. ``1 / (K_SV^-1)_pp`` is the squared distance of a
    row from the linear span of the others, which is the affine hull of these and the origin. Time
    grows with the third power of the number of support vectors and memory with the second,
    regardless of the memory limit. A kernel that is not positive semi-definite raises a
    `SolverError`.

    References
    ----------
    Opper and Winther, "Gaussian processes and SVM: mean field and leave-one-out", 2000.

    Examples
    --------
    Two orthogonal rows with the squared lengths 1 and 3 have ``alpha = 1/2``.

    >>> from span_hpo import Problem, bounds, solve
    >>> bounds.opper_winther(solve(Problem([[1, 0], [0, 3]], y=[-1, 1], costs=[1, 1])))
    0.5
    """
    support = rows_of(solution.alpha)
    with_origin = np.zeros((len(support) + 1, len(support) + 1))
    with_origin[:-1, :-1] = solution.problem.K.block(support, support)
    squared = factored_gram(with_origin).own_squared_distances()[:-1]
    is_error = _is_outside_and_wrong(solution)
    is_error[support] = solution.alpha[support] * squared >= 1
    return float(np.mean(is_error))


def xi_alpha(solution: DualSolution, *, spread: float | None = None) -> float:
    """Return ``mean[2 alpha_p R^2 + xi_p >= 1]`` with ``xi_p = max(0, 1 - y_p f(x_p))``.

    This is a bound if all costs are equal and some row is in-bound, and an estimate otherwise.

    Parameters
    ----------
    solution
        Solution of a two-class problem, as `solve` returns it.
    spread
        Value of ``R^2`` such that ``c <= K(x, x') <= c + R^2`` for some c. The default is the least
        value for the rows of the fit: their largest kernel value minus their smallest.

    Raises
    ------
    ValueError
        If `spread` is not a number of at least 0.

    References
    ----------
    Joachims, "Estimating the generalization performance of an SVM efficiently", 2000; Yang et al.,
    "Confirming robustness of fuzzy support vector machine via xi-alpha bound", 2015.

    Examples
    --------
    The points 1 and 3 are at the margin, with ``alpha = 1/2``; kernel values range from 0 to 16.

    >>> from span_hpo import Linear, Problem, bounds, solve
    >>> K = Linear()([[0], [1], [3], [4]])
    >>> solution = solve(Problem(K, y=[-1, -1, 1, 1], costs=[1, 1, 1, 1]))
    >>> bounds.xi_alpha(solution), bounds.xi_alpha(solution, spread=0.9)
    (0.5, 0.0)
    """
    if spread is None:
        least, largest = entry_range(solution.problem.K)
        spread = largest - least
    else:
        spread = real("spread", spread, at_least=0)
    slack = np.maximum(0.0, 1 - solution.problem.y * solution.decision_values)
    return float(np.mean(2 * solution.alpha * spread + slack >= 1))


def span_bound(solution: DualSolution, *, diameter: float | None = None) -> float:
    """Return ``(S sum_p max(D, 1 / sqrt(C_p)) alpha_p + k + m) / l``.

    The sum is over the in-bound rows p that have a box span (see `span_exists`), S is the largest
    of these spans, k is the number of other in-bound rows, m is the number of bounded rows, and D
    is the diameter of the smallest ball that holds all rows. This is Theorem 1 of Sarafis, Diou and
    Delopoulos, "Span error bound for weighted SVM with applications in hyperparameter selection".
    Its Lemma 2 can fail if a fit without p has no in-bound row, and the value is not proven then.

    Parameters
    ----------
    solution
        Solution of a two-class problem, as `solve` returns it.
    diameter
        Diameter D, if it is known already. It depends only on the kernel; see `enclosing_ball`.

    Returns
    -------
    Bound on the share of errors, which may exceed 1.

    Raises
    ------
    ValueError
        If `diameter` is not a number of at least 0, or if it is not given and the kernel matrix is
        not in memory.
    SolverError
        If the kernel is not positive semi-definite, or a quadratic program cannot be solved.

    Examples
    --------
    The points 0 and 4 are in-bound with ``alpha = 1/40``, so that S and D are 4; the others are
    bounded.

    >>> from span_hpo import Linear, Problem, bounds, solve
    >>> problem = Problem(Linear()([[0], [1], [3], [4]]), y=[-1, -1, 1, 1], costs=[0.2] * 4)
    >>> round(bounds.span_bound(solve(problem)), 3)
    0.7
    """
    problem, alpha = solution.problem, solution.alpha
    if diameter is None and not is_held(problem.K):
        raise ValueError(
            "`diameter` must be given for a kernel matrix that is not in memory, got None."
        )
    if diameter is None:
        diameter = enclosing_ball(problem.K).diameter
    else:
        diameter = real("diameter", diameter, at_least=0)
    has_span = solution.in_bound & span_exists(solution)
    S = np.sqrt(largest_box_squared_span(solution))
    total = S * np.sum(np.maximum(diameter, problem.costs[has_span] ** -0.5) * alpha[has_span])
    counted = (alpha > 0) & ~has_span | _is_outside_and_wrong(solution)
    return float((total + np.count_nonzero(counted)) / len(problem))


@dataclass(frozen=True, eq=False)
class EnclosingBall:
    """The smallest ball that holds all rows in feature space.

    Attributes
    ----------
    squared_radius
        Squared radius, ``R^2 = max_beta sum_i beta_i K_ii - beta' K beta`` over
        ``sum(beta) = 1, beta >= 0``.
    weights
        Maximiser ``beta``, shape (l,). The centre of the ball is ``sum_i beta_i x_i``.

    Examples
    --------
    >>> import numpy as np
    >>> from span_hpo import bounds
    >>> ball = bounds.EnclosingBall(squared_radius=4.0, weights=np.array([0.5, 0.5]))
    >>> ball.radius, ball.diameter
    (2.0, 4.0)
    """

    squared_radius: float
    weights: FloatArray

    @property
    def radius(self) -> float:
        """The radius ``R``."""
        return float(np.sqrt(self.squared_radius))

    @property
    def diameter(self) -> float:
        """The diameter ``D = 2 R``."""
        return 2 * self.radius


def enclosing_ball(K: Any) -> EnclosingBall:
    """Return the smallest ball around the rows of a kernel matrix.

    The ball is the solution of LIBSVM's one-class problem with ``Q_ij = K_ij - (K_ii + K_jj) / 2``,
    half the negative squared distance. On the simplex, this problem has the same minimum as that of
    the ball, for every kernel.

    Parameters
    ----------
    K
        Kernel matrix, shape (l, l), or an object that gives blocks of it.

    Returns
    -------
    The ball, with its radius and the weights of its centre.

    Raises
    ------
    TypeError, ValueError
        If K is not a kernel matrix, or does not fit into memory.
    SolverError
        If K is not positive semi-definite, or LIBSVM does not finish.

    Examples
    --------
    >>> from span_hpo import Linear, bounds
    >>> ball = bounds.enclosing_ball(Linear()([[0], [1], [4]]))
    >>> round(ball.radius, 3), ball.weights.round(3).tolist()
    (2.0, [0.5, 0.0, 0.5])
    """
    blocks: KernelBlocks = as_kernel_blocks(K)
    if not len(blocks):
        raise ValueError("`K` must have at least one row, got none.")
    if not is_held(blocks):
        raise ValueError(
            "`K` must be a kernel matrix that fits into memory, got one that does not."
        )
    values, diagonal = blocks.block(ALL, ALL), blocks.diagonal()
    Q = values - (diagonal[:, None] + diagonal) / 2
    farthest, size = -float(Q.min()), float(np.abs(diagonal).max())
    if float(Q.max()) > INDEFINITE * size:
        raise SolverError(
            "The kernel matrix is not positive semi-definite (a squared distance is "
            f"{-2 * float(Q.max()):.3g}), so there is no enclosing ball."
        )
    if farthest <= np.finfo(float).eps * size:  # all rows are the same
        return EnclosingBall(0.0, read_only(np.full(len(Q), 1 / len(Q))))
    Q /= farthest
    Q += 1.0  # between 0 and 1, which suits LIBSVM's single precision
    weights = one_class_weights(Q, _BALL_TOLERANCE, DEFAULT_MAX_ITER)
    used = rows_of(weights)
    beta = weights[used]
    inside = values[used[:, None], used]
    squared = float(beta @ diagonal[used] - beta @ inside @ beta)
    return EnclosingBall(max(0.0, squared), read_only(weights))


def _is_outside_and_wrong(solution: DualSolution) -> BoolArray:
    """Return a mask of the rows that take no part in the fit and are misclassified by it."""
    problem = solution.problem
    is_wrong: BoolArray = (problem.costs == 0) & (problem.y * solution.decision_values <= 0)
    return is_wrong
