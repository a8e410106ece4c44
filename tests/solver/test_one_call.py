import signal
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from span_hpo.loo import free_squared_spans
from span_hpo.runtime import one_blas_thread, runs_machine_code
from span_hpo.solver import Problem, factored_gram
from span_hpo.solver import fit as fit_module
from span_hpo.solver.active_set import DualPoint, polished
from span_hpo.solver.fit import solution_of, solve
from span_hpo.solver.one_call import fitted
from span_hpo.solver.optimal_face import reported_alpha
from span_hpo.solver.smo import smo_point
from tests.problems import (
    has_unique_alpha,
    indefinite_problem,
    mixed_norms_problem,
    moons_problem,
    random_problem,
    rbf,
    symmetric_problem,
    two_moons,
)

pytestmark = pytest.mark.skipif(not runs_machine_code(), reason="nothing is compiled")

TOL, MAX_ITER = 1e-3, 1_000_000


@one_blas_thread
def answer(problem, tol=TOL, max_iter=MAX_ITER):
    """Return the answer of the call to a problem."""
    return fitted(problem.K.values, problem.y, problem.costs, tol, max_iter)


@one_blas_thread
def twin(problem):
    """Return the solution of the modules that the call replaces."""
    alpha, F = smo_point(problem.K, problem.y, problem.costs, TOL, MAX_ITER)
    point = polished(DualPoint(problem.K, problem.y, problem.costs, alpha, F))
    like = solve(moons_problem(10), tol=TOL, max_iter=MAX_ITER)
    return solution_of(problem, point, like)


def violation(problem, alpha, b):
    """Return the largest violation of the KKT conditions, in units of the margin."""
    margin = problem.y * (problem.K.values @ (problem.y * alpha) + b)
    too_low = np.where(alpha < problem.costs, 1 - margin, 0.0)
    too_high = np.where(alpha > 0, margin - 1, 0.0)
    return max(too_low.max(), too_high.max())


def noise(problem, alpha):
    """Return how far rounding may move a margin."""
    return 1e-12 * (1 + alpha.sum() * np.abs(problem.K.diagonal()).max())


def varied_moons(seed):
    """Return a problem of up to 300 rows, with costs and widths over orders of magnitude."""
    rng = np.random.default_rng(seed)
    count, cost = int(rng.integers(20, 300)), 10.0 ** rng.uniform(-2, 4)
    return moons_problem(count, cost, 10.0 ** rng.uniform(-1.5, 1.5), seed)


GENERATORS = [random_problem, symmetric_problem, varied_moons]


@pytest.mark.parametrize("generate", GENERATORS)
@pytest.mark.parametrize("seed", range(40))
def test_optimum(generate, seed):
    """The answer is feasible and satisfies the KKT conditions up to rounding."""
    problem = generate(seed)
    found = answer(problem)
    assert found is not None
    alpha = found.alpha
    assert ((alpha >= 0) & (alpha <= problem.costs)).all()
    assert abs(problem.y @ alpha) <= 1e-12 * (alpha.sum() + 1e-300)
    assert violation(problem, alpha, found.b) <= noise(problem, alpha)
    width = noise(problem, alpha)
    np.testing.assert_allclose(found.F, problem.K.values @ (problem.y * alpha), atol=width)
    assert found.offset_gap <= 2 * width


