import logging
import pickle
import subprocess
import sys
import threading
import time
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.svm import SVC

from span_hpo import (
    RBF,
    Choice,
    ClassCosts,
    Float,
    Int,
    Laplacian,
    Linear,
    Polynomial,
    PowerScore,
    Problem,
    SigmoidScore,
    SolverError,
    SpanObjective,
    SpanSVC,
    UniformCost,
    bounds,
    leave_one_out,
    solve,
)
from span_hpo.kernels.cache import KernelCache
from tests.places import ROOT
from tests.problems import rbf, two_moons


def moons(count=80, seed=0):
    X, y = two_moons(count, seed=seed)
    return X, np.where(y > 0, "yes", "no")


PARAMS = {"gamma": 1.0, "C_no": 0.5, "C_yes": 2.0}


def dot(A, B):
    return A @ B.T


def mean_value(y, decision_values):
    return float(np.mean(decision_values))


def test_evaluation_is_the_path_step_by_step():
    """The objective is kernel, costs, fit, leave-one-out and metric, and nothing else."""
    X, labels = moons()
    y = np.where(labels == "yes", 1.0, -1.0)
    evaluation = SpanObjective(X, labels).evaluate(PARAMS)
    solution = solve(Problem(rbf(X, 1.0), y, np.where(y > 0, 2.0, 0.5)))
    loo = leave_one_out(solution)
    np.testing.assert_allclose(evaluation.loo.decision_values, loo.decision_values, atol=1e-9)
    assert evaluation.loss == loo.error == evaluation.losses["error"]
    assert evaluation.params == PARAMS
    assert evaluation.n_rows == 80
    assert (evaluation.n_support, evaluation.n_in_bound) == (
        solution.n_support,
        solution.n_in_bound,
    )
    assert evaluation.converged
    assert evaluation.seconds > 0


def test_default_space():
    """By default one cost per class and the width of an RBF kernel are searched."""
    X, labels = moons()
    space = SpanObjective(X, labels).space
    assert list(space) == ["gamma", "C_no", "C_yes"]
    assert space["C_no"] == Float(2**-6, 2**10, log=True)


def test_grids_of_the_paper():
    """`grid` gives the paper's values bit for bit, for class costs and for scores."""
    X, labels = moons()
    objective = SpanObjective(X, labels, kernel=RBF(gamma=0.5))
    costs = [2.0 ** (k / 2 - 6) for k in range(33)]
    assert objective.grid(33) == {"C_no": costs, "C_yes": costs}
    scored = SpanObjective(
        X, labels, kernel="linear", weighting=SigmoidScore(), scores=np.full(80, 0.5)
    )
    assert scored.grid({"A": 10, "B": 10, "C": 17}) == {
        "A": [float(k) for k in range(1, 11)],
        "B": [round(k / 10, 1) for k in range(10)],
        "C": [2.0 ** (k - 6) for k in range(17)],
    }


@pytest.mark.parametrize(
    ("kernel", "params"),
    [
        (RBF(gamma=0.7), {}),
        ("rbf", {"gamma": 0.7}),
        (Linear(), {}),
        (Polynomial(degree=2, gamma=0.5, coef0=1.0), {}),
        (Laplacian(gamma=0.7), {}),
        (dot, {}),
    ],
)
def test_model_is_the_evaluated_one(kernel, params):
    """`fit_model` predicts on new rows what the evaluated fit would."""
    X, labels = moons()
    params = {**params, "C_no": 1.0, "C_yes": 3.0}
    objective = SpanObjective(X, labels, kernel=kernel)
    model = objective.fit_model(params)
    assert isinstance(model, SVC)
    assert set(model.predict(X + 0.01)) <= {"no", "yes"}
    K = KernelCache(objective.kernel, objective.data.X).matrix(params)
    solution = solve(Problem(K, objective.data.y, np.where(labels == "yes", 3.0, 1.0)))
    np.testing.assert_allclose(model.decision_function(X), solution.decision_values, atol=1e-3)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_model_with_a_precomputed_kernel():
    """With a kernel matrix the model predicts from kernel rows, zero costs or not."""
    X, labels = moons()
    scores = np.where(np.arange(80) < 10, 0.0, 1.0)
    given = {"weighting": PowerScore(C=2.0, tau=1.0), "scores": scores}
    on_matrix = SpanObjective(rbf(X, 0.7), labels, kernel="precomputed", **given)
    on_rows = SpanObjective(X, labels, kernel=RBF(gamma=0.7), **given)
    assert on_matrix({}) == on_rows({})
    np.testing.assert_allclose(
        on_matrix.fit_model({}).decision_function(rbf(X, 0.7)),
        on_rows.fit_model({}).decision_function(X),
        atol=1e-3,
    )


