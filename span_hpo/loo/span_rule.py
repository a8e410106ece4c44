"""Spans of support vectors: how far a row is from what the others can put in its place.

With the in-bound support vectors I, the span of p is the distance in feature space between x_p and
the set of ``sum_i lambda_i x_i``, ``sum_i lambda_i = 1`` over I without p. A *free* span stops
there; a *box* span also keeps every dual variable in its box,
``0 <= alpha_i + y_i y_p alpha_p lambda_i <= C_i``.
"""

import numpy as np

from span_hpo.runtime import BoolArray, FloatArray, IndexArray, rows_of, sums_of_others
from span_hpo.solver import DualSolution

_COLUMNS_AT_ONCE = 4096  # bounded rows whose kernel columns are held in memory together
_ROOM_ROUNDING = 1e-12  # relative to the room and alpha_p that are compared


def free_squared_spans(solution: DualSolution) -> FloatArray:
    """Return squared spans, assuming that the in-bound and bounded sets do not change.

    With ``M = [[K_II, 1], [1', 0]]`` over the in-bound support vectors I,

    - in-bound p: ``S_p^2 = 1 / (M^-1)_pp``
    - bounded p: ``S_p^2 = K_pp - v' M^-1 v`` with ``v = (K_Ip, 1)``
    - otherwise: 0

    computed by `span_hpo.solver.centred_gram` from one Cholesky factor.

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
    in_bound, bounded = rows_of(solution.in_bound), rows_of(solution.bounded)
    squared[bounded] = np.nan
    if len(in_bound) >= 1:
        squared[bounded] = _distances_to_hull(solution, in_bound, bounded)
    if len(in_bound) >= 2:
        squared[in_bound] = solution.gram.own_squared_distances()
    else:
        squared[in_bound] = np.nan
    return squared


def _distances_to_hull(
    solution: DualSolution, in_bound: IndexArray, rows: IndexArray
) -> FloatArray:
    K, diagonal = solution.problem.K, solution.problem.K.diagonal()
    squared = np.empty(len(rows))
    for start in range(0, len(rows), _COLUMNS_AT_ONCE):
        block = slice(start, start + _COLUMNS_AT_ONCE)
        part = rows[block]
        squared[block] = solution.gram.squared_distances(K.block(in_bound, part), diagonal[part])
    return squared


def span_exists(solution: DualSolution) -> BoolArray:
    """Tell for which rows the box leaves any ``lambda`` at all.

    For a support vector p, in-bound or bounded, Lemma 1 asks for
    ``sum_{i in I, i != p, y_i = y_p} C_i + y_p sum_{i in B, i != p} y_i C_i >= 0``. With
    ``sum(y alpha) = 0`` that says that the other in-bound rows have room for what p leaves,

    ``sum_{i in I, i != p} (C_i - alpha_i if y_i = y_p else alpha_i) >= alpha_p``,

    which is computed here, because it does not subtract the costs of bounded rows from each other.

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
    problem, alpha, in_bound = solution.problem, solution.alpha, solution.in_bound
    exists: BoolArray = alpha == 0
    if in_bound.any():
        for label in (-1.0, 1.0):
            room = np.where(problem.y == label, problem.costs - alpha, alpha)
            of_others = sums_of_others(np.where(in_bound, room, 0.0))
            enough = of_others >= alpha - _ROOM_ROUNDING * (of_others + alpha)
            exists |= (problem.y == label) & enough & (of_others > 0)
    return exists
