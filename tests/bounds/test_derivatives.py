import numpy as np
import pytest

from span_hpo import Problem, bounds, solve
from tests.problems import moons_problem, random_problem, rbf, two_moons


def smooth(K, y, costs):
    """Return eq. 3.3 and its derivatives."""
    return bounds.smooth_radius_margin_derivatives(solve(Problem(K, y, costs)))


def l2(K, y, costs):
    """Return the bound of the L2-SVM and its derivatives."""
    return bounds.l2_radius_margin_derivatives(bounds.l2_solution(Problem(K, y, costs)))


def central(values, step):
    """Return a derivative from values at -2, -1, 1 and 2 steps, with an error of fourth order."""
    far_left, left, right, far_right = values
    return (8 * (right - left) - (far_right - far_left)) / (12 * step)


def by_kernel(found, direction):
    """Return the derivative along a symmetric matrix of changes."""
    return sum(
        float((weights * direction[np.ix_(rows, columns)]).sum())
        for rows, columns, weights in found.by_kernel()
    )


@pytest.mark.parametrize("derivatives", [smooth, l2])
@pytest.mark.parametrize("seed", range(20))
def test_costs_by_central_differences(derivatives, seed):
    """The derivative by each row's cost, in units of the value per factor of the cost."""
    problem = moons_problem(20, cost=10.0 ** (seed % 3), seed=seed)
    K, y, costs = problem.K.values, problem.y, problem.costs
    found, step = derivatives(K, y, costs), 1e-5
    assert found.reason == ""
    for p in range(20):
        values = []
        for share in (-2, -1, 1, 2):
            moved = costs.copy()
            moved[p] *= np.exp(share * step)
            values.append(derivatives(K, y, moved).value)
        expected = central(values, step)
        assert costs[p] * found.by_costs[p] == pytest.approx(expected, abs=2e-6 * found.value)


@pytest.mark.parametrize("derivatives", [smooth, l2])
@pytest.mark.parametrize("seed", range(40))
def test_kernel_values_by_central_differences(derivatives, seed):
    """The derivative by the logarithm of a width, and by a linear kernel that is added."""
    rng = np.random.default_rng(seed)
    X, y = two_moons(25, seed=seed)
    costs = 10.0 ** rng.uniform(-1, 1.5, size=25)
    gamma, step = 10.0 ** rng.uniform(-1, 1), 1e-5
    K = rbf(X, gamma)
    found = derivatives(K, y, costs)
    assert found.reason == ""
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    shares = (-2, -1, 1, 2)
    values = [derivatives(rbf(X, gamma * np.exp(s * step)), y, costs).value for s in shares]
    near = {"abs": 2e-6 * found.value}
    assert by_kernel(found, -gamma * squared * K) == pytest.approx(central(values, step), **near)
    values = [derivatives(K + s * step * (X @ X.T), y, costs).value for s in shares]
    assert by_kernel(found, X @ X.T) == pytest.approx(central(values, step), **near)


@pytest.mark.parametrize("derivatives", [smooth, l2])
@pytest.mark.parametrize("seed", range(40))
def test_one_factor_of_all_costs_on_ugly_problems(derivatives, seed):
    """All costs together have a derivative without in-bound rows, with copies and one-sided too."""
    problem = random_problem(seed, largest=25)
    K, y, costs = problem.K.values, problem.y, problem.costs
    found, step = derivatives(K, y, costs), 1e-5
    values = [derivatives(K, y, costs * np.exp(s * step)).value for s in (-2, -1, 1, 2)]
    expected = central(values, step)
    for by_costs in found.by_costs_at_ends:
        assert costs @ by_costs == pytest.approx(expected, abs=2e-5 * found.value)


@pytest.mark.parametrize("seed", range(60))
def test_values_are_those_of_the_bounds(seed):
    """A value with derivatives is the value without them, with any penalty."""
    problem = random_problem(seed)
    fit = solve(problem)
    for penalty in (0.0, 0.5, 1.0):
        found = bounds.smooth_radius_margin_derivatives(fit, penalty=penalty)
        expected = bounds.smooth_radius_margin(fit, penalty=penalty)
        assert found.value == pytest.approx(expected, rel=1e-12)
    fit = bounds.l2_solution(problem)
    found = bounds.l2_radius_margin_derivatives(fit)
    assert found.value == pytest.approx(bounds.l2_radius_margin(fit), rel=1e-12)


def test_the_kink_of_two_rows():
    """With equal costs of 0.1, the optimum has the slopes 0 and 3.75 to either side of one cost.

    The rows are at a squared distance of 1.25, and both slacks are ``2 - 0.125`` together. More
    cost for one row alone changes nothing, because the other bounds the dual variables of both.
    """
    X, y = np.array([[0.0, 0.0], [1.0, 0.5]]), np.array([-1.0, 1.0])
    K = X @ X.T
    found = bounds.smooth_radius_margin_derivatives(
        solve(Problem(K, y, np.full(2, 0.1))), penalty=0.0
    )
    assert "not unique" in found.reason
    assert "kink" in found.reason
    assert found.by_costs is None
    R2 = 1.25 / 4
    ends = np.array(found.by_costs_at_ends) / R2
    np.testing.assert_allclose(np.sort(ends, axis=0), [[0, 0], [3.75, 3.75]], atol=1e-12)
    np.testing.assert_allclose(ends.sum(axis=1), 3.75)  # one cost for both has one slope

    def optimum(costs):
        return bounds.smooth_radius_margin(solve(Problem(K, y, costs)), penalty=0.0) / R2

    step = 1e-6
    at_kink = optimum(np.full(2, 0.1))
    right = (optimum(np.array([0.1, 0.1 + step])) - at_kink) / step
    left = (at_kink - optimum(np.array([0.1, 0.1 - step]))) / step
    assert right == pytest.approx(0.0, abs=1e-5)
    assert left == pytest.approx(3.75, abs=1e-5)


