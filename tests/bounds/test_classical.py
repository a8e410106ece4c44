import numpy as np
import piqp
import pytest
from sklearn.svm import SVC

from span_hpo import (
    RBF,
    Problem,
    SpanObjective,
    bounds,
    box_squared_spans,
    leave_one_out,
    solve,
    span_exists,
)
from tests.problems import moons_problem, random_problem, rbf, two_moons
from tests.programs import squared_radius
from tests.truth import lemma_slack, refits, span_program

COSTS = {"C_-1": 2.0, "C_1": 0.5}
ALL = [
    bounds.support_vectors,
    bounds.jaakkola_haussler,
    bounds.opper_winther,
    bounds.xi_alpha,
    bounds.span_bound,
    bounds.own_span_bound,
]


def svc_fit(K, y, costs):
    """Return dual variables and decision values of scikit-learn, without this package."""
    svc = SVC(C=1.0, kernel="precomputed", tol=1e-8).fit(K, y, sample_weight=costs)
    alpha = np.zeros(len(y))
    alpha[svc.support_] = np.abs(svc.dual_coef_[0])
    return alpha, svc.decision_function(K)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("cost", [0.3, 3.0, 300.0])
def test_formulas_on_a_fit_of_scikit_learn(seed, cost):
    """The four formulas, written out for each row with the numbers of another fit."""
    problem = moons_problem(40, cost=cost, seed=seed)
    K, y, costs = problem.K.values, problem.y, problem.costs
    alpha, f = svc_fit(K, y, costs)
    solution = solve(problem)
    assert bounds.support_vectors(solution) == pytest.approx(sum(a > 0 for a in alpha) / 40)
    rows = range(len(y))
    wrong = [alpha[p] * K[p, p] - y[p] * f[p] >= 0 for p in rows]
    assert bounds.jaakkola_haussler(solution) == pytest.approx(sum(wrong) / 40)
    spread = K.max() - K.min()
    wrong = [2 * alpha[p] * spread + max(0, 1 - y[p] * f[p]) >= 1 for p in rows]
    assert bounds.xi_alpha(solution) == pytest.approx(sum(wrong) / 40)
    wrong = [2 * alpha[p] + max(0, 1 - y[p] * f[p]) >= 1 for p in rows]
    assert bounds.xi_alpha(solution, spread=1.0) == pytest.approx(sum(wrong) / 40)
    support = np.flatnonzero(alpha)
    inverse = np.linalg.inv(K[np.ix_(support, support)])
    wrong = [alpha[p] / inverse[k, k] >= 1 for k, p in enumerate(support)]
    assert bounds.opper_winther(solution) == pytest.approx(sum(wrong) / 40)


@pytest.mark.parametrize("seed", range(60))
def test_span_bound_from_its_parts(seed):
    """Theorem 1 with Lemma 1 as printed, all box spans, and a ball by PIQP."""
    solution = solve(random_problem(seed))
    problem, alpha = solution.problem, solution.alpha
    if any(0 < abs(lemma_slack(solution, p)) < 1e-6 * alpha[p] for p in np.flatnonzero(alpha)):
        pytest.skip("whether a span exists is a matter of rounding")
    D = 2 * np.sqrt(squared_radius(problem.K.values))
    spans = box_squared_spans(solution)
    total, S, sizes = 0.0, 0.0, 0.0
    for p in np.flatnonzero(alpha):
        if solution.in_bound[p] and span_exists(solution)[p]:
            S = max(S, np.sqrt(spans[p]))
    for p in np.flatnonzero(alpha):
        if solution.in_bound[p] and span_exists(solution)[p]:
            sizes += max(D, 1 / np.sqrt(problem.costs[p])) * alpha[p]
        else:
            total += 1
    total += S * sizes
    outside = (problem.costs == 0) & (problem.y * solution.decision_values <= 0)
    expected = (total + outside.sum()) / len(problem)
    # Where all spans are 0, PIQP's tolerance of a squared span is what is left of them.
    width = 3e-5 * np.sqrt(problem.K.diagonal().max()) * sizes / len(problem)
    near = pytest.approx(expected, rel=1e-4, abs=width)
    assert bounds.span_bound(solution) == near
    assert bounds.span_bound(solution, diameter=D) == near


