from itertools import product

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.svm import SVC

from span_hpo import RBF, ClassCosts, SpanObjective, UniformCost, leave_one_out
from span_hpo.kernels.blocks import KernelMatrix
from span_hpo.solver.pairwise import decided, is_wrong, pairs_of, solve_pairs, voted
from tests.problems import rbf


def data(name, count=None, seed=0):
    """Return features scaled to [0, 1] and labels of some rows of a set of scikit-learn."""
    load = {"iris": load_iris, "wine": load_wine, "digits": load_digits}[name]
    X, labels = load(return_X_y=True)
    if count is not None:
        chosen = np.random.default_rng(seed).permutation(len(X))[:count]
        X, labels = X[chosen], labels[chosen]
    spread = np.ptp(X, axis=0)
    return (X - X.min(axis=0)) / np.where(spread > 0, spread, 1), labels


def refitted_classes(X, labels, costs, gamma):
    """Return what one-vs-one SVCs without each row say about it, and how close their votes are."""
    predictions = np.empty(len(X), dtype=int)
    closest = np.empty(len(X))
    for p in range(len(X)):
        others = np.arange(len(X)) != p
        svc = SVC(C=1.0, gamma=gamma, tol=1e-8, decision_function_shape="ovo")
        svc.fit(X[others], labels[others], sample_weight=costs[others])
        predictions[p] = svc.predict(X[[p]])[0]
        closest[p] = np.abs(svc.decision_function(X[[p]])).min()
    return predictions, closest


CASES = [("iris", None), ("wine", None), ("digits", 120)]


@pytest.mark.parametrize("name_and_count", CASES)
@pytest.mark.parametrize("C", [0.3, 30.0])
def test_exact_is_brute_force(name_and_count, C):
    """Leave-one-out classes are those of refits of the whole SVC, up to boundary rows."""
    X, labels = data(*name_and_count)
    costs = C * np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    predictions, closest = refitted_classes(X, labels, costs, 0.5)
    codes = np.searchsorted(np.unique(labels), labels)
    solution = solve_pairs(KernelMatrix(rbf(X, 0.5)), codes, costs, tol=1e-3, max_iter=10**6)
    clear = closest > 1e-5
    assert clear.mean() > 0.9
    wrong = (predictions != labels)[clear]
    for complete in (False, True):
        loo = leave_one_out(solution, "exact", complete=complete)
        np.testing.assert_array_equal(is_wrong(loo.y, loo.decision_values)[clear], wrong)
        assert loo.certified.all()
        assert loo.error_bounds == (loo.error, loo.error)
    assert loo.exact.all()
    span = leave_one_out(solution)
    assert span.error_bounds[0] <= loo.error <= span.error_bounds[1]
    assert abs(span.error - loo.error) <= 0.06


def test_all_methods_agree():
    """Exact, stopping and refit elect the same classes, and complete ones have the same values."""
    X, labels = data("iris")
    solution = solve_pairs(
        KernelMatrix(rbf(X, 1.0)), labels, np.full(len(X), 5.0), tol=1e-3, max_iter=10**6
    )
    refit = leave_one_out(solution, "refit")
    assert refit.squared_spans is None
    for method in ("exact", "stopping"):
        loo = leave_one_out(solution, method, complete=True)
        np.testing.assert_allclose(loo.decision_values, refit.decision_values, atol=1e-8)
        assert loo.squared_spans.shape == (150, 3)


def test_iris_tips_over():
    """Balanced iris with every support vector bounded: the exact error is 2/3."""
    X, labels = data("iris")
    objective = SpanObjective(
        X, labels, kernel=RBF(gamma=0.25), weighting=UniformCost(C=0.1), loo_method="exact"
    )
    assert objective({}) == pytest.approx(2 / 3, abs=0.001)


