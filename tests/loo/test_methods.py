from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from sklearn.svm import SVC

from benchmarks.robustness.families import make
from benchmarks.robustness.referee import exact_value
from span_hpo import Problem, SolverError, free_squared_spans, leave_one_out, solve
from span_hpo.kernels.blocks import KernelMatrix
from span_hpo.loo import methods
from span_hpo.loo.methods import METHODS
from span_hpo.solver.pairwise import solve_pairs
from tests.problems import (
    has_unique_alpha,
    indefinite_problem,
    mixed_norms_problem,
    moons_problem,
    random_problem,
    rbf,
    symmetric_problem,
)
from tests.truth import refits, removable

SEEDS = range(150)


def compare_with_refits(seed):
    """Return (number compared, disagreements) of the rows that the span-rule must get right.

    These are zero rows, rows whose removal changes no set, and rows whose span is undefined, which
    follow their path.
    """
    problem = random_problem(seed, largest=25)
    solution = solve(problem)
    loo = leave_one_out(solution, complete=True)
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
    refit = leave_one_out(solution, method="refit")
    span, complete = leave_one_out(solution), leave_one_out(solution, complete=True)
    for found in (span, complete):
        assert found.n_undefined == solution.n_support > 30
        assert found.n_refit == 0
        assert found.certified.all()
        np.testing.assert_array_equal(found.decision_values > 0, refit.decision_values > 0)
    assert complete.exact.all()
    np.testing.assert_allclose(complete.decision_values, refit.decision_values, atol=1e-9)


@pytest.mark.parametrize("method", ["span", "exact"])
def test_bounded_rows_in_balance_are_errors_at_once(method):
    """Where only the offset moves, the slide proves the class, and no path is followed further.

    The paths of nearly orthogonal rows are as long as the other class is large.
    """
    X = np.random.default_rng(0).normal(size=(300, 8))
    y = np.where(np.arange(300) % 2, 1.0, -1.0)
    solution = solve(Problem(rbf(X, 2.0), y, np.full(300, 0.02)))
    assert not solution.in_bound.any()
    found = leave_one_out(solution, method)
    assert found.certified.all()
    assert found.error == 1.0
    assert not found.exact.any()
    assert found.n_refit == 0
    if method == "span":  # only the class is known, and does not depend on the order of the rows
        np.testing.assert_array_equal(found.decision_values, -y)
    few = np.arange(0, 300, 60)
    for p in few:
        refit = solve(solution.problem.without(p))
        f = solution.problem.K.block(np.array([p]), np.arange(300)) @ (y * refit.alpha) + refit.b
        assert y[p] * f[0] < 0


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


def exact_margins(problem):
    """Return ``y_p f^p(x_p)`` of every row in rational numbers; -1 where a class would be empty."""
    K, can_go = problem.K.values.tolist(), removable(problem)
    return [
        exact_value(K, problem.y, problem.without(p).costs, p, rational=True) * int(problem.y[p])
        if can_go[p]
        else Fraction(-1)
        for p in range(len(problem))
    ]


def assert_true(loo, margins):
    """Assert that certified classes, accuracies and bounds on the error agree with the truth."""
    for p, margin in enumerate(margins):
        found = Fraction(loo.y[p]) * Fraction(loo.decision_values[p])
        if loo.accuracy[p] < np.inf:
            assert abs(found - margin) <= Fraction(loo.accuracy[p])
        if loo.certified[p] and loo.method != "span":
            assert (found > 0) == (margin > 0)
    error = np.mean([margin <= 0 for margin in margins])
    assert loo.error_bounds[0] <= error <= loo.error_bounds[1]


WRONG_PROOFS = [
    (
        [[200.0, 200.0], [1e-5, -1e-5], [-1e-6, -2e-5], [-1e-4, -2e-5]],
        [1.0, -1.0, 1.0, 1.0],
        100.0,
        (0, 0.58),
    ),
    (
        [[-3.0], [-2e-4], [-2e6], [-200.0], [100.0], [-1e-5]],
        [1.0, -1.0, -1.0, 1.0, 1.0, -1.0],
        10.0,
        (2, -1.0),
    ),
    ([[-2e7], [1.0], [1.0], [2.0]], [-1.0, -1.0, 1.0, -1.0], 1e4, (3, 1.0)),
]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("number", range(3))
def test_rows_much_larger_than_others_are_proven_rightly(number, method, complete):
    """Classes that were once proven wrongly are right and certified, with accuracies that hold."""
    X, y, C, (row, margin) = WRONG_PROOFS[number]
    problem = Problem(np.array(X) @ np.array(X).T, y, np.full(len(y), C))
    margins = exact_margins(problem)
    assert float(margins[row]) == pytest.approx(margin, abs=1e-5)
    loo = leave_one_out(solve(problem), method, complete=complete)
    assert_true(loo, margins)
    if method != "span":
        assert loo.certified.all()
        assert loo.error_bounds == (loo.error, loo.error)
    if method == "refit" or (method != "span" and complete):
        assert loo.exact.all()
        assert (np.abs(loo.y * loo.decision_values - np.array(margins, float)) <= 1e-2).all()


