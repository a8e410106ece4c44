"""Proofs of leave-one-out classes that need no path: bounds from any feasible point of the dual.

``W(a)``, the best dual value with ``alpha_p = a``, is concave, and ``1 - y_p f(x_p)`` is one of its
supergradients. docs/theory.md has the proofs.
"""

import numpy as np

from span_hpo.arrays import FloatArray, IndexArray
from span_hpo.solver import DualSolution

_CANDIDATES = 48  # rows that may take over what a row leaves, those with margin closest to 1


def optimality_gaps(
    excess: FloatArray, alpha: FloatArray, costs: FloatArray
) -> FloatArray:
    """Return how much of the dual each row may still gain, shape as the arguments.

    With ``g = y f - 1`` the dual is within ``sum_j max((-g_j)^+ (C_j - alpha_j), g_j^+ alpha_j)``
    of its maximum.
    """
    gaps: FloatArray = np.maximum(-excess * (costs - alpha), excess * alpha)
    return gaps


def lower_bounds(solution: DualSolution, rows: IndexArray, gaps: FloatArray) -> FloatArray:
    """Return a lower bound of ``y_p f^p(x_p)`` for each of the given support vectors.

    For ``s > 0``, ``L = alpha_p + s`` and any ``lambda`` with sum 1 that keeps every
    ``alpha_j + y_j y_p L lambda_j`` in its box, j other than p,

    ``y_p f^p(x_p) >= y_p f(x_p)
    - [L^2 |x_p - sum_j lambda_j x_j|^2 / 2 + L sum_j lambda_j y_j y_p g_j + gap] / s``.

    Here ``s = alpha_p``, and lambda is filled greedily with the rows that cost least.
    """
    problem, alpha = solution.problem, solution.alpha
    y, costs = problem.y, problem.costs
    excess = y * solution.decision_values - 1
    bounds = np.full(len(rows), -np.inf)
    for label in (-1.0, 1.0):
        of_class = np.flatnonzero(y[rows] == label)
        room = np.where(y == label, costs - alpha, alpha)
        able = np.flatnonzero(room > 0)
        if not len(of_class) or not len(able):
            continue
        if len(able) > _CANDIDATES:
            closest = np.argpartition(np.abs(excess[able]), _CANDIDATES)[:_CANDIDATES]
            able = able[closest]
        bounds[of_class] = _greedy_bounds(
            solution, rows[of_class], able, room[able], label * y[able] * excess[able], gaps
        )
    return bounds


def _greedy_bounds(
    solution: DualSolution,
    rows: IndexArray,
    able: IndexArray,
    room: FloatArray,
    signed_excess: FloatArray,
    gaps: FloatArray,
) -> FloatArray:
    """Return the bounds for rows of one class, with the rows that are able to replace them."""
    K, diagonal = solution.problem.K, solution.problem.K.diagonal()
    a = solution.alpha[rows]
    K_pa, K_aa = K.block(rows, able), K.block(able, able)
    room = np.where(rows[:, None] == able, 0.0, room)
    total = room.sum(axis=1)
    L = np.minimum(2 * a, total * (1 - 1e-12))
    s = L - a
    with np.errstate(divide="ignore", invalid="ignore"):
        capacity = room / L[:, None]
        squared = diagonal[rows, None] + diagonal[able] - 2 * K_pa
        price = 0.5 * L[:, None] * squared + signed_excess
        order = price.argsort(axis=1)
        filled = np.take_along_axis(capacity, order, axis=1)
        before = filled.cumsum(axis=1) - filled
        taken = np.minimum(np.maximum(1 - before, 0.0), filled)
        weights = np.empty_like(taken)
        np.put_along_axis(weights, order, taken, axis=1)
        distance = (
            diagonal[rows]
            - 2 * np.einsum("pa,pa->p", weights, K_pa)
            + np.einsum("pa,pa->p", weights @ K_aa, weights)
        )
        gap = gaps.sum() - gaps[rows]
        loss = (0.5 * L**2 * np.maximum(distance, 0.0) + L * (weights @ signed_excess) + gap) / s
        margin = solution.problem.y[rows] * solution.decision_values[rows]
    # Without room beyond alpha_p there is no s > 0.
    return np.where(s > 1e-9 * a, margin - loss, -np.inf)