@pytest.mark.parametrize("seed", range(60))
def test_own_span_bound_from_its_parts(seed):
    """Each in-bound row counts with its own box span, by a program set up for it alone."""
    solution = solve(random_problem(seed, largest=25))
    problem, alpha = solution.problem, solution.alpha
    if any(0 < abs(lemma_slack(solution, p)) < 1e-6 * alpha[p] for p in np.flatnonzero(alpha)):
        pytest.skip("whether a span exists is a matter of rounding")
    D = 2 * np.sqrt(squared_radius(problem.K.values))
    total, width = np.count_nonzero(problem.costs == 0), 0.0
    for p in np.flatnonzero(alpha):
        if solution.in_bound[p] and span_exists(solution)[p]:
            status, squared = span_program(solution, p, box=True)
            if status != piqp.PIQP_SOLVED:
                pytest.skip("the program of the test has not been solved")
            size = max(D, 1 / np.sqrt(problem.costs[p])) * alpha[p]
            total += np.sqrt(max(squared, 0.0)) * size
            width += 3e-5 * np.sqrt(problem.K.diagonal().max()) * size
        else:
            total += 1
    near = pytest.approx(total / len(problem), rel=1e-4, abs=width / len(problem))
    assert bounds.own_span_bound(solution) == near
    assert bounds.own_span_bound(solution, diameter=D) == near


