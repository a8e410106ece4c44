import numpy as np
import pytest
from sklearn.svm import SVC

from span_hpo import Problem, bounds, solve
from span_hpo.bounds.radius_margin import squared_norm, twice_the_optimum
from tests import programs
from tests.problems import moons_problem, random_problem, rbf, symmetric_problem, two_moons
from tests.truth import refits

FAMILY = [
    bounds.radius_margin,
    bounds.diameter_slack_bound,
    bounds.radius_slack_bound,
    bounds.radius_cost_bound,
    bounds.smooth_radius_margin,
]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("cost", [0.3, 3.0, 300.0])
def test_formulas_on_a_fit_of_scikit_learn(seed, cost):
    """The formulas with a cost per row, on a fit in single precision and a ball by PIQP."""
    problem = moons_problem(40, cost=cost, seed=seed)
    K, y, costs = problem.K.values, problem.y, problem.costs
    svc = SVC(C=1.0, kernel="precomputed", tol=1e-9).fit(K, y, sample_weight=costs)
    alpha = np.zeros(len(y))
    alpha[svc.support_] = np.abs(svc.dual_coef_[0])
    slack = np.maximum(0.0, 1 - y * svc.decision_function(K))
    norm, R2 = (y * alpha) @ K @ (y * alpha), programs.squared_radius(K)
    solution = solve(problem)
    assert solution.in_bound.any()  # so that the offset is unique
    expected = {
        bounds.radius_margin: R2 * norm,
        bounds.diameter_slack_bound: 4 * R2 * alpha.sum() + slack.sum(),
        bounds.radius_slack_bound: R2 * alpha.sum() + slack.sum(),
        bounds.radius_cost_bound: R2 * alpha.sum() + (alpha / costs).sum(),
        bounds.smooth_radius_margin: (R2 + (1 / costs).mean()) * (norm + 2 * costs @ slack),
    }
    for bound, value in expected.items():
        assert bound(solution) == pytest.approx(value, rel=1e-4), bound.__name__
    half = (R2 + 0.5 * (1 / costs).mean()) * (norm + 2 * costs @ slack)
    assert bounds.smooth_radius_margin(solution, penalty=0.5) == pytest.approx(half, rel=1e-4)


@pytest.mark.parametrize("draw", [random_problem, symmetric_problem])
@pytest.mark.parametrize("seed", range(60))
def test_the_smooth_value_is_a_product_of_two_optima(draw, seed):
    """Both factors of eq. 3.3 are those of an interior-point solver, in-bound rows or not."""
    problem = draw(seed)
    K, costs = problem.K.values, problem.costs
    if not costs.max() / costs.min() < 1e4:
        pytest.skip("the interior-point solver needs costs of one size")
    solution, optimum = solve(problem), programs.optimum(K, problem.y, costs)
    assert twice_the_optimum(solution) == pytest.approx(optimum, rel=1e-6)
    expected = (programs.squared_radius(K) + (1 / costs).mean()) * optimum
    assert bounds.smooth_radius_margin(solution) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("seed", range(60))