@pytest.mark.parametrize("generate", GENERATORS)
@pytest.mark.parametrize("seed", range(40))
def test_same_as_its_twin(generate, seed):
    """Where the solution is unique, it is that of the modules which the call replaces."""
    problem = generate(seed)
    wanted = twin(problem)
    if not has_unique_alpha(wanted):
        pytest.skip("rounding decides which solution is found")
    found = answer(problem)
    inside = (found.alpha > 0) & (found.alpha < problem.costs)
    np.testing.assert_array_equal(inside, wanted.in_bound)
    np.testing.assert_array_equal(found.alpha == problem.costs, wanted.bounded)
    # An alpha far below 1 / K_ii moves margins by less than their rounding.
    blur = 1e-14 * np.linalg.cond(wanted.gram.L) ** 2 / wanted.gram.scale
    np.testing.assert_allclose(
        found.alpha, wanted.alpha, rtol=0, atol=1e-9 * wanted.alpha.max() + blur
    )
    np.testing.assert_allclose(found.b, wanted.b, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(
        found.F + found.b,
        wanted.decision_values,
        rtol=0,
        atol=1e-9 * (1 + np.abs(wanted.decision_values).max()),
    )
    spans = free_squared_spans(wanted)
    np.testing.assert_allclose(
        found.squared_spans, spans, rtol=1e-7, atol=1e-9 * np.abs(problem.K.diagonal()).max()
    )
    np.testing.assert_allclose(
        found.gram.L, wanted.gram.L, rtol=0, atol=1e-10 * wanted.gram.L.max()
    )


def test_spans_by_definition():
    """The spans are those of the bordered matrix M, inverted without any factorisation of ours."""
    problem = moons_problem(80, cost=3.0)
    found = answer(problem)
    inside = np.flatnonzero((found.alpha > 0) & (found.alpha < problem.costs))
    bounded = np.flatnonzero(found.alpha == problem.costs)
    K, n = problem.K.values, len(inside)
    M = np.ones((n + 1, n + 1))
    M[:n, :n], M[n, n] = K[np.ix_(inside, inside)], 0.0
    inverse = np.linalg.inv(M)
    np.testing.assert_allclose(found.squared_spans[inside], 1 / inverse.diagonal()[:n], rtol=1e-7)
    for p in bounded:
        v = np.append(K[inside, p], 1.0)
        np.testing.assert_allclose(found.squared_spans[p], K[p, p] - v @ inverse @ v, rtol=1e-7)
    assert (found.squared_spans[found.alpha == 0] == 0).all()


def test_factor():
    """The factor and its parts are those of `factored_gram`, in Fortran order."""
    problem = moons_problem(120, cost=2.0)
    found = answer(problem)
    inside = np.flatnonzero((found.alpha > 0) & (found.alpha < problem.costs))
    wanted = factored_gram(problem.K.block(inside, inside))
    assert found.gram.L.flags.f_contiguous
    assert (np.triu(found.gram.L, 1) == 0).all()
    for name in ("row_means", "mean", "scale", "L", "jitter", "largest"):
        np.testing.assert_allclose(
            getattr(found.gram, name), getattr(wanted, name), rtol=1e-9, atol=1e-12
        )
    np.testing.assert_allclose(
        found.gram.own_squared_distances(), wanted.own_squared_distances(), rtol=1e-9
    )


def test_no_row_in_bound():
    """Without in-bound rows, spans of bounded rows are undefined and b is in the middle."""
    problem = Problem(np.eye(4), [1, 1, -1, -1], np.full(4, 0.1))
    found = answer(problem)
    assert found.gram is None
    np.testing.assert_array_equal(found.alpha, problem.costs)
    assert np.isnan(found.squared_spans).all()
    assert found.b == 0.0


def test_one_row_in_bound():
    """The only in-bound row has no span, and a bounded row has its distance from that row."""
    problem = Problem(np.diag([1.0, 2.0, 4.0]), [1, 1, -1], [0.1, 0.15, 10.0])
    found = answer(problem)
    np.testing.assert_allclose(found.alpha, [0.1, 0.15, 0.25])
    np.testing.assert_allclose(found.squared_spans, [5.0, 6.0, np.nan])


def test_rows_with_cost_zero():
    """A row with cost 0 never moves, and the others are fitted as if it were not there."""
    problem = moons_problem(60, cost=5.0)
    costs = problem.costs.copy()
    costs[::5] = 0.0
    kept = np.flatnonzero(costs)
    found = answer(Problem(problem.K, problem.y, costs))
    alone = answer(Problem(problem.K.block(kept, kept), problem.y[kept], costs[kept]))
    assert (found.alpha[::5] == 0).all()
    assert (found.squared_spans[::5] == 0).all()
    np.testing.assert_allclose(found.alpha[kept], alone.alpha, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        found.F, problem.K.values @ (problem.y * found.alpha), rtol=0, atol=1e-11
    )


def test_rows_set_aside():
    """A fit long enough to set rows aside, more than once, ends at the solution."""
    X, y = two_moons(700, noise=0.5, seed=3)
    problem = Problem(rbf(X, 2.0), y, np.where(y > 0, 50.0, 200.0))
    found = answer(problem)
    assert found.steps > 3000
    assert found.rounds < 30
    assert violation(problem, found.alpha, found.b) <= noise(problem, found.alpha)


@pytest.mark.parametrize("tol", [1.0, 1e-1, 1e-5])
def test_tolerance_of_the_start(tol):
    """Where the pairwise steps end makes no difference to the solution."""
    problem = moons_problem(150, cost=20.0)
    found, wanted = answer(problem, tol), answer(problem)
    np.testing.assert_allclose(found.alpha, wanted.alpha, rtol=0, atol=1e-10 * wanted.alpha.max())


def test_step_limit():
    """The active set goes on from wherever the limit ends the pairwise steps."""
    problem = moons_problem(100, cost=1.0)
    found, wanted = answer(problem, max_iter=7), answer(problem)
    assert found.steps == 7
    np.testing.assert_allclose(found.alpha, wanted.alpha, rtol=0, atol=1e-10)


def test_solve_takes_the_answer(monkeypatch):
    """`solve` returns the answer of the call with its spans, and its twin's where it gives up."""
    problem = moons_problem(80, cost=3.0)
    found = solve(problem)
    np.testing.assert_array_equal(found.alpha, answer(problem).alpha)
    monkeypatch.setattr(fit_module, "fitted_in_one_call", lambda *arguments: None)
    wanted = solve(problem)
    assert wanted.known_spans is None
    np.testing.assert_allclose(found.decision_values, wanted.decision_values, rtol=0, atol=1e-10)
    np.testing.assert_allclose(free_squared_spans(found), free_squared_spans(wanted), rtol=1e-7)


def test_spans_of_the_kept_rows():
    """If rows with cost 0 are left out of the fit, their squared spans are 0 all the same."""
    problem = moons_problem(60, cost=5.0)
    costs = np.where(np.arange(60) % 3 == 0, 0.0, problem.costs)
    spans = free_squared_spans(solve(Problem(problem.K, problem.y, costs)))
    wanted = answer(Problem(problem.K, problem.y, costs)).squared_spans
    np.testing.assert_allclose(spans, wanted, rtol=1e-7, atol=1e-12)


def test_give_ups_are_rare():
    """Of 600 ugly problems, at most three are left to the twin."""
    generators = [*GENERATORS, mixed_norms_problem]
    answers = [answer(generate(seed)) for generate in generators for seed in range(100, 250)]
    assert sum(found is None for found in answers) <= 3


def test_indefinite_kernel():
    """A kernel with negative eigenvalues never leads to a negative squared span."""
    for seed in range(10):
        found = answer(indefinite_problem(cost=10.0, seed=seed))
        assert found is None or not (found.squared_spans < 0).any()


def test_not_finite(caplog):
    """Where arithmetic ends, the call gives up and says why."""
    problem = moons_problem(40)
    K = problem.K.values * np.nan
    with caplog.at_level("DEBUG"):
        assert fitted(K, problem.y, problem.costs, TOL, MAX_ITER) is None
    assert "a number is not finite" in caplog.text


def test_read_only_input():
    """Read-only arrays are accepted and left as they are."""
    problem = moons_problem(50)
    K = problem.K.values.copy()
    before = K.copy()
    for array in (K, problem.y, problem.costs):
        array.setflags(write=False)
    assert fitted(K, problem.y, problem.costs, TOL, MAX_ITER) is not None
    np.testing.assert_array_equal(K, before)


def test_wrong_shapes():
    """Arrays of different lengths are rejected before anything is read from them."""
    problem = moons_problem(10)
    with pytest.raises(ValueError, match="must agree in the number of rows"):
        fitted(problem.K.values, problem.y[:9], problem.costs, TOL, MAX_ITER)
    with pytest.raises(ValueError, match="not C-contiguous"):
        fitted(problem.K.values[:, ::2], problem.y[::2], problem.costs[::2], TOL, MAX_ITER)


@one_blas_thread
def test_threads():
    """Calls from several threads give the same bits as one after the other."""
    problems = [varied_moons(seed) for seed in range(24)]
    alone = [answer(problem) for problem in problems]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(answer, problems))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.alpha, other.alpha)
        np.testing.assert_array_equal(one.squared_spans, other.squared_spans)


