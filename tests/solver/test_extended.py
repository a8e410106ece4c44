import math
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.robustness.referee import exact_value
from span_hpo import Problem, solve
from span_hpo.solver.extended import ONE_ROUNDING, ExtendedPoint
from tests.problems import mixed_norms_problem, symmetric_problem

TINY = Fraction(1, 10**30)  # accuracy of decision values that is far beyond double precision
STEPS = 200  # more than any of these problems needs


def at(problem, alpha):
    """Return the point with these dual variables."""
    return ExtendedPoint(problem.K, problem.y, problem.costs, np.asarray(alpha, dtype=float))


def improved(problem, alpha):
    """Return the point that steps from these dual variables lead to."""
    point = at(problem, alpha)
    for _ in range(STEPS):
        point.refresh(exactly=True)
        if not point.improve():
            break
    point.refresh(exactly=True)
    return point


def exact_products(problem, alpha):
    """Return ``F = K (y alpha)`` by fractions."""
    beta = [Fraction(value) for value in (problem.y * alpha).tolist()]
    return [
        sum((Fraction(k) * part for k, part in zip(row, beta, strict=True)), Fraction(0))
        for row in problem.K.values.tolist()
    ]


def three_rows():
    """Return rows at 0, 2 and 3, whose decision function is x - 1."""
    x = np.array([0.0, 2.0, 3.0])
    return Problem(np.outer(x, x), [-1.0, 1.0, 1.0], np.ones(3))


@pytest.mark.parametrize(
    "start", [[0, 0, 0], [0.25, 0.25, 0], [1, 0, 1], [0.5, 0, 0.5], [1, 0.5, 0.5]]
)
def test_three_rows_by_hand(start):
    """From several feasible points, steps end at alpha = (1/2, 1/2, 0) and b = -1."""
    point = improved(three_rows(), start)
    np.testing.assert_allclose(point.alpha, [0.5, 0.5, 0.0], rtol=0, atol=1e-30)
    np.testing.assert_array_equal(point.above, [0.5, 0.5, 1.0])
    np.testing.assert_array_equal(point.inside, [True, True, False])
    assert math.fsum(point.offset) == -1
    assert point.imbalance == 0
    np.testing.assert_allclose(point.residual, [0.0, 0.0, -1.0], atol=1e-30)
    assert not point.improve()


