"""Exact leave-one-out by fits that stop as soon as their answer is proven.

Without row r, let ``F(alpha, b)`` be the primal objective of the SVM, and ``F_0`` its minimum over
the classifiers that put x_r on their boundary. A classifier with ``F < F_0`` gives x_r the same
class as the optimal one, because the line between them cannot cross the boundary. ``F_0`` is not
known, but every value of its dual

``H(beta) = sum(beta) - 1/2 sum_ij beta_i beta_j y_i y_j k'_ij``,  ``0 <= beta_i <= C_i``,
``beta_r = 0``,  ``k'_ij = K_ij - K_ri - K_rj + K_rr``

is a lower bound of it, so that a fit can stop as soon as ``F < H``. (The paper prints the last sign
of k' as a minus. Its corollary also requires a classifier on the boundary, but its proof and
Theorem 1 do not.)

References
----------
Franc, Laskov and Mueller, "Stopping conditions for exact computation of leave-one-out error in
support vector machines", 2008.
"""

import numpy as np

from span_hpo.kernels import ALL, kernel_product
from span_hpo.loo.certificates import certified_errors
from span_hpo.loo.ends import proven_values
from span_hpo.loo.proofs import Proofs
from span_hpo.runtime import ROUNDING_UNIT, FloatArray, IndexArray, check_time, compiled
from span_hpo.solver import (
    FEW_OPERATIONS,
    DualPoint,
    DualSolution,
    offset_ends,
    polished,
    solution_of,
)

_CHECK_EVERY = 10  # number of iterations between comparisons of F and H
TRIED = 10  # number of fits after which the rule is given up if it stopped less than half of them
_ITERATIONS = 100  # largest number of iterations of a fit for each row of the problem
_LEAST_CURVATURE = 1e-12  # least curvature of a pair, so that equal rows step to a bound


def stopped_rows(solution: DualSolution, rows: IndexArray, *, complete: bool) -> Proofs:
    """Prove the class of each row by a fit without it, which stops as soon as it can.

    A support vector that the full fit misclassifies is an error. For every other row, a new fit
    starts from the dual variables of the full fit, and ends when the class of the row is proven or
    at the solution.

    Parameters
    ----------
    solution
        Solution of a two-class problem.
    rows
        Indices of the rows, none of which may be the last row of its class.
    complete
        Continue every fit to its solution.

    Returns
    -------
    Proofs for the rows. Where a fit was stopped, the margin is that of its last classifier.
    """
    problem = solution.problem
    proofs = Proofs.none(len(rows)) if complete else certified_errors(solution, rows)
    K = np.ascontiguousarray(problem.K.block(ALL, ALL))
    # Where pairs make no progress, as with a nearly singular kernel, the polish does.
    max_iter = min(solution.max_iter, _ITERATIONS * len(problem))
    tried = stopped = 0
    for i in proofs.open:
        check_time()
        r = int(rows[i])
        costs = problem.without(r).costs
        alpha = alpha_without(solution, r)
        F = kernel_product(problem.K, problem.y * alpha)
        watch = not complete and (tried < TRIED or 2 * stopped >= tried)
        is_proven, b = optimise_until_proven(
            K, problem.y, costs, r, alpha, F, watch, 2 * solution.tol, max_iter
        )
        tried, stopped = tried + watch, stopped + is_proven
        if is_proven:
            proofs.margin[i], proofs.proven[i] = problem.y[r] * (F[r] + b), True
        else:
            F = kernel_product(problem.K, problem.y * alpha)
            end = polished(DualPoint(problem.K, problem.y, costs, alpha, F))
            refit = solution_of(problem.without(r), end, solution)
            proofs.put(np.array([i]), proven_values(refit, np.array([r])))
    return proofs


def alpha_without(solution: DualSolution, r: int) -> FloatArray:
    """Return dual variables with ``alpha_r = 0``, taken over by rows close to the margin."""
    problem, y = solution.problem, solution.problem.y
    alpha = solution.alpha.copy()
    room = np.where(y == y[r], problem.costs - alpha, alpha)
    room[r] = 0.0
    order = np.abs(solution.excess).argsort(kind="stable")
    before = room[order].cumsum() - room[order]
    taken = np.minimum(np.maximum(alpha[r] - before, 0.0), room[order])
    alpha[order] += y[order] * y[r] * taken
    alpha[r] = 0.0
    return np.minimum(np.maximum(alpha, 0.0), problem.costs)


def _least_primal(
    y: FloatArray, costs: FloatArray, alpha: FloatArray, F: FloatArray
) -> tuple[float, float]:
    """Return the primal at its best offset, and this offset, where the slope changes its sign."""
    ends = y - F
    order = ends.argsort()
    slopes = costs[order].cumsum() - (costs * (y > 0)).sum()
    last = len(y) - 1  # rounding may leave the slope below 0 everywhere
    b = float(ends[order[min(int(np.searchsorted(slopes, 0.0)), last)]])
    hinges = (costs * np.maximum(1 - y * (F + b), 0.0)).sum()
    return 0.5 * (y * alpha) @ F + hinges, b


