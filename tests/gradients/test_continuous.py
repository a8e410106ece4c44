import itertools

import numpy as np
import pytest

from span_hpo import Problem, SpanObjective, leave_one_out, solve
from span_hpo.gradients import (
    NoGradientError,
    continuous_derivatives,
    continuous_values,
    pulled_back,
)
from span_hpo.kernels import KernelMatrix
from tests.differences import kinds
from tests.gradients.fits import Moving, every_row, moving_moons
from tests.problems import moons_problem, random_problem, rbf, two_moons


def values_with(eta):
    return lambda solution: continuous_values(solution, eta)


def spans_by_formula(solution, eta):
    """Return ``1 / A_pp - d_p`` and the distances of bounded rows, from the whole bordered matrix.

    With ``M = [[K_II + diag(d), 1], [1', 0]]`` these are those of the span-rule.
    """
    problem, K = solution.problem, solution.problem.K.values
    inside, bounded = np.flatnonzero(solution.in_bound), np.flatnonzero(solution.bounded)
    alpha, room = solution.alpha[inside], (problem.costs - solution.alpha)[inside]
    d = eta * (1 / alpha + 1 / room)
    M = np.ones((len(inside) + 1, len(inside) + 1))
    M[:-1, :-1] = K[np.ix_(inside, inside)] + np.diag(d)
    M[-1, -1] = 0.0
    inverse = np.linalg.inv(M)
    spans = np.zeros(len(problem))
    spans[inside] = 1 / inverse.diagonal()[:-1] - d
    for p in bounded:
        v = np.append(K[inside, p], 1.0)
        spans[p] = K[p, p] - v @ inverse @ v
    return spans