@pytest.mark.parametrize("exactly", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_residuals_are_within_their_errors(seed, exactly):
    """Bounds on the rounding of ``y - f`` hold, with rows of very different norms."""
    problem = mixed_norms_problem(seed)
    alpha = solve(problem).alpha
    point = at(problem, alpha)
    point.refresh(exactly=exactly)
    b = sum(map(Fraction, point.offset))
    for i, F in enumerate(exact_products(problem, alpha)):
        exact = Fraction(problem.y[i]) - F - b
        assert abs(Fraction(point.residual[i]) - exact) <= Fraction(point.error[i])
        if exactly and point.inside[i]:
            assert point.error[i] <= ONE_ROUNDING * abs(point.residual[i])


@pytest.mark.parametrize("seed", range(20))
def test_sums_are_rounded_once(seed):
    """Sums of decision values and numbers are the doubles next to the exact sums."""
    problem = mixed_norms_problem(seed)
    alpha = solve(problem).alpha
    point = at(problem, alpha)
    point.refresh(exactly=False)
    F = exact_products(problem, alpha)
    n = len(problem)
    first, second, plus = np.arange(n), np.arange(n)[::-1], np.linspace(-1, 1, n)
    found = point.sums([(first, 2.0), (second, -1.0)], plus, [0.1, 1e-20])
    for i in range(n):
        exact = 2 * F[first[i]] - F[second[i]] + Fraction(plus[i]) - Fraction(0.1) - Fraction(1e-20)
        assert abs(Fraction(found[i]) - exact) <= Fraction(ONE_ROUNDING) * abs(exact)


@pytest.mark.parametrize("seed", range(25))
def test_steps_lead_to_the_solution(seed):
    """Dual variables stay in their boxes, and the end is the solution within the bounds."""
    problem = mixed_norms_problem(seed)
    point = improved(problem, solve(problem).basic.alpha)
    assert (point.alpha >= 0).all()
    assert (point.above >= 0).all()
    np.testing.assert_allclose(point.alpha + point.above, problem.costs, rtol=1e-15)
    if not point.inside.any():
        pytest.skip("the offset is free")
    K = problem.K.values.tolist()
    for i in range(len(problem)):
        # A further row in the same place, with cost 0, has the decision value of the solution.
        exact = exact_value(
            [[*row, row[i]] for row in [*K, K[i]]], [*problem.y, 1], [*problem.costs, 0], len(K)
        )
        residual = Fraction(problem.y[i]) - exact
        assert abs(Fraction(point.residual[i]) - residual) <= Fraction(point.error[i]) + TINY


@pytest.mark.parametrize("seed", range(40))
def test_worst_conflict_is_exact(seed):
    """Where all rows are at bounds, the largest difference of limits has its exact sign."""
    problem = symmetric_problem(seed)
    rng = np.random.default_rng(seed)
    alpha = np.where(rng.random(len(problem)) < 0.6, problem.costs, 0.0)
    point = at(problem, alpha)
    point.refresh(exactly=True)
    rests = [
        Fraction(label) - F
        for label, F in zip(problem.y, exact_products(problem, alpha), strict=True)
    ]
    can_grow = (problem.y > 0) == (alpha == 0)  # y alpha can grow, and otherwise it can fall
    if can_grow.all() or not can_grow.any():
        pytest.skip("no limits can contradict each other")
    exact = max(rests[i] for i in np.flatnonzero(can_grow)) - min(
        rests[j] for j in np.flatnonzero(~can_grow)
    )
    i, j, difference = point.worst_conflict()
    assert can_grow[i]
    assert not can_grow[j]
    assert np.sign(difference) == np.sign(float(exact))
    if exact > 0:
        assert difference == pytest.approx(float(exact), rel=1e-6)


def test_rows_at_bounds_leave_them_together():
    """From zeros, the two rows that contradict each other most go to their common margin."""
    point = at(three_rows(), np.zeros(3))
    point.refresh(exactly=True)
    assert not point.inside.any()
    assert point.offset == [0.0]
    assert point.worst_conflict()[2] == 2
    assert point.improve()
    point.refresh(exactly=True)
    assert point.imbalance == 0
    assert point.inside.any()


def test_costs_that_differ_by_one_bit_leave_one_row_inside():
    """Dual variables balance exactly, by a part of a row that a double could not hold."""
    costs = np.array([0.5, 0.5 + 2.0**-53])
    problem = Problem(np.eye(2), [1.0, -1.0], costs)
    point = improved(problem, costs)
    assert point.imbalance == 0
    np.testing.assert_array_equal(point.inside, [False, True])
    assert point.above[1] == 2.0**-53
    rounded = point.rounded()
    assert (rounded.alpha <= costs).all()
    assert math.fsum(point.offset) == -0.5  # the margin of the row inside is 1


@pytest.mark.parametrize("seed", range(20))
def test_rounded_points_are_in_their_boxes(seed):
    """The point in double precision has the same dual variables and decision values."""
    problem = mixed_norms_problem(seed)
    point = improved(problem, solve(problem).alpha)
    rounded = point.rounded()
    assert (rounded.alpha >= 0).all()
    assert (rounded.alpha <= problem.costs).all()
    np.testing.assert_allclose(rounded.alpha, point.alpha, rtol=1e-15)
    F = problem.y - point.residual - math.fsum(point.offset)
    np.testing.assert_allclose(rounded.F, F, rtol=1e-12, atol=1e-12)


def test_rows_with_cost_zero_take_no_part():
    """A row that is left out violates its margin and does not move."""
    x = np.array([0.0, 2.0, 1.0])
    problem = Problem(np.outer(x, x), [-1.0, 1.0, 1.0], [1.0, 1.0, 0.0])
    point = improved(problem, np.array([0.4, 0.4, 0.0]))
    np.testing.assert_allclose(point.alpha, [0.5, 0.5, 0.0], rtol=0, atol=1e-30)
    assert point.residual[2] == 1
