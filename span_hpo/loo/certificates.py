"""Proofs of leave-one-out classes from the fit alone, without following a path.

The bounds hold at any feasible point of the dual, because ``W(a)``, the largest dual value with
``alpha_p = a``, is concave and has the supergradient ``1 - y_p f(x_p)``. docs/theory.md has the
proofs.
"""

import numpy as np

from span_hpo.kernels import largest_entry
from span_hpo.loo.proofs import Proofs
from span_hpo.runtime import FloatArray, IndexArray, rows_of, sums_of_others
from span_hpo.solver import DualSolution, zero_width

_CANDIDATES = 24  # number of rows that may take over from another: those with margins closest to 1
_SQUARE_ROUNDING = 1e-14  # rounding of a squared distance, relative to the largest kernel value
_LEAST_ROOM = 1e-9  # least room beyond alpha_p that is used, relative to alpha_p


def optimality_gaps(excess: FloatArray, alpha: FloatArray, costs: FloatArray) -> FloatArray:
    """Return upper bounds on how much each row can still raise the dual, shaped as the arguments.

    With ``g = y f - 1``, the bound of row j is ``max((-g_j)^+ (C_j - alpha_j), g_j^+ alpha_j)``.
    The dual is below its maximum by at most the sum of these bounds.
    """
    gaps: FloatArray = np.maximum(-excess * (costs - alpha), excess * alpha)
    return gaps


def certified(solution: DualSolution, rows: IndexArray) -> Proofs:
    """Prove the classes of as many rows as possible from the fit alone, even if it is not optimal.

    Parameters
    ----------
    solution, rows
        Solution of a two-class problem, and indices of rows that are not the last of their class.

    Returns
    -------
    Proofs of the classes, with the bounds that prove them.
    """
    proofs = certified_errors(solution, rows)
    todo = proofs.open
    bounds = lower_bounds(solution, rows[todo])
    success = bounds > zero_width(solution.margin_noise)
    proofs.margin[todo[success]] = bounds[success]
    proofs.proven[todo[success]] = True
    return proofs


def certified_errors(solution: DualSolution, rows: IndexArray) -> Proofs:
    """Prove which rows are errors: support vectors that the fit itself misclassifies."""
    bounds = upper_bounds(solution, rows)
    proven = bounds < -zero_width(solution.margin_noise)
    return Proofs(np.where(proven, bounds, 0.0), np.zeros(len(rows), dtype=bool), proven)


def upper_bounds(solution: DualSolution, rows: IndexArray) -> FloatArray:
    """Return an upper bound of ``y_p f^p(x_p)`` for each of the given rows.

    The bound is ``y_p f(x_p) + gap / alpha_p``, and infinity for zero rows.
    """
    alpha = solution.alpha[rows]
    bounds = np.full(len(rows), np.inf)
    np.divide(_gaps_of_others(solution)[rows], alpha, out=bounds, where=alpha > 0)
    bounds += (solution.problem.y * solution.decision_values)[rows]
    return bounds


def _gaps_of_others(solution: DualSolution) -> FloatArray:
    """Return, for each row p, how far the dual without p can be from its maximum."""
    gaps = optimality_gaps(solution.excess, solution.alpha, solution.problem.costs)
    return sums_of_others(gaps)


def lower_bounds(solution: DualSolution, rows: IndexArray) -> FloatArray:
    """Return a lower bound of ``y_p f^p(x_p)`` for each of the given rows.

    For ``s > 0``, ``L = alpha_p + s`` and any ``lambda`` with sum 1 that keeps every
    ``alpha_j + y_j y_p L lambda_j`` in its box, where j runs over all rows but p,

    ``y_p f^p(x_p) >= y_p f(x_p)
    - [L^2 |x_p - sum_j lambda_j x_j|^2 / 2 + L sum_j lambda_j y_j y_p g_j + gap] / s``.

    Here s is ``alpha_p``, or larger where the gap requires it, and lambda is filled greedily with
    the rows that lower the bound least.
    """
    problem, alpha, y = solution.problem, solution.alpha, solution.problem.y
    excess = solution.excess
    gap = _gaps_of_others(solution)[rows]
    bounds = np.full(len(rows), -np.inf)
    for label in (-1.0, 1.0):
        of_class = rows_of(y[rows] == label)
        if not len(of_class):
            continue
        room = np.where(y == label, problem.costs - alpha, alpha)
        able = rows_of(room)
        if len(able) > _CANDIDATES:
            able = able[np.argpartition(np.abs(excess[able]), _CANDIDATES)[:_CANDIDATES]]
        if len(able):
            price = label * y[able] * excess[able]
            bounds[of_class] = _greedy_bounds(
                solution, rows[of_class], able, room[able], price, gap[of_class]
            )
    return bounds


def _greedy_bounds(
    solution: DualSolution,
    rows: IndexArray,
    able: IndexArray,
    room: FloatArray,
    price: FloatArray,
    gap: FloatArray,
) -> FloatArray:
    """Return the lower bounds for rows of one class.

    The rows `able` can take over amounts up to their `room`, and `price` holds their
    ``y_j y_p g_j``.
    """
    K, diagonal = solution.problem.K, solution.problem.K.diagonal()
    margin = solution.problem.y[rows] * solution.decision_values[rows]
    a = solution.alpha[rows]
    K_pa, K_aa = K.block(rows, able), K.block(able, able)
    room = np.where(rows[:, None] == able, 0.0, room)
    squares = diagonal[rows, None] + diagonal[able] - 2 * K_pa
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = a + np.fmax(a, np.sqrt(2 * gap / squares.mean(axis=1)))
        L = np.minimum(wanted, room.sum(axis=1) * (1 - _LEAST_ROOM))
        s = L - a
        order = (0.5 * L[:, None] * squares + price).argsort(axis=1)
        of_row = np.arange(len(rows))[:, None]
        capacity = room[of_row, order] / L[:, None]
        weights = np.empty_like(capacity)
        before = capacity.cumsum(axis=1) - capacity
        weights[of_row, order] = np.minimum(np.maximum(1 - before, 0.0), capacity)
        square = diagonal[rows] + np.einsum("pa,pa->p", weights @ K_aa - 2 * K_pa, weights)
        square = np.maximum(square, 0.0) + _SQUARE_ROUNDING * largest_entry(K)
        bounds = margin - (0.5 * L**2 * square + L * (weights @ price) + gap) / s
    # Without room beyond alpha_p there is no s > 0.
    return np.where(s > _LEAST_ROOM * a, bounds, -np.inf)