@pytest.mark.parametrize("eta", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_values_follow_the_formula(eta, seed):
    """They are those of the bordered matrix with a penalty on its diagonal."""
    solution = solve(moons_problem(40, cost=3.0, seed=seed), tol=1e-9)
    spans = spans_by_formula(solution, eta)
    expected = solution.decision_values - solution.problem.y * solution.alpha * spans
    np.testing.assert_allclose(continuous_values(solution, eta), expected, atol=1e-8)


@pytest.mark.parametrize("scale", [1.0, 300.0, 1e4])
@pytest.mark.parametrize("eta", [1e-8, 1e-4, 1e-2])
def test_neither_large_kernel_values_nor_small_penalties_cancel(eta, scale):
    """The values of a linear kernel are those with the origin among the rows, to many digits."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2)) * scale
    y = np.where(X[:, 0] + scale * rng.normal(size=30) > 0, 1.0, -1.0)
    solution = solve(Problem(X @ X.T, y, np.full(30, 1024.0)))
    inside = np.flatnonzero(solution.in_bound)
    assert len(inside) == 3  # so that the values of the plain span-rule are accurate
    alpha, room = solution.alpha[inside], 1024.0 - solution.alpha[inside]
    d = eta * (1 / alpha + 1 / room)
    # In coordinates that the penalty shares: x_p to the affine hull of the others.
    points = np.hstack([X[inside], np.diag(np.sqrt(d))])
    spans = np.zeros(3)
    for place in range(3):
        others = np.delete(points, place, axis=0)
        edges = others[1:] - others[0]
        offset = points[place] - others[0]
        offset[2 + place] = 0.0  # the row's own penalty is no part of its span
        foot = np.linalg.lstsq(edges.T, offset, rcond=None)[0]
        spans[place] = np.sum((offset - edges.T @ foot) ** 2)
    found = (solution.decision_values - continuous_values(solution, eta))[inside] / y[inside]
    np.testing.assert_allclose(found, alpha * spans, rtol=1e-4, atol=1e-9)


def test_a_penalty_too_small_for_the_kernel_values_is_said():
    """Where rounding hides the penalty, there is a reason instead of a number."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 1)), np.where(rng.random(60) < 0.5, 1.0, -1.0)
    K = np.exp(-((X - X.T) ** 2)) * 1e6
    solution = solve(Problem(K, y, np.full(60, 1e4)))
    assert solution.n_in_bound > 3
    with pytest.raises(NoGradientError, match="too large for `eta`, got 1e-14: use a larger one"):
        continuous_values(solution, 1e-14)


def test_a_small_penalty_changes_little():
    """The values tend to those of the span-rule, in proportion to the penalty."""
    solution = solve(moons_problem(40, cost=3.0), tol=1e-9)
    exact = leave_one_out(solution, method="span").decision_values
    gaps = [np.abs(continuous_values(solution, eta) - exact).max() for eta in (1e-9, 1e-8, 1e-7)]
    assert gaps[0] < 1e-7
    np.testing.assert_allclose(gaps[2] / gaps[1], 10, rtol=0.01)
    np.testing.assert_allclose(gaps[1] / gaps[0], 10, rtol=0.1)


@pytest.mark.parametrize("equal", [0, 3])
@pytest.mark.parametrize("eta", [1e-4, 1e-2])
def test_derivatives_by_costs_and_by_moving_rows(equal, eta):
    """Each cost, and a direction in which all rows move; equal rows share their dual variables."""
    checked = 0
    for seed in range(6):
        moving = moving_moons(seed, values=values_with(eta), equal=equal, zero=2)
        problem = moving.solution.problem
        if moving.solution.n_in_bound >= 2 and moving.is_smooth():
            found = continuous_derivatives(
                moving.solution, problem.K, every_row(problem), moving.weights, eta
            )
            assert moving.error(found) < 2e-5, seed
            checked += 1
    assert checked >= 4


def test_derivatives_of_ugly_problems():
    """Duplicates, tiny classes and costs over many orders of magnitude."""
    checked = 0
    for seed in range(30):
        problem = random_problem(seed, largest=20)
        K, scale = problem.K.values, problem.K.values.diagonal().max()
        eta = 1e-2 * scale * problem.costs.min()
        moving = Moving(
            lambda t, K=K: np.exp(t) * K, problem.y, problem.costs, values_with(eta), seed
        )
        if moving.solution.n_in_bound < 2 or not moving.is_smooth():
            continue
        arguments = problem.K, every_row(problem), moving.weights, eta
        if pulled_back(moving.solution, *arguments[:3]).keeps_rank:
            found = continuous_derivatives(moving.solution, *arguments)
            assert moving.error(found) < 2e-5, seed
            checked += 1
    assert checked >= 20


def last_and_first(loss, start, end):
    """Return the ends of the smallest step between two numbers over which rows change their kind.

    Each call of `loss` returns a value and the kinds of the rows.
    """
    first = loss(start)[1]
    while end - start > 1e-12 * end:
        middle = (start + end) / 2
        if middle in (start, end):
            break
        if loss(middle)[1] == first:
            start = middle
        else:
            end = middle
    return loss(start)[0], loss(end)[0]


def jumps_along(loss, grid):
    """Return by how much the values jump at changes of kinds along a grid."""
    found = []
    for start, end in itertools.pairwise(grid):
        if loss(start)[1] != loss(end)[1]:
            before, after = last_and_first(loss, start, end)
            found.append(np.abs(after - before).max())
    return np.array(found)


@pytest.mark.parametrize("moved", ["cost", "width"])
def test_values_are_continuous_where_rows_change_their_kind(moved):
    """Where values of the span-rule jump by a tenth, a penalty leaves less than 1e-5 of it."""
    X, y = two_moons(24, seed=3)

    def solution(at):
        cost, gamma = (at, 1.0) if moved == "cost" else (3.0, at)
        return solve(Problem(rbf(X, gamma), y, np.full(24, cost)), tol=1e-10)

    def smooth(at):
        fit = solution(at)
        return continuous_values(fit, 1e-4), kinds(fit)

    def plain(at):
        fit = solution(at)
        return leave_one_out(fit, method="span").decision_values, kinds(fit)

    grid = np.geomspace(0.5, 5.0, 30)
    jumps = jumps_along(plain, grid)
    assert len(jumps) >= 4
    assert jumps.max() > 0.1
    assert jumps_along(smooth, grid).max() < 1e-5


def test_equal_rows_share_the_value_of_one():
    """Two equal rows of cost C have dual variables that are half of that of one row of cost 2C."""
    X, y = two_moons(20, seed=3)
    X, y = np.roll(X, -7, axis=0), np.roll(y, -7)
    one = solve(Problem(rbf(X, 1.0), y, np.append(6.0, np.full(19, 3.0))), tol=1e-10)
    assert one.in_bound[0]
    X, y = np.vstack([X[:1], X]), np.append(y[0], y)
    two = solve(Problem(rbf(X, 1.0), y, np.full(21, 3.0)), tol=1e-10)
    np.testing.assert_allclose(two.alpha[:2], one.alpha[0] / 2, rtol=1e-8)
    values = continuous_values(two, 1e-4)
    assert values[0] == pytest.approx(values[1], rel=1e-9)
    assert abs(values[0] - two.decision_values[0]) < 1e-3  # the other one takes its place


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_in_bound_rows(count):
    """With none or one there are neither values nor derivatives."""
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    y = np.array([-1.0, 1.0, -1.0, 1.0])
    costs = np.array([0.1, 0.1, 0.1, 0.1]) if count == 0 else np.array([0.1, 0.1, 0.1, 9.0])
    solution = solve(Problem(rbf(X, 1.0), y, costs))
    with pytest.raises(NoGradientError, match=f"has {count} in-bound support vectors"):
        continuous_values(solution, 1e-4)
    with pytest.raises(NoGradientError, match=f"has {count} in-bound support vectors"):
        continuous_derivatives(solution, solution.problem.K, np.arange(4), np.ones(4), 1e-4)


def test_rows_that_depend_on_each_other():
    """Values exist, but the shares of dependent rows have no known derivative."""
    X = np.array([[0.0, 0], [0, 2], [2, 0], [2, 2], [0.2, 1.0], [5, 1], [-3, 1]])
    y = np.array([-1.0, -1, 1, 1, 1, 1, -1])
    costs = np.array([3.0, 4.0, 5.0, 6.0, 0.2, 1.0, 1.0])
    K = X @ X.T
    solution = solve(Problem(K, y, costs), tol=1e-9)
    assert np.isfinite(continuous_values(solution, 1e-4)).all()
    with pytest.raises(NoGradientError, match="are combinations of others, so that the derivative"):
        continuous_derivatives(solution, KernelMatrix(K), np.arange(7), np.ones(7), 1e-4)


def test_the_last_row_of_a_class_has_a_fixed_value():
    """Without it one class is left, so that its value is -y."""
    X, y = two_moons(14, seed=1)
    y[:] = -1.0
    y[3] = 1.0
    moving = Moving(lambda t: rbf(X, np.exp(t)), y, np.full(14, 2.0), values_with(1e-3))
    assert continuous_values(moving.solution, 1e-3)[3] == -1.0
    assert moving.is_smooth()
    arguments = moving.solution.problem.K, np.arange(14), moving.weights
    assert moving.error(continuous_derivatives(moving.solution, *arguments, 1e-3)) < 2e-5


def test_objectives_offer_continuous_spans():
    """The loss of an objective is the metric of the continuous values."""
    X, y = two_moons(40)
    objective = SpanObjective(X, y, metric="hinge")
    params = {"gamma": 1.0, "C_-1": 3.0, "C_1": 2.0}
    solution = objective.solution(params)
    values = continuous_values(solution, 1e-2)
    expected = np.maximum(0.0, 1 - solution.problem.y * values).mean()
    assert objective.value_and_gradient(params, eta=1e-2).loss == pytest.approx(expected)