@pytest.mark.parametrize("seed", range(60))
def test_own_spans_give_the_lower_bound(seed):
    """The largest span in place of each row's own makes the bound larger, or leaves it."""
    solution = solve(random_problem(seed))
    own, largest = bounds.own_span_bound(solution), bounds.span_bound(solution)
    assert own <= largest * (1 + 1e-6)
    if (solution.in_bound & span_exists(solution)).sum() < 2:
        assert own == pytest.approx(largest, rel=1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_own_span_bound_holds_for_weighted_fits(seed):
    """It is above the exact error with costs per row, where every refit has an in-bound row."""
    solution = solve(moons_problem(30, cost=10.0 ** (seed % 4 - 1), gamma=1.0, seed=seed))
    assert solution.in_bound.any()
    found = list(refits(solution.problem))
    if not all(refit.in_bound.any() for _, refit, _ in found):
        pytest.skip("the theorem assumes an in-bound row in every refit")
    exact = np.mean([solution.problem.y[p] * value <= 0 for p, _, value in found])
    own = bounds.own_span_bound(solution)
    assert own >= exact
    assert bounds.span_bound(solution) >= own * (1 - 1e-6)


@pytest.mark.parametrize("seed", range(40))
def test_bounds_are_bounds_for_equal_costs(seed):
    """With one cost for all rows, what is proven to be a bound is above the exact error."""
    X, y = two_moons(40, noise=0.4, seed=seed)
    rng = np.random.default_rng(seed)
    cost, gamma = 10.0 ** rng.uniform(-1, 3), 10.0 ** rng.uniform(-1, 1)
    solution = solve(Problem(rbf(X, gamma), y, np.full(40, cost)))
    if not solution.in_bound.any():
        pytest.skip("the theorems assume an in-bound row")
    exact = leave_one_out(solution, "refit").error
    assert bounds.support_vectors(solution) >= exact
    assert bounds.xi_alpha(solution) >= exact
    assert bounds.span_bound(solution) >= exact
    assert bounds.own_span_bound(solution) >= exact


def test_three_rows_by_hand():
    """Rows at 0, 1 and 3 on a line, the last one bounded.

    f(0) = -1 and f(1) = 1 give the slope 2 = a_1 - 3 * 0.1, and a_0 = a_1 - 0.1. Row 1 can take
    over the 2.2 of row 0, at the distance 1, but row 0 not the 2.3 of row 1, which counts as an
    error then, as the bounded row does. The ball around all has the diameter 3.
    """
    x, y = np.array([0.0, 1.0, 3.0]), np.array([-1.0, 1.0, -1.0])
    solution = solve(Problem(np.outer(x, x), y, np.array([9.0, 9.0, 0.1])))
    np.testing.assert_allclose(solution.alpha, [2.2, 2.3, 0.1])
    assert bounds.enclosing_ball(np.outer(x, x)).diameter == pytest.approx(3.0, rel=1e-6)
    assert bounds.support_vectors(solution) == 1
    assert bounds.span_bound(solution) == pytest.approx((3 * 2.2 + 2) / 3, rel=1e-6)
    assert bounds.own_span_bound(solution) == pytest.approx((3 * 2.2 + 2) / 3, rel=1e-6)
    # alpha K - y f: 0 - 1, 2.3 - 1, 0.9 + 5.
    assert bounds.jaakkola_haussler(solution) == pytest.approx(2 / 3)


def test_own_spans_by_hand():
    """A triangle whose corners A = (0, 0) and B = (0, 2) face C = (2, 1/2), so that f = x_1 - 1.

    The dual variables are 3/8, 1/8 and 1/2. The box allows only 3/4 A + 1/4 B in place of C, at the
    distance 2. A and B are replaced by the nearest points of the opposite sides, at 8/5 and
    8/sqrt(17). The ball is the circumscribed circle with the diameter 5/4 |AC|.
    """
    X, y = np.array([[0.0, 0.0], [0.0, 2.0], [2.0, 0.5]]), np.array([-1.0, -1.0, 1.0])
    solution = solve(Problem(X @ X.T, y, np.full(3, 9.0)))
    np.testing.assert_allclose(solution.alpha, [0.375, 0.125, 0.5])
    diameter = 1.25 * np.sqrt(4.25)
    expected = diameter * (0.375 * 1.6 + 0.125 * 8 / np.sqrt(17) + 0.5 * 2) / 3
    assert bounds.own_span_bound(solution) == pytest.approx(expected, rel=1e-6)
    assert bounds.span_bound(solution) == pytest.approx(diameter * 2 / 3, rel=1e-6)


def test_rows_outside_the_fit_count_where_they_are_wrong():
    """A misclassified row without cost is an error of every estimate, a right one of none."""
    X, y = two_moons(40, noise=0.1)
    X, y = np.vstack([X, X[:2]]), np.append(y, [-y[0], y[1]])
    costs = np.append(np.full(40, 10.0), [0.0, 0.0])
    K = rbf(X, 1.0)
    with_both = solve(Problem(K, y, costs))
    without = solve(Problem(K[:40, :40], y[:40], costs[:40]))
    for bound in ALL:
        assert 42 * bound(with_both) == pytest.approx(40 * bound(without) + 1, rel=1e-6)


def test_duplicates_have_no_opper_winther_errors():
    """A row that has a twin lies in the span of the others."""
    X, y = two_moons(30)
    X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    solution = solve(Problem(rbf(X, 1.0), y, np.full(60, 5.0)))
    twins = solution.alpha.reshape(-1, 2)
    alone = (twins > 0).sum(axis=1) == 1
    assert bounds.opper_winther(solution) <= alone.sum() / 60


def test_wrong_arguments_are_named():
    """Messages tell the argument and what was received."""
    solution = solve(moons_problem(20))
    for bound in (bounds.span_bound, bounds.own_span_bound):
        with pytest.raises(ValueError, match=r"`diameter`.*-1"):
            bound(solution, diameter=-1)
    with pytest.raises(ValueError, match=r"`spread`.*nan"):
        bounds.xi_alpha(solution, spread=float("nan"))


def test_kernels_beyond_the_memory_limit():
    """All bounds work on blocks, but for the ball, whose diameter must be given then."""
    X, y = two_moons(300)
    small = SpanObjective(X, y, kernel=RBF(gamma=1.0), memory_limit=0.1).solution(COSTS)
    large = SpanObjective(X, y, kernel=RBF(gamma=1.0)).solution(COSTS)
    for bound in (bounds.support_vectors, bounds.jaakkola_haussler, bounds.opper_winther):
        assert bound(small) == bound(large)
    assert bounds.xi_alpha(small) == bounds.xi_alpha(large)
    for bound in (bounds.span_bound, bounds.own_span_bound):
        with pytest.raises(ValueError, match="`diameter` must be given"):
            bound(small)
        given = bound(small, diameter=2.0)
        assert given == pytest.approx(bound(large, diameter=2.0), rel=1e-6)


def test_the_fit_of_an_objective():
    """An objective gives the fit that its evaluation is about."""
    X, y = two_moons(60)
    objective = SpanObjective(X, y, kernel=RBF(gamma=1.0))
    solution = objective.solution(COSTS)
    evaluation = objective.evaluate(COSTS)
    assert solution.n_support == evaluation.n_support
    assert leave_one_out(solution).error == evaluation.loo.error
    assert bounds.support_vectors(solution) == evaluation.n_support / 60
