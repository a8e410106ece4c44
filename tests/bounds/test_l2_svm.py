import numpy as np
import pytest

from span_hpo import RBF, Problem, SolverError, SpanObjective, bounds, solve
from tests import programs
from tests.problems import moons_problem, random_problem, rbf, symmetric_problem, two_moons

L2_BOUNDS = [bounds.l2_radius_margin, bounds.l2_distance_bound, bounds.l2_slack_bound]


def kkt_violation(fit):
    """Return the largest violation of the conditions of an L2-SVM, in units of the margin."""
    lacking = 1 - fit.problem.y * fit.decision_values
    return np.max(np.where(fit.alpha > 0, np.abs(lacking - fit.slacks), lacking))


def errors_by_refits(problem):
    """Return the number of leave-one-out errors of the L2-SVM, by fits without each row."""
    K, y, costs = problem.K.values, problem.y, problem.costs
    n_errors = 0
    for p in range(len(y)):
        others = np.delete(np.arange(len(y)), p)
        if len(set(y[others])) == 1:
            n_errors += 1
            continue
        fit = bounds.l2_solution(Problem(K[np.ix_(others, others)], y[others], costs[others]))
        n_errors += y[p] * (K[p, others] @ (y[others] * fit.alpha) + fit.b) <= 0
    return n_errors


@pytest.mark.parametrize("draw", [random_problem, symmetric_problem])
@pytest.mark.parametrize("seed", range(60))
def test_fits_equal_an_interior_point_solver(draw, seed):
    """The dual variables are those of the SVM with a hard margin on ``K + diag(1 / C_i)``."""
    problem = draw(seed)
    costs = problem.costs
    if not costs.max() / costs.min() < 1e4:
        pytest.skip("the interior-point solver needs costs of one size")
    fit = bounds.l2_solution(problem)
    alpha = programs.l2_svm(problem.K.values, problem.y, costs)
    assert fit.squared_norm == pytest.approx(alpha.sum(), rel=1e-6)
    np.testing.assert_allclose(fit.alpha, alpha, atol=1e-4 * alpha.max())
    expected = programs.squared_radius(problem.K.values + np.diag(1 / costs)) * alpha.sum()
    assert bounds.l2_radius_margin(fit) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("seed", range(100))
def test_optimality_conditions(seed):
    """Every row has the margin ``1 - xi_i`` or, without a slack, at least 1, for all costs."""
    fit = bounds.l2_solution(random_problem(seed))
    y, size = fit.problem.y, np.abs(fit.problem.K.diagonal()).max()
    assert fit.hard_margin.converged
    assert abs(y @ fit.alpha) <= 1e-12 * fit.alpha.sum()
    assert kkt_violation(fit) <= 1e-9 + 1e-12 * size * fit.alpha.sum()
    values = fit.problem.K.values @ (y * fit.alpha) + fit.b
    np.testing.assert_allclose(fit.decision_values, values, atol=1e-9 * (1 + np.abs(values).max()))