def test_values_of_foreign_pairs_are_plain_decision_values():
    """A row that takes no part in a fit keeps its decision value there."""
    X, labels = data("wine")
    costs = np.full(len(X), 2.0)
    solution = solve_pairs(KernelMatrix(rbf(X, 1.0)), labels, costs, tol=1e-3, max_iter=10**6)
    loo = leave_one_out(solution)
    svc = SVC(C=2.0, gamma=1.0, tol=1e-9, decision_function_shape="ovo").fit(X, labels)
    expected = -svc.decision_function(X)  # positive for the first class there
    np.testing.assert_allclose(solution.decision_values, expected, atol=1e-5)
    for column, pair in enumerate(pairs_of(3)):
        foreign = ~np.isin(labels, pair)
        np.testing.assert_array_equal(
            loo.decision_values[foreign, column], solution.decision_values[foreign, column]
        )


def test_vote_is_libsvms():
    """The elected class is what SVC.predict says, for random values and on data."""
    X, labels = data("digits", 300)
    svc = SVC(C=1.0, gamma=0.1, decision_function_shape="ovo").fit(X, labels)
    nobody = np.full(len(X), -1)
    np.testing.assert_array_equal(
        svc.classes_[voted(nobody, -svc.decision_function(X))], svc.predict(X)
    )


def test_vote_by_hand():
    """A cycle is a tie and goes to the first class; 0 votes for the second, but against its own."""
    cycle = np.array([[-1.0, 1.0, -1.0]])  # 0 beats 1, 2 beats 0, 1 beats 2
    assert voted(np.array([1]), cycle) == [0]
    zeros = np.zeros((4, 3))
    # Pairs (0, 1), (0, 2), (1, 2): for a stranger 1, 2, 2; for class 2 they say 1, 0, 1.
    np.testing.assert_array_equal(voted(np.array([9, 0, 1, 2]), zeros), [2, 2, 2, 1])


def every_outcome(codes, values, certain):
    """Return whether each row is wrong, for every outcome of its uncertain votes."""
    outcomes = []
    for signs in product([-1.0, 1.0], repeat=values.shape[1]):
        outcome = np.where(certain, values, signs)
        outcomes.append(voted(codes, outcome) != codes)
    return np.array(outcomes).T


@pytest.mark.parametrize("n_classes", [3, 4])
def test_decided_rows_have_one_outcome(n_classes):
    """No outcome of the uncertain votes changes whether a decided row is right, by brute force."""
    rng = np.random.default_rng(n_classes)
    n_pairs, count = len(pairs_of(n_classes)), 3000
    codes = rng.integers(0, n_classes, size=count)
    values = rng.choice([-1.0, 0.0, 1.0], p=[0.4, 0.2, 0.4], size=(count, n_pairs))
    certain = rng.random((count, n_pairs)) < rng.choice([0.3, 0.6, 0.9], size=(count, 1))
    wrong = every_outcome(codes, values, certain)
    same = (wrong == wrong[:, :1]).all(axis=1)
    found = decided(codes, values, certain)
    assert not (found & ~same).any()
    assert np.count_nonzero(found) > 0.6 * np.count_nonzero(same)
    assert 0 < np.count_nonzero(found) < count
    everything = np.ones(values.shape, dtype=bool)
    assert decided(codes, values, everything).all()
    # The uncertain values themselves do not matter.
    other = np.where(certain, values, rng.choice([-1.0, 0.0, 1.0], size=values.shape))
    np.testing.assert_array_equal(decided(codes, other, certain), found)


def test_every_small_election_is_decided_rightly():
    """All votes of three classes, certain or not: what is decided has one outcome."""
    cases = list(product(range(3), *[[-1.0, 0.0, 1.0]] * 3, *[[False, True]] * 3))
    table = np.array(cases)
    codes, values, certain = table[:, 0].astype(int), table[:, 1:4], table[:, 4:] > 0
    wrong = every_outcome(codes, values, certain)
    found = decided(codes, values, certain)
    assert (wrong[found] == wrong[found][:, :1]).all()
    np.testing.assert_array_equal(found[certain.all(axis=1)], True)
    np.testing.assert_array_equal(found[~certain.any(axis=1)], False)


