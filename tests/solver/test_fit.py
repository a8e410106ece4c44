import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from span_hpo import Problem, SpanObjective, solve
from span_hpo.runtime.compilation import interpreted, runs_machine_code
from span_hpo.solver.box_qp import BoxQP
from tests.problems import (
    has_unique_alpha,
    indefinite_problem,
    moons_problem,
    random_problem,
    rbf,
    two_moons,
)

SEEDS = range(300)


def dual_objective(problem, alpha):
    beta = problem.y * alpha
    return alpha.sum() - beta @ problem.K.values @ beta / 2


def test_three_rows_of_the_svm_plus_paper():
    """S = {(1,+), (2,-), (3,+)} with c = (4, 6, 2) has w = -2, b = 3 and alpha = c.

    Lapin, Hein and Schiele 2014, section 4.4. No row is in-bound; the offset interval is a point.
    """
    x = np.array([1.0, 2.0, 3.0])
    problem = Problem(np.outer(x, x), np.array([1, -1, 1]), np.array([4, 6, 2]))
    solution = solve(problem)
    np.testing.assert_allclose(solution.alpha, [4, 6, 2])
    assert (problem.y * solution.alpha) @ x == pytest.approx(-2)
    assert solution.b == pytest.approx(3)
    assert solution.bounded.all()
    np.testing.assert_allclose(solution.decision_values, -2 * x + 3)
    np.testing.assert_allclose(np.maximum(0, 1 - problem.y * solution.decision_values), [0, 0, 4])


@pytest.mark.parametrize("seed", SEEDS)
def test_polish_reaches_the_optimum(seed):
    """Ugly problems end with KKT conditions that hold to rounding, inside the box."""
    problem = random_problem(seed)
    solution = solve(problem)
    assert solution.converged
    assert solution.kkt_violation() <= max(100 * solution.margin_noise, 1e-10)
    assert (solution.alpha >= 0).all()
    assert (solution.alpha <= problem.costs).all()
    assert abs(problem.y @ solution.alpha) <= 1e-10 * solution.alpha.sum()
    beta = problem.y * solution.alpha
    np.testing.assert_allclose(
        solution.decision_values,
        problem.K.values @ beta + solution.b,
        atol=1e-9 * (1 + solution.alpha.sum() * problem.K.diagonal().max()),
    )


def test_pair_of_rows_without_room_inside():
    """Equal costs and a kernel of whole numbers: nobody is in-bound, and rows contradict in pairs.

    A working set of one row fixes the offset by that row alone, and the next by another.
    """
    features = np.array(
        [[2, 0, 0], [1, 2, 1], [2, 1, 2], [2, 0, 1], [1, 2, 2], [1, 1, 3], [0, 1, 1], [0, 1, 0]]
    )
    y = np.array([1.0, -1, -1, -1, 1, 1, 1, -1])
    for cost in (1e-3, 1e-2):
        for shift in range(8):
            rows = np.roll(np.arange(8), shift)
            K = (features @ features.T)[np.ix_(rows, rows)].astype(float)
            assert solve(Problem(K, y[rows], np.full(8, cost))).kkt_violation() < 1e-12


def test_kernel_of_whole_numbers_that_made_the_polish_go_round():
    """A case in which two rows at their bounds took turns in fixing the offset."""
    K = np.array(
        [
            [4, 2, 4, 4, 2, 2, 0, 0, 0, 2],
            [2, 6, 5, 2, 5, 3, 3, 2, 4, 3],
            [4, 5, 10, 6, 7, 8, 2, 3, 6, 3],
            [4, 2, 6, 5, 3, 4, 0, 1, 2, 2],
            [2, 5, 7, 3, 7, 7, 3, 2, 4, 2],
            [2, 3, 8, 4, 7, 9, 2, 2, 4, 1],
            [0, 3, 2, 0, 3, 2, 2, 1, 2, 1],
            [0, 2, 3, 1, 2, 2, 1, 2, 4, 1],
            [0, 4, 6, 2, 4, 4, 2, 4, 8, 2],
            [2, 3, 3, 2, 2, 1, 1, 1, 2, 2],
        ]
    )
    y = np.array([1.0, -1, -1, -1, 1, 1, 1, -1, 1, 1])
    assert solve(Problem(K, y, np.full(10, 1e-3))).kkt_violation() < 1e-12


