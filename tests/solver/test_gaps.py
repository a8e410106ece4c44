from fractions import Fraction

import numpy as np
import pytest

from span_hpo import Problem, solve
from span_hpo.runtime import interpreted
from span_hpo.solver.gaps import curved_gap, curved_gaps, largest_violation, plain_gaps, row_gaps
from tests.compiled import needs_compiled
from tests.problems import mixed_norms_problem, moons_problem, random_problem


def lagrangian(problem, alpha, b):
    """Return ``sum(alpha) - |w|^2 / 2 - b y'alpha`` by fractions, for numbers of any kind."""
    y = [int(label) for label in problem.y]
    alpha = [Fraction(value) for value in alpha]
    beta = [label * value for label, value in zip(y, alpha, strict=True)]
    used = [i for i, value in enumerate(beta) if value]
    K = problem.K.values
    square = sum(beta[i] * beta[j] * Fraction(K[i, j]) for i in used for j in used)
    return sum(alpha) - square / 2 - Fraction(b) * sum(beta)


def balanced(problem, alpha):
    """Return dual variables close to the given ones whose sum ``y'alpha`` is exactly 0."""
    exact = [Fraction(value) for value in alpha]
    costs = [Fraction(value) for value in problem.costs]
    rest = sum(int(label) * value for label, value in zip(problem.y, exact, strict=True))
    for i, label in enumerate(problem.y):
        moved = min(max(exact[i] - int(label) * rest, Fraction(0)), costs[i])
        rest += int(label) * (moved - exact[i])
        exact[i] = moved
    assert rest == 0
    return exact


def largest_dual(problem):
    """Return the dual value of an accurate fit, no larger than the maximum, by fractions."""
    return lagrangian(problem, balanced(problem, solve(problem).alpha), 0)


def point_of(problem):
    """Return an unconverged fit, its arguments of `row_gaps`, and its distance from the maximum."""
    fit = solve(problem, polish=False, tol=0.1)
    distance = largest_dual(problem) - lagrangian(problem, fit.alpha, fit.b)
    return fit, (fit.excess, fit.rounding, fit.alpha, problem.costs - fit.alpha), distance


def test_gaps_by_hand():
    """A row below its margin may rise to its cost, one above it may fall to 0."""
    excess, rounding = np.array([-0.5, 2.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.1, 0.0])
    alpha, above = np.array([1.0, 1.0, 2.0, 5.0]), np.array([4.0, 3.0, 7.0, 5.0])
    np.testing.assert_allclose(row_gaps(excess, rounding, alpha, above), [2.0, 2.0, 0.7, 0.0])