@pytest.mark.parametrize("distance", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("costs", [(1.0, 1.0), (1e-5, 1e5), (1e-5, 1e-5), (1e6, 3.0)])
def test_two_rows_in_closed_form(distance, costs):
    """With ``alpha = 2 / (d^2 + 1/C_1 + 1/C_2)``, the radius-margin bound is 1, half the rows."""
    K, inverse = np.array([[0.0, 0.0], [0.0, distance**2]]), 1 / costs[0] + 1 / costs[1]
    fit = bounds.l2_solution(Problem(K, np.array([-1.0, 1.0]), np.array(costs)))
    alpha = 2 / (distance**2 + inverse)
    np.testing.assert_allclose(fit.alpha, alpha, rtol=1e-10)
    np.testing.assert_allclose(fit.slacks, alpha / np.array(costs), rtol=1e-10)
    R2 = distance**2 / 4
    assert bounds.l2_radius_margin(fit) == pytest.approx(1.0, rel=1e-9)
    expected = 2 * alpha * R2 + 0.5 * alpha * inverse
    assert bounds.l2_distance_bound(fit) == pytest.approx(expected, rel=1e-9)
    expected = 2 * alpha * R2 + 0.25 * alpha * inverse
    assert bounds.l2_slack_bound(fit) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("seed", range(30))
def test_formulas_with_one_cost(seed):
    """Eqs. 2.5 and 2.7 as printed, and the primal value of the minimum."""
    rng = np.random.default_rng(seed)
    C = 10.0 ** rng.uniform(-2, 3)
    problem = random_problem(seed)
    problem = Problem(problem.K, problem.y, np.full(len(problem), C))
    fit = bounds.l2_solution(problem)
    K, y = problem.K.values, problem.y
    R2, norm = programs.squared_radius(K), fit.alpha.sum()
    near = {"rel": 1e-6, "abs": 1e-7 * np.abs(K).max() * norm}
    assert bounds.l2_distance_bound(fit) == pytest.approx((R2 + 0.5 / C) * norm, **near)
    assert bounds.l2_slack_bound(fit) == pytest.approx((R2 + 0.25 / C) * norm, **near)
    primal = (y * fit.alpha) @ K @ (y * fit.alpha) + C * (fit.slacks**2).sum()
    assert fit.squared_norm == pytest.approx(primal, rel=1e-6)


@pytest.mark.parametrize("seed", range(24))
def test_bounds_of_leave_one_out_errors(seed):
    """Four times the values of eqs. 1.2 and 2.5 is at least the number of errors by refits.

    The first holds with a cost per row. The second is stated for one cost.
    """
    cost = 10.0 ** (seed % 4 - 2)
    weighted = moons_problem(24, cost=cost, gamma=10.0 ** (seed % 3 - 1), seed=seed)
    n_errors = errors_by_refits(weighted)
    assert 4 * bounds.l2_radius_margin(bounds.l2_solution(weighted)) >= n_errors
    equal = Problem(weighted.K, weighted.y, np.full(24, cost))
    fit, n_errors = bounds.l2_solution(equal), errors_by_refits(equal)
    assert 4 * bounds.l2_radius_margin(fit) >= n_errors
    assert 4 * bounds.l2_distance_bound(fit) >= n_errors


@pytest.mark.parametrize("seed", range(12))
def test_bounds_of_leave_one_out_errors_on_ugly_problems(seed):
    """The radius-margin bound holds with copies of rows, tiny classes and costs of any size."""
    problem = random_problem(seed, largest=20)
    assert 4 * bounds.l2_radius_margin(bounds.l2_solution(problem)) >= errors_by_refits(problem)


@pytest.mark.parametrize("cost", [1e-3, 1.0, 1e3])
def test_a_constant_kernel(cost):
    """As an RBF kernel becomes constant, the values tend to those of classes without features."""
    X, _ = two_moons(50)
    y = np.where(np.arange(50) < 15, 1.0, -1.0)
    fit = bounds.l2_solution(Problem(rbf(X, 1e-9), y, np.full(50, cost)))
    classes = 4 * 15 * 35 / 50
    near = {"rel": 1e-3}
    assert bounds.l2_radius_margin(fit) == pytest.approx(classes * 49 / 50, **near)
    assert bounds.l2_distance_bound(fit) == pytest.approx(classes / 2, **near)
    assert bounds.l2_slack_bound(fit) == pytest.approx(classes / 4, **near)


@pytest.mark.parametrize("bound", L2_BOUNDS)
@pytest.mark.parametrize("seed", range(10))
def test_rows_without_cost_do_not_count(bound, seed):
    """A fit and its values are those of the rows of positive cost, however far the others are."""
    X, y = two_moons(30, seed=seed)
    far = np.vstack([X, [[50.0, 50.0], [-50.0, 10.0]]])
    costs = np.append(10.0 ** np.random.default_rng(seed).uniform(-2, 2, 30), [0.0, 0.0])
    with_far = bounds.l2_solution(Problem(far @ far.T, np.append(y, [1.0, -1.0]), costs))
    without = bounds.l2_solution(Problem(X @ X.T, y, costs[:30]))
    np.testing.assert_allclose(with_far.alpha, [*without.alpha, 0, 0], atol=1e-9)
    assert with_far.slacks[30:].tolist() == [0, 0]
    np.testing.assert_allclose(with_far.decision_values[:30], without.decision_values, atol=1e-8)
    assert bound(with_far) == pytest.approx(bound(without), rel=1e-8)


@pytest.mark.parametrize("seed", range(10))
def test_equal_rows_are_one_row_with_the_sum_of_their_costs(seed):
    """A copy of a row of cost 2 C is the same as two rows of cost C, and the slack is the same."""
    X, y = two_moons(25, seed=seed)
    costs = np.random.default_rng(seed).uniform(0.1, 10, 25)
    K = rbf(X, 1.0)
    once = bounds.l2_solution(Problem(K, y, 2 * costs))
    twice = bounds.l2_solution(Problem(np.tile(K, (2, 2)), np.tile(y, 2), np.tile(costs, 2)))
    np.testing.assert_allclose(twice.alpha[:25] + twice.alpha[25:], once.alpha, atol=1e-9)
    np.testing.assert_allclose(twice.slacks[:25], once.slacks, atol=1e-9)
    np.testing.assert_allclose(twice.slacks[:25], twice.slacks[25:], atol=1e-9)
    assert twice.b == pytest.approx(once.b, abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_costs_over_ten_orders_of_magnitude(seed):
    """The optimality conditions hold where one row costs ten billion times as much as another."""
    X, y = two_moons(40, seed=seed)
    costs = 10.0 ** np.random.default_rng(seed).uniform(-5, 5, size=40)
    fit = bounds.l2_solution(Problem(rbf(X, 1.0), y, costs))
    assert kkt_violation(fit) <= 1e-9
    assert 0 < bounds.l2_radius_margin(fit) < np.inf


def test_a_class_of_one_row():
    """One row against many has a fit, and its value bounds the one error."""
    X, _ = two_moons(20)
    y = np.where(np.arange(20) == 3, 1.0, -1.0)
    problem = Problem(rbf(X, 1.0), y, np.full(20, 1.0))
    fit = bounds.l2_solution(problem)
    assert kkt_violation(fit) <= 1e-10
    assert 4 * bounds.l2_radius_margin(fit) >= errors_by_refits(problem) >= 1


def test_what_cannot_be_fitted_is_said():
    """A tiny cost and a matrix that is not in memory raise errors that name them."""
    X, y = two_moons(20)
    costs = np.full(20, 1.0)
    costs[0] = 1e-310
    with pytest.raises(SolverError, match="inverse of a cost overflows"):
        bounds.l2_solution(Problem(rbf(X, 1.0), y, costs))
    X, y = two_moons(300)
    large = SpanObjective(X, y, kernel=RBF(gamma=1.0), memory_limit=0.1)
    problem = large.solution({"C_-1": 2.0, "C_1": 0.5}).problem
    with pytest.raises(ValueError, match=r"`problem`.*in memory"):
        bounds.l2_solution(problem)


def test_how_a_solution_is_shown():
    """The short form says that this is an L2-SVM."""
    fit = bounds.l2_solution(moons_problem(20))
    assert "L2Solution" in repr(fit)
    assert "DualSolution" not in repr(fit)
    other = solve(moons_problem(20))
    assert not np.allclose(fit.alpha, other.alpha)
