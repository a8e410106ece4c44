"""Spans of support vectors: how far a row is from the combinations that can replace it.

Let I be the in-bound support vectors. The span of p is the distance in feature space between x_p
and the set of all ``sum_i lambda_i x_i`` with ``sum_i lambda_i = 1``, where i runs over I without
p. A *free* span has no other constraint. A *box* span also keeps every dual variable in its box,
``0 <= alpha_i + y_i y_p alpha_p lambda_i <= C_i``.
"""

import numpy as np

from span_hpo.kernels import KernelBlocks
from span_hpo.runtime import BoolArray, FloatArray, IndexArray, rows_of, sums_of_others
from span_hpo.solver import BoxQP, CentredGram, DualSolution, factored_gram, independent_rows

CLOSED, PIQP = SPANS = ("closed", "piqp")
_COLUMNS_AT_ONCE = 4096  # number of bounded rows whose kernel columns are in memory together
_NO_PART = 1e-6  # largest weight of a row in a combination of which it is no part
_ROOM_ROUNDING = 1e-12  # rounding in a comparison of room with alpha_p, relative to their sum


def free_squared_spans(solution: DualSolution, *, spans: str = "closed") -> FloatArray:
    """Return the squared spans of a solution, assuming that in-bound and bounded rows stay so.

    With ``M = [[K_II, 1], [1', 0]]`` over the in-bound support vectors I,

    - in-bound p: ``S_p^2 = 1 / (M^-1)_pp``
    - bounded p: ``S_p^2 = K_pp - v' M^-1 v`` with ``v = (K_Ip, 1)``
    - otherwise: 0

    `span_hpo.solver.centred_gram` computes all of them from one Cholesky factor.

    Parameters
    ----------
    solution
        Solution of a two-class problem, as `solve` returns it.
    spans
        "closed" for this closed form, or "piqp" to solve one quadratic program for each support
        vector with PIQP, as the paper describes it. Both give the same spans, the second much more
        slowly.

    Returns
    -------
    Squared spans, shape (l,). A span is undefined, and NaN, for bounded rows if no row is in-bound,
    and for an in-bound row that is the only one.

    Raises
    ------
    ValueError
        If `spans` is unknown.
    SolverError
        If the kernel is not positive semi-definite, or PIQP cannot solve a program.

    References
    ----------
    Chapelle and Vapnik, "Model selection for support vector machines", 1999.

    Examples
    --------
    The in-bound points 0 and 4 are a distance of 4 apart; the bounded points 1 and 3 lie between
    them.

    >>> from span_hpo import Linear, Problem, free_squared_spans, solve
    >>> problem = Problem(Linear()([[0], [1], [3], [4]]), y=[-1, -1, 1, 1], costs=[0.2] * 4)
    >>> free_squared_spans(solve(problem)).round(3).tolist()
    [16.0, 0.0, 0.0, 16.0]
    """
    if as_spans(spans) == CLOSED and solution.known_spans is not None:
        return solution.known_spans.copy()
    squared = np.zeros(len(solution.problem))
    in_bound, bounded = rows_of(solution.in_bound), rows_of(solution.bounded)
    squared[bounded] = np.nan
    squared[in_bound] = np.nan
    if spans == PIQP:
        has_span = bounded if len(in_bound) == 1 else rows_of(solution.alpha)
        if len(in_bound):
            squared[has_span] = _squared_by_programs(solution, in_bound, has_span)
    elif len(in_bound):
        base, gram = independent_base(solution)
        squared[bounded] = _distances_to_hull(solution.problem.K, base, gram, bounded)
        if len(in_bound) >= 2:
            squared[in_bound] = _distances_from_others(solution, in_bound, base, gram)
    return squared


def as_spans(spans: str) -> str:
    """Return how spans are computed, after checking it."""
    if spans not in SPANS:
        raise ValueError(f"`spans` must be one of {list(SPANS)}, got {spans!r}.")
    return spans


def terms_of_program(
    solution: DualSolution, in_bound: IndexArray, p: int
) -> tuple[FloatArray, float, float]:
    """Return ``G_Ip``, ``G_pp`` and the sum of lambda in the program of support vector p.

    An in-bound p stays among the variables, with ``lambda_p = -1`` and a sum of 0, so that all
    programs share one matrix.
    """
    if solution.in_bound[p]:
        return np.zeros(len(in_bound)), 0.0, 0.0
    K = solution.problem.K
    K_Ip = K.block(in_bound, np.array([p]))
    columns, squares = solution.gram.about_centroid(K_Ip, K.diagonal()[[p]])
    return columns[:, 0], float(squares[0]), 1.0