@pytest.mark.slow
def test_polish_reaches_the_optimum_of_ten_thousand_problems():
    """The same over many more problems, in one sweep."""
    failed = []
    for seed in range(1000, 11000):
        solution = solve(random_problem(seed))
        if solution.kkt_violation() > max(100 * solution.margin_noise, 1e-10):
            failed.append((seed, solution.kkt_violation()))
    assert not failed


@pytest.mark.parametrize("seed", range(20))
def test_dual_objective_equals_an_interior_point_solver(seed):
    """PIQP on the whole dual finds no better value, and no worse one."""
    problem = moons_problem(30, cost=5.0, seed=seed)
    K, y, costs = problem.K.values, problem.y, problem.costs
    bounds = np.minimum(0, y * costs), np.maximum(0, y * costs)
    beta = BoxQP(K).solve(-y, 0.0, *bounds).x
    solution = solve(problem)
    assert dual_objective(problem, solution.alpha) == pytest.approx(
        dual_objective(problem, y * beta), rel=1e-7
    )


def test_sets_partition_the_rows():
    """A row is in-bound, bounded or a zero row by exact comparison with its bounds."""
    problem = moons_problem(80, cost=2.0)
    solution = solve(problem)
    assert solution.n_in_bound == solution.in_bound.sum() > 2
    assert solution.bounded.sum() > 2
    assert (solution.alpha[solution.bounded] == problem.costs[solution.bounded]).all()
    assert not (solution.in_bound & solution.bounded).any()
    zero = ~(solution.in_bound | solution.bounded)
    assert (solution.alpha[zero] == 0).all()
    assert solution.n_support == len(problem) - zero.sum()
    assert solution.b_unique


@pytest.mark.parametrize("costs", [(1.0, 1.0), (0.1, 8.0), (100.0, 0.5)])
def test_class_cost_fits_agree_with_libsvm_official(costs):
    """Class costs are LIBSVM's -w options: the same decision values within 1e-3."""
    svmutil = pytest.importorskip("libsvm.svmutil")
    X, y = two_moons(120, seed=4)
    K = rbf(X, 0.8)
    own = solve(Problem(K, y, np.where(y > 0, costs[1], costs[0]))).decision_values
    rows = [[index + 1, *row] for index, row in enumerate(K.tolist())]
    model = svmutil.svm_train(
        svmutil.svm_problem(y.tolist(), rows, isKernel=True),
        f"-t 4 -c 1 -w-1 {costs[0]} -w1 {costs[1]} -e 0.00001 -q",
    )
    _, _, values = svmutil.svm_predict(y.tolist(), rows, model, "-q")
    sign = 1 if model.get_labels()[0] == 1 else -1
    np.testing.assert_allclose(own, sign * np.array(values)[:, 0], atol=1e-3)


