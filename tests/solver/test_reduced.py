"""Tests of `span_hpo.solver.reduced`."""

import numpy as np
import pytest

from span_hpo import Problem, solve
from span_hpo.solver.reduced import ReducedProblem
from tests.problems import moons_problem, random_problem, rbf


def repeated_problem(seed):
    """Return a problem of repeated points with both labels, several costs and costs of 0."""
    generator = np.random.default_rng(seed)
    X = generator.integers(0, 3, size=(30, 2)).astype(float)
    y = np.where(np.arange(30) % 2, 1.0, -1.0)
    return Problem(rbf(X, 1.0), y, generator.choice([0.0, 0.5, 2.0], 30))


@pytest.mark.parametrize("seed", range(20))
def test_what_is_fitted(seed):
    """All costs are kept in sum for each class, and no two fitted rows of a class are equal."""
    problem = repeated_problem(seed)
    reduced = ReducedProblem.of(problem, merge=True)
    fitted = reduced.fitted
    for label in (-1, 1):
        wanted = problem.costs[problem.y == label].sum()
        assert fitted.costs[fitted.y == label].sum() == pytest.approx(wanted, rel=1e-12)
        points = fitted.K.values[fitted.y == label]
        assert len(np.unique(points[fitted.costs[fitted.y == label] > 0], axis=0)) <= 9
    assert (fitted.costs > 0).all()


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("merge", [False, True])
def test_the_way_back(seed, merge):
    """The answer is feasible for the problem that was asked for, and gives the same values."""
    problem = repeated_problem(seed)
    reduced = ReducedProblem.of(problem, merge=merge)
    inner = solve(reduced.fitted, solver="libsvm")
    solution = solve(problem)
    for alpha in (solution.alpha, solution.basic.alpha):
        assert (alpha >= 0).all()
        assert (alpha <= problem.costs).all()
        assert problem.y @ alpha == pytest.approx(0.0, abs=1e-9)
    values = inner.decision_values
    np.testing.assert_allclose(solution.decision_values[reduced.kept], values, atol=1e-7)


@pytest.mark.parametrize("seed", range(20))
def test_rows_of_cost_zero_change_nothing(seed):
    """A fit among many rows of cost 0 is the fit without them, to the last bit."""
    problem = random_problem(seed, largest=30)
    kept = np.random.default_rng(seed).random(len(problem)) < 0.6
    if len(set(problem.y[kept])) < 2:
        kept[:] = True
    part = Problem(problem.K, problem.y, np.where(kept, problem.costs, 0.0))
    wanted, found = solve(part.take(np.flatnonzero(kept))), solve(part)
    np.testing.assert_array_equal(found.alpha[kept], wanted.alpha)
    assert not found.alpha[~kept].any()
    assert found.b == wanted.b


def test_a_start_is_scaled_and_balanced():
    """Dual variables outside their boxes are moved inside, and both classes have the same sum."""
    problem = moons_problem(40, cost=2.0)
    reduced = ReducedProblem.of(problem, merge=True)
    assert reduced.start(None) is None
    assert reduced.start(np.zeros(40)) is None
    alpha, F = reduced.start(np.arange(40.0))
    assert (alpha >= 0).all()
    assert (alpha <= problem.costs).all()
    assert problem.y @ alpha == pytest.approx(0.0, abs=1e-12)
    expected = reduced.sign * (problem.K.values @ (problem.y * alpha))
    np.testing.assert_allclose(F, expected, rtol=1e-12, atol=1e-12)