def _squared_by_programs(
    solution: DualSolution, in_bound: IndexArray, rows: IndexArray
) -> FloatArray:
    """Return the squared spans of some rows, each by a quadratic program without bounds."""
    problem, gram = solution.problem, solution.gram
    G = gram.centred(problem.K.block(in_bound, in_bound))
    program, everywhere = BoxQP(G / gram.scale), np.full(len(in_bound), np.inf)
    squared = np.empty(len(rows))
    for k, p in enumerate(rows):
        lower, upper = -everywhere, everywhere.copy()
        if solution.in_bound[p]:
            lower[in_bound == p] = upper[in_bound == p] = -1.0
        G_Ip, G_pp, total = terms_of_program(solution, in_bound, p)
        found = program.solve(-G_Ip / gram.scale, total, lower, upper).x
        squared[k] = max(0.0, float(G_pp - 2 * G_Ip @ found + found @ G @ found))
    return squared


def independent_base(solution: DualSolution) -> tuple[IndexArray, CentredGram]:
    """Return independent in-bound rows with the affine hull of all, and their Gram matrix.

    There must be an in-bound row. The Gram matrix about the centroid of the rows is factored.
    """
    in_bound, gram = rows_of(solution.in_bound), solution.gram
    if not gram.is_dependent:
        return in_bound, gram
    K_II = solution.problem.K.block(in_bound, in_bound)
    chosen = independent_rows(K_II)
    return in_bound[chosen], factored_gram(K_II[np.ix_(chosen, chosen)])


def _distances_from_others(
    solution: DualSolution, in_bound: IndexArray, base: IndexArray, gram: CentredGram
) -> FloatArray:
    """Return the squared distance of each in-bound row from the hull of the others.

    It is exactly 0 for rows that are combinations of others. There must be two in-bound rows.
    """
    if not solution.gram.is_dependent:
        return gram.own_squared_distances()
    others = np.setdiff1d(in_bound, base)
    squared = np.zeros(len(in_bound))
    if len(base) > 1:
        weights = gram.affine_weights(solution.problem.K.block(base, others))
        needed = (np.abs(weights) <= _NO_PART).all(axis=1)
        own = np.where(needed, gram.own_squared_distances(), 0.0)
        squared[np.searchsorted(in_bound, base)] = own
    return squared


def _distances_to_hull(
    K: KernelBlocks, base: IndexArray, gram: CentredGram, rows: IndexArray
) -> FloatArray:
    """Return the squared distances of some rows from the hull of the base, block by block."""
    diagonal = K.diagonal()
    squared = np.empty(len(rows))
    for start in range(0, len(rows), _COLUMNS_AT_ONCE):
        block = slice(start, start + _COLUMNS_AT_ONCE)
        part = rows[block]
        squared[block] = gram.squared_distances(K.block(base, part), diagonal[part])
    return squared


def span_exists(solution: DualSolution) -> BoolArray:
    """Return for each row of a solution whether any ``lambda`` is feasible in the box.

    Let I be the in-bound rows and B the bounded rows. For a support vector p of either kind, Lemma
    1 of the paper that `leave_one_out` cites requires
    ``sum_{i in I, i != p, y_i = y_p} C_i + y_p sum_{i in B, i != p} y_i C_i >= 0``.
    Because ``sum(y alpha) = 0``, this means that the other in-bound rows have room for ``alpha_p``,

    ``sum_{i in I, i != p} (C_i - alpha_i if y_i = y_p else alpha_i) >= alpha_p``.

    The second form is computed, because it does not subtract costs of bounded rows from each other.

    Returns
    -------
    Mask, shape (l,). It is True for zero rows, which leave nothing to take over.

    Examples
    --------
    Two orthogonal rows have ``alpha = 1/2``. At lower costs both are bounded, and neither is
    in-bound to replace the other.

    >>> from span_hpo import Problem, solve, span_exists
    >>> fits = (solve(Problem([[2, 0], [0, 2]], [-1, 1], [cost, cost])) for cost in (1, 0.2))
    >>> [span_exists(fit).tolist() for fit in fits]
    [[True, True], [False, False]]
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