@pytest.mark.parametrize("zero", [[0, 17, 59], range(0, 60, 3)], ids=["few", "many"])
@pytest.mark.parametrize("polish", [True, False])
def test_zero_cost_rows_take_no_part(zero, polish):
    """Rows with cost 0 change nothing for the others and still have a decision value."""
    problem = moons_problem(60)
    costs = problem.costs.copy()
    costs[list(zero)] = 0.0
    kept = costs > 0
    solution = solve(Problem(problem.K, problem.y, costs), polish=polish)
    matrix = problem.K.values
    others = Problem(matrix[np.ix_(kept, kept)], problem.y[kept], costs[kept])
    alone = solve(others, polish=polish)
    np.testing.assert_allclose(solution.alpha[kept], alone.alpha, rtol=1e-10)
    assert not polish or solution.kkt_violation() < 1e-12
    assert (solution.alpha[~kept] == 0).all()
    assert not solution.bounded[~kept].any()
    np.testing.assert_allclose(
        solution.decision_values[~kept],
        matrix[np.ix_(~kept, kept)] @ (problem.y[kept] * alone.alpha) + alone.b,
    )


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e6])
@pytest.mark.parametrize("seed", range(5))
def test_a_zero_cost_row_that_is_large_and_wrong_changes_nothing(scale, seed):
    """From a coarse start the optimum is reached and known, whatever a row without cost is like."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(80, 3)), np.where(np.arange(80) % 2, 1.0, -1.0)
    X[:, 0] += y
    X[0] *= scale
    X[0, 0] = abs(X[0, 0])  # of the negative class
    costs = np.full(80, 10.0)
    costs[0] = 0.0
    solution = solve(Problem(X @ X.T, y, costs), tol=0.1)
    kept = slice(1, None)
    alone = solve(Problem(X[kept] @ X[kept].T, y[kept], costs[kept]))
    np.testing.assert_allclose(solution.alpha[kept], alone.alpha, atol=1e-9)
    margins = (y * solution.decision_values)[solution.in_bound]
    np.testing.assert_allclose(margins, 1, atol=1e-9)
    assert "gram" in vars(solution)  # the polish ended at the optimum and handed it over


def test_iteration_limit_is_told():
    """A fit that LIBSVM does not finish and the polish cannot mend warns and is marked."""
    problem = moons_problem(200, cost=1e4)
    with pytest.warns(
        ConvergenceWarning, match=r"The fit ended with a KKT violation of .*, `max_iter` = 3\)"
    ):
        solution = solve(problem, max_iter=3, polish=False)
    assert not solution.converged
    assert solution.kkt_violation() > 1e-3


def test_polish_can_finish_what_libsvm_did_not():
    """If the polish reaches the optimum, nothing is left to warn about."""
    problem = moons_problem(40, cost=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = solve(problem, max_iter=60)
    assert solution.converged
    assert solution.kkt_violation() < 1e-12


@pytest.mark.parametrize("cost", [0.1, 1.0, 50.0])
def test_indefinite_kernel_is_fitted(cost):
    """Without a positive semi-definite kernel there is still LIBSVM's fit."""
    solution = solve(indefinite_problem(cost))
    assert solution.converged
    assert solution.kkt_violation() < 2e-3


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"tol": 0}, "`tol` must be a finite number above 0, got 0"),
        ({"tol": "small"}, "`tol` must be a finite number above 0, got 'small'"),
        ({"max_iter": 0}, "`max_iter` must be a whole number from 1 to 2147483647, got 0"),
        ({"max_iter": 1.5}, "`max_iter` must be a whole number from 1 to 2147483647, got 1.5"),
    ],
)
def test_wrong_options_are_named(option, message):
    """Solver options are checked."""
    with pytest.raises(ValueError, match="must be") as caught:
        solve(moons_problem(10), **option)
    assert message in str(caught.value)


@pytest.mark.parametrize("seed", range(40))
def test_every_solver_ends_at_the_same_solution(seed):
    """LIBSVM, pairwise steps and the automatic choice only differ in how they begin."""
    problem = random_problem(seed)
    fits = {name: solve(problem, solver=name) for name in ("auto", "libsvm", "smo")}
    assert fits["libsvm"].solver == "libsvm"
    assert fits["smo"].solver == "smo"
    scale = 1 + np.abs(fits["auto"].decision_values)
    for fit in fits.values():
        assert (np.abs(fit.decision_values - fits["auto"].decision_values) <= 1e-6 * scale).all()


def test_solvers_are_checked():
    """The message names the argument, what is wanted and what was received."""
    problem = moons_problem()
    with pytest.raises(ValueError, match=r"`solver` must be one of .*'libsvm'.*, got 'svmlight'"):
        solve(problem, solver="svmlight")
    X, y = two_moons()
    objective = SpanObjective(X, y, memory_limit=0, solver="smo")
    with pytest.raises(ValueError, match=r"not held in memory, got 'smo'. Raise `memory_limit`"):
        objective(objective.defaults()[0])


