from itertools import pairwise

import numpy as np
import pytest
from scipy import optimize

from span_hpo import ClassCosts, RadiusMargin, minimize
from span_hpo.search.bfgs import projected_bfgs
from tests.problems import two_moons

CONVERGED = "The value has converged."


def rosenbrock(x):
    """Return the value of the chained Rosenbrock function and its gradient."""
    return float(optimize.rosen(x)), optimize.rosen_der(x)


def quadratic(seed, size=5):
    """Return a convex quadratic function with its gradient, and a start in its box."""
    rng = np.random.default_rng(seed)
    root, target = rng.normal(size=(size, size)), rng.normal(scale=3.0, size=size)
    A = root @ root.T + 0.3 * np.eye(size)

    def function(x):
        return float((x - target) @ A @ (x - target) / 2), A @ (x - target)

    return function, rng.uniform(-1, 1, size=size)


def box(size, side):
    return np.full(size, -float(side)), np.full(size, float(side))


def by_scipy(function, start, lower, upper):
    """Return the value of the minimum that another method finds."""
    sides = optimize.Bounds(lower, upper)
    options = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000, "maxfun": 100_000}
    found = optimize.minimize(
        function, start, jac=True, method="L-BFGS-B", bounds=sides, options=options
    )
    return found.fun


@pytest.mark.parametrize("size", [2, 3, 5])
@pytest.mark.parametrize("start", [-1.2, 0.0, 1.9])
def test_rosenbrock(size, start):
    """The curved valley is followed to its end, in fewer evaluations than allowed."""
    lower, upper = box(size, 2)
    found = projected_bfgs(
        rosenbrock, np.full(size, start), lower, upper, max_evaluations=300, tolerance=1e-12
    )
    assert found.reason == CONVERGED
    np.testing.assert_allclose(found.x, 1.0, atol=1e-4)
    assert found.n_evaluations < 300


def test_rosenbrock_with_an_active_side():
    """With the minimum outside of the box, the search ends on the side, at scipy's value."""
    lower, upper = np.array([-2.0, -2.0]), np.array([0.5, 2.0])
    found = projected_bfgs(
        rosenbrock, np.array([-1.0, 1.5]), lower, upper, max_evaluations=300, tolerance=1e-12
    )
    np.testing.assert_allclose(found.x, [0.5, 0.25], atol=1e-4)
    expected = by_scipy(rosenbrock, [-1.0, 1.5], lower, upper)
    assert found.value == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_quadratic_functions_equal_scipy(seed):
    """Convex functions whose minimum is mostly outside of the box have scipy's minimum."""
    function, start = quadratic(seed)
    lower, upper = box(5, 1.5)
    found = projected_bfgs(function, start, lower, upper, max_evaluations=400, tolerance=1e-12)
    expected = by_scipy(function, start, lower, upper)
    assert found.value == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert (found.x >= lower).all()
    assert (found.x <= upper).all()
    assert (found.path >= lower).all()
    assert (found.path <= upper).all()


@pytest.mark.parametrize("seed", range(10))
def test_the_value_falls_with_each_step(seed):
    """The path is what the search has stepped along, each point lower than the one before."""
    function, start = quadratic(seed)
    found = projected_bfgs(function, start, *box(5, 1.5))
    values = [function(x)[0] for x in found.path]
    assert all(after < before for before, after in pairwise(values))
    np.testing.assert_array_equal(found.path[0], start)
    assert found.value == min(values)
    steps = np.linalg.norm(np.diff(found.path, axis=0), axis=1)
    assert steps.max() <= 2 * (1 + 1e-12)


@pytest.mark.parametrize("budget", [1, 2, 7])
def test_the_budget_is_kept(budget):
    """No more evaluations are made than allowed, and the best point is returned."""
    calls = []

    def function(x):
        calls.append(x)
        return rosenbrock(x)

    found = projected_bfgs(function, np.array([-1.2, 1.0]), *box(2, 2), max_evaluations=budget)
    assert found.n_evaluations == len(calls) == budget
    assert found.reason == "The largest number of evaluations was reached."
    assert found.value == min(rosenbrock(x)[0] for x in calls)


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_a_factor_of_the_value_does_not_change_the_path(factor):
    """The lengths of steps do not depend on the unit of the value, unless it ends the search."""
    function, start = quadratic(3)

    def scaled(x):
        value, gradient = function(x)
        return factor * value, factor * gradient

    near, far = (
        projected_bfgs(f, start, *box(5, 1.5), tolerance=0.0, max_evaluations=12)
        for f in (function, scaled)
    )
    np.testing.assert_allclose(far.path, near.path, atol=1e-7)


def test_points_without_a_gradient_are_gone_around():
    """A band without a gradient on the way is stepped over, to the minimum behind it."""

    def with_band(x):
        value, gradient = float((x - 1) @ (x - 1)), 2 * (x - 1)
        return value, None if 0.2 < x[0] < 0.6 else gradient

    found = projected_bfgs(with_band, np.array([-1.5, 0.5]), *box(2, 2))
    np.testing.assert_allclose(found.x, 1.0, atol=1e-3)
    assert found.reason == CONVERGED


