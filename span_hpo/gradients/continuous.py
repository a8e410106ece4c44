"""Leave-one-out values that are continuous where a row changes its kind, and their derivatives.

The span jumps where a row joins the in-bound rows I or leaves them, because a row at a bound of its
box can suddenly not be moved. A penalty that grows towards the bounds makes it continuous. With

    d_i = eta (1 / alpha_i + 1 / (C_i - alpha_i)),   w_i = 1 / d_i,   R = W^1/2 K_II W^1/2
    G^-1 = W^1/2 (I + R)^-1 W^1/2,   u = G^-1 1,   s = 1'u,   A = G^-1 - u u' / s

the squared spans are

    S_p^2 = 1 / A_pp - d_p                                            p in I
    S_p^2 = K_pp - K_pI A K_Ip - 2 u'K_Ip / s + 1 / s                 p in B

They are those of the span-rule for ``eta = 0``, and ``A`` is that of ``M`` with ``K_II + diag(d)``
in place of ``K_II``. With ``t_p = A K_Ip + u / s`` and the derivative c_p of a loss by the squared
span, the derivatives by the matrix are those of the span-rule with t in place of lambda, and

    dL/dd_i = sum_{p in I} c_p A_ip^2 / A_pp^2 - c_i + sum_{p in B} c_p t_ip^2

Because ``K_II + diag(d)`` is never singular, equal rows have spans of their own. They share the sum
of their dual variables in proportion to their costs.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from span_hpo.gradients.derivatives import Derivatives, NoGradientError
from span_hpo.gradients.pull_back import (
    LEAST_IN_BOUND,
    Fit,
    OfSpans,
    block_of_spans,
    of_moving_values,
    through_solution,
    without_spans,
)
from span_hpo.kernels import KernelBlocks, first_equal_rows
from span_hpo.runtime import FloatArray, IndexArray, rows_of
from span_hpo.solver import DualSolution

_LARGEST_ERROR = 1e-4  # relative error of an inverse, by a bound of the condition number


@dataclass(frozen=True, eq=False)
class _Penalised:
    """The in-bound rows of a fit with a penalty at the bounds of their boxes.

    Attributes
    ----------
    rows, bounded
        Indices of the n in-bound and of the m bounded rows among those of the fit.
    spans
        Squared spans of all rows of the fit, shape (l,).
    A
        The matrix ``A``, shape (n, n).
    weights
        The vectors ``t_p`` of the bounded rows, shape (n, m).
    """

    rows: IndexArray
    bounded: IndexArray
    spans: FloatArray
    A: FloatArray
    weights: FloatArray


def continuous_values(solution: DualSolution, eta: float) -> FloatArray:
    """Return ``f(x_p) - y_p alpha_p S_p^2`` with continuous spans for each row, shape (l,).

    Parameters
    ----------
    solution
        Fit of two classes.
    eta
        Strength of the penalty, positive; 1e-4 changes little.

    Raises
    ------
    NoGradientError
        If fewer than two rows are in-bound.
    """
    penalised = _penalised(solution, eta)
    beta = solution.problem.y * solution.alpha
    values: FloatArray = solution.decision_values - beta * penalised.spans
    problem = solution.problem
    for label in (-1.0, 1.0):
        of_class = rows_of((problem.y == label) & (problem.costs > 0))
        if len(of_class) == 1:
            values[of_class] = -label  # without this row, only one class is left
    return values


def continuous_derivatives(
    solution: DualSolution, K: KernelBlocks, rows: IndexArray, by_value: FloatArray, eta: float
) -> Derivatives:
    """Return derivatives from those by the values with continuous spans; see `pulled_back`.

    Raises
    ------
    NoGradientError
        If fewer than two rows are in-bound, or in-bound rows depend on each other without being
        equal.
    """
    fit = Fit.of(solution, K, rows)
    if not fit.keeps_rank:
        raise NoGradientError(
            "Some in-bound support vectors are combinations of others, so that the derivatives of "
            "their dual variables are not known."
        )
    penalised = _penalised(solution, eta)
    in_bound, bounded = penalised.rows, penalised.bounded
    by_value = of_moving_values(fit, by_value)
    y, alpha, costs = solution.problem.y, solution.alpha, solution.problem.costs
    own = by_value[rows]
    by_span = -own * y * alpha
    by_alpha = -own * y * penalised.spans
    squares, diagonal = penalised.A**2, penalised.A.diagonal()
    scaled = by_span[in_bound] / diagonal**2
    np.fill_diagonal(squares, 0.0)  # a row's own penalty is no part of its span
    by_penalty = squares @ scaled + penalised.weights**2 @ by_span[bounded]
    a, room = alpha[in_bound], costs[in_bound] - alpha[in_bound]
    by_alpha[in_bound] += by_penalty * eta * (1 / room**2 - 1 / a**2)
    by_cost = np.zeros(len(rows))
    by_cost[in_bound] -= by_penalty * eta / room**2
    block = block_of_spans(penalised.A, scaled, penalised.weights, by_span[bounded])
    of_base, of_costs = _through_shares(fit, in_bound, by_alpha[in_bound])
    by_cost[in_bound] += of_costs
    of_spans = OfSpans(rows[in_bound], block, by_span[bounded])
    found = through_solution(fit, by_value, of_base, (y * by_alpha)[bounded], of_spans)
    return replace(found, by_cost=found.by_cost + fit.everywhere(by_cost))


def _penalised(solution: DualSolution, eta: float) -> _Penalised:
    """Return the continuous spans of a fit, and what their derivatives need.

    With ``W = diag(1 / d)``, the origin at the mean of the in-bound rows weighted by W, and an
    orthonormal basis Q of the vectors orthogonal to ``W^1/2 1``,

        B = Q (I + Q' W^1/2 K_II W^1/2 Q)^-1 Q',    A = W^1/2 B W^1/2
        S_p^2 = |x_p - sum_i lambda_i x_i|^2 + sum_i lambda_i^2 d_i,    lambda_i = -A_ip / A_pp

    so that neither the common part of all kernel values nor ``1 / A_pp - d_p`` cancels.
    """
    problem = solution.problem
    in_bound, bounded = rows_of(solution.in_bound), rows_of(solution.bounded)
    if len(in_bound) < LEAST_IN_BOUND:
        raise without_spans(len(in_bound))
    alpha, costs = solution.alpha[in_bound], problem.costs[in_bound]
    w = alpha * ((costs - alpha) / costs) / eta
    share = w / w.sum()
    K, between = problem.K.block(in_bound, in_bound), problem.K.block(in_bound, bounded)
    centre, towards = K @ share, share @ between
    own = problem.K.diagonal()[bounded] - 2 * towards + share @ centre
    K = K - centre - centre[:, None] + share @ centre
    between = between - centre[:, None] - towards + share @ centre
    roots = np.sqrt(w)
    R = K * np.outer(roots, roots)
    Q = _orthogonal_to(roots)
    inverse = _inverse_plus_one(Q.T @ R @ Q)
    if inverse is None:
        raise NoGradientError(
            "Continuous spans cannot be computed accurately, because the costs times the kernel "
            f"values are too large for `eta`, got {eta:g}: use a larger one, or scale the features."
        )
    B = Q @ inverse @ Q.T
    others = B**2
    np.fill_diagonal(others, 0.0)
    A, spans = B * np.outer(roots, roots), np.zeros(len(problem))
    distances = np.einsum("ij,ij->i", B @ R, B)
    spans[in_bound] = (distances + others.sum(axis=1)) / (w * B.diagonal() ** 2)
    moved = A @ between
    spans[bounded] = own - np.einsum("ij,ij->j", moved, between) + 1 / w.sum()
    return _Penalised(in_bound, bounded, np.maximum(spans, 0.0), A, share[:, None] + moved)


def _orthogonal_to(vector: FloatArray) -> FloatArray:
    """Return an orthonormal basis of what is orthogonal to a positive vector, shape (n, n - 1)."""
    normal = vector / np.linalg.norm(vector)
    normal[0] += 1.0  # the normal of a Householder reflection that maps the first axis to it
    basis = -np.outer(normal, normal[1:] / normal[0])
    basis[np.arange(1, len(vector)), np.arange(len(vector) - 1)] += 1.0
    return basis


def _inverse_plus_one(T: FloatArray) -> FloatArray | None:
    """Return ``(I + T)^-1``, or None if rounding makes it inaccurate."""
    one = np.eye(len(T))
    try:
        inverse: FloatArray = cho_solve(cho_factor(one + T, lower=True), one)
    except (np.linalg.LinAlgError, ValueError):  # not positive definite, or an overflow
        return None
    condition = float(np.trace(one + T) * np.trace(inverse))
    return inverse if condition * np.finfo(float).eps <= _LARGEST_ERROR else None


def _through_shares(
    fit: Fit, in_bound: IndexArray, by_alpha: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the derivatives by ``beta`` of the base and by the costs of the in-bound rows.

    Equal rows share the sum a of their dual variables, ``alpha_i = a C_i / sum_j C_j``.
    """
    solution, problem = fit.solution, fit.solution.problem
    block = problem.K.block(in_bound, in_bound)
    first = first_equal_rows(problem.K, in_bound, block)
    base = np.searchsorted(fit.rows[in_bound], fit.base)
    group = np.empty(len(in_bound), dtype=np.intp)
    group[first[base]] = np.arange(len(base))
    group = group[first]  # position of the group of each in-bound row in the base
    costs, alpha = problem.costs[in_bound], solution.alpha[in_bound]
    total, together = np.bincount(group, costs), np.bincount(group, alpha)
    of_group = np.bincount(group, by_alpha * costs) / total
    of_costs = (by_alpha - of_group[group]) * (together / total)[group]
    return problem.y[in_bound][base] * of_group, of_costs
