import numpy as np
import piqp
import pytest
from sklearn.svm import SVC

from span_hpo import (
    RBF,
    Problem,
    SolverError,
    SpanObjective,
    bounds,
    box_squared_spans,
    leave_one_out,
    solve,
    span_exists,
)
from tests.problems import moons_problem, random_problem, rbf, two_moons
from tests.truth import lemma_slack

COSTS = {"C_-1": 2.0, "C_1": 0.5}
ALL = [
    bounds.support_vectors,
    bounds.jaakkola_haussler,
    bounds.opper_winther,
    bounds.xi_alpha,
    bounds.span_bound,
]


def svc_fit(K, y, costs):
    """Return dual variables and decision values of scikit-learn, without this package."""
    svc = SVC(C=1.0, kernel="precomputed", tol=1e-8).fit(K, y, sample_weight=costs)
    alpha = np.zeros(len(y))
    alpha[svc.support_] = np.abs(svc.dual_coef_[0])
    return alpha, svc.decision_function(K)


def ball_by_piqp(K):
    """Return the squared radius of the smallest ball by an interior-point solver."""
    unit = np.abs(K).max()
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-10
    solver.setup(
        P=np.asfortranarray(2 * K / unit),
        c=-K.diagonal() / unit,
        A=np.ones((1, len(K)), order="F"),
        b=np.ones(1),
        x_l=np.zeros(len(K)),
        x_u=np.full(len(K), np.inf),
    )
    assert solver.solve() == piqp.PIQP_SOLVED
    beta = solver.result.x
    return beta @ K.diagonal() - beta @ K @ beta


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
    D = 2 * np.sqrt(max(0.0, ball_by_piqp(problem.K.values)))
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
    # alpha K - y f: 0 - 1, 2.3 - 1, 0.9 + 5.
    assert bounds.jaakkola_haussler(solution) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("points", "squared"),
    [
        ([[0.0, 0.0], [6.0, 8.0]], 25.0),
        ([[0.0, 0.0], [2.0, 0.0], [1.0, np.sqrt(3.0)]], 4 / 3),  # equilateral
        ([[0.0, 0.0], [4.0, 0.0], [1.0, 0.5]], 4.0),  # obtuse: the longest side decides
        ([[1.0, 1.0]] * 5, 0.0),
        ([[7.0, -3.0]], 0.0),
    ],
)
def test_balls_by_hand(points, squared):
    """The smallest circle around a few points of the plane, wherever the origin is."""
    for shift in (0.0, 10.0):
        X = np.array(points) + shift
        ball = bounds.enclosing_ball(X @ X.T)
        assert ball.squared_radius == pytest.approx(squared, abs=1e-6)
        assert ball.diameter == pytest.approx(2 * np.sqrt(squared), abs=2e-3)
        assert ball.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("seed", range(60))
def test_balls_equal_piqp(seed):
    """The one-class problem has the radius of the quadratic program, for every kernel."""
    K = random_problem(seed).K.values
    ball = bounds.enclosing_ball(K)
    expected = ball_by_piqp(K)
    assert ball.squared_radius == pytest.approx(expected, rel=1e-6, abs=1e-8 * np.abs(K).max())
    beta = ball.weights
    from_centre = K.diagonal() - 2 * K @ beta + beta @ K @ beta
    # Every row lies in the ball.
    assert from_centre.max() <= ball.squared_radius * (1 + 1e-4) + 1e-8 * np.abs(K).max()


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
    with pytest.raises(ValueError, match=r"`diameter`.*-1"):
        bounds.span_bound(solution, diameter=-1)
    with pytest.raises(ValueError, match=r"`spread`.*nan"):
        bounds.xi_alpha(solution, spread=float("nan"))
    with pytest.raises(ValueError, match="square kernel matrix"):
        bounds.enclosing_ball(np.ones((2, 3)))
    with pytest.raises(ValueError, match="at least one row"):
        bounds.enclosing_ball(np.ones((0, 0)))
    with pytest.raises(SolverError, match="not positive semi-definite"):
        bounds.enclosing_ball(-np.eye(3))


def test_kernels_beyond_the_memory_limit():
    """All bounds work on blocks, but for the ball, whose diameter must be given then."""
    X, y = two_moons(300)
    small = SpanObjective(X, y, kernel=RBF(gamma=1.0), memory_limit=0.1).solution(COSTS)
    large = SpanObjective(X, y, kernel=RBF(gamma=1.0)).solution(COSTS)
    for bound in (bounds.support_vectors, bounds.jaakkola_haussler, bounds.opper_winther):
        assert bound(small) == bound(large)
    assert bounds.xi_alpha(small) == bounds.xi_alpha(large)
    with pytest.raises(ValueError, match="`diameter` must be given"):
        bounds.span_bound(small)
    given = bounds.span_bound(small, diameter=2.0)
    assert given == pytest.approx(bounds.span_bound(large, diameter=2.0), rel=1e-6)


def test_the_fit_of_an_objective():
    """An objective gives the fit that its evaluation is about."""
    X, y = two_moons(60)
    objective = SpanObjective(X, y, kernel=RBF(gamma=1.0))
    solution = objective.solution(COSTS)
    evaluation = objective.evaluate(COSTS)
    assert solution.n_support == evaluation.n_support
    assert leave_one_out(solution).error == evaluation.loo.error
    assert bounds.support_vectors(solution) == evaluation.n_support / 60