@pytest.mark.parametrize("method", ["exact", "refit", "stopping"])
def test_order_of_rows_changes_no_certified_error(method):
    """Three classes with votes of value 0: certified rows, signs and errors are those reversed."""
    X = np.array([[0.0, -1.0], [-1.0, 1.0], [0.0, 0.0], [-1.0, -1.0], [0.0, 1.0]])
    codes = np.array([0, 1, 0, 2, 1])
    results = []
    for step in (1, -1):
        K = KernelMatrix((X @ X.T)[::step, ::step].copy())
        pairs = solve_pairs(K, codes[::step], np.ones(5), tol=1e-3, max_iter=10**6)
        results.append(leave_one_out(pairs, method))
    one, other = results
    assert one.error == other.error == 0.6
    assert one.error_bounds == other.error_bounds == (0.6, 0.6)
    assert one.certified.all()
    np.testing.assert_array_equal(one.certified, other.certified[::-1])
    np.testing.assert_array_equal(
        np.sign(one.decision_values), np.sign(other.decision_values[::-1])
    )
    np.testing.assert_allclose(one.decision_values, other.decision_values[::-1], atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(12))
def test_rows_of_different_norms_are_proven_rightly(seed, method):
    """With norms from 1e-6 to 1e7, no proof is wrong and no class stays open."""
    problem = mixed_norms_problem(seed)
    margins = exact_margins(problem)
    loo = leave_one_out(solve(problem), method, complete=seed % 2 == 0)
    assert_true(loo, margins)
    if method != "span":
        assert all(loo.certified[p] or margin == 0 for p, margin in enumerate(margins))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(12))
def test_ties_are_proven_rightly(seed, method):
    """Equal rows, free offsets and costs that differ by bits: no proof is wrong."""
    problem = symmetric_problem(seed)
    loo = leave_one_out(solve(problem), method, complete=seed % 2 == 0)
    assert_true(loo, exact_margins(problem))


def test_unconverged_fits_prove_nothing_wrong():
    """From LIBSVM's answer with a large tolerance, certified classes are right all the same."""
    for seed in range(6):
        problem = moons_problem(12, cost=10.0, gamma=2.0, seed=seed)
        fit, margins = solve(problem, polish=False, tol=0.3), exact_margins(problem)
        for method in METHODS:
            assert_true(leave_one_out(fit, method), margins)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("family", [mixed_norms_problem, symmetric_problem])
def test_order_and_labels_change_no_certified_class(family, seed):
    """Permuted rows and swapped classes have the same certified classes and values."""
    problem = family(seed)
    order = np.random.default_rng(seed).permutation(len(problem))
    one = leave_one_out(solve(problem), "exact", complete=True)
    permuted = leave_one_out(solve(problem.take(order)), "exact", complete=True)
    swapped = Problem(problem.K, -problem.y, problem.costs)
    other = leave_one_out(solve(swapped), "exact", complete=True)
    for again, rows, sign in ((permuted, order, 1.0), (other, np.arange(len(problem)), -1.0)):
        values, accuracy = one.decision_values[rows], one.accuracy[rows]
        gaps = np.abs(values - sign * again.decision_values)
        assert (gaps <= (accuracy + again.accuracy) * (1 + 1e-9)).all()
        both = one.certified[rows] & again.certified
        is_error = one.y[rows] * values <= 0
        np.testing.assert_array_equal(is_error[both], (again.y * again.decision_values <= 0)[both])


@pytest.mark.parametrize("method", METHODS)
def test_a_value_of_zero_that_is_exact_is_certified(method):
    """A row in the middle of two others, in doubles without rounding, is an error for certain."""
    X = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    problem = Problem(X @ X.T, [-1.0, 1.0, 1.0, -1.0], np.ones(4))
    assert exact_margins(problem)[2] == 0
    loo = leave_one_out(solve(problem), method, complete=True)
    assert_true(loo, exact_margins(problem))
    if method != "span":
        assert loo.decision_values[2] == 0.0
        assert loo.accuracy[2] == 0.0
        assert loo.certified[2]


