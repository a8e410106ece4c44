import numpy as np
import pytest

from span_hpo import RBF, Problem, SolverError, SpanObjective, bounds, solve
from span_hpo.bounds.ball import fit_ball
from tests import programs
from tests.problems import mixed_norms_problem, random_problem, rbf, symmetric_problem, two_moons


@pytest.mark.parametrize(
    ("points", "squared"),
    [
        ([[0.0, 0.0], [6.0, 8.0]], 25.0),
        ([[0.0, 0.0], [2.0, 0.0], [1.0, np.sqrt(3.0)]], 4 / 3),  # equilateral
        ([[0.0, 0.0], [4.0, 0.0], [1.0, 0.5]], 4.0),  # obtuse: the longest side decides
        ([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]], 2.0),  # a square
        ([[0.0, 0.0], [6.0, 8.0]] * 4, 25.0),
        ([[1.0, 1.0]] * 5, 0.0),
        ([[7.0, -3.0]], 0.0),
    ],
)
def test_balls_by_hand(points, squared):
    """The smallest circle around a few points of the plane, wherever the origin is."""
    for shift in (0.0, 10.0):
        X = np.array(points) + shift
        ball = bounds.enclosing_ball(X @ X.T)
        assert ball.squared_radius == pytest.approx(squared, abs=1e-12)
        assert ball.diameter == pytest.approx(2 * np.sqrt(squared), abs=1e-12)
        assert ball.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("count", [2, 3, 7])
def test_the_corners_of_a_simplex(count, scale):
    """Rows of one distance d from each other have ``R^2 = d^2 (n - 1) / (2 n)``, at any scale."""
    ball = bounds.enclosing_ball(scale**2 * np.eye(count))  # the squared distance is 2 scale^2
    assert ball.squared_radius == pytest.approx(scale**2 * (count - 1) / count, rel=1e-13)
    np.testing.assert_allclose(ball.weights, 1 / count, rtol=1e-12)


@pytest.mark.parametrize("draw", [random_problem, symmetric_problem, mixed_norms_problem])
@pytest.mark.parametrize("seed", range(40))
def test_balls_equal_an_interior_point_solver(draw, seed):
    """The radius is that of the quadratic program, and no row is outside, for every kernel.

    A lower bound of the squared radius comes from the weights themselves, and an upper bound from
    the row farthest from the centre. They meet in double precision.
    """
    K = draw(seed).K.values
    size = np.abs(K).max()
    ball = bounds.enclosing_ball(K)
    expected = programs.squared_radius(K)
    assert ball.squared_radius == pytest.approx(expected, rel=1e-6, abs=1e-8 * size)
    beta = ball.weights
    assert beta.min() >= 0
    assert beta.sum() == pytest.approx(1, rel=1e-12)
    from_centre = K.diagonal() - 2 * K @ beta + beta @ K @ beta
    assert from_centre.max() <= ball.squared_radius + 1e-12 * size
    below = beta @ K.diagonal() - beta @ K @ beta
    assert below == pytest.approx(ball.squared_radius, abs=1e-12 * size)


@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_rows_and_the_origin_do_not_matter(seed):
    """A ball moves with its rows, and has the same radius in any order."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3)) * 10.0 ** rng.uniform(-1, 1, size=(30, 1))
    order = rng.permutation(30)
    first = bounds.enclosing_ball(X @ X.T)
    shuffled = bounds.enclosing_ball(X[order] @ X[order].T)
    moved = bounds.enclosing_ball((X + 5.0) @ (X + 5.0).T)
    assert shuffled.squared_radius == pytest.approx(first.squared_radius, rel=1e-12)
    assert moved.squared_radius == pytest.approx(first.squared_radius, rel=1e-12)
    np.testing.assert_allclose(shuffled.weights, first.weights[order], atol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_of_equal_rows_the_first_has_the_weight(seed):
    """Copies change neither the radius nor the weights of the rows that they follow."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 2))
    twice = np.vstack([X, X[rng.integers(0, 12, size=15)]])
    alone, copied = bounds.enclosing_ball(rbf(X, 0.5)), bounds.enclosing_ball(rbf(twice, 0.5))
    assert copied.squared_radius == pytest.approx(alone.squared_radius, rel=1e-12)
    np.testing.assert_allclose(copied.weights[:12], alone.weights, atol=1e-9)
    assert not copied.weights[12:].any()


@pytest.mark.parametrize("seed", range(10))
def test_a_diagonal_over_ten_orders_of_magnitude(seed):
    """As in the L2-SVM with costs per row, one row may be very far from the others."""
    rng = np.random.default_rng(seed)
    K = rbf(rng.normal(size=(20, 2)), 1.0) + np.diag(10.0 ** rng.uniform(-5, 5, size=20))
    ball = bounds.enclosing_ball(K)
    beta = ball.weights
    from_centre = K.diagonal() - 2 * K @ beta + beta @ K @ beta
    assert from_centre.max() <= ball.squared_radius * (1 + 1e-12)
    assert ball.squared_radius == pytest.approx(programs.squared_radius(K), rel=1e-7)


def test_the_ball_of_a_fit_holds_the_rows_of_positive_cost():
    """A far row without cost counts only if its cost is positive."""
    X, y = two_moons(30)
    X = np.vstack([X, [100.0, 100.0]])
    K, y = X @ X.T, np.append(y, 1.0)
    costs = np.append(np.full(30, 2.0), 0.0)
    ball = fit_ball(Problem(K, y, costs))
    near = bounds.enclosing_ball(K[:30, :30])
    assert ball.squared_radius == near.squared_radius
    assert ball.weights.tolist() == [*near.weights.tolist(), 0.0]
    far = fit_ball(Problem(K, y, np.full(31, 2.0)))
    assert far.squared_radius > 1000 * near.squared_radius
    assert fit_ball(Problem(K, y, costs), far) is far


def test_wrong_kernel_matrices_are_named():
    """Messages tell the argument and what was received."""
    with pytest.raises(ValueError, match="square kernel matrix"):
        bounds.enclosing_ball(np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"`K`.*at least one row"):
        bounds.enclosing_ball(np.ones((0, 0)))
    with pytest.raises(SolverError, match="not positive semi-definite"):
        bounds.enclosing_ball(-np.eye(3))
    with pytest.raises(ValueError, match=r"`K`.*finite"):
        bounds.enclosing_ball(np.array([[1.0, np.nan], [np.nan, 1.0]]))


def test_kernels_beyond_the_memory_limit():
    """A radius needs the whole matrix, and the messages say so."""
    X, y = two_moons(300)
    objective = SpanObjective(X, y, kernel=RBF(gamma=1.0), memory_limit=0.1)
    solution = objective.solution({"C_-1": 2.0, "C_1": 0.5})
    with pytest.raises(ValueError, match=r"`K` must be a kernel matrix that fits into memory"):
        bounds.enclosing_ball(solution.problem.K)
    for bound in (
        bounds.radius_margin,
        bounds.diameter_slack_bound,
        bounds.radius_slack_bound,
        bounds.radius_cost_bound,
        bounds.smooth_radius_margin,
    ):
        with pytest.raises(ValueError, match="`ball` must be given"):
            bound(solution)
        in_memory = solve(Problem(rbf(X, 1.0), y, solution.problem.costs))
        ball = bounds.enclosing_ball(in_memory.problem.K)
        assert bound(solution, ball=ball) == pytest.approx(bound(in_memory), rel=1e-9)