def _boundary_dual(
    K_r: FloatArray, r: int, y: FloatArray, beta: FloatArray, F: FloatArray
) -> tuple[FloatArray, float]:
    """Return ``k' (y beta)`` of every row and ``H(beta)``, given ``F = K (y beta)``."""
    total = (y * beta).sum()
    values = F - K_r * total - F[r] + K_r[r] * total
    return values, beta.sum() - 0.5 * (y * beta) @ values


def _rounding(
    diagonal: FloatArray,
    r: int,
    costs: FloatArray,
    alpha: FloatArray,
    F: FloatArray,
    b: float,
    beta: FloatArray,
    values: FloatArray,
) -> float:
    """Return a bound on the rounding errors of the primal and of H together.

    A product with the kernel is off by at most ``(n + 8) u sqrt(K_jj) sum_i alpha_i sqrt(K_ii)``.
    """
    unit = (len(alpha) + FEW_OPERATIONS) * ROUNDING_UNIT
    roots = np.sqrt(np.abs(diagonal))
    of_F = unit * roots * (alpha * roots).sum()
    of_margins = of_F + FEW_OPERATIONS * ROUNDING_UNIT * (1 + np.abs(F) + np.abs(b))
    hinges = 1 + np.abs(F) + np.abs(b)
    primal = (alpha * (of_F + unit * np.abs(F))).sum() + (
        costs * (of_margins + unit * hinges)
    ).sum()
    reach = (beta * roots).sum() + roots[r] * beta.sum()
    of_values = unit * (roots + roots[r]) * reach
    dual = (beta * (unit + of_values + unit * np.abs(values))).sum()
    return float(primal + dual)


@compiled
def optimise_until_proven(
    K: FloatArray,
    y: FloatArray,
    costs: FloatArray,
    r: int,
    alpha: FloatArray,
    F: FloatArray,
    watch: bool,
    tol: float,
    max_iter: int,
) -> tuple[bool, float]:
    """Raise the dual pair by pair, and H row by row if it is watched, in place.

    Returns
    -------
    Whether the class of r is proven, and the offset that proves it. If it is not proven, the limits
    of the offset agree within `tol`, or `max_iter` iterations were made.
    """
    diagonal = np.diag(K).copy()
    beta, H = alpha.copy(), 0.0
    curvature = np.maximum(diagonal - 2 * K[r] + K[r, r], _LEAST_CURVATURE)
    values = F.copy()
    if watch:
        values, H = _boundary_dual(K[r], r, y, beta, F)
    for iteration in range(max_iter):
        lower, upper = offset_ends(y, costs, alpha, F)
        i = lower.argmax()
        gaps = np.maximum(lower[i] - upper, 0.0)
        if gaps.max() <= tol:
            break
        bends = np.maximum(diagonal[i] + diagonal - 2 * K[i], _LEAST_CURVATURE)
        j = (gaps * gaps / bends).argmax()
        room_i = costs[i] - alpha[i] if y[i] > 0 else alpha[i]
        room_j = alpha[j] if y[j] > 0 else costs[j] - alpha[j]
        step = min(gaps[j] / bends[j], room_i, room_j)
        alpha[i] += y[i] * step
        alpha[j] -= y[j] * step
        # The bounds must be met exactly, or the pair would be chosen again.
        if step == room_i:
            alpha[i] = costs[i] if y[i] > 0 else 0.0
        if step == room_j:
            alpha[j] = 0.0 if y[j] > 0 else costs[j]
        F += step * (K[i] - K[j])
        if not watch:
            continue
        slope = 1 - y * values
        target = np.minimum(np.maximum(beta + slope / curvature, 0.0), costs)
        change = target - beta
        gain = change * slope - 0.5 * change * change * curvature
        k = gain.argmax()
        H += gain[k]
        beta[k] = target[k]
        values += y[k] * change[k] * (K[k] - K[r, k] - K[r] + K[r, r])
        if iteration % _CHECK_EVERY == 0:
            primal, b = _least_primal(y, costs, alpha, F)
            # If the offset is free, F may equal F_0, and rounding must not decide.
            if primal < H - _rounding(diagonal, r, costs, alpha, F, b, beta, values):
                # Compare once more, without the rounding that the steps have accumulated.
                F[:] = K @ (y * alpha)
                values, H = _boundary_dual(K[r], r, y, beta, K @ (y * beta))
                primal, b = _least_primal(y, costs, alpha, F)
                if primal < H - _rounding(diagonal, r, costs, alpha, F, b, beta, values):
                    return True, b
    return False, 0.0
