from fractions import Fraction

import numpy as np
import pytest

from span_hpo import solve
from span_hpo.solver.rounding import (
    NEVER_SOLVED,
    SOLVED,
    dot_rounding,
    margin_noise,
    margin_rounding,
    violation_limit,
    zero_width,
)
from tests.problems import moons_problem, random_problem, symmetric_problem


def exact_values(solution):
    """Return the decision values of a fit by fractions, without any rounding."""
    problem = solution.problem
    beta = [Fraction(value) for value in (problem.y * solution.alpha).tolist()]
    return [
        sum((Fraction(k) * part for k, part in zip(row, beta, strict=True)), Fraction(solution.b))
        for row in problem.K.values.tolist()
    ]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("make", [lambda seed: random_problem(seed, largest=15), symmetric_problem])
def test_decision_values_are_within_the_noise(make, seed):
    """Rounding moves no decision value of a fit by more than `margin_noise`."""
    solution = solve(make(seed))
    largest = np.abs(solution.problem.K.diagonal()).max()
    noise = margin_noise(solution.alpha, largest)
    found = [Fraction(value) for value in solution.decision_values.tolist()]
    gaps = [abs(a - b) for a, b in zip(found, exact_values(solution), strict=True)]
    assert max(gaps) <= noise


@pytest.mark.parametrize("seed", range(60))
def test_signs_beyond_the_zero_width_are_known(seed):
    """A decision value further from 0 than the width has the sign of exact arithmetic."""
    solution = solve(random_problem(seed, largest=15))
    width = zero_width(margin_noise(solution.alpha, np.abs(solution.problem.K.diagonal()).max()))
    for value, exact in zip(solution.decision_values, exact_values(solution), strict=True):
        assert abs(value) <= width or (value > 0) == (exact > 0)


def test_noise_has_the_unit_of_the_margin():
    """(K, C) -> (s K, C / s) leaves the margins, and so the noise of them."""
    alpha = np.array([0.5, 2.0, 0.0])
    assert margin_noise(alpha / 64, 3.0 * 64) == margin_noise(alpha, 3.0)
    assert margin_noise(2 * alpha, 3.0) > margin_noise(alpha, 3.0)


@pytest.mark.parametrize("noise", [0.0, 1e-13, 1e-10, 1e-7, 1e-3, 1e9])
def test_limits_grow_with_the_noise_up_to_a_cap(noise):
    """However large the noise is, an unsolved fit is no solution and 1e-6 is not zero."""
    assert zero_width(noise) <= SOLVED <= violation_limit(noise) <= NEVER_SOLVED
    assert zero_width(noise) <= zero_width(2 * noise)
    assert violation_limit(noise) <= violation_limit(2 * noise)


@pytest.mark.parametrize("seed", range(5))
def test_the_limit_tells_solved_from_unsolved(seed):
    """A polished fit keeps the limit by far, and a fit that stops at a tolerance breaks it."""
    problem = moons_problem(60, cost=5.0, seed=seed)
    solved, stopped = solve(problem), solve(problem, polish=False, tol=1e-2)
    assert solved.kkt_violation() < 1e-3 * violation_limit(solved.margin_noise)
    assert stopped.kkt_violation() > violation_limit(stopped.margin_noise)
    assert solved.is_optimal
    assert not stopped.is_optimal


@pytest.mark.parametrize("count", [0, 1, 2, 10, 300])
def test_dot_rounding_bounds_any_order_of_summation(count):
    """Sums of products of very different numbers err by less than the bound, in any order."""
    rng = np.random.default_rng(count)
    for _ in range(20):
        a, b = rng.normal(size=(2, count)) * 10.0 ** rng.integers(-8, 9, size=(2, count))
        exact = sum(map(lambda x, z: Fraction(x) * Fraction(z), a, b), Fraction(0))
        bound = float(dot_rounding(count, np.abs(a * b).sum()))
        orders = [np.arange(count), np.argsort(np.abs(a * b)), rng.permutation(count)]
        for order in orders:
            one_by_one = 0.0
            for i in order:
                one_by_one += float(a[i] * b[i])
            assert abs(Fraction(one_by_one) - exact) <= bound
            assert abs(Fraction(float(a[order] @ b[order])) - exact) <= bound


def test_margin_rounding_bounds_sums_of_a_few_terms():
    """``y (F + b) - 1``, computed with three roundings, is within the bound."""
    rng = np.random.default_rng(0)
    F = rng.normal(size=300) * 10.0 ** rng.integers(-10, 11, size=300)
    for b in (0.0, 0.3, -7e5, 1e-12):
        f = F + b
        bounds = margin_rounding(f, b)
        for i, value in enumerate(f - 1):
            assert abs(Fraction(value) - (Fraction(F[i]) + Fraction(b) - 1)) <= bounds[i]