@pytest.mark.parametrize("method", ["exact", "refit", "stopping"])
def test_a_value_of_zero_that_is_rounded_is_not_certified(method):
    """If dual variables are no doubles, a value of 0 is 0, an error, and not certified."""
    X = np.array([[-1.5, 0.0], [1.5, 0.0], [0.0, 1.0], [-1.5, 0.0]])
    problem = Problem(X @ X.T, [-1.0, 1.0, 1.0, -1.0], np.ones(4))
    assert exact_margins(problem)[2] == 0
    loo = leave_one_out(solve(problem), method, complete=True)
    assert_true(loo, exact_margins(problem))
    assert loo.decision_values[2] == 0.0
    if loo.certified[2]:
        assert loo.accuracy[2] == 0.0
    else:
        assert loo.accuracy[2] < 1e-9
        assert loo.error_bounds[0] < loo.error == loo.error_bounds[1]


@pytest.mark.parametrize("method", METHODS)
def test_free_offsets_of_equal_costs_are_certified(method):
    """Balanced classes with tiny equal costs: without a row the offset is free, and proven."""
    X = np.random.default_rng(1).normal(size=(12, 2))
    y = np.where(np.arange(12) % 2 == 0, 1.0, -1.0)
    K = X @ X.T
    problem = Problem((K + K.T) / 2, y, np.full(12, 2.0**-10))
    solution = solve(problem)
    assert not solution.in_bound.any()
    loo = leave_one_out(solution, method, complete=True)
    assert loo.certified.all()
    assert loo.exact.all()
    assert_true(loo, exact_margins(problem))


@pytest.mark.parametrize(("bits", "margin"), [(-1, -0.34375), (0, 0.09375), (1, 0.53125)])
@pytest.mark.parametrize("cost", [0.0, 2.0**-40], ids=["outside", "inside"])
@pytest.mark.parametrize("method", ["exact", "refit", "stopping"])
def test_one_bit_of_a_cost_decides_a_free_offset(method, cost, bits, margin):
    """Costs whose sums differ by one bit have their offset at an end of its interval.

    Without the last row, f(x) = 3/8 x + b with b between -5/8 and 1/4.
    """
    x = np.array([-1.0, 2.0, 0.75])
    costs = np.array([0.125, 0.125 * (1 + bits * 2.0**-52), cost])
    problem = Problem(np.outer(x, x), [-1.0, 1.0, 1.0], costs)
    margins = exact_margins(problem)
    assert float(margins[2]) == pytest.approx(margin, abs=1e-12)
    loo = leave_one_out(solve(problem), method, complete=True)
    assert_true(loo, margins)
    assert loo.certified.all()
    assert loo.decision_values[2] == pytest.approx(margin, abs=1e-12)


