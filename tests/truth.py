"""Brute force that the tests compare with."""

import numpy as np
import piqp

from span_hpo import Problem, solve


def refits(problem):
    """Yield (row, its solution without the row, its decision value), by plain loops."""
    K = problem.K.block(slice(None), slice(None))
    for p in range(len(problem)):
        others = np.delete(np.arange(len(problem)), p)
        if len(np.unique(problem.y[others][problem.costs[others] > 0])) == 2:
            refit = solve(
                Problem(K[np.ix_(others, others)], problem.y[others], problem.costs[others])
            )
            yield p, refit, K[p, others] @ (refit.problem.y * refit.alpha) + offset_of(refit)


def offset_of(solution):
    """Return the offset in exact arithmetic, where no row is in-bound and sums are nearly 0.

    If ``y'alpha`` is not exactly 0, one row is inside its box by less than rounding, and the offset
    is not free but at one end of the interval that the other rows allow.
    """
    if solution.in_bound.any() or solution.imbalance == 0:
        return solution.b
    lower, upper = solution.offset_limits.interval
    return upper if solution.imbalance > 0 else lower


def refitted_margins(problem):
    """Return ``y_p f^p(x_p)`` of every row; -1 where a class would be empty."""
    margins = np.full(len(problem), -1.0)
    for p, _, value in refits(problem):
        margins[p] = problem.y[p] * value
    return margins


def boundary_width(solution):
    """Return how close to 0 a leave-one-out value is left to rounding."""
    largest = np.abs(solution.problem.K.diagonal()).max()
    return 1e-5 + 2e-7 * solution.alpha.sum() * largest


def removable(problem):
    """Return the mask of rows that are not the last of their class in the fit."""
    kept = problem.costs > 0
    counts = {label: np.count_nonzero(kept & (problem.y == label)) for label in (-1.0, 1.0)}
    return ~kept | np.array([counts[label] > 1 for label in problem.y])


def lemma_slack(solution, p):
    """Return the sum of Lemma 1 as it is printed."""
    y, costs = solution.problem.y, solution.problem.costs
    others = np.arange(len(y)) != p
    same = solution.in_bound & others & (y == y[p])
    bounded = solution.bounded & others
    return costs[same].sum() + y[p] * (y[bounded] * costs[bounded]).sum()


def span_program(solution, p, *, box):
    """Return PIQP's status and the squared span of row p, set up independently of the package."""
    problem, alpha, y = solution.problem, solution.alpha, solution.problem.y
    K = problem.K.values
    others = np.array([i for i in np.flatnonzero(solution.in_bound) if i != p], dtype=int)
    if not len(others):
        return piqp.PIQP_PRIMAL_INFEASIBLE, np.nan
    unit = K.diagonal().max()
    P, c = K[np.ix_(others, others)] / unit, -K[others, p] / unit
    lower, upper = np.full(len(others), -np.inf), np.full(len(others), np.inf)
    if box:
        sign = y[others] * y[p]
        ends = np.array([-sign * alpha[others], sign * (problem.costs[others] - alpha[others])])
        # Bounds beyond 1e4 never matter for these problems, and PIQP is better without them.
        lower, upper = ends.min(axis=0) / alpha[p], ends.max(axis=0) / alpha[p]
        lower, upper = np.where(lower < -1e4, -np.inf, lower), np.where(upper > 1e4, np.inf, upper)
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-9
    solver.settings.max_iter = 1000
    solver.setup(
        P=np.asfortranarray(P),
        c=c,
        A=np.ones((1, len(others)), order="F"),
        b=np.ones(1),
        x_l=lower,
        x_u=upper,
    )
    status = solver.solve()
    lam = solver.result.x
    squared = K[p, p] - 2 * K[others, p] @ lam + lam @ K[np.ix_(others, others)] @ lam
    return status, squared