@pytest.mark.parametrize(
    "pair",
    [(-1, 1), (0.5, 1.5), (False, True), ("bad", "good"), (np.int8(3), np.int8(7))],
)
@pytest.mark.parametrize("container", [list, np.array, pd.Series, "object", "category"])
def test_models_of_any_two_labels(pair, container):
    """Every kind of label that can be evaluated can be predicted."""
    X, names = moons(30)
    labels = [pair[1] if name == "yes" else pair[0] for name in names]
    y = pd.Series(labels, dtype=container) if isinstance(container, str) else container(labels)
    objective = SpanObjective(X, y, weighting=UniformCost(10.0), kernel=RBF(gamma=2.0))
    predicted = objective.fit_model({}).predict(X)
    assert set(predicted.tolist()) <= set(pair)
    assert np.mean(predicted == np.array(labels)) > 0.8


def test_data_frames_keep_their_names():
    """A model tuned on a DataFrame knows its columns."""
    X, labels = moons()
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = SpanObjective(frame, pd.Series(labels)).fit_model(PARAMS)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    assert len(model.predict(frame)) == 80


def test_float32_features():
    """Single-precision features give nearly the same estimate as double ones."""
    X, labels = moons()
    one = SpanObjective(X, labels).evaluate(PARAMS).loo.decision_values
    other = SpanObjective(X.astype(np.float32), labels).evaluate(PARAMS).loo.decision_values
    np.testing.assert_allclose(one, other, atol=1e-3)


def test_several_metrics_from_one_fit():
    """A tuple gives several losses; the first is `loss`."""
    X, labels = moons()
    objective = SpanObjective(X, labels, metric=("auc", "error", mean_value))
    evaluation = objective.evaluate(PARAMS)
    assert list(evaluation.losses) == ["auc", "error", "mean_value"]
    assert evaluation.loss == evaluation.losses["auc"] == objective(PARAMS)
    assert evaluation.losses["error"] == SpanObjective(X, labels)(PARAMS)


def test_metric_weight_counts_rows():
    """Weights enter every mean, and rows with weight 0 do not count."""
    X, labels = moons()
    weight = np.arange(80) % 3
    evaluation = SpanObjective(X, labels, metric_weight=weight).evaluate(PARAMS)
    wrong = evaluation.loo.y * evaluation.loo.decision_values <= 0
    assert evaluation.loss == pytest.approx(np.average(wrong, weights=weight))


def test_rows_are_nested_budgets():
    """`rows` uses the first rows of one stratified order; all rows are the full evaluation."""
    X, labels = moons(200)
    scores = np.linspace(0, 1, 200)
    objective = SpanObjective(X, labels, weighting=PowerScore(), scores=scores)
    params = {"gamma": 1.0, "C": 2.0, "tau": 1.0}
    chosen = np.sort(objective.data.nested_order[:50])
    assert abs(np.mean(labels[chosen] == "yes") - 0.5) <= 0.02
    part = objective.evaluate(params, rows=50)
    alone = SpanObjective(
        X[chosen], labels[chosen], weighting=PowerScore(), scores=scores[chosen]
    ).evaluate(params)
    assert part.n_rows == 50
    np.testing.assert_allclose(part.loo.decision_values, alone.loo.decision_values, atol=1e-10)
    full = objective.evaluate(params, rows=200)
    np.testing.assert_array_equal(
        full.loo.decision_values, objective.evaluate(params).loo.decision_values
    )


