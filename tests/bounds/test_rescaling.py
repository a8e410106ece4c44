import numpy as np
import pytest

from span_hpo import RBF, Problem, SpanObjective, bounds, solve
from tests.problems import moons_problem, rbf, two_moons


def by_features(X, y, alpha):
    """Return the rescaled value from coordinates along the principal axes of explicit features."""
    centred = X - X.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    w = axes @ ((y * alpha) @ X)
    return sum((w[k] * np.abs(centred @ axes[k]).max()) ** 2 for k in range(len(axes)))


@pytest.mark.parametrize("cost", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("seed", range(10))
def test_linear_kernels_by_principal_axes(seed, cost):
    """The value is that of section 4 of the paper, computed on the features themselves."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 4)) * [1.0, 3.0, 0.2, 10.0] + rng.normal(size=4)
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=30) > X[:, 0].mean(), 1.0, -1.0)
    solution = solve(Problem(X @ X.T, y, cost * rng.uniform(0.5, 2, size=30)))
    expected = by_features(X, y, solution.alpha)
    assert bounds.rescaled_radius_margin(solution) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("seed", range(10))
def test_polynomial_kernels_by_explicit_features(seed):
    """In a feature space, the axes are those of the mapped rows about their centroid."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(25, 2))
    y = np.where((X**2).sum(axis=1) > 1, 1.0, -1.0)
    a, b = X.T
    # (1 + x'z)^2 = phi(x)'phi(z)
    root = np.sqrt(2)
    phi = np.column_stack([np.ones(25), root * a, root * b, a**2, b**2, root * a * b])
    K = (1 + X @ X.T) ** 2
    np.testing.assert_allclose(phi @ phi.T, K)
    solution = solve(Problem(K, y, np.full(25, 5.0)))
    expected = by_features(phi, y, solution.alpha)
    assert bounds.rescaled_radius_margin(solution) == pytest.approx(expected, rel=1e-7)


def test_a_flat_ellipsoid():
    """A long axis that the margin does not use counts in the radius only."""
    points = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    y = np.array([-1.0, -1.0, 1.0, 1.0])
    for length in (2.0, 10.0, 1000.0):
        X = points * [1.0, length]
        solution = solve(Problem(X @ X.T, y, np.full(4, 9.0)))
        assert bounds.rescaled_radius_margin(solution) == pytest.approx(1.0)
        assert bounds.radius_margin(solution) == pytest.approx(1 + length**2)


@pytest.mark.parametrize("seed", range(10))
def test_units_origins_and_rows_without_cost_do_not_matter(seed):
    """The value stays under a scale, a shift, an order of rows, and rows that take no part."""
    rng = np.random.default_rng(seed)
    problem = moons_problem(25, cost=5.0, seed=seed)
    K, y, costs = problem.K.values, problem.y, problem.costs
    value = bounds.rescaled_radius_margin(solve(problem))
    near = pytest.approx(value, rel=1e-6)
    scaled = solve(Problem(40 * K, y, costs / 40))
    assert bounds.rescaled_radius_margin(scaled) == near
    shift = rng.normal(size=25)  # the kernel of the rows x + c, with shift_i = x_i'c
    shifted = solve(
        Problem(K + shift[:, None] + shift + shift @ np.linalg.solve(K, shift), y, costs)
    )
    assert bounds.rescaled_radius_margin(shifted) == near
    order = rng.permutation(25)
    shuffled = solve(Problem(K[np.ix_(order, order)], y[order], costs[order]))
    assert bounds.rescaled_radius_margin(shuffled) == near
    X, y = two_moons(27, seed=seed)
    K = rbf(X, 1.0)
    costs = np.append(np.full(25, 4.0), [0.0, 0.0])
    with_others = bounds.rescaled_radius_margin(solve(Problem(K, y, costs)))
    without = bounds.rescaled_radius_margin(solve(Problem(K[:25, :25], y[:25], costs[:25])))
    assert with_others == pytest.approx(without, rel=1e-9)


def test_duplicates_and_one_row_apart():
    """Copies of all rows leave the value of a hard margin as it is, and equal rows have none."""
    X, y = two_moons(20, noise=0.05)
    K = rbf(X, 1.0)
    alone = bounds.rescaled_radius_margin(solve(Problem(K, y, np.full(20, 1e6))))
    twice = solve(Problem(np.tile(K, (2, 2)), np.tile(y, 2), np.full(40, 1e6)))
    assert bounds.rescaled_radius_margin(twice) == pytest.approx(alone, rel=1e-5)
    equal = solve(Problem(np.ones((4, 4)), np.array([-1.0, 1.0, 1.0, 1.0]), np.full(4, 2.0)))
    assert bounds.rescaled_radius_margin(equal) == pytest.approx(0, abs=1e-12)


def test_kernels_beyond_the_memory_limit():
    """The axes need the whole matrix, and the message says so."""
    X, y = two_moons(300)
    objective = SpanObjective(X, y, kernel=RBF(gamma=1.0), memory_limit=0.1)
    with pytest.raises(ValueError, match=r"`solution`.*in memory"):
        bounds.rescaled_radius_margin(objective.solution({"C_-1": 2.0, "C_1": 0.5}))