def test_a_lowest_point_without_a_gradient_is_returned():
    """The best point is the one with the least value, with or without a gradient."""

    def function(x):
        return float(x[0]), None if x[0] < 0.0 else np.array([1.0])

    found = projected_bfgs(function, np.array([1.0]), *box(1, 2))
    assert found.x[0] < 0
    assert found.value == found.x[0]
    assert "no gradient" in found.reason


def test_ends_without_a_way_down():
    """A start without a gradient or a finite value, and a jump upwards, are reasons to end."""
    start, sides = np.zeros(2), box(2, 1)
    found = projected_bfgs(lambda x: (1.0, None), start, *sides)
    assert found.reason == "The value has no gradient at the start."
    assert (found.value, found.n_evaluations) == (1.0, 1)
    found = projected_bfgs(lambda x: (np.nan, np.ones(2)), start, *sides)
    assert found.reason == "The value is not finite at the start."
    found = projected_bfgs(lambda x: (1.0, np.array([np.nan, 1.0])), start, *sides)
    assert found.reason == "The value has no gradient at the start."

    def jump(x):
        return (1.0 if x[0] == 0 else 2.0), np.array([1.0, 0.0])

    found = projected_bfgs(jump, start, *sides)
    assert "jump" in found.reason
    assert found.value == 1.0


def test_values_that_are_not_finite_are_not_chosen():
    """A search near a wall of infinite or undefined values stays on its side of it."""
    for beyond in (np.inf, np.nan, -np.inf):

        def walled(x, beyond=beyond):
            if x[0] > 0.7:
                return beyond, np.array([1.0])
            return float((x[0] - 0.5) ** 2), 2 * (x - 0.5)

        found = projected_bfgs(walled, np.array([-1.0]), *box(1, 2))
        assert found.x[0] == pytest.approx(0.5, abs=1e-2)


def test_starts_outside_and_boxes_without_room():
    """A start is moved into the box, and coordinates with equal sides stay where they are."""
    function, _ = quadratic(0, size=2)
    found = projected_bfgs(function, np.array([9.0, -9.0]), *box(2, 1))
    np.testing.assert_array_equal(found.path[0], [1.0, -1.0])
    point = np.array([0.3, 0.4])
    found = projected_bfgs(function, point, point, point)
    np.testing.assert_array_equal(found.x, point)
    assert found.n_evaluations == 1
    found = projected_bfgs(function, point, np.array([0.3, -9.0]), np.array([0.3, 9.0]))
    assert found.x[0] == 0.3
    expected = by_scipy(function, point, [0.3, -9.0], [0.3, 9.0])
    assert found.value == pytest.approx(expected, rel=1e-4)


def test_functions_that_change_their_argument():
    """A function gets a copy of the point, and the result cannot be changed."""

    def careless(x):
        value, gradient = float(x @ x), 2 * x.copy()
        x[:] = 99.0
        return value, gradient

    found = projected_bfgs(careless, np.array([1.0, -0.5]), *box(2, 2))
    np.testing.assert_allclose(found.x, 0.0, atol=1e-3)
    assert not found.x.flags.writeable
    assert not found.path.flags.writeable


@pytest.mark.parametrize("bound", ["l1", "l2"])
def test_bounds_equal_scipy(bound):
    """The minimum of a radius-margin bound is that of scipy's method from the same start."""
    X, y = two_moons(60, seed=1)
    objective = RadiusMargin(X, y, weighting="uniform", bound=bound)
    start = {"C": 1.0, "gamma": 0.5}
    found = minimize(objective, start, method="bfgs-projected", max_evaluations=80)
    expected = minimize(objective, start, method="l-bfgs", max_evaluations=80)
    assert found.loss == pytest.approx(expected.loss, rel=2e-4)
    assert found.n_evaluations < 40


def test_the_kink_of_balanced_costs_does_not_stop_a_search():
    """From a start with a kink the search says so; from next to it, it goes down."""
    X, y = two_moons(40, seed=1)
    objective = RadiusMargin(X, y, weighting=ClassCosts())
    at_kink = {"C_-1": 0.02, "C_1": 0.02, "gamma": 0.5}
    found = minimize(objective, at_kink, method="bfgs-projected")
    assert "gradient" in found.reason
    assert found.n_evaluations == 1
    assert "kink" in found.path[0].reason
    beside = minimize(objective, {**at_kink, "C_1": 0.021}, method="bfgs-projected")
    assert beside.loss < found.loss


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": np.zeros(3)}, r"`start`, `lower` and `upper` must have one shape.*\(3,\)"),
        ({"start": np.zeros((1, 2))}, "must have one shape"),
        ({"start": np.array([0.0, np.nan])}, "must be finite"),
        ({"upper": np.array([1.0, np.inf])}, "must be finite"),
        ({"upper": np.array([1.0, -2.0])}, "`lower` must be at most `upper`"),
        ({"max_evaluations": 0}, "`max_evaluations`.*0"),
        ({"tolerance": -1.0}, "`tolerance`.*-1"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    """Messages tell the argument and what was received."""
    lower, upper = box(2, 1)
    arguments = {"start": np.zeros(2), "lower": lower, "upper": upper} | change
    with pytest.raises(ValueError, match=message):
        projected_bfgs(rosenbrock, **arguments)