def test_pickle_gives_the_same_numbers(tmp_path):
    """A copy evaluates alike, here and in another process, and carries no kernel matrix."""
    X, labels = moons(150)
    objective = SpanObjective(X, labels, metric=("hinge", mean_value))
    before = len(pickle.dumps(objective))
    evaluation = objective.evaluate(PARAMS)
    assert len(pickle.dumps(objective)) == before
    copy = pickle.loads(pickle.dumps(objective))
    assert copy.evaluate(PARAMS).losses == evaluation.losses
    plain = SpanObjective(X, labels, metric="hinge")
    (tmp_path / "objective.pickle").write_bytes(pickle.dumps(plain))
    code = (
        "import pickle, sys; objective = pickle.load(open(sys.argv[1], 'rb')); "
        f"print(repr(objective({PARAMS!r})))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "objective.pickle")],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert float(found.stdout) == evaluation.losses["hinge"]


def test_user_code_cannot_change_the_objective():
    """A metric or kernel that writes into what it is given is told, and nothing is changed."""
    X, labels = moons(40)

    def writes_labels(y, decision_values):
        y[:] = 1.0

    def writes_values(y, decision_values):
        decision_values[:] = 0.0

    def writes_rows(A, B):
        A *= 0.0
        return A @ B.T

    for wrong in ({"metric": writes_labels}, {"metric": writes_values}, {"kernel": writes_rows}):
        objective = SpanObjective(
            X, labels, weighting=UniformCost(1.0), **{"kernel": RBF(gamma=1.0), **wrong}
        )
        with pytest.raises(ValueError, match="read-only"):
            objective({})
        assert set(objective.data.y) == {-1.0, 1.0}
        np.testing.assert_array_equal(objective.data.X, X)


@pytest.mark.parametrize("method", ["span", "exact"])
def test_threads_share_one_objective(method):
    """Evaluations in four threads give the numbers of one."""
    X, labels = moons(100)
    objective = SpanObjective(X, labels, metric="hinge", loo_method=method)
    trials = [{"gamma": 2.0 ** (k % 3), "C_no": 1.0, "C_yes": 2.0**k} for k in range(12)]
    expected = [objective(params) for params in trials]
    fresh = pickle.loads(pickle.dumps(objective))
    found = [0.0] * len(trials)

    def work(worker):
        for index in range(worker, len(trials), 4):
            found[index] = fresh(trials[index])

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


def test_refit_as_method():
    """`loo_method="refit"` gives the brute-force error."""
    X, labels = moons(40)
    params = {"C_no": 1.0, "C_yes": 1.0}
    refit = SpanObjective(X, labels, kernel=RBF(gamma=1.0), loo_method="refit").evaluate(params)
    expected = []
    for p in range(40):
        others = np.arange(40) != p
        model = SVC(gamma=1.0, C=1.0, tol=1e-8).fit(X[others], labels[others])
        expected.append(model.predict(X[[p]])[0] != labels[p])
    assert refit.loss == pytest.approx(np.mean(expected))
    assert refit.loo.n_refit == 40


def test_exact_objective():
    """`loo_method="exact"` proves classes; metrics of values get every value exactly."""
    X, labels = moons()
    kernel, params = RBF(gamma=1.0), {"C_no": 20.0, "C_yes": 50.0}
    refit = SpanObjective(X, labels, kernel=kernel, metric=("error", "hinge"), loo_method="refit")
    truth = refit.evaluate(params)
    for method in ("exact", "stopping"):
        classes = SpanObjective(X, labels, kernel=kernel, loo_method=method).evaluate(params)
        assert classes.loss == truth.losses["error"]
        assert classes.loo.certified.all()
        assert not classes.loo.exact.all()
        values = SpanObjective(
            X, labels, kernel=kernel, metric=("error", "hinge"), loo_method=method
        ).evaluate(params)
        assert values.loo.exact.all()
        assert values.losses == pytest.approx(truth.losses, abs=1e-9)


def test_constant_features_and_duplicated_rows():
    """Features without information and rows that stand twice break nothing."""
    X, labels = moons(40)
    ugly = np.column_stack([np.vstack([X, X]), np.ones(80)])
    for kernel in ("rbf", "linear", "poly", "laplacian"):
        objective = SpanObjective(ugly, np.tile(labels, 2), kernel=kernel)
        params = dict.fromkeys(objective.space, 1.0)
        assert 0 <= objective(params) <= 1
    flat = SpanObjective(np.ones((6, 2)), [0, 0, 0, 0, 1, 1])
    assert flat({"gamma": 1.0, "C_0": 1.0, "C_1": 1.0}) == pytest.approx(2 / 6)


@pytest.mark.parametrize("costs", [(1e-9, 1e9), (1e9, 1e-9), (1e-6, 1e-6), (1e9, 1e9)])
def test_extreme_costs_give_an_error_rate(costs):
    """Costs over eighteen orders of magnitude side by side give a number between 0 and 1."""
    X, labels = moons(50)
    objective = SpanObjective(X, labels)
    params = {"gamma": 1.0, "C_no": costs[0], "C_yes": costs[1]}
    evaluation = objective.evaluate(params)
    assert np.isfinite(evaluation.loo.decision_values).all()
    refit = SpanObjective(X, labels, loo_method="refit").evaluate(params)
    assert abs(evaluation.loss - refit.loss) <= 0.1


class GammaRule:
    """A user's rule whose parameter has the name of a kernel parameter."""

    space = {"gamma": Float(0, 1)}  # noqa: RUF012  what a user would write

    def costs(self, data, params):
        return np.full(len(data), params["gamma"])


class TupleRule(GammaRule):
    """A user's rule whose space is not made of dimensions."""

    space = {"h": (0, 1)}  # noqa: RUF012  what a user might write


BAD = [
    (
        {"loo_method": "cv"},
        ValueError,
        "`loo_method` must be one of ['span', 'exact', 'refit', 'stopping'], got 'cv'",
    ),
    ({"kernel": "gauss"}, ValueError, "`kernel` must be one of"),
    ({"tol": -1.0}, ValueError, "`tol` must be a finite number above 0, got -1.0"),
    ({"max_iter": 0}, ValueError, "`max_iter` must be a whole number from 1 to 2147483647, got 0"),
    ({"weighting": SigmoidScore()}, ValueError, "`scores` must hold one score per row"),
    ({"weighting": UniformCost(C="1")}, ValueError, "`C` must be a finite number of at least 0"),
    (
        {"kernel": Polynomial(degree=2.5)},
        ValueError,
        "`degree` must be a whole number from 1 to 1000, got 2.5",
    ),
    ({"weighting": ClassCosts}, TypeError, "`weighting` must have `space` and `costs(data, params"),
    ({"weighting": TupleRule()}, TypeError, "must map names to Float, Int or Choice, got (0, 1)"),
    (
        {"metric": "auc", "metric_weight": np.where(np.arange(80) % 2, 1.0, 0.0)},
        ValueError,
        "`metric_weight` must be positive in some row of each class for auc",
    ),
    ({"weighting": 3.0}, TypeError, "`weighting` must have `space` and `costs(data, params)`"),
    ({"metric": "accuracy"}, ValueError, "`metric` must be one of"),
    ({"metric_weight": [1.0]}, ValueError, "`metric_weight` must hold one value for each of the"),
    ({"metric_weight": -np.ones(80)}, ValueError, "`metric_weight` must not be negative, got -1"),
    (
        {"kernel": "precomputed"},
        ValueError,
        "`X` must be a square kernel matrix, got shape (80, 2)",
    ),
    (
        {"kernel": RBF(gamma=Float(1, 2)), "weighting": GammaRule()},
        ValueError,
        "`gamma` must be searched once, got it from the kernel and from the weighting",
    ),
]


@pytest.mark.parametrize(("change", "kind", "message"), BAD)
def test_wrong_constructor_arguments_are_named(change, kind, message):
    """A wrong argument is named when the objective is made, not in the middle of a study."""
    X, labels = moons()
    with pytest.raises(kind) as caught:
        SpanObjective(X, labels, **change)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"gamma": 1.0}, "`params` must name exactly ['gamma', 'C_no', 'C_yes'], got"),
        ({**PARAMS, "C": 1.0}, ": unknown ['C']"),
        ({**PARAMS, "gamma": -1.0}, "`gamma` must be a finite number above 0, got -1.0"),
        ({**PARAMS, "C_no": -1.0}, "`C_no` must be a finite number of at least 0, got -1.0"),
        (
            {**PARAMS, "C_no": 0.0},
            "positive in some row of each class, got only rows of class 'yes'",
        ),
        ({**PARAMS, "C_no": 0.0, "C_yes": 0}, "of each class, got only zeros"),
        ({**PARAMS, "C_yes": np.nan}, "`C_yes` must be a finite number of at least 0, got nan"),
    ],
)
def test_wrong_params_are_named(params, message):
    """Wrong parameters are errors, for evaluation and model alike."""
    X, labels = moons()
    objective = SpanObjective(X, labels)
    for use in (objective, objective.fit_model):
        with pytest.raises(ValueError, match="must") as caught:
            use(params)
        assert message in str(caught.value)