def test_decisions_by_hand():
    """Two votes of three elect a class, and a tie goes to the first class that has it."""
    values = np.array([[-1.0, -1.0, 1.0]])  # class 0 beats 1 and 2
    unsure = np.array([[True, True, False]])
    assert decided(np.array([0]), values, unsure)[0]  # right, whoever wins between 1 and 2
    assert decided(np.array([1]), values, unsure)[0]  # wrong
    in_turn = np.array([[-1.0, -1.0, -1.0]])  # 0 beats 1 and 2, and 1 beats 2
    unsure = np.array([[False, True, True]])
    assert not decided(np.array([0]), in_turn, unsure)[0]  # with two votes, 1 would be elected
    assert decided(np.array([2]), in_turn, unsure)[0]  # wrong, whoever wins between 0 and 1
    cycle = np.array([[1.0, -1.0, 1.0]])  # 1 beats 0, 0 beats 2, 2 beats 1
    assert not decided(np.array([1]), cycle, np.array([[True, True, False]]))[0]


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]])
def test_order_of_rows_changes_no_vote(order):
    """Votes of value 0 by pairs without the row's class are 0 in every order of the rows."""
    X = np.array([[0.0, -1.0], [-1.0, 1.0], [0.0, 0.0], [-1.0, -1.0], [0.0, 1.0]])
    codes = np.array([0, 1, 0, 2, 1])
    back = np.argsort(order)
    results = []
    for rows in (np.arange(5), np.array(order)):
        K = KernelMatrix((X @ X.T)[np.ix_(rows, rows)])
        solution = solve_pairs(K, codes[rows], np.ones(5), tol=1e-3, max_iter=10**6)
        results.append(leave_one_out(solution, "exact"))
    one, other = results
    assert one.error == other.error == 0.6
    assert one.error_bounds == other.error_bounds == (0.6, 0.6)
    np.testing.assert_array_equal(
        np.sign(one.decision_values), np.sign(other.decision_values[back])
    )
    np.testing.assert_array_equal(one.certified, other.certified[back])


@pytest.mark.parametrize("metric", ["error", "balanced_error", "f1", "mcc"])
def test_metrics_of_classes_equal_scikit_learn(metric):
    """Metrics of the elected classes, weighted, are scikit-learn's."""
    from sklearn import metrics as reference

    X, labels = data("wine")
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2.0, len(X))
    objective = SpanObjective(
        X[:, :2], labels, kernel=RBF(gamma=1.0), metric=metric, metric_weight=weight
    )
    evaluation = objective.evaluate({"C_0": 1.0, "C_1": 1.0, "C_2": 1.0})
    elected = voted(labels, evaluation.loo.decision_values)
    expected = {
        "error": 1 - reference.accuracy_score(labels, elected, sample_weight=weight),
        "balanced_error": 1
        - reference.balanced_accuracy_score(labels, elected, sample_weight=weight),
        "f1": 1 - reference.f1_score(labels, elected, average="macro", sample_weight=weight),
        "mcc": 1 - reference.matthews_corrcoef(labels, elected, sample_weight=weight),
    }
    assert evaluation.loss == pytest.approx(expected[metric])


@pytest.mark.parametrize("metric", ["smooth_error", "hinge", "log_loss", "brier", "auc"])
def test_other_metrics_are_means_over_pairs(metric):
    """They equal the mean of two-class objectives on the rows of each pair."""
    X, labels = data("iris")
    fixed = {"kernel": RBF(gamma=1.0), "weighting": UniformCost(C=2.0), "metric": metric}
    several = SpanObjective(X, labels, **fixed)({})
    pairs = [
        SpanObjective(X[rows], labels[rows], **fixed)({})
        for rows in (np.isin(labels, pair) for pair in pairs_of(3))
    ]
    assert several == pytest.approx(np.mean(pairs), abs=1e-9)


def test_own_metric_gets_class_numbers():
    """A callable sees numbers of classes and one column of values for each pair."""
    X, labels = data("iris")
    names = np.array(["setosa", "versicolor", "virginica"])[labels]
    seen = {}

    def own(y, decision_values):
        seen.update(y=y, shape=decision_values.shape)
        return 0.25

    objective = SpanObjective(X, names, kernel=RBF(gamma=1.0), metric=own)
    assert objective({"C_setosa": 1.0, "C_versicolor": 1.0, "C_virginica": 1.0}) == 0.25
    np.testing.assert_array_equal(seen["y"], labels)
    assert seen["shape"] == (150, 3)