def noisy_plane(count):
    """Return a problem with many rows in few dimensions, whose fit takes seconds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(count, 5))
    y = np.where(X[:, 0] + rng.normal(size=count) > 0, 1.0, -1.0)
    return Problem(X @ X.T, y, np.full(count, 1e4))


@one_blas_thread
def test_budget(caplog):
    """After a given number of multiplications, at any stage, the call gives up and says why."""
    problem = moons_problem(300, cost=100.0, gamma=3.0)
    K, y, costs = problem.K.values, problem.y, problem.costs
    wanted = answer(problem)
    assert 0 < wanted.work < 1e9
    with caplog.at_level("DEBUG"):
        for share in (0.0, 0.1, 0.5, 0.9):
            most = share * wanted.work
            assert fitted(K, y, costs, TOL, MAX_ITER, most_work=most) is None
    assert caplog.text.count("it takes too long") == 4
    enough = fitted(K, y, costs, TOL, MAX_ITER, most_work=wanted.work)
    np.testing.assert_array_equal(enough.alpha, wanted.alpha)
    assert enough.work == wanted.work


def test_default_budget():
    """A fit that would take very long is left to the modules, which end with the solution."""
    assert answer(noisy_plane(600), 1e-9, 10**9) is None


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer")
def test_signals_end_the_call():
    """A signal that arrives during the call, such as that of Ctrl-C, ends it before its answer."""
    problem = noisy_plane(2000)

    def handler(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        start = time.perf_counter()
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            fitted(problem.K.values, problem.y, problem.costs, TOL, 10**9, most_work=1e12)
        assert time.perf_counter() - start < 30  # without the signal, it takes minutes
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_tolerance_of_solve():
    """The call has a tolerance of its own, so that a wide one costs no time."""
    problem = moons_problem(200, cost=20.0)
    wide, narrow = (solve(problem, tol=tol) for tol in (10.0, 1e-6))
    np.testing.assert_array_equal(wide.alpha, narrow.alpha)


@pytest.mark.parametrize("seed", range(30))
def test_only_solution(seed):
    """Where the call states that there is no other solution, the rule finds none either."""
    for generate in GENERATORS:
        problem = generate(seed)
        found = answer(problem)
        point = DualPoint(
            problem.K, problem.y, problem.costs, found.alpha, found.F, True, found.gram
        )
        assert not found.is_only or reported_alpha(point) is point.alpha
        if found.gram is not None and has_unique_alpha(solve(problem)):
            assert found.is_only