@pytest.mark.parametrize("rows", [0, 1, 81, 10.5, True, "10"])
def test_wrong_rows_are_named(rows):
    """A budget must be a number of rows."""
    X, labels = moons()
    with pytest.raises(ValueError, match="`rows` must be a whole number from 2 to 80, got"):
        SpanObjective(X, labels).evaluate(PARAMS, rows=rows)


def test_budget_without_one_class_is_an_error():
    """Too small a budget for a rare class says so instead of giving a number."""
    X, _ = moons()
    labels = np.where(np.arange(80) < 2, "rare", "common")
    objective = SpanObjective(X, labels)
    params = {"gamma": 1.0, "C_common": 1.0, "C_rare": 1.0}
    with pytest.raises(ValueError, match="`rows` must be at least 20 to hold all classes, got 10"):
        objective.evaluate(params, rows=10)
    assert objective.evaluate(params, rows=20).n_rows == 20


def test_indefinite_callable_is_a_solver_error():
    """A kernel that is not positive semi-definite fails the trial and names the remedy."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    y = X[:, 0] + 0.5 * rng.normal(size=30) > 0

    def sigmoid(A, B):
        return np.tanh(A @ B.T + 0.5)

    costs = UniformCost(1.0)
    with pytest.raises(SolverError, match="not positive semi-definite"):
        SpanObjective(X, y, kernel=sigmoid, weighting=costs)({})
    refit = SpanObjective(X, y, kernel=sigmoid, weighting=costs, loo_method="refit")
    assert 0 <= refit({}) <= 1


def test_tuning_finds_a_good_model_of_real_data():
    """The best of a small grid of class costs has half the test error of the middle of the grid."""
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:300], order[300:]
    X = (X - X[train].min(axis=0)) / np.ptp(X[train], axis=0)
    objective = SpanObjective(X[train], y[train], kernel=RBF(gamma=1 / 30), weighting=ClassCosts())
    grid = objective.grid(5)
    trials = [{"C_0": a, "C_1": b} for a in grid["C_0"] for b in grid["C_1"]]
    best = min(trials, key=objective)
    errors = [np.mean(objective.fit_model(p).predict(X[test]) != y[test]) for p in trials]
    assert errors[trials.index(best)] < np.median(errors) / 2


def test_evaluation_time_includes_the_kernel():
    """`seconds` is the wall time of the call."""
    X, labels = moons()

    def slow(A, B):
        time.sleep(0.05)
        return A @ B.T

    evaluation = SpanObjective(X, labels, kernel=slow).evaluate({"C_no": 1.0, "C_yes": 1.0})
    assert evaluation.seconds >= 0.05


def test_evaluations_are_logged(caplog):
    """Every evaluation is a debug message, and refits are told."""
    X, y = two_moons(20)
    objective = SpanObjective(X, y, kernel=RBF(gamma=1.0), loo_method="refit")
    with caplog.at_level(logging.DEBUG, logger="span_hpo"):
        objective({"C_-1": 1.0, "C_1": 2.0})
    messages = [record.getMessage() for record in caplog.records]
    assert any("'C_1': 2.0" in message and "error" in message for message in messages)
    assert any("20 of 20 rows had to be refitted" in message for message in messages)


def test_silent_by_default():
    """Without a handler nothing is written, not even warnings of logging itself."""
    code = """