def test_inequalities_between_the_values(seed):
    """With one cost, eq. 3.2 is at least eq. 3.1, and both ways to write the optimum agree."""
    problem = random_problem(seed)
    problem = Problem(problem.K, problem.y, np.full(len(problem), problem.costs.mean()))
    solution = solve(problem)
    by_cost, by_slack = bounds.radius_cost_bound(solution), bounds.radius_slack_bound(solution)
    assert by_cost >= by_slack * (1 - 1e-9)
    slack = np.maximum(0.0, -solution.excess)
    primal = squared_norm(solution) + 2 * problem.costs @ slack
    assert twice_the_optimum(solution) == pytest.approx(primal, rel=1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_the_diameter_bounds_leave_one_out_errors(seed):
    """A row that is an error with the same kinds elsewhere has ``alpha D^2 + xi >= 1``."""
    cost = 10.0 ** (seed % 4 - 1)
    solution = solve(moons_problem(30, cost=cost, gamma=1.0, seed=seed))
    D2 = bounds.enclosing_ball(solution.problem.K).diameter ** 2
    slack = np.maximum(0.0, -solution.excess)
    n_errors = 0
    for p, refit, value in refits(solution.problem):
        others = np.delete(np.arange(30), p)
        same = all(
            np.array_equal(getattr(solution, kind)[others], getattr(refit, kind))
            for kind in ("in_bound", "bounded")
        )
        if same and solution.problem.y[p] * value <= 0:
            assert solution.alpha[p] * D2 + slack[p] >= 1
            n_errors += 1
    assert bounds.diameter_slack_bound(solution) >= n_errors


@pytest.mark.parametrize("bound", FAMILY)
@pytest.mark.parametrize("seed", range(10))
def test_rows_without_cost_do_not_count(bound, seed):
    """A value is that of the rows of positive cost, however far the others are."""
    X, y = two_moons(30, seed=seed)
    far = np.vstack([X, [[50.0, 50.0], [-50.0, 10.0]]])
    costs = np.append(np.full(30, 3.0), [0.0, 0.0])
    with_far = solve(Problem(far @ far.T, np.append(y, [1.0, -1.0]), costs))
    without = solve(Problem(X @ X.T, y, costs[:30]))
    assert bound(with_far) == pytest.approx(bound(without), rel=1e-9)


@pytest.mark.parametrize("bound", FAMILY)
@pytest.mark.parametrize("seed", range(10))
def test_the_unit_of_the_kernel_does_not_matter(bound, seed):
    """A value stays the same if kernel values are multiplied and costs divided by one number.

    Only the penalty of eq. 3.2 and eq. 3.3 on tiny costs is measured in units of the kernel.
    """
    problem, factor = moons_problem(30, cost=2.0, seed=seed), 37.0
    scaled = Problem(factor * problem.K.values, problem.y, problem.costs / factor)
    before, after = bound(solve(problem)), bound(solve(scaled))
    assert after == pytest.approx(before, rel=1e-7)


@pytest.mark.parametrize("bound", FAMILY)
def test_costs_over_ten_orders_of_magnitude(bound):
    """Values are finite and positive, and equal those of the same rows in another order."""
    X, y = two_moons(40)
    rng = np.random.default_rng(0)
    costs = 10.0 ** rng.uniform(-5, 5, size=40)
    order = rng.permutation(40)
    value = bound(solve(Problem(rbf(X, 1.0), y, costs)))
    shuffled = bound(solve(Problem(rbf(X[order], 1.0), y[order], costs[order])))
    assert 0 < value < np.inf
    assert shuffled == pytest.approx(value, rel=1e-6)


def test_a_hard_margin_by_hand():
    """Two rows at a distance d have R = d / 2 and the margin d / 2, whatever the dimension."""
    for points in ([[0.0], [5.0]], [[1.0, 2.0, 2.0], [-1.0, 0.0, 1.0]]):
        X = np.array(points)
        solution = solve(Problem(X @ X.T, np.array([-1.0, 1.0]), np.full(2, 100.0)))
        assert bounds.radius_margin(solution) == pytest.approx(1.0, rel=1e-9)
        assert bounds.diameter_slack_bound(solution) == pytest.approx(4.0, rel=1e-9)
        assert bounds.radius_slack_bound(solution) == pytest.approx(1.0, rel=1e-9)


def test_all_rows_equal():
    """Without any distance, only slacks and inverse costs are left."""
    y = np.array([-1.0, 1.0, 1.0, 1.0])
    solution = solve(Problem(np.ones((4, 4)), y, np.full(4, 2.0)))
    assert bounds.radius_margin(solution) == 0
    assert bounds.diameter_slack_bound(solution) == pytest.approx(2.0)  # the slack of the minority
    assert bounds.smooth_radius_margin(solution) == pytest.approx(0.5 * 8)


def test_wrong_arguments_are_named():
    """Messages tell the argument and what was received."""
    solution = solve(moons_problem(20))
    for wrong in (-1, float("nan"), "much"):
        with pytest.raises((TypeError, ValueError), match=r"`penalty`"):
            bounds.smooth_radius_margin(solution, penalty=wrong)
