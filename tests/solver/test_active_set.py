import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from span_hpo import Problem, solve
from span_hpo.solver.active_set import DualPoint, polished
from span_hpo.solver.rounding import margin_noise
from tests.problems import moons_problem, random_problem


def point_at(problem, alpha):
    F = problem.K.values @ (problem.y * alpha)
    return DualPoint(problem.K, problem.y, problem.costs, alpha, F)


def dual_objective(point):
    return point.alpha.sum() - (point.y * point.alpha) @ point.F / 2


def noisy_linear_problem(cost):
    """Return a linear problem with flipped labels, on which LIBSVM is slow."""
    X, labels = make_classification(150, 10, flip_y=0.3, random_state=0)
    return Problem(X @ X.T, np.where(labels > 0, 1.0, -1.0), np.full(150, cost))


@pytest.mark.parametrize("seed", range(200))
def test_optimum_is_reached_from_nothing(seed):
    """Started at alpha = 0, without LIBSVM, the optimum is LIBSVM's and the objective has risen."""
    problem = random_problem(seed, largest=25)
    start = point_at(problem, np.zeros(len(problem)))
    end = polished(start)
    assert dual_objective(end) >= dual_objective(start)
    noise = margin_noise(end.alpha, np.abs(problem.K.diagonal()).max())
    if end.optimal:
        assert end.offset_gap <= 100 * noise
        best = point_at(problem, solve(problem).alpha)
        assert dual_objective(end) == pytest.approx(dual_objective(best), rel=1e-6, abs=1e-12)
    else:
        assert seed in (30,)  # the one of these problems that needs a better start


@pytest.mark.parametrize(("cost", "max_iter"), [(64.0, 100), (64.0, 300), (10.0, 50)])
def test_optimum_is_reached_from_an_unfinished_fit(cost, max_iter):
    """Where LIBSVM stops far from the end, dozens of rows find their bound at once."""
    problem = noisy_linear_problem(cost)
    assert point_at(problem, solve(problem, polish=False).alpha).offset_gap < 2e-3
    with pytest.warns(ConvergenceWarning, match="The fit ended with a KKT violation"):
        unfinished = solve(problem, max_iter=max_iter, polish=False)
    assert unfinished.kkt_violation() > 0.1
    assert solve(problem, max_iter=max_iter).kkt_violation() < 1e-9


def test_optimum_stays_where_it_is():
    """A polished point is a fixed point, and its factor is that of its in-bound rows."""
    problem = moons_problem(60, cost=3.0)
    once = polished(point_at(problem, solve(problem, polish=False).alpha))
    twice = polished(once)
    np.testing.assert_allclose(twice.alpha, once.alpha, rtol=1e-9, atol=1e-12)
    in_bound = np.flatnonzero(once.in_bound)
    K_II = problem.K.values[np.ix_(in_bound, in_bound)]
    H = once.gram.centred(K_II) + once.gram.scale
    np.testing.assert_allclose(once.gram.L @ once.gram.L.T, H, atol=1e-12)


def test_result_does_not_depend_on_the_tolerance_of_libsvm():
    """From a tolerance of 0.1 or 1e-6 the same solution comes out."""
    for seed in range(20):
        problem = moons_problem(60, cost=10.0, seed=seed)
        coarse, fine = (solve(problem, tol=tol) for tol in (0.1, 1e-6))
        np.testing.assert_allclose(coarse.alpha, fine.alpha, rtol=1e-6, atol=1e-8)
        assert coarse.b == pytest.approx(fine.b, abs=1e-9)


def test_row_within_rounding_of_its_bound_is_at_the_bound():
    """Dual variables that only rounding keeps from a bound do not count as in-bound."""
    for seed in (36, 517, 2028, 2814, 7068):
        solution = solve(random_problem(seed))
        inside = solution.alpha[solution.in_bound]
        room = solution.problem.costs[solution.in_bound] - inside
        assert np.minimum(inside, room).min(initial=np.inf) > 1e-13 * solution.alpha.max()
