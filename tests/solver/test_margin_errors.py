import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from span_hpo import Problem, solve
from span_hpo.runtime import ROUNDING_UNIT, interpreted
from span_hpo.solver.margin_errors import fit_errors
from tests.compiled import needs_compiled
from tests.problems import (
    mixed_norms_problem,
    moons_problem,
    random_problem,
    symmetric_problem,
)

FAMILIES = [random_problem, symmetric_problem, mixed_norms_problem]


def parts_of(solution):
    """Return the arguments of `fit_errors` after the matrix."""
    problem = solution.problem
    return problem.y, problem.costs, solution.alpha, solution.decision_values, solution.b


def scale_of(solution):
    """Return ``1 + |b| + |f_j| + sqrt(K_jj) sum_i alpha_i sqrt(K_ii)`` of every row."""
    roots = np.sqrt(np.abs(solution.problem.K.diagonal()))
    values = np.abs(solution.decision_values)
    return 1 + abs(solution.b) + values + roots * (solution.alpha @ roots)


def fits(generate, seeds):
    """Yield polished and rough fits of random problems."""
    for seed in seeds:
        for polish in (True, False):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                yield solve(generate(seed), polish=polish).basic


@needs_compiled
@pytest.mark.parametrize("generate", FAMILIES)
def test_machine_code_bounds_what_its_twin_bounds(generate):
    """Errors and gaps agree up to the rounding of one product, and sums are the same."""
    for solution in fits(generate, range(60)):
        parts, K, costs = parts_of(solution), solution.problem.K, solution.problem.costs
        found = fit_errors(K, *parts)
        with interpreted():
            wanted = fit_errors(K, *parts)
        noise = 2 * (len(costs) + 8) * ROUNDING_UNIT * scale_of(solution)
        assert (np.abs(found.rounding - wanted.rounding) <= noise).all()
        assert found.imbalance == wanted.imbalance
        allowed = 1e-12 * wanted.gap + (noise * costs).sum()
        np.testing.assert_allclose(found.gaps, wanted.gaps, rtol=0, atol=allowed)
        assert found.gap == pytest.approx(wanted.gap, rel=1e-12, abs=allowed)


@pytest.mark.parametrize("generate", FAMILIES)
def test_blocks_give_the_bounds_of_the_matrix(generate):
    """A matrix that is given block by block has the same bounds, up to the order of its sums."""
    for solution in fits(generate, range(20)):
        K, parts = solution.problem.K, parts_of(solution)
        blocks = K.take(np.arange(len(K)))
        noise = 2 * (len(K) + 8) * ROUNDING_UNIT * scale_of(solution)
        found, wanted = fit_errors(blocks, *parts), fit_errors(K, *parts)
        assert (np.abs(found.rounding - wanted.rounding) <= noise).all()
        assert found.imbalance == wanted.imbalance


@pytest.mark.parametrize("cost", [1e-3, 1.0, 1e6])
@pytest.mark.parametrize("count", [37, 300])
def test_bounds_hold_with_few_and_with_many_support_vectors(count, cost):
    """Errors contain those of exact arithmetic, in rows that are measured and in others."""
    solution = solve(moons_problem(count, cost=cost, seed=2))
    problem, b = solution.problem, Fraction(solution.b)
    support = np.flatnonzero(solution.alpha)
    beta = [Fraction(value) for value in (problem.y * solution.alpha)[support]]
    rounding = fit_errors(problem.K, *parts_of(solution)).rounding
    for i in range(0, count, 7):
        row = problem.K.values[i, support]
        exact = b + sum(Fraction(k) * part for k, part in zip(row, beta, strict=True))
        assert abs(Fraction(solution.decision_values[i]) - exact) <= rounding[i]


@needs_compiled
@pytest.mark.parametrize("seed", range(20))
def test_imbalance_is_the_double_next_to_the_sum(seed):
    """Sums over many orders of magnitude, halves of a last place among them, are rounded once."""
    rng = np.random.default_rng(seed)
    alpha = 2.0 ** rng.integers(-60, 60, size=50) * rng.choice([1.0, 1.5, 1 + 2.0**-52], size=50)
    y = rng.choice([-1.0, 1.0], size=50)
    y[:2] = 1.0, -1.0
    problem = Problem(np.eye(50), y, alpha)
    found = fit_errors(problem.K, y, problem.costs, alpha, np.zeros(50), 0.0)
    assert found.imbalance == float(sum(map(Fraction, y * alpha)))
