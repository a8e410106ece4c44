import numpy as np
import pytest
from sklearn.svm import SVC

from span_hpo import Problem, SolverError, free_squared_spans, leave_one_out, solve
from span_hpo.loo.methods import METHODS
from tests.problems import has_unique_alpha, indefinite_problem, moons_problem, random_problem
from tests.truth import refits

SEEDS = range(150)


def compare_with_refits(seed):
    """Return (number compared, disagreements) of the rows that the span-rule must get right.

    These are zero rows, rows whose removal changes no set, and rows whose span is undefined, which
    follow their path.
    """
    problem = random_problem(seed, largest=25)
    solution = solve(problem)
    loo = leave_one_out(solution)
    tolerance = 1e-6 * (1 + solution.alpha.sum())
    compared, wrong = 0, []
    for p, refit, value in refits(problem):
        others = np.arange(len(problem)) != p
        unchanged = (
            refit.in_bound.any()
            and (refit.in_bound == solution.in_bound[others]).all()
            and (refit.bounded == solution.bounded[others]).all()
        )
        if unchanged or solution.alpha[p] == 0 or np.isnan(loo.squared_spans[p]):
            compared += 1
            if abs(loo.decision_values[p] - value) > tolerance:
                wrong.append((seed, p, value, loo.decision_values[p]))
    return compared, wrong


@pytest.mark.parametrize("seed", SEEDS)
def test_span_values_are_exact_where_no_set_changes(seed):
    """Values equal refits to 1e-6 (1 + sum(alpha)) wherever the theory says so."""
    _, wrong = compare_with_refits(seed)
    assert not wrong


@pytest.mark.slow
def test_span_values_are_exact_on_a_thousand_problems():
    """The same over many more problems, and enough rows are compared."""
    counts, wrong = zip(*(compare_with_refits(seed) for seed in range(1000, 2000)), strict=True)
    assert sum(counts) > 8000
    assert not any(wrong)


@pytest.mark.parametrize("seed", range(30))
def test_refit_is_brute_force(seed):
    """Method "refit" gives the value of every refit, and -y where a class would be empty."""
    problem = random_problem(seed, largest=20)
    loo = leave_one_out(solve(problem), method="refit")
    expected = -problem.y
    for p, _, value in refits(problem):
        expected[p] = value
    np.testing.assert_allclose(loo.decision_values, expected, rtol=1e-9, atol=1e-9)
    assert loo.error == np.mean(problem.y * expected <= 0)


@pytest.mark.parametrize("seed", range(6))
def test_refit_equals_scikit_learns_refits(seed):
    """Values of "refit" are the decision values of weighted SVCs without each row."""
    problem = moons_problem(30, cost=3.0, seed=seed)
    K = problem.K.values
    loo = leave_one_out(solve(problem), method="refit")
    for p in range(30):
        others = np.arange(30) != p
        svc = SVC(C=1.0, kernel="precomputed", tol=1e-9).fit(
            K[np.ix_(others, others)], problem.y[others], sample_weight=problem.costs[others]
        )
        value = svc.decision_function(K[[p]][:, others])[0]
        assert loo.decision_values[p] == pytest.approx(value, abs=1e-5)


def test_span_rule_is_close_to_refits_on_a_regular_problem():
    """On two moons the estimated error is the refitted one, up to a few rows."""
    solution = solve(moons_problem(120, cost=2.0))
    span, refit = leave_one_out(solution), leave_one_out(solution, method="refit")
    assert abs(span.error - refit.error) <= 3 / 120
    assert (span.method, span.n_refit, refit.n_refit) == ("span", 0, 120)


def test_first_formula_of_the_span_rule():
    """Values are f - y alpha S^2 for support vectors and f for the rest."""
    solution = solve(moons_problem(60))
    loo = leave_one_out(solution)
    shift = solution.problem.y * solution.alpha * free_squared_spans(solution)
    np.testing.assert_allclose(loo.decision_values, solution.decision_values - shift)
    assert loo.n_undefined == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_swapping_the_classes_flips_every_value(seed):
    """Relabelling is a change of sign, to the last bit, on ugly problems too."""
    problem = random_problem(seed)
    swapped = Problem(problem.K, -problem.y, problem.costs)
    one, other = leave_one_out(solve(problem)), leave_one_out(solve(swapped))
    np.testing.assert_array_equal(one.decision_values, -other.decision_values)


@pytest.mark.parametrize("seed", SEEDS)
def test_scaling_kernel_and_costs_changes_no_class(seed):
    """(K, C) -> (s K, C / s) leaves the values: by powers of four to the last bit.

    Other factors round the kernel matrix anew; where alpha is unique that changes no class.
    """
    problem = random_problem(seed)
    solution = solve(problem)
    loo = leave_one_out(solution)
    for factor in (4.0**-4, 4.0**5):
        scaled = Problem(factor * problem.K.values, problem.y, problem.costs / factor)
        np.testing.assert_array_equal(
            leave_one_out(solve(scaled)).decision_values, loo.decision_values
        )
    if has_unique_alpha(solution):
        for factor in (0.1, 3.0):
            scaled = Problem(factor * problem.K.values, problem.y, problem.costs / factor)
            assert_same_classes(leave_one_out(solve(scaled)).decision_values, loo, solution)


