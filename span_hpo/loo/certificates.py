"""Proofs of leave-one-out classes from the fit alone, without following a path.

The bounds hold at any feasible point of the dual, because ``W(a)``, the largest dual value with
``alpha_p = a``, is concave and has the supergradient ``1 - y_p f(x_p)``. docs/theory.md has the
proofs.
"""

import numpy as np

from span_hpo.loo.proofs import Proofs
from span_hpo.runtime import FloatArray, IndexArray, compiled, rows_of
from span_hpo.solver import ROUNDED_UP, DualSolution, dot_rounding

_CANDIDATES = 24  # number of rows that may take over from another: those with margins closest to 1
_LEAST_ROOM = 1e-9  # least room beyond alpha_p that is used, relative to alpha_p


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
    success = bounds > 0
    proofs.margin[todo[success]] = bounds[success]
    proofs.proven[todo[success]] = True
    return proofs


def certified_errors(solution: DualSolution, rows: IndexArray) -> Proofs:
    """Prove which rows are errors: support vectors that the fit itself misclassifies."""
    proofs = Proofs.none(len(rows))
    bounds = upper_bounds(solution, rows)
    proofs.proven = bounds < 0
    proofs.margin = np.where(proofs.proven, bounds, 0.0)
    return proofs


def upper_bounds(solution: DualSolution, rows: IndexArray) -> FloatArray:
    """Return an upper bound of ``y_p f^p(x_p)`` for each of the given rows.

    The bound is ``y_p f(x_p) + gap / alpha_p``, and infinity for zero rows.
    """
    alpha = solution.alpha[rows]
    bounds = np.full(len(rows), np.inf)
    gap = solution.gaps_without[rows] + _repair(solution)
    np.divide(gap, alpha, out=bounds, where=alpha > 0)
    bounds += (solution.problem.y * solution.decision_values + solution.rounding)[rows]
    return bounds


def _repair(solution: DualSolution) -> float:
    """Return how much the dual may fall when the dual variables are made to balance exactly.

    The sum ``y'alpha`` may differ from 0 by rounding. A row with room for the difference makes up
    for it. It is infinite if there is none.
    """
    left = abs(solution.imbalance)
    if left == 0:
        return 0.0
    problem, alpha = solution.problem, solution.alpha
    falls = (problem.y > 0) == (solution.imbalance > 0)
    room = np.where(falls, alpha, problem.costs - alpha)
    price = np.abs(solution.excess) + solution.rounding + 0.5 * left * problem.K.diagonal()
    # The removed row cannot be the one: one of the two best has to do.
    best = np.partition(np.where(room >= left, price, np.inf), 1)[:2]
    return left * float(best[-1])


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
    gap = solution.gaps_without[rows]
    bounds = np.full(len(rows), -np.inf)
    for label in (-1.0, 1.0):
        of_class = rows_of(y[rows] == label)
        if not len(of_class):
            continue
        room = np.where(y == label, problem.costs - alpha, alpha)
        able = rows_of(room)
        # Of equal ones the first are taken, so that every machine has the same bounds.
        able = able[np.argsort(np.abs(excess[able]), kind="stable")[:_CANDIDATES]]
        if len(able):
            price = label * y[able] * excess[able] + solution.rounding[able]
            bounds[of_class] = _bounds_by(
                solution, rows[of_class], able, room[able], price, gap[of_class]
            )
    return bounds


def _bounds_by(
    solution: DualSolution,
    rows: IndexArray,
    able: IndexArray,
    room: FloatArray,
    price: FloatArray,
    gap: FloatArray,
) -> FloatArray:
    """Return the lower bounds for rows of one class, by the rows that can take over."""
    problem = solution.problem
    K, diagonal = problem.K, problem.K.diagonal()
    margin = problem.y[rows] * solution.decision_values[rows] - solution.rounding[rows]
    places = np.full(len(problem), -1, dtype=np.intp)
    places[able] = np.arange(len(able))
    return _greedy_bounds(
        places[rows],
        K.block(rows, able),
        K.block(able, able),
        diagonal[rows],
        solution.alpha[rows],
        margin,
        gap,
        room,
        price,
        float((np.abs(solution.excess[able]) + solution.rounding[able]).max()),
        abs(solution.imbalance),
    )


@compiled
def _greedy_bounds(
    places: IndexArray,
    K_pa: FloatArray,
    K_aa: FloatArray,
    K_pp: FloatArray,
    alpha: FloatArray,
    margin: FloatArray,
    gap: FloatArray,
    room: FloatArray,
    price: FloatArray,
    dearest: float,
    imbalance: float,
) -> FloatArray:
    """Return the lower bounds for k rows of one class, by n rows that can take over.

    Parameters
    ----------
    places
        Position of each row among those that can take over, or -1, shape (k,).
    K_pa, K_aa, K_pp
        Kernel values of the rows with the able ones, shape (k, n), of the latter with each other,
        shape (n, n), and of the rows with themselves, shape (k,).
    alpha, margin, gap
        Dual variables, lower bounds of the margins ``y_p f(x_p)``, and gaps without each row,
        shape (k,).
    room, price
        How much each able row can take over, and its ``y_j y_p g_j``, shape (n,).
    dearest, imbalance
        Upper bounds of ``|g_j|`` of the able rows, and of ``|y'alpha|``.
    """
    rows = np.arange(len(places))[:, None]
    diagonal = K_aa.diagonal()
    rooms = np.where(places[:, None] == np.arange(len(K_aa)), 0.0, room)
    squares = K_pp[:, None] + diagonal - 2 * K_pa
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = alpha + np.fmax(alpha, np.sqrt(2 * gap / squares.mean(axis=1)))
        total_room = rooms.sum(axis=1)
        L = np.minimum(wanted, total_room * (1 - _LEAST_ROOM))
        s = L - alpha
        order = (0.5 * L[:, None] * squares + price).argsort(axis=1, kind="stable")
        capacity = rooms[rows, order] / L[:, None]
        weights = np.empty_like(capacity)
        before = capacity.cumsum(axis=1) - capacity
        weights[rows, order] = np.minimum(np.maximum(1 - before, 0.0), capacity)
        square = K_pp + np.einsum("pa,pa->p", weights @ K_aa - 2 * K_pa, weights)
        roots = np.sqrt(np.abs(diagonal))
        size = np.sqrt(np.abs(K_pp)) + weights @ roots
        square = np.maximum(square, 0.0) + dot_rounding(2 * len(K_aa), size**2)
        # The weights have the sum 1, and the dual variables the sum 0, up to rounding only. The
        # rows have room left to make up for the difference.
        left = imbalance + L * dot_rounding(len(K_aa), np.ones(1))
        path = L * np.sqrt(square) + left * roots.max()
        lost = 0.5 * path**2 + L * (weights @ price) + left * dearest + gap
        bounds = margin - lost / s * ROUNDED_UP
    # Without room beyond alpha_p there is no s > 0.
    is_sound = (s > _LEAST_ROOM * alpha) & (left < _LEAST_ROOM / 2 * total_room)
    return np.where(is_sound, bounds, -np.inf)