def near_duplicates(seed):
    """Return a cubic kernel of rows that are equal up to 1e-7, with labels that contradict."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6, 2))[np.arange(18) % 6] + 1e-7 * rng.normal(size=(18, 2))
    y = np.where(rng.random(18) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    K = (X @ X.T + 1.0) ** 3
    return (K + K.T) / 2, y


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("cost", [1.0, 1e4])
@pytest.mark.parametrize("seed", range(4))
def test_rounding_does_not_make_a_kernel_indefinite(seed, cost, method):
    """Near-duplicates with eigenvalues of -1e-13 have an answer, not an error, for any cost."""
    K, y = near_duplicates(seed)
    eigenvalues = np.linalg.eigvalsh(K)
    assert -1e-10 * eigenvalues[-1] < eigenvalues[0] < 0
    loo = leave_one_out(solve(Problem(K, y, np.full(18, cost))), method, complete=True)
    assert np.isfinite(loo.decision_values).all()
    low, high = loo.error_bounds
    assert method == "span" or low <= loo.error <= high


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("family", "number"),
    [("polynomial", 356), ("near_duplicates", 1913), ("near_duplicates", 2433)],
)
def test_kernels_once_called_indefinite_have_an_answer(family, number, method):
    """Squared distances that rounding makes negative are no reason for an error."""
    instance = make(family, number)
    eigenvalues = np.linalg.eigvalsh(instance.K)
    assert eigenvalues[0] >= -1e-10 * eigenvalues[-1]
    problem = Problem(instance.K, instance.y, instance.costs)
    loo = leave_one_out(solve(problem), method, complete=True)
    assert np.isfinite(loo.decision_values).all()
    low, high = loo.error_bounds
    assert method == "span" or low <= loo.error <= high


@pytest.mark.parametrize("method", ["span", "exact", "stopping"])
@pytest.mark.parametrize("complete", [False, True])
def test_indefinite_kernels_are_still_refused(method, complete):
    """A kernel with clearly negative eigenvalues is an error of the kernel, whatever is asked."""
    for seed in (0, 1, 3, 4):
        solution = solve(indefinite_problem(seed=seed))
        assert solution.in_bound.any()
        with pytest.raises(SolverError, match="not positive semi-definite"):
            leave_one_out(solution, method, complete=complete)


@pytest.mark.parametrize("method", METHODS)
def test_exact_values_are_those_with_an_accuracy(method):
    """Exact rows have an accuracy of at most 1e-2, and bounds have none."""
    solution = solve(moons_problem(60, cost=5.0))
    loo = leave_one_out(solution, method)
    np.testing.assert_array_equal(loo.exact, loo.accuracy <= 1e-2)
    assert (loo.accuracy >= 0).all()
    refit = leave_one_out(solution, "refit")
    assert refit.accuracy.max() < 1e-5
    gaps = np.abs(loo.decision_values - refit.decision_values)
    assert (gaps <= loo.accuracy + refit.accuracy).all()


@pytest.mark.parametrize("seed", range(60))
def test_values_do_not_depend_on_certificates(seed):
    """The span-rule gives the same values, spans and counts with and without proofs."""
    for problem in (random_problem(seed), symmetric_problem(seed)):
        solution = solve(problem)
        with_proofs, without = (leave_one_out(solution, certify=choice) for choice in (True, False))
        scale = 1 + np.abs(with_proofs.decision_values)
        difference = np.abs(with_proofs.decision_values - without.decision_values)
        assert (difference <= 1e-6 * scale).all()
        assert with_proofs.n_undefined == without.n_undefined


@pytest.fixture
def accurate_rows(monkeypatch):
    """Collect the rows whose values are computed beyond double precision."""
    rows, real = [], methods.accurate_value

    def noted(problem, p, *rest):
        rows.append(p)
        return real(problem, p, *rest)

    monkeypatch.setattr(methods, "accurate_value", noted)
    return rows


@pytest.mark.parametrize("count", [8, 60])
@pytest.mark.parametrize("complete", [False, True])
def test_equal_rows_share_one_value_beyond_double_precision(count, complete, accurate_rows):
    """Of equal rows with both classes in balance, one of each class is computed if asked for."""
    y = np.tile([1.0, -1.0], count // 2)
    problem = Problem(np.ones((count, count)), y, np.ones(count))
    found = leave_one_out(solve(problem), "exact", complete=complete)
    assert sorted(accurate_rows) == ([0, 1] if complete else [])  # the slide proves the class
    assert found.certified.all()
    # Without a row its own class is in the minority.
    assert (y * found.decision_values <= 0).all()
    for p, _, value in refits(problem):
        assert value * found.decision_values[p] > 0
        if complete:
            assert found.decision_values[p] == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_equal_rows_of_different_costs_or_labels_keep_their_own_values(seed):
    """Where points are repeated with several costs and both labels, all values equal refits."""
    generator = np.random.default_rng(seed)
    X = generator.integers(0, 2, size=(40, 2)).astype(float)
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    problem = Problem(rbf(X, 1.0), y, generator.choice([0.5, 1.0, 2.0], 40))
    solution = solve(problem)
    found = leave_one_out(solution, "exact", complete=True)
    brute_force = leave_one_out(solution, "refit")
    certain = found.certified & brute_force.certified
    assert certain.mean() > 0.9
    wrong = (found.decision_values > 0) != (brute_force.decision_values > 0)
    assert not wrong[certain].any()
    both = found.exact & brute_force.exact
    assert both.mean() > 0.9
    error = np.abs(found.decision_values - brute_force.decision_values)[both]
    assert (error <= (found.accuracy + brute_force.accuracy)[both]).all()
    assert error.max() < 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_threads_give_the_values_of_one(method):
    """Fits in four threads, and values in four threads that share one fit, keep every bit."""

    def values_of(solution):
        loo = leave_one_out(solution, method)
        return solution.alpha, loo.decision_values, loo.accuracy, loo.certified

    def fitted(problem):
        return values_of(solve(problem))

    problems = [moons_problem(40, cost=10.0, seed=seed) for seed in range(8)]
    problems += [random_problem(seed) for seed in range(8)]
    alone = [fitted(problem) for problem in problems]
    shared = [solve(problem) for problem in problems]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fitted, problems))
        of_shared = list(pool.map(values_of, [solution for solution in shared for _ in range(4)]))
    for one, other in zip(alone, together, strict=True):
        assert all(map(np.array_equal, one, other))
    for index, other in enumerate(of_shared):
        assert all(map(np.array_equal, alone[index // 4], other))
