import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

import span_hpo.solver.libsvm_fit as libsvm_module
from span_hpo import Problem, solve
from span_hpo.runtime.compilation import interpreted
from span_hpo.solver.box_qp import BoxQP
from tests.problems import indefinite_problem, moons_problem, random_problem, rbf, two_moons

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


def test_alpha_above_its_cost_by_the_last_bit():
    """LIBSVM may return alpha one bit above the cost; the row is bounded all the same."""
    for seed in (53, 246, 326, 327, 373, 566):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(12, 2))
        x[6:] = x[:6]
        y = np.where(x[:, 0] + rng.normal(size=12) > 0, 1.0, -1.0)
        costs = rng.uniform(0.1, 0.9) * rng.integers(1, 4, 12)
        problem = Problem(rbf(x, 1e-5), y, costs)
        assert (solve(problem, polish=False).alpha <= costs).all()
        assert solve(problem).kkt_violation() < 1e-9


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1e30, 1e50, 1e200])
def test_kernels_beyond_single_precision(size):
    """LIBSVM keeps kernel values in single precision; others are brought into its range."""
    problem = moons_problem(40, cost=2.0)
    scaled = solve(Problem(size * problem.K.values, problem.y, problem.costs / size))
    plain = solve(problem)
    np.testing.assert_allclose(scaled.decision_values, plain.decision_values, atol=1e-9)
    np.testing.assert_allclose(size * scaled.alpha, plain.alpha, rtol=1e-6, atol=1e-9)


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


def test_unpolished_fit_is_scikit_learns():
    """Without polish, alpha and the decision values are those of a weighted SVC."""
    problem = moons_problem(80, cost=3.0)
    solution = solve(problem, polish=False)
    svc = SVC(C=1.0, kernel="precomputed").fit(
        problem.K.values, problem.y, sample_weight=problem.costs
    )
    alpha = np.zeros(80)
    alpha[svc.support_] = np.abs(svc.dual_coef_[0])
    np.testing.assert_allclose(solution.alpha, alpha, atol=5e-3)
    np.testing.assert_allclose(
        solution.decision_values, svc.decision_function(problem.K.values), atol=2e-3
    )
    assert 1e-9 < solution.kkt_violation() < 2e-3


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
    assert solution.__dict__["gram"] is not None  # the polish ended at the optimum


def test_offset_without_in_bound_rows_is_the_middle():
    """Two rows at their cost: every offset in an interval is optimal, the middle is taken."""
    problem = Problem(np.eye(2), np.array([1.0, -1.0]), np.array([0.5, 0.5]))
    solution = solve(problem)
    assert not solution.in_bound.any()
    assert solution.offset_limits.interval == (-0.5, 0.5)
    assert solution.b == 0.0
    assert not solution.b_unique
    assert solution.kkt_violation() == 0.0


def test_private_and_public_libsvm_give_the_same(monkeypatch):
    """The fast call is used on this scikit-learn, and the fall-back gives the same solution."""
    assert libsvm_module._private_fit() is not None
    problem = moons_problem(60, cost=10.0)
    with interpreted():
        fast = solve(problem)
        monkeypatch.setattr(libsvm_module, "_private_fit", lambda: None)
        slow = solve(problem)
    np.testing.assert_array_equal(fast.alpha, slow.alpha)
    assert fast.b == slow.b


@pytest.mark.parametrize("change", ["missing", "raises", "different"])
def test_changed_private_function_is_not_used(monkeypatch, change):
    """A private function that is gone, fails or answers otherwise is left alone."""
    from sklearn.svm import _libsvm

    original = _libsvm.fit
    if change == "missing":
        monkeypatch.delattr(_libsvm, "fit")
    elif change == "raises":
        monkeypatch.setattr(_libsvm, "fit", lambda *a, **k: 1 / 0)
    else:
        # The public class calls it too, but with a class_weight.
        def other(*args, **kwargs):
            found = list(original(*args, **kwargs))
            if "class_weight" not in kwargs:
                found[3] = 2 * found[3]
            return tuple(found)

        monkeypatch.setattr(_libsvm, "fit", other)
    if change != "different":
        monkeypatch.setattr(libsvm_module, "_public_fit", lambda *a: (None, None, True))
    assert libsvm_module._private_fit.__wrapped__() is None


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
    ("change", "kind", "message"),
    [
        (
            {"K": np.ones((2, 3))},
            ValueError,
            "`K` must be a square kernel matrix, got shape (2, 3)",
        ),
        ({"K": [[1, 2], [0, 1]]}, ValueError, "`K` must be symmetric"),
        ({"K": [[1, np.inf], [np.inf, 1]]}, ValueError, "`K` must be finite"),
        ({"y": [1, -1, 1]}, ValueError, "`y` must hold one value for each of the 2 rows"),
        ({"y": [0, 1]}, ValueError, "`y` must hold -1 and +1 only, got [0.0, 1.0]"),
        ({"costs": [1]}, ValueError, "`costs` must hold one value for each of the 2 rows"),
        ({"costs": [1, -2]}, ValueError, "`costs` must not be negative, got -2.0 in row 1"),
        ({"costs": [1, np.nan]}, ValueError, "`costs` must be finite, got nan in row 1"),
        ({"costs": [np.inf, 1]}, ValueError, "`costs` must be finite, got inf in row 0"),
        ({"costs": [0, 0]}, ValueError, "positive in some row of each class, got only zeros"),
        ({"costs": [1, 0]}, ValueError, "of each class, got only rows of class -1"),
        ({"y": [1, 1]}, ValueError, "of each class, got only rows of class +1"),
        ({"K": [[1.0]], "y": [1], "costs": [1]}, ValueError, "got only rows of class +1"),
    ],
)
def test_wrong_problems_are_named(change, kind, message):
    """No wrong problem reaches LIBSVM."""
    given = {"K": np.eye(2), "y": [-1, 1], "costs": [1.0, 1.0], **change}
    with pytest.raises(kind) as caught:
        Problem(**given)
    assert message in str(caught.value)


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


def test_blocks_in_place_of_a_matrix():
    """Any object that gives blocks and the diagonal is a kernel matrix."""
    problem = moons_problem(40)

    class Blocks:
        def __len__(self):
            return 40

        def diagonal(self):
            return problem.K.values.diagonal()

        def block(self, rows, columns):
            return problem.K.values[rows][:, columns]

    lazy = solve(Problem(Blocks(), problem.y, problem.costs))
    np.testing.assert_allclose(lazy.alpha, solve(problem).alpha, atol=1e-10)