@pytest.mark.parametrize("seed", SEEDS)
def test_permuting_the_rows_changes_no_class(seed):
    """The order of the rows does not matter where alpha is unique."""
    problem = random_problem(seed)
    solution = solve(problem)
    if not has_unique_alpha(solution):
        pytest.skip("alpha is not unique")
    order = np.random.default_rng(seed).permutation(len(problem))
    permuted = solve(
        Problem(problem.K.values[np.ix_(order, order)], problem.y[order], problem.costs[order])
    )
    values = np.empty(len(problem))
    values[order] = leave_one_out(permuted).decision_values
    assert_same_classes(values, leave_one_out(solution), solution)


def assert_same_classes(values, loo, solution):
    clear = np.abs(loo.decision_values) > 1e-9 * (1 + solution.alpha.sum())
    np.testing.assert_array_equal(values[clear] > 0, loo.decision_values[clear] > 0)


def test_enough_of_the_random_problems_are_regular():
    """The tests above that need a unique alpha do run on a good part of the problems."""
    regular = sum(has_unique_alpha(solve(random_problem(seed))) for seed in SEEDS)
    assert regular > 0.3 * len(SEEDS)


def test_last_row_of_a_class_is_an_error():
    """Without it the fit has one class: its value is -y, by every method."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2))
    y = np.where(np.arange(12) == 3, 1.0, -1.0)
    for costs in (np.ones(12), np.where(y > 0, 1e4, 1.0)):
        solution = solve(Problem(np.exp(-((X[:, None] - X) ** 2).sum(axis=2)), y, costs))
        for method in METHODS:
            loo = leave_one_out(solution, method=method)
            assert loo.decision_values[3] == -1.0
            assert loo.certified[3]


def test_zero_cost_rows_keep_their_value_and_count():
    """A row that takes no part has f as its value, also if it is its class's only other row."""
    problem = moons_problem(40)
    costs = problem.costs.copy()
    costs[[2, 5]] = 0.0
    solution = solve(Problem(problem.K, problem.y, costs))
    for method in METHODS:
        loo = leave_one_out(solution, method=method)
        np.testing.assert_allclose(
            loo.decision_values[[2, 5]], solution.decision_values[[2, 5]], atol=1e-12
        )
        assert loo.error == np.mean(problem.y * loo.decision_values <= 0)
    assert leave_one_out(solution, method="refit").n_refit == 38


def test_without_in_bound_rows_every_support_vector_follows_its_path():
    """All support vectors bounded: spans are undefined, counted, and the answer is still right."""
    problem = moons_problem(40, cost=1e-3)
    balanced = Problem(problem.K, problem.y, np.full(40, 1e-3))
    solution = solve(balanced)
    assert not solution.in_bound.any()
    span, refit = leave_one_out(solution), leave_one_out(solution, method="refit")
    assert span.n_undefined == solution.n_support > 30
    assert span.n_refit == 0
    assert span.exact.all()
    assert span.certified.all()
    np.testing.assert_allclose(span.decision_values, refit.decision_values, atol=1e-9)


def test_iris_tips_over():
    """Balanced iris with every support vector bounded: leaving a row out tips the offset.

    Setting undefined spans to 0 would report almost no error where the truth is total.
    """
    from sklearn.datasets import load_iris

    X, labels = load_iris(return_X_y=True)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    pair = labels > 0
    X, y = X[pair], np.where(labels[pair] == 1, 1.0, -1.0)
    K = np.exp(-0.25 * ((X[:, None] - X) ** 2).sum(axis=2))
    solution = solve(Problem(K, y, np.full(len(y), 0.1)))
    assert not solution.in_bound.any()
    span, refit = leave_one_out(solution), leave_one_out(solution, method="refit")
    assert span.error == refit.error > 0.9
    assert np.mean(y * solution.decision_values <= 0) < 0.2


def test_indefinite_kernel_can_only_be_refitted():
    """Spans are refused for an indefinite kernel; refits are not."""
    solution = solve(indefinite_problem())
    with pytest.raises(SolverError, match="method='refit'"):
        leave_one_out(solution)
    loo = leave_one_out(solution, method="refit")
    assert np.isfinite(loo.decision_values).all()


def test_unknown_method_is_named():
    """A method that does not exist lists those that do."""
    with pytest.raises(ValueError, match=r"`method` must be one of \['span', .*\], got 'cv'"):
        leave_one_out(solve(moons_problem(10)), method="cv")


def test_certificates_can_be_left_out():
    """Without them the values are the same, bounds are wider, and still contain the truth."""
    for seed in range(20):
        solution = solve(random_problem(seed))
        with_them, without = leave_one_out(solution), leave_one_out(solution, certify=False)
        np.testing.assert_array_equal(with_them.decision_values, without.decision_values)
        exact = leave_one_out(solution, "exact").error
        assert without.error_bounds[0] <= with_them.error_bounds[0] <= exact
        assert exact <= with_them.error_bounds[1] <= without.error_bounds[1]