import numpy as np
from span_hpo import SpanObjective
X = np.random.default_rng(0).normal(size=(20, 2))
SpanObjective(X, X[:, 0] > 0, loo_method="refit")({"gamma": 1.0, "C_False": 1.0, "C_True": 1.0})
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == found.stderr == ""


def test_defaults_of_other_weightings():
    """Guesses stay in their range; what nothing is known of starts in the middle."""
    X, y = two_moons(40)
    scores = np.linspace(0, 1, 40)
    objective = SpanObjective(
        X,
        y,
        scores=scores,
        kernel=RBF(gamma=0.5),
        weighting=ClassCosts(Float(2, 8)) * SigmoidScore(C=Choice([3.0, 5.0])),
    )
    assert objective.defaults() == [{"C_-1": 2.0, "C_1": 2.0, "A": 5.5, "B": 0.45, "C": 3.0}]

    class Own:
        space = {"scale": Int(1, 9)}  # noqa: RUF012  as a user may write it

        def costs(self, data, params):
            return np.full(len(data), float(params["scale"]))

    assert SpanObjective(X, y, kernel=RBF(gamma=0.5), weighting=Own()).defaults() == [{"scale": 5}]


@pytest.mark.parametrize("copies", [0, 15])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_evaluate_all(kernel, copies):
    """Evaluations of a grid are those of its points one by one, in the order of the points."""
    X, y = two_moons(50)
    X, y = np.concatenate([X, X[:copies]]), np.concatenate([y, y[:copies]])
    objective = SpanObjective(X, y, kernel=kernel, metric=("error", "smooth_error"))
    grid = objective.grid(3)
    points = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    points = [points[k] for k in np.random.default_rng(0).permutation(len(points))]
    found = objective.evaluate_all(points, certify=False)
    again = objective.evaluate_all(points, certify=False)
    assert [evaluation.params for evaluation in found] == points
    for params, evaluation, same in zip(points, found, again, strict=True):
        alone = objective.evaluate(params, certify=False)
        np.testing.assert_allclose(
            evaluation.loo.decision_values, alone.loo.decision_values, rtol=1e-9, atol=1e-9
        )
        assert evaluation.loss == alone.loss
        assert evaluation.n_support == alone.n_support
        np.testing.assert_array_equal(evaluation.loo.decision_values, same.loo.decision_values)
        if kernel == "rbf" and not copies:
            np.testing.assert_array_equal(evaluation.loo.decision_values, alone.loo.decision_values)