def test_objective_of_ten_classes():
    """Digits in one call: ten costs, 45 pairs, a model that predicts the digits."""
    X, labels = data("digits", 400)
    objective = SpanObjective(X, labels, kernel=RBF(gamma=0.02))
    assert list(objective.space) == [f"C_{digit}" for digit in range(10)]
    params = dict.fromkeys(objective.space, 10.0)
    evaluation = objective.evaluate(params)
    assert evaluation.loo.decision_values.shape == (400, 45)
    assert evaluation.loss < 0.06
    assert evaluation.converged
    model = objective.fit_model(params)
    assert model.score(X, labels) > 0.98
    assert evaluation.n_support == len(model.support_)
    assert objective.evaluate(params, rows=100).n_rows == 100


def test_class_costs_reach_their_class():
    """The cost of a class is that of its rows, and a class without cost is named."""
    X, labels = data("iris")
    weighting = ClassCosts({0: 1.0, 1: 2.0, 2: 4.0})
    objective = SpanObjective(X, labels, kernel=RBF(gamma=1.0), weighting=weighting)
    costs = objective.weighting.costs(objective.data, {})
    np.testing.assert_array_equal(costs, 2.0**labels)
    nothing = SpanObjective(X, labels, kernel=RBF(gamma=1.0), weighting=ClassCosts())
    with pytest.raises(ValueError, match="positive in some row of each class, got only zeros in"):
        nothing({"C_0": 1.0, "C_1": 0.0, "C_2": 1.0})


def test_budget_must_hold_every_class():
    """Too few rows for a rare class say so."""
    X, labels = data("iris")
    labels = np.where(np.arange(150) < 2, 7, labels)
    objective = SpanObjective(X, labels, kernel=RBF(gamma=1.0), weighting=UniformCost(C=1.0))
    with pytest.raises(ValueError, match="to hold all classes, got 10"):
        objective.evaluate({}, rows=10)
    assert np.isfinite(objective.evaluate({}, rows=60).loss)


def test_last_row_of_a_class_is_an_error():
    """Without it nobody votes for its class."""
    X, labels = data("iris")
    labels = np.where(np.arange(150) == 3, 5, labels)
    objective = SpanObjective(X, labels, kernel=RBF(gamma=1.0), weighting=UniformCost(C=1e3))
    loo = objective.evaluate({}).loo
    assert is_wrong(loo.y, loo.decision_values)[3]
    assert loo.certified[3]


def test_own_metrics_may_have_the_names_of_ours():
    """What a function is called does not decide what it is given."""
    X, labels = data("iris")
    seen = []

    def hinge(y, decision_values):
        seen.append(decision_values.shape)
        return 0.5

    objective = SpanObjective(
        X, labels, kernel=RBF(gamma=1.0), weighting=UniformCost(C=1.0), metric=(hinge, "hinge")
    )
    losses = objective.evaluate({}).losses
    assert seen == [(150, 3)]
    assert losses["hinge"] == 0.5
    assert losses["hinge_2"] == pytest.approx(
        SpanObjective(
            X, labels, kernel=RBF(gamma=1.0), weighting=UniformCost(C=1.0), metric="hinge"
        )({})
    )


def test_refits_are_counted_by_rows():
    """A row that is refitted in several pairs counts once."""
    X, labels = data("iris", 45)
    objective = SpanObjective(
        X, labels, kernel=RBF(gamma=1.0), weighting=UniformCost(C=1.0), loo_method="refit"
    )
    assert objective.evaluate({}).loo.n_refit == 45


def test_solutions_of_pairs_are_printed_in_a_few_lines():
    """The lines count support vectors and fits."""
    objective = SpanObjective(*load_iris(return_X_y=True))
    solution = objective.solution(objective.defaults()[0])
    lines = repr(solution).splitlines()
    assert lines[0] == "PairwiseSolution of 150 rows in 3 fits of two classes"
    assert lines[1] == (
        f"  support vectors  {solution.n_support}, {solution.n_in_bound} of them in-bound"
    )
    assert lines[-1] == "  converged        3 of 3 fits"