@pytest.mark.parametrize("seed", range(30))
def test_slopes_to_either_side_of_a_kink(seed):
    """In any direction, the slope is the least one over the ends of the interval of offsets."""
    rng = np.random.default_rng(seed)
    X, y = two_moons(12, noise=0.5, seed=seed)
    K, costs = rbf(X, 1.0), np.full(12, 0.05)
    found = smooth(K, y, costs)
    assert "not unique" in found.reason
    assert len(found.by_costs_at_ends) == 2
    step = 1e-7
    for _ in range(5):
        direction = costs * rng.normal(size=12)
        slopes = [by_costs @ direction for by_costs in found.by_costs_at_ends]
        moved = smooth(K, y, costs + step * direction).value
        assert (moved - found.value) / step == pytest.approx(min(slopes), abs=1e-4 * found.value)


@pytest.mark.parametrize("derivatives", [smooth, l2])
@pytest.mark.parametrize("seed", range(10))
def test_rows_without_cost(derivatives, seed):
    """A row with cost 0 has no weight, and its derivative is said to be 0."""
    problem = moons_problem(22, seed=seed)
    costs = problem.costs.copy()
    costs[[3, 7]] = 0.0
    found = derivatives(problem.K.values, problem.y, costs)
    assert found.by_costs[[3, 7]].tolist() == [0, 0]
    assert found.ball_weights[[3, 7]].tolist() == [0, 0]
    assert found.dual_weights[[3, 7]].tolist() == [0, 0]
    others = np.delete(np.arange(22), [3, 7])
    alone = derivatives(problem.K.values[np.ix_(others, others)], problem.y[others], costs[others])
    np.testing.assert_allclose(found.by_costs[others], alone.by_costs, atol=1e-9 * found.value)


@pytest.mark.parametrize("derivatives", [smooth, l2])
def test_copies_of_rows_move_together(derivatives):
    """Equal rows that stay equal have the derivative by a width, whichever of them has a weight."""
    X, y = two_moons(15)
    X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    costs, step = np.random.default_rng(0).uniform(0.5, 5, size=30), 1e-3
    found = derivatives(rbf(X, 1.0), y, costs)
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    values = [derivatives(rbf(X, np.exp(s * step)), y, costs).value for s in (-2, -1, 1, 2)]
    slope = by_kernel(found, -squared * rbf(X, 1.0))
    assert slope == pytest.approx(central(values, step), abs=1e-6 * found.value)


@pytest.mark.parametrize("derivatives", [smooth, l2])
def test_costs_over_ten_orders_of_magnitude(derivatives):
    """Each row's derivative holds for its own cost, from 1e-5 to 1e5."""
    X, y = two_moons(20)
    costs, step = 10.0 ** np.linspace(-5, 5, 20), 1e-3
    K = rbf(X, 1.0)
    found = derivatives(K, y, costs)
    assert found.reason == ""
    for p in range(0, 20, 3):
        values = []
        for share in (-2, -1, 1, 2):
            moved = costs.copy()
            moved[p] *= np.exp(share * step)
            values.append(derivatives(K, y, moved).value)
        assert costs[p] * found.by_costs[p] == pytest.approx(
            central(values, step), abs=1e-6 * found.value
        )


def test_blocks_of_large_problems_have_all_weights():
    """Weights of kernel values come in several blocks, which add up to the whole matrix."""
    X = np.random.default_rng(0).normal(size=(1100, 2))
    y = np.where(np.arange(1100) % 2 == 0, 1.0, -1.0)  # nothing to learn: all support vectors
    fit = solve(Problem(rbf(X, 1.0), y, np.full(1100, 0.01)))
    found = bounds.smooth_radius_margin_derivatives(fit)
    total, n_blocks = np.zeros((1100, 1100)), 0
    for rows, columns, weights in found.by_kernel():
        total[np.ix_(rows, columns)] += weights
        n_blocks += 1
    beta, dual = found.ball_weights, found.dual_weights
    expected = found.ball_factor * (np.diag(beta) - np.outer(beta, beta))
    expected -= found.dual_factor * np.outer(dual, dual)
    np.testing.assert_allclose(total, expected, atol=1e-12 * np.abs(expected).max())
    assert n_blocks > 2


def test_a_fit_that_has_not_converged():
    """Nothing is said about derivatives then, and the reason says why."""
    problem = moons_problem(60, cost=1e4, gamma=0.1)
    with pytest.warns(match="KKT violation"):
        fit = solve(problem, max_iter=5, polish=False)
    found = bounds.smooth_radius_margin_derivatives(fit)
    assert found.by_costs is None
    assert found.by_costs_at_ends == ()
    assert list(found.by_kernel()) == []
    assert "has not converged" in found.reason
