import numpy as np
import pytest

from span_hpo import Problem, SolverError, solve
from span_hpo.gradients import NoGradientError, pulled_back
from span_hpo.gradients.pull_back import Fit, of_moving_values
from span_hpo.kernels import KernelMatrix
from tests.differences import kinds
from tests.gradients.fits import Moving, every_row, moving_moons, span_values
from tests.problems import indefinite_problem, random_problem, rbf, two_moons


def pulled(moving):
    solution = moving.solution
    return pulled_back(solution, solution.problem.K, every_row(solution.problem), moving.weights)


@pytest.mark.parametrize("equal", [0, 3])
def test_derivatives_by_costs_and_by_moving_rows(equal):
    """Each cost, and a direction in which all rows move; equal rows move together."""
    checked = 0
    for seed in range(12):
        moving = moving_moons(seed, equal=equal, zero=2)
        if moving.solution.n_in_bound >= 2 and moving.is_smooth():
            assert moving.error(pulled(moving)) < 2e-5, seed
            checked += 1
    assert checked >= 8


def errors_of_ugly_problems(seeds):
    """Return the errors of the derivatives by costs and by the scale of the kernel."""
    found = {}
    for seed in seeds:
        problem = random_problem(seed, largest=18)
        K = problem.K.values
        moving = Moving(lambda t, K=K: np.exp(t) * K, problem.y, problem.costs, seed=seed)
        if moving.solution.n_in_bound >= 2 and moving.is_smooth():
            found[seed] = moving.error(pulled(moving))
    return found


def test_derivatives_of_ugly_problems():
    """Duplicates, tiny classes, singular matrices and costs over twelve orders of magnitude."""
    found = errors_of_ugly_problems(range(30))
    assert len(found) >= 22
    assert max(found.values()) < 2e-5, found


@pytest.mark.slow
def test_derivatives_of_many_ugly_problems():
    """The same for more than a thousand problems."""
    found = errors_of_ugly_problems(range(100, 1100))
    assert len(found) >= 800
    assert max(found.values()) < 2e-5, {seed: e for seed, e in found.items() if e >= 2e-5}


def test_values_of_rows_outside_the_fit():
    """A fit of some rows of a matrix, such as a pair of classes, also moves the others' values."""
    rng = np.random.default_rng(0)
    X, y = two_moons(30, seed=2)
    V, others = rng.normal(size=X.shape), np.arange(3, 30, 4)
    rows = np.setdiff1d(np.arange(30), others)
    weights = rng.normal(size=30)

    def fit(t):
        K = rbf(X + t * V, 1.0)
        return K, solve(Problem(K[np.ix_(rows, rows)], y[rows], np.full(len(rows), 3.0)), tol=1e-9)

    def loss(t):
        K, solution = fit(t)
        values = K[:, rows] @ (y[rows] * solution.alpha) + solution.b
        values[rows] = span_values(solution)
        return weights @ values

    step = 1e-4
    K, solution = fit(0.0)
    assert all(kinds(fit(at)[1]) == kinds(solution) for at in (2 * step, -2 * step))
    ends = [loss(at * step) for at in (1, -1, 2, -2)]
    expected = (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * step)
    found = pulled_back(solution, KernelMatrix(K), rows, weights)
    slope = (fit(1e-6)[0] - fit(-1e-6)[0]) / 2e-6
    by_t = sum(np.vdot(w, slope[np.ix_(i, j)]) for i, j, w in found.blocks())
    assert by_t == pytest.approx(expected, rel=1e-6)
    assert not found.by_cost[others].any()


def test_rows_that_depend_on_each_other():
    """Four in-bound rows in a plane: derivatives by costs and by the scale are those of the rule.

    The corners of a square are in-bound and one of them is a combination of the others. A row of
    the wrong class in the middle is bounded.
    """
    X = np.array([[0.0, 0], [0, 2], [2, 0], [2, 2], [0.2, 1.0], [5, 1], [-3, 1]])
    y = np.array([-1.0, -1, 1, 1, 1, 1, -1])
    costs = np.array([3.0, 4.0, 5.0, 6.0, 0.2, 1.0, 1.0])
    moving = Moving(lambda t: np.exp(t) * (X @ X.T), y, costs)
    assert moving.solution.in_bound.sum() == 4
    assert moving.solution.bounded.sum() == 1
    found = pulled(moving)
    assert not found.keeps_rank
    assert len(found.inner) == 3
    assert moving.is_smooth()
    assert moving.error(found) < 2e-5


def test_equal_rows_keep_the_rank():
    """In-bound rows that are equal stay so, whatever the kernel; other dependences may not."""
    moving = moving_moons(1, equal=4)
    found = pulled(moving)
    assert found.keeps_rank
    fit = Fit.of(moving.solution, moving.solution.problem.K, every_row(moving.solution.problem))
    assert len(fit.base) < moving.solution.n_in_bound


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_in_bound_rows(count):
    """With none or one there are no derivatives, and the reason says how many are needed."""
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    y = np.array([-1.0, 1.0, -1.0, 1.0])
    costs = np.array([0.1, 0.1, 0.1, 0.1]) if count == 0 else np.array([0.1, 0.1, 0.1, 9.0])
    solution = solve(Problem(rbf(X, 1.0), y, costs))
    assert solution.n_in_bound == count
    message = f"The fit has {count} in-bound support vectors, and derivatives .* need at least 2"
    with pytest.raises(NoGradientError, match=message):
        pulled_back(solution, solution.problem.K, np.arange(4), np.ones(4))


def test_kernels_that_are_not_positive_semi_definite():
    """They have no spans, and say so."""
    problem = indefinite_problem(cost=10.0)
    solution = solve(problem)
    assert solution.n_in_bound >= 2
    with pytest.raises(SolverError, match="positive semi-definite"):
        pulled_back(solution, problem.K, every_row(problem), np.ones(len(problem)))


def test_the_last_row_of_a_class_has_a_fixed_value():
    """Without it one class is left: its value is -y, so that its weight does not count."""
    X, y = two_moons(14, seed=1)
    y[:] = -1.0
    y[0] = 1.0
    costs = np.full(14, 2.0)
    V = np.random.default_rng(0).normal(size=X.shape)
    moving = Moving(lambda t: rbf(X + t * V, 1.0), y, costs)
    K = moving.solution.problem.K
    fit = Fit.of(moving.solution, K, np.arange(14))
    expected = np.where(np.arange(14) == 0, 0.0, moving.weights)
    np.testing.assert_array_equal(of_moving_values(fit, moving.weights), expected)
    assert moving.is_smooth()
    assert moving.error(pulled(moving)) < 2e-5
