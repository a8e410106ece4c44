"""Spans of support vectors: how far a row is from what the others can put in its place.

With the in-bound support vectors I, the span of p is the distance in feature space between x_p and
the set of ``sum_i lambda_i x_i``, ``sum_i lambda_i = 1`` over I without p. A *free* span stops
there; a *box* span also keeps every dual variable in its box,
``0 <= alpha_i + y_i y_p alpha_p lambda_i <= C_i``.
"""

import numpy as np

from span_hpo.arrays import BoolArray, FloatArray, IndexArray
from span_hpo.errors import SolverError
from span_hpo.qp import BoxQP
from span_hpo.solver import DualSolution

_COLUMNS_AT_ONCE = 4096  # bounded rows whose kernel columns are held in memory together
_SUM_ROUNDING = 1e-12  # relative to the sum of all costs
_SINGLE_POINT = 1e-9  # slack of the sum, relative to the bounds, below which the box is one point


def free_squared_spans(solution: DualSolution) -> FloatArray:
    """Return squared spans, assuming that the in-bound and bounded sets do not change.

    With ``M = [[K_II, 1], [1', 0]]`` over the in-bound support vectors I,

    - in-bound p: ``S_p^2 = 1 / (M^-1)_pp``
    - bounded p: ``S_p^2 = K_pp - v' M^-1 v`` with ``v = (K_Ip, 1)``
    - otherwise: 0

    computed by `span_hpo.hull` from one Cholesky factor.

    Parameters
    ----------
    solution
        A fit.

    Returns
    -------
    Squared spans, shape (l,); NaN where they are undefined: for bounded rows if no row is
    in-bound, and for the only in-bound row.

    Raises
    ------
    SolverError
        If the kernel is not positive semi-definite.

    References
    ----------
    Chapelle and Vapnik, "Model selection for support vector machines", 1999.
    """
    squared = np.zeros(len(solution.problem))
    inside, bounded = np.flatnonzero(solution.in_bound), np.flatnonzero(solution.bounded)
    squared[bounded] = np.nan
    if len(inside) >= 1:
        squared[bounded] = _distances_to_hull(solution, inside, bounded)
    if len(inside) >= 2:
        squared[inside] = solution.hull.own_squared_distances()
    else:
        squared[inside] = np.nan
    return squared


def _distances_to_hull(solution: DualSolution, inside: IndexArray, rows: IndexArray) -> FloatArray:
    K, diagonal = solution.problem.K, solution.problem.K.diagonal()
    squared = np.empty(len(rows))
    for start in range(0, len(rows), _COLUMNS_AT_ONCE):
        block = slice(start, start + _COLUMNS_AT_ONCE)
        part = rows[block]
        squared[block] = solution.hull.squared_distances(K.block(inside, part), diagonal[part])
    return squared


def span_exists(solution: DualSolution) -> BoolArray:
    """Tell for which rows the box leaves any ``lambda`` at all.

    For a support vector p, in-bound or bounded,
    ``sum_{i in I, i != p, y_i = y_p} C_i + y_p sum_{i in B, i != p} y_i C_i >= 0``.

    Parameters
    ----------
    solution
        A fit.

    Returns
    -------
    Mask, shape (l,); True for zero rows, which leave nothing to replace.

    References
    ----------
    Sarafis, Diou and Delopoulos, "Span error bound for weighted SVM with applications in
    hyperparameter selection", Lemma 1.
    """
    y, costs = solution.problem.y, solution.problem.costs
    inside, bounded = solution.in_bound, solution.bounded
    in_class = np.where(y > 0, costs[inside & (y > 0)].sum(), costs[inside & (y < 0)].sum())
    total = in_class - np.where(inside, costs, 0.0)
    total += y * (y[bounded] @ costs[bounded]) - np.where(bounded, costs, 0.0)
    exists: BoolArray = (solution.alpha == 0) | (total >= -_SUM_ROUNDING * costs.sum())
    return exists


def box_squared_spans(solution: DualSolution) -> FloatArray:
    """Return squared spans under the box constraints, one quadratic program per support vector.

    ``S_p^2 = min |x_p - sum_i lambda_i x_i|^2`` over ``sum_i lambda_i = 1`` and
    ``0 <= alpha_i + y_i y_p alpha_p lambda_i <= C_i``, i in I without p. In the programs an
    in-bound p stays among the variables with ``lambda_p = -1`` and the sum is 0, so that all of
    them share one matrix.

    Parameters
    ----------
    solution
        A fit.

    Returns
    -------
    Squared spans, shape (l,); 0 for zero rows, NaN where no ``lambda`` exists (`span_exists`).
    They are never below the free spans.

    Raises
    ------
    SolverError
        If the kernel is not positive semi-definite, or a program cannot be solved.
    """
    problem, alpha = solution.problem, solution.alpha
    squared = np.zeros(len(problem))
    support = np.flatnonzero(alpha)
    exists = span_exists(solution)
    squared[support] = np.nan
    inside = np.flatnonzero(solution.in_bound)
    if not len(inside):
        return squared
    hull = solution.hull
    G = hull.centred(problem.K.block(inside, inside))
    qp = BoxQP(G / hull.scale)
    y, costs, diagonal = problem.y[inside], problem.costs[inside], problem.K.diagonal()
    for p in support[exists[support]]:
        sign = y * problem.y[p]
        to_zero, to_cost = (
            -sign * alpha[inside] / alpha[p],
            sign * (costs - alpha[inside]) / alpha[p],
        )
        lower, upper = np.minimum(to_zero, to_cost), np.maximum(to_zero, to_cost)
        if solution.in_bound[p]:
            lower[inside == p] = upper[inside == p] = -1.0
            G_Ip, G_pp, total = np.zeros(len(inside)), 0.0, 0.0
        else:
            K_Ip = problem.K.block(inside, np.array([p]))[:, 0]
            G_Ip = K_Ip - hull.row_means - K_Ip.mean() + hull.mean
            G_pp, total = diagonal[p] - 2 * K_Ip.mean() + hull.mean, 1.0
        if upper.sum() - total <= _SINGLE_POINT * np.abs(upper).sum():
            found = upper
        else:
            found = _minimum(qp, p, -G_Ip / hull.scale, total, lower, upper)
        squared[p] = max(0.0, float(G_pp - 2 * G_Ip @ found + found @ G @ found))
    return squared


def _minimum(
    qp: BoxQP, p: int, c: FloatArray, total: float, lower: FloatArray, upper: FloatArray
) -> FloatArray:
    try:
        return qp.solve(c, total, lower, upper).x
    except SolverError as error:
        raise SolverError(f"The box span of row {p} cannot be computed: {error}") from error