def test_rounding_counts_on_both_sides():
    """A row that seems to be at the right side of its margin may be at the other one."""
    gaps = row_gaps(np.array([1e-9, -1e-9]), np.full(2, 3e-9), np.array([0.0, 5.0]), np.ones(2))
    np.testing.assert_allclose(gaps, [2e-9, 1e-8])


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(
    "make", [lambda seed: random_problem(seed, largest=15), mixed_norms_problem]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_row_gaps_bound_the_distance_from_the_maximum(make, seed):
    """At a fit that has not converged, the dual is at most the sum below its maximum."""
    _, arguments, distance = point_of(make(seed))
    assert distance <= float(row_gaps(*arguments).sum()) * (1 + 1e-12)


def two_rows(a, cost):
    """Return the problem of rows at -1 and 1, g at ``alpha = (a, a)``, and the room above."""
    problem = Problem(np.array([[1.0, -1.0], [-1.0, 1.0]]), [-1.0, 1.0], [cost, cost])
    return problem, np.full(2, 2 * a - 1), np.full(2, cost - a)


@pytest.mark.parametrize("a", [0.4375, 0.5, 0.625])
def test_curved_gap_is_the_distance_on_a_parabola(a):
    """With rows at -1 and 1 the dual is ``2 a - 2 a^2``, and the bound is exact."""
    problem, excess, above = two_rows(a, 1e6)
    alpha, held = np.full(2, a), np.ones(2, dtype=bool)
    gap, length, level = curved_gap(
        excess, np.zeros(2), alpha, above, held, np.ones(2), 2.0, 0.0, 0.0
    )
    assert gap == pytest.approx(2 * (a - 0.5) ** 2)
    assert length == pytest.approx(2 * abs(a - 0.5))  # the weight vector goes from 2 a to 1
    assert level == pytest.approx(abs(2 * a - 1))
    assert float(Fraction(1, 2) - lagrangian(problem, [a, a], 0)) == pytest.approx(gap)
    assert gap <= row_gaps(excess, np.zeros(2), alpha, above).sum()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("cost", [1.0, 1e3])
@pytest.mark.parametrize("tol", [0.1, 1e-3])
def test_curved_gap_bounds_the_distance_from_the_maximum(seed, cost, tol):
    """The bound by the curvature holds at fits that have not converged, for any cost."""
    problem = moons_problem(14, cost=cost, gamma=2.0, seed=seed)
    fit = solve(problem, polish=False, tol=tol)
    inside = np.flatnonzero(fit.in_bound)
    if len(inside) < 2:
        pytest.skip("too few rows are in-bound")
    K = problem.K.values
    K_II = K[np.ix_(inside, inside)]
    centre = np.eye(len(inside)) - 1 / len(inside)
    least = np.linalg.eigvalsh(centre @ K_II @ centre)[1] * (1 - 1e-6)
    squares = K.diagonal() - 2 * K[:, inside].mean(axis=1) + K_II.mean()
    gap, _, level = curved_gap(
        fit.excess,
        fit.rounding,
        fit.alpha,
        problem.costs - fit.alpha,
        fit.in_bound,
        np.sqrt(squares) * (1 + 1e-9),
        least,
        abs(fit.imbalance),
        float(np.sqrt(K.diagonal()[inside]).max()),
    )
    distance = largest_dual(problem) - lagrangian(problem, fit.alpha, fit.b)
    # The offset may move by as much as the level, which matters if y'alpha is not exactly 0.
    assert distance <= gap * (1 + 1e-9) + level * abs(fit.imbalance)


def test_curvature_tightens_the_bound_where_costs_are_large():
    """Near the solution, in-bound rows with large costs count by their squares."""
    a = 0.5 + 1e-6
    _, excess, above = two_rows(a, 1e6)
    alpha = np.full(2, a)
    plain = row_gaps(excess, np.zeros(2), alpha, above).sum()
    held = np.ones(2, dtype=bool)
    curved, _, _ = curved_gap(excess, np.zeros(2), alpha, above, held, np.ones(2), 2.0, 0.0, 0.0)
    assert curved < 1e-5 * plain


def test_violations_by_hand():
    """A zero row may exceed its margin, a bounded one may miss it, and an in-bound one neither."""
    alpha, costs = np.array([0.0, 2.0, 1.0]), np.array([2.0, 2.0, 2.0])
    assert largest_violation(np.array([0.5, -0.5, 0.0]), alpha, costs) == 0.0
    assert largest_violation(np.array([-0.25, -0.5, 0.0]), alpha, costs) == 0.25
    assert largest_violation(np.array([0.5, 0.125, 0.0]), alpha, costs) == 0.125
    assert largest_violation(np.array([0.5, -0.5, -0.75]), alpha, costs) == 0.75


@needs_compiled
@pytest.mark.parametrize("generate", [random_problem, mixed_norms_problem])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_machine_code_has_the_gaps_of_its_twin(generate):
    """Sums agree to 1e-12, also where all but one row have no gap."""
    rng = np.random.default_rng(0)
    for seed in range(60):
        problem = generate(seed)
        fit = solve(problem, polish=False, tol=0.1)
        parts = fit.excess, 10.0 ** rng.uniform(-20, 0) * fit.rounding, fit.alpha, problem.costs
        curvature = problem.K.diagonal(), 10.0 ** rng.uniform(-6, 0), abs(fit.imbalance)
        found = [plain_gaps(*parts), largest_violation(fit.excess, fit.alpha, problem.costs)]
        with interpreted():
            wanted = [plain_gaps(*parts), largest_violation(fit.excess, fit.alpha, problem.costs)]
        assert found[1] == wanted[1]
        pairs = [(found[0], wanted[0])]
        if fit.in_bound.any():
            curved = curved_gaps(*parts, *curvature)
            with interpreted():
                pairs.append((curved, curved_gaps(*parts, *curvature)))
        for (others, gap), (wanted_others, wanted_gap) in pairs:
            assert gap == pytest.approx(wanted_gap, rel=1e-12)
            np.testing.assert_allclose(others, wanted_others, rtol=1e-12, atol=1e-12 * gap)