def test_evaluate_all_of_several_classes_and_rows():
    """Several classes, and subsets of the rows, are evaluated as one by one."""
    X, y = load_iris(return_X_y=True)
    objective = SpanObjective(X, y, kernel="linear", weighting=UniformCost())
    points = [{"C": cost} for cost in (1.0, 0.1)]
    found = objective.evaluate_all(points, rows=60, loo_method="exact")
    for params, evaluation in zip(points, found, strict=True):
        alone = objective.evaluate(params, rows=60, loo_method="exact")
        assert evaluation.losses == alone.losses
        assert evaluation.n_rows == 60


def test_results_hold_plain_numbers():
    """Whatever types users pass, what they see are floats of Python, not ``np.float64(1.0)``."""
    X, y = two_moons(40)
    one = np.float64(1.0)
    objective = SpanObjective(
        X,
        y,
        kernel=RBF(gamma=Choice(list(np.logspace(-1, 1, 3)))),
        weighting=ClassCosts([one, Float(one, np.float64(4.0))]),
        metric=lambda y, values: np.mean(y * values <= 0),
    )
    evaluation = objective.evaluate({"gamma": one, "C_1": np.int64(2)})
    solution = objective.solution(evaluation.params)
    seen = [
        objective.kernel,
        objective.weighting,
        objective.defaults(),
        objective.grid(3),
        objective.description(),
        evaluation.params,
        evaluation.losses,
        evaluation.rank,
        evaluation.figures(),
        evaluation.loo.error_bounds,
        objective.cross_validate(evaluation.params).losses,
        SpanSVC(RBF(gamma=one), UniformCost(one)),
        [solution.b, solution.kkt_violation(), bounds.span_bound(solution)],
    ]
    assert "np." not in repr(seen)
    model = SpanSVC(search=lambda of: dict.fromkeys(of.space, one)).fit(X, y)
    learned = [model.best_params_, model.best_loss_, model.loo_error_, model.loo_bounds_]
    assert "np." not in repr(learned)
