"""The compiled start of a fit: sequential minimal optimisation on the kernel matrix."""

import numpy as np
import pytest

import span_hpo.solver.fit as solver_module
import span_hpo.solver.smo as smo
from span_hpo import Problem, solve
from span_hpo.kernels.blocks import KernelMatrix, kernel_product
from span_hpo.runtime import interpreted
from span_hpo.solver.active_set import DualPoint
from span_hpo.solver.rounding import margin_noise
from tests.compiled import needs_compiled
from tests.problems import moons_problem, random_problem, symmetric_problem

TOL = 1e-3


def started(problem, tol=TOL, max_iter=100_000):
    alpha, F = smo.smo_point(problem.K, problem.y, problem.costs, tol, max_iter)
    return DualPoint(problem.K, problem.y, problem.costs, alpha, F)


def with_costs(problem):
    """Return the problem of the rows that take part."""
    return problem.take(np.flatnonzero(problem.costs))


def check_start(problem, tol):
    point = started(problem, tol)
    assert (point.alpha >= 0).all()
    assert (point.alpha <= problem.costs).all()
    assert abs(problem.y @ point.alpha) <= 1e-12 * point.alpha.sum()
    noise = margin_noise(point.alpha, float(np.abs(problem.K.diagonal()).max()))
    np.testing.assert_allclose(
        point.F, kernel_product(problem.K, problem.y * point.alpha), rtol=0, atol=noise
    )
    assert point.offset_gap <= tol + 2 * noise


def test_two_rows_by_hand():
    """Rows at distance 2 meet at alpha = 2 / 2^2 = 1/2, or at their cost."""
    x = np.array([1.0, -1.0])
    for cost, wanted in ((10.0, 0.5), (0.25, 0.25)):
        point = started(Problem(np.outer(x, x), x, np.full(2, cost)))
        np.testing.assert_allclose(point.alpha, [wanted, wanted], rtol=1e-15)


@needs_compiled
@pytest.mark.parametrize("seed", range(150))
def test_optimal_up_to_its_tolerance(seed):
    """The box is kept to the last bit, F is that of the dual variables, the gap is small enough."""
    check_start(with_costs(random_problem(seed)), TOL)
    check_start(symmetric_problem(seed), 1e-6)


@needs_compiled
def test_rows_set_aside_come_back(monkeypatch):
    """With and without rows set aside, over several levels, the same optimum is found."""
    problem = moons_problem(600, cost=100.0, gamma=2.0)
    sizes = []
    descend = smo._descend

    def counted(K, *rest):
        sizes.append(len(K))
        return descend(K, *rest)

    monkeypatch.setattr(smo, "_descend", counted)
    point = started(problem, 1e-6)
    assert len(sizes) > 1
    assert min(sizes) < 600
    monkeypatch.setattr(smo, "_OPEN_SHARE", 0.0)
    sizes.clear()
    whole = started(problem, 1e-6)
    assert sizes == [600]
    np.testing.assert_allclose(point.F, whole.F, atol=1e-4)


@pytest.mark.parametrize("seed", range(30))
def test_machine_code_takes_the_steps_of_its_twin(seed):
    """On ugly problems, dual variables and gradients agree to the last bit."""
    for problem in (with_costs(random_problem(seed, largest=20)), symmetric_problem(seed)):
        point = started(problem, 1e-6, max_iter=150)
        with interpreted():
            plain = started(problem, 1e-6, max_iter=150)
        np.testing.assert_array_equal(plain.alpha, point.alpha)
        np.testing.assert_array_equal(plain.F, point.F)


def test_matrices_as_they_come():
    """Matrices in Fortran order, parts of others and read-only ones give the same steps."""
    problem = moons_problem(30, cost=5.0)
    K, y, costs = problem.K.values, problem.y, problem.costs
    wide = np.zeros((60, 90))
    wide[::2, ::3] = K
    fixed = K.copy()
    fixed.setflags(write=False)
    alpha = np.zeros(30)
    wanted = smo.improved_in_box(K, alpha, y, costs, y, 1e-6, 1000)
    for other in (np.asfortranarray(K), wide[::2, ::3], fixed):
        found = smo.improved_in_box(other, alpha, y, costs, y, 1e-6, 1000)
        np.testing.assert_array_equal(found, wanted)


@needs_compiled
def test_step_limit():
    """The limit counts all steps."""
    problem = moons_problem(200, cost=1e4)
    point = started(problem, max_iter=7)
    assert np.count_nonzero(point.alpha) <= 14


@needs_compiled
def test_rounding_ends_the_descent():
    """A tolerance below rounding does not make it walk on the spot until the limit."""
    K = 1e20 * moons_problem(60).K.values
    problem = Problem(K, moons_problem(60).y, np.full(60, 1e3))
    alpha, _ = smo.smo_point(KernelMatrix(K), problem.y, problem.costs, 1e-300, 10**9)
    assert np.isfinite(alpha).all()


@needs_compiled
def test_libsvm_steps_in(monkeypatch):
    """Where the first start is worthless, LIBSVM's is polished instead."""
    problem = moons_problem(60, cost=10.0)

    def broken(K, y, costs, tol, max_iter, start):
        return np.full(len(y), np.nan), np.zeros(len(y))

    monkeypatch.setattr(solver_module, "fitted_in_one_call", lambda *arguments: None)
    monkeypatch.setattr(solver_module, "smo_point", broken)
    found = solve(problem)
    with interpreted():
        wanted = solve(problem)
    np.testing.assert_array_equal(found.alpha, wanted.alpha)


@needs_compiled
@pytest.mark.parametrize("seed", range(60))
def test_both_starts_lead_to_one_solution(seed):
    """The decision values of a polished fit do not depend on where it started."""
    problem = random_problem(seed)
    fast = solve(problem)
    with interpreted():
        slow = solve(problem)
    width = 1e-6 * (1 + fast.alpha.sum() * np.abs(problem.K.diagonal()).max())
    if fast.b_unique and slow.b_unique:
        np.testing.assert_allclose(fast.decision_values, slow.decision_values, rtol=0, atol=width)


@pytest.mark.parametrize(
    "K",
    [
        [[1e-312, 0], [0, 1e-312]],
        [[1e308, -9e307], [-9e307, 1e308]],
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_kernels_at_the_ends_of_double_precision(K):
    """Where the steps overflow or vanish, there is still a finite answer."""
    solution = solve(Problem(K, [1, -1], [1, 1]))
    assert np.isfinite(solution.alpha).all()
    assert np.isfinite(solution.b)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_is_called_converged_is_near_the_optimum():
    """A kernel that is all zeros has no in-bound optimum: that is told."""
    solution = solve(Problem(np.zeros((3, 3)), [1, -1, -1], [1e20] * 3), max_iter=1000)
    assert solution.converged == (solution.kkt_violation() <= 2e-3)


@needs_compiled
def test_few_rows_take_many_steps_at_once(monkeypatch):
    """A hard fit of few rows is not a hundred thousand calls."""
    x = np.arange(18.0)
    problem = Problem(np.outer(x, x), np.where(x % 2 == 0, 1.0, -1.0), np.full(18, 9000.0))
    calls = []
    steps = smo._pair_steps
    monkeypatch.setattr(smo, "_pair_steps", lambda *a: calls.append(1) or steps(*a))
    started(problem, max_iter=1_000_000)
    assert len(calls) < 3000
