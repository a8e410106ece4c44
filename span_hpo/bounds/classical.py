"""Bounds and estimates of the leave-one-out error from one fit, beside the span-rule.

Each is a function of a `DualSolution` and returns a share of the rows. Rows with cost 0, which take
no part in the fit, are errors of all of them where the fit classifies them wrongly.

None of them is a proof for weighted fits (each says why); `leave_one_out` proves what it tells in
`LeaveOneOut.error_bounds`. Where a fit has several solutions, as with equal rows, they are about
the one that was found.
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

_BALL_TOLERANCE = 1e-6  # of squared distances from the centre, relative to the largest between rows


def support_vectors(solution: DualSolution) -> float:
    """Return ``n / l``: a row that is no support vector is classified as before.

    A bound wherever the offset is unique.

    Parameters
    ----------
    solution
        A fit.

    Returns
    -------
    Share of all rows.

    References
    ----------
    Vapnik, "Statistical learning theory", 1998.
    """
    return float(np.mean((solution.alpha > 0) | _is_outside_and_wrong(solution)))


def jaakkola_haussler(solution: DualSolution) -> float:
    """Return ``mean[alpha_p K_pp - y_p f(x_p) >= 0]``.

    A bound for fits without an offset, an estimate otherwise.

    Parameters
    ----------
    solution
        A fit.

    Returns
    -------
    Share of all rows.

    References
    ----------
    Jaakkola and Haussler, "Probabilistic kernel regression models", 1999.
    """
    K_pp = solution.problem.K.diagonal()
    margins = solution.problem.y * solution.decision_values
    return float(np.mean(solution.alpha * K_pp - margins >= 0))


def opper_winther(solution: DualSolution) -> float:
    """Return ``mean[alpha_p / (K_SV^-1)_pp >= 1]`` over the kernel matrix of the support vectors.

    An estimate, which assumes that the support vectors stay the same, that all of them are at the
    margin, and that there is no offset. ``1 / (K_SV^-1)_pp`` is the squared distance of a row from
    the linear span of the others, which is the affine hull of these and the origin. Time and memory
    grow with the third and second power of the support vectors, whatever the memory limit.

    Parameters
    ----------
    solution
        A fit.

    Returns
    -------
    Share of all rows.

    Raises
    ------
    SolverError
        If the kernel is not positive semi-definite.

    References
    ----------
    Opper and Winther, "Gaussian processes and SVM: mean field and leave-one-out", 2000.
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

    A bound if all costs are equal and some row is in-bound; with weights an estimate.

    Parameters
    ----------
    solution
        A fit.
    spread
        ``R^2`` with ``c <= K(x, x') <= c + R^2`` for some c; by default the least that holds for
        the rows of the fit, their largest kernel value less their smallest.

    Returns
    -------
    Share of all rows.

    Raises
    ------
    ValueError
        If `spread` is not a number of at least 0.

    References
    ----------
    Joachims, "Estimating the generalization performance of an SVM efficiently", 2000; Yang et al.,
    "Confirming robustness of fuzzy support vector machine via xi-alpha bound", 2015.
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

    The sum is over the in-bound rows p that have a box span (`span_exists`), S is the largest of
    these, k counts the other in-bound rows, m the bounded ones, and D is the diameter of the
    smallest ball that holds all rows. It may exceed 1. Theorem 1 of the paper, whose Lemma 2 can
    fail where a fit without p has no in-bound row: no proof then.

    Parameters
    ----------
    solution
        A fit.
    diameter
        D, if it is known: it depends on the kernel only (`enclosing_ball`).

    Returns
    -------
    Share of all rows, if below 1.

    Raises
    ------
    ValueError
        If `diameter` is not a number of at least 0, or is not given for a kernel matrix that does
        not fit into memory.
    SolverError
        If the kernel is not positive semi-definite, or a quadratic program cannot be solved.

    References
    ----------
    Sarafis, Diou and Delopoulos, "Span error bound for weighted SVM with applications in
    hyperparameter selection", Theorem 1.
    """
    problem, alpha = solution.problem, solution.alpha
    if diameter is None and not is_held(problem.K):
        raise ValueError("`diameter` must be given where the kernel matrix is not in memory.")
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
        ``R^2 = max_beta sum_i beta_i K_ii - beta' K beta`` over ``sum(beta) = 1, beta >= 0``.
    weights
        The maximum ``beta``, shape (l,): its centre is ``sum_i beta_i x_i``.
    """

    squared_radius: float
    weights: FloatArray

    @property
    def radius(self) -> float:
        """R."""
        return float(np.sqrt(self.squared_radius))

    @property
    def diameter(self) -> float:
        """``D = 2 R``."""
        return 2 * self.radius


def enclosing_ball(K: Any) -> EnclosingBall:
    """Return the smallest ball around the rows of a kernel matrix.

    LIBSVM's one-class problem on ``Q_ij = K_ij - (K_ii + K_jj) / 2``, half the negative squared
    distance, which on the simplex has the same minimum as the ball for every kernel.

    Parameters
    ----------
    K
        Kernel matrix, shape (l, l), or an object that gives blocks of it.

    Returns
    -------
    Radius and centre.

    Raises
    ------
    TypeError, ValueError
        If K is no kernel matrix, or one that does not fit into memory.
    SolverError
        If K is not positive semi-definite, or LIBSVM does not finish.
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
            f"{-2 * float(Q.max()):.3g}), so that there is no ball."
        )
    if farthest <= np.finfo(float).eps * size:  # all rows are the same
        return EnclosingBall(0.0, read_only(np.full(len(Q), 1 / len(Q))))
    Q /= farthest
    Q += 1.0  # within 0 and 1, as LIBSVM's single precision likes it
    weights = one_class_weights(Q, _BALL_TOLERANCE, DEFAULT_MAX_ITER)
    used = rows_of(weights)
    beta = weights[used]
    inside = values[used[:, None], used]
    squared = float(beta @ diagonal[used] - beta @ inside @ beta)
    return EnclosingBall(max(0.0, squared), read_only(weights))


def _is_outside_and_wrong(solution: DualSolution) -> BoolArray:
    """Tell which rows have no part in the fit and are misclassified by it."""
    problem = solution.problem
    is_wrong: BoolArray = (problem.costs == 0) & (problem.y * solution.decision_values <= 0)
    return is_wrong