def test_pairwise_steps_without_polish():
    """The answer is within the tolerance, and says which solver it is from."""
    solution = solve(moons_problem(), solver="smo", polish=False)
    assert solution.converged
    assert solution.solver == "smo"
    assert 0 < solution.kkt_violation() <= 2e-3


def starts_of(problem, seed):
    """Yield names and starts of a fit, from similar problems to useless ones."""
    rng, y, costs = np.random.default_rng(seed), problem.y, problem.costs
    yield "lower costs", solve(Problem(problem.K, y, costs / 4))
    yield "higher costs", solve(Problem(problem.K, y, costs * 4))
    yield "other costs", solve(Problem(problem.K, y, costs * 10.0 ** rng.uniform(-2, 2, len(y))))
    yield "libsvm", solve(problem, solver="libsvm", polish=False)
    yield "array", solve(problem).alpha
    yield "zero", np.zeros(len(y))
    yield "too much", costs * rng.uniform(0.0, 3.0, len(y))


@pytest.mark.parametrize("solver", ["auto", "smo", "libsvm"])
@pytest.mark.parametrize("seed", range(10))
def test_start_does_not_change_the_solution(seed, solver):
    """Where the solution is unique, its last bits do not depend on the start."""
    problem = moons_problem(80, 10.0 ** (seed % 4 - 1), 10.0 ** (seed % 3 - 1), seed)
    wanted = solve(problem, solver=solver)
    assert has_unique_alpha(wanted)
    for name, start in starts_of(problem, seed):
        found = solve(problem, solver=solver, start=start)
        assert found.solver == wanted.solver
        # The twins reach the same solution, but do not compute it once more at the end.
        atol = 0.0 if runs_machine_code() else 1e-9
        for part in ("alpha", "decision_values", "b"):
            parts = getattr(found, part), getattr(wanted, part)
            np.testing.assert_allclose(*parts, rtol=0, atol=atol, err_msg=name)


def test_start_with_the_twins():
    """Without compiled code, a start leads to the solution as well."""
    problem = moons_problem(60, cost=3.0)
    with interpreted():
        wanted = solve(problem, solver="smo")
        for _, start in starts_of(problem, 0):
            found = solve(problem, solver="smo", start=start)
            np.testing.assert_allclose(found.alpha, wanted.alpha, rtol=0, atol=1e-10)


def test_start_at_the_solution_takes_no_steps():
    """Pairwise steps begin at the start, which `polish=False` and one step show."""
    problem = moons_problem(60, cost=3.0)
    optimum = solve(problem)
    again = solve(problem, solver="smo", polish=False, max_iter=1, start=optimum)
    np.testing.assert_allclose(again.alpha, optimum.alpha, rtol=0, atol=1e-9)
    assert again.converged


def test_start_of_another_kernel_and_of_rows_without_cost():
    """Dual variables of another kernel are a start, and rows with cost 0 stay at 0."""
    problem, other = moons_problem(60, gamma=1.0), moons_problem(60, gamma=1.5)
    wanted = solve(problem)
    np.testing.assert_array_equal(solve(problem, start=solve(other)).alpha, wanted.alpha)
    costs = np.where(np.arange(60) % 3 == 0, 0.0, problem.costs)
    part = Problem(problem.K, problem.y, costs)
    np.testing.assert_array_equal(solve(part, start=wanted).alpha, solve(part).alpha)
    np.testing.assert_array_equal(solve(part, start=wanted.alpha).alpha, solve(part).alpha)


def test_wrong_start():
    """Starts of other sizes, and negative or infinite ones, are rejected."""
    problem = moons_problem(20)
    with pytest.raises(ValueError, match="`start` must be the solution of a problem with 20 rows"):
        solve(problem, start=solve(moons_problem(10)))
    for start in (np.ones(19), np.full(20, -1.0), np.full(20, np.inf)):
        with pytest.raises(ValueError, match="`start`"):
            solve(problem, start=start)
