"""Stock searches of scikit-learn, with one fit for each candidate."""

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from pandas import DataFrame
from scipy.sparse import csr_array
from scipy.stats import loguniform
from sklearn.datasets import load_iris
from sklearn.experimental import enable_halving_search_cv  # noqa: F401  makes the search public
from sklearn.feature_selection import SelectKBest
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    cohen_kappa_score,
    f1_score,
    get_scorer,
    log_loss,
    make_scorer,
    r2_score,
    roc_auc_score,
)
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    cross_validate,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from span_hpo import (
    RBF,
    AllRows,
    LeakWarning,
    LooSVC,
    SpanObjective,
    SpanSearchCV,
    SpanSVC,
    UniformCost,
    loo_scorer,
)
from span_hpo.calibration import platt_sigmoid
from span_hpo.estimators.loo_scorers import is_scorer, loo_loss
from span_hpo.metrics import METRICS, as_metrics
from tests.problems import two_moons

GRID = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, "scale", 10.0]}
IRIS = load_iris(return_X_y=True)


def problem(count=70):
    """Return rows and text as labels of two classes of different size."""
    X, y = two_moons(count)
    y[:20] = 1
    return X, np.where(y > 0, "good", "bad")


@pytest.mark.parametrize("data", [problem(), IRIS])
def test_grid_search(data, monkeypatch):
    """The stock search returns the losses of our objective, with one fit for each candidate."""
    fits, theirs = [], []
    own, plain = LooSVC.fit, SVC.fit
    monkeypatch.setattr(LooSVC, "fit", lambda self, X, y: fits.append(len(y)) or own(self, X, y))
    monkeypatch.setattr(
        SVC, "fit", lambda self, X, y, **more: theirs.append(1) or plain(self, X, y, **more)
    )
    X, y = data
    search = GridSearchCV(LooSVC(), GRID, scoring=loo_scorer(), cv=AllRows()).fit(X, y)
    assert fits == [len(y)] * 10  # the last one is that of the best model
    assert not theirs
    objective = SpanObjective(X, y, weighting="uniform")
    scale = 1 / (X.shape[1] * X.var())
    for params, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        gamma = scale if params["gamma"] == "scale" else params["gamma"]
        assert -score == objective({"C": params["C"], "gamma": gamma})
    assert search.n_splits_ == 1
    assert search.best_score_ == -search.best_estimator_.loo_error_
    assert search.predict(X).shape == y.shape
    assert len(theirs) == 1


def test_random_search_of_a_pipeline():
    """Distributions of scipy, steps by name and several jobs work as usual."""
    X, y = problem()
    pipeline = make_pipeline(StandardScaler(), LooSVC())
    space = {"loosvc__C": loguniform(0.1, 100), "loosvc__gamma": loguniform(0.01, 10)}
    search = RandomizedSearchCV(
        pipeline, space, n_iter=6, scoring=loo_scorer("auc"), cv=AllRows(), random_state=0, n_jobs=2
    ).fit(X, y)
    expected = RandomizedSearchCV(
        pipeline, space, n_iter=6, scoring=loo_scorer("auc"), cv=AllRows(), random_state=0
    ).fit(X, y)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"]
    )
    values = search.best_estimator_[-1].loo_decision_values_
    assert search.best_score_ == pytest.approx(roc_auc_score(y == "good", values))


def test_nested_pipelines_and_other_ways_to_score():
    """The SVM may end a pipeline within a pipeline; cross_validate and a halving search work."""
    X, y = problem()
    nested = Pipeline([("a", StandardScaler()), ("b", make_pipeline("passthrough", LooSVC()))])
    found = cross_validate(
        nested, X, y, scoring={"error": loo_scorer(), "accuracy": loo_scorer("accuracy")},
        cv=AllRows(), return_train_score=True,
    )  # fmt: skip
    assert -found["test_error"][0] == pytest.approx(1 - found["test_accuracy"][0])
    assert found["train_error"] == found["test_error"]
    halving = HalvingGridSearchCV(
        LooSVC(), GRID, scoring=loo_scorer(), cv=AllRows(), random_state=0, min_resources=20
    ).fit(X, y)
    assert halving.n_iterations_ == 2
    assert np.isfinite(halving.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("metric", sorted(METRICS))
@pytest.mark.parametrize("weighted", [False, True])
def test_own_metrics(metric, weighted):
    """A score is the loss with the other sign, or what it is one minus of, with its weights."""
    X, y = problem()
    weight = np.linspace(0.5, 2, len(y)) if weighted else None
    model = LooSVC(C=3.0).fit(X, y, weight)
    (chosen,) = as_metrics(metric, weighted=False)
    signs = np.where(y == "good", 1.0, -1.0)
    loss = chosen.loss(signs, model.loo_decision_values_, np.ones(70) if weight is None else weight)
    score = loo_scorer(metric)(model, X, y)
    assert score == (1 - loss if metric in ("auc", "average_precision", "f1", "mcc") else -loss)
    assert loo_scorer(metric)(LooSVC(C=3.0).fit(X, y), X, y, np.ones(70)) == loo_scorer(metric)(
        LooSVC(C=3.0).fit(X, y), X, y
    )


@pytest.mark.parametrize("data", [problem(), IRIS])
def test_scorers_of_scikit_learn(data):
    """Scorers of scikit-learn and their names have their own sign, and any average."""
    X, y = data
    model = LooSVC(C=3.0).fit(X, y)
    predicted = model.classes_[model.loo_proba_.argmax(axis=1)]
    probabilities = model.loo_proba_
    if data is not IRIS:  # the sigmoid itself, also where it contradicts the predicted class
        values = model.loo_decision_values_
        signs = np.where(y == "good", 1.0, -1.0)
        probabilities = platt_sigmoid(signs, values, np.ones(len(y))).probability(values)
    expected = {
        "accuracy": 1 - model.loo_error_,
        "balanced_accuracy": balanced_accuracy_score(y, predicted),
        "f1_weighted": f1_score(y, predicted, average="weighted"),
        "neg_log_loss": -log_loss(y if data is IRIS else y == "good", probabilities),
    }
    for name, score in expected.items():
        assert loo_scorer(name)(model, X, y) == pytest.approx(score)
    score = cohen_kappa_score(y, predicted)
    assert loo_scorer(make_scorer(cohen_kappa_score))(model, X, y) == pytest.approx(score)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["neg_log_loss", "neg_brier_score", "roc_auc", "f1", "accuracy"])
def test_names_mean_the_same_in_both_searches(name, weighted):
    """A score of scikit-learn's search is that of ours, also where few rows are on either side."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = (X[:, 0] + rng.normal(size=60) > 0.8).astype(int)
    weight = rng.uniform(0.1, 3, 60) if weighted else None
    grid = {"C": [0.01, 1.0, 100.0], "gamma": [0.01, 1.0]}
    theirs = GridSearchCV(LooSVC(), grid, scoring=loo_scorer(name), cv=AllRows())
    ours = SpanSearchCV(LooSVC(), grid, scoring=name, search="grid")
    found, expected = (
        search.fit(X, y, sample_weight=weight).cv_results_["mean_test_score"]
        for search in (theirs, ours)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def weighted_hinge(y, f, weight):
    return np.average(np.maximum(0, 1 - y * f), weights=weight)


def test_weights_in_a_search():
    """Weights reach fit and score, of one metric and of several, without a warning."""
    X, y = problem()
    weight = np.where(y == "good", 1.0, 3.0)
    weight[:7] = 0
    search = GridSearchCV(LooSVC(), GRID, scoring=loo_scorer("accuracy"), cv=AllRows())
    search.fit(X, y, sample_weight=weight)
    model = search.best_estimator_
    right = model.classes_[model.loo_proba_[7:].argmax(axis=1)] == y[7:]
    assert search.best_score_ == pytest.approx(np.average(right, weights=weight[7:]))
    scorers = {"error": loo_scorer(), "hinge": loo_scorer(weighted_hinge)}
    several = GridSearchCV(LooSVC(), GRID, scoring=scorers, refit="hinge", cv=AllRows())
    several.fit(X, y, sample_weight=weight)
    expected = loo_scorer("hinge")(several.best_estimator_, X, y)
    assert several.best_score_ == pytest.approx(expected)


def test_reads_an_estimator_that_tunes_itself():
    """The leave-one-out values of a SpanSVC are scored as well."""
    X, y = problem()
    model = SpanSVC(RBF(gamma=1.0), UniformCost(1.0)).fit(X, y)
    assert loo_scorer()(model, X, y) == -model.loo_error_


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of MLflow
def test_mlflow_logs_a_search(tmp_path, monkeypatch):
    """Autologging writes every candidate of a stock search, and its best score."""
    mlflow = pytest.importorskip("mlflow")
    X, y = problem()
    monkeypatch.chdir(tmp_path)  # where MLflow writes files
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/runs.db")
    mlflow.sklearn.autolog(log_models=False)
    try:
        with mlflow.start_run() as run:
            search = GridSearchCV(LooSVC(), {"C": [0.1, 1.0]}, scoring=loo_scorer(), cv=AllRows())
            search.fit(X, y)
    finally:
        mlflow.sklearn.autolog(disable=True)
    assert mlflow.get_run(run.info.run_id).data.metrics["best_cv_score"] == search.best_score_
    logged = mlflow.search_runs([run.info.experiment_id])["metrics.mean_test_score"].dropna()
    assert sorted(logged) == sorted(search.cv_results_["mean_test_score"])


def test_scorers_can_be_pickled():
    """A scorer is sent to other processes as it is."""
    for metric in ("error", "accuracy", weighted_hinge):
        scorer = loo_scorer(metric)
        assert pickle.loads(pickle.dumps(scorer)) == scorer
        assert scorer.__name__ == f"loo_{getattr(metric, '__name__', metric)}"  # TPOT needs names


def test_other_rows_are_refused():
    """With folds, or without the splitter, an error names the splitter that is needed."""
    X, y = problem()
    model = LooSVC().fit(X, y)
    with pytest.raises(ValueError, match=r"got 69 rows for a fit of 70: use cv=AllRows\(\)"):
        loo_scorer()(model, X[1:], y[1:])
    with pytest.raises(ValueError, match=r"got other labels: use cv=AllRows\(\)"):
        loo_scorer()(model, X, y[::-1])
    search = GridSearchCV(LooSVC(), {"C": [1.0]}, scoring=loo_scorer(), cv=2, error_score="raise")
    with pytest.raises(ValueError, match=r"`X` and `y` must be the rows to which the estimator"):
        search.fit(X, y)


def test_other_estimators_are_refused():
    """What has no leave-one-out values is named."""
    X, y = problem()
    for model in (SVC().fit(X, y), make_pipeline(StandardScaler(), SVC()).fit(X, y)):
        with pytest.raises(TypeError, match=r"must be a fitted LooSVC or SpanSVC, .*, got SVC"):
            loo_scorer()(model, X, y)


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        ("acuracy", "`metric` must be one of"),
        (("error", "auc"), "`metric` must be one metric"),
        (3, "`metric` must be one of"),
    ],
)
def test_unknown_metrics_are_refused(metric, message):
    """A wrong metric is named before the search."""
    with pytest.raises(ValueError, match=message):
        loo_scorer(metric)


@pytest.mark.parametrize(
    "function",
    [roc_auc_score, r2_score, accuracy_score, log_loss, partial(roc_auc_score, average="macro")],
)
def test_metric_functions_of_scikit_learn_are_refused(function):
    """A score that would be minimised is refused, as scikit-learn does, and says what to do."""
    with pytest.raises(ValueError, match=r"`metric` must be .* looks like a metric function"):
        loo_scorer(function)
    assert loo_scorer(make_scorer(accuracy_score)).metric is not None


def test_features_that_depend_on_labels_are_warned_of():
    """On pure noise a selection by the labels seems to be good, and the scorer says why."""
    rng, y = np.random.default_rng(0), np.arange(60) % 2
    X = rng.normal(size=(60, 3000))
    pipeline = make_pipeline(StandardScaler(), SelectKBest(k=20), LooSVC())
    search = GridSearchCV(
        pipeline, {"loosvc__C": [0.1, 1.0]}, scoring=loo_scorer(), cv=AllRows(), error_score="raise"
    )
    with pytest.warns(LeakWarning, match="that selectkbest makes depend on the labels"):
        search.fit(X, y)
    assert -search.best_score_ < 0.2
    honest = make_pipeline(StandardScaler(), LooSVC()).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert -loo_scorer()(honest, X, y) > 0.3


@pytest.mark.parametrize("form", [np.asarray, csr_array, DataFrame, np.ndarray.tolist])
def test_leaks_belong_to_the_rows(form):
    """Other rows are examined anew, whichever came first; a selection of all is none."""
    rng, y = np.random.default_rng(1), np.arange(40) % 2
    X = rng.normal(size=(40, 300))
    pipeline = make_pipeline(SelectKBest(k=20), LooSVC())
    few, many = form(X[:, :20]), form(X)
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            loo_scorer()(pipeline.fit(few, y), few, y)
        with pytest.warns(LeakWarning, match="that selectkbest makes depend on the labels"):
            loo_scorer()(pipeline.fit(many, y), many, y)


def test_losses_of_fitted_estimators():
    """A loss is that of the leave-one-out values, with the weights of the fit."""
    X, y = problem()
    weight = np.linspace(0.5, 2, len(y))
    model = make_pipeline(StandardScaler(), LooSVC()).fit(X, y, loosvc__sample_weight=weight)
    margins = np.where(y == "good", 1, -1) * model[-1].loo_decision_values_
    assert loo_loss(model, "error") == pytest.approx(np.average(margins <= 0, weights=weight))
    expected = np.average(np.maximum(0, 1 - margins), weights=weight)
    assert loo_loss(model[-1], "hinge") == pytest.approx(expected)
    assert loo_loss(LooSVC().fit(*IRIS), "error") == LooSVC().fit(*IRIS).loo_error_


class Counted(FunctionTransformer):
    fits = 0

    def fit(self, X, y=None):
        Counted.fits += 1
        return super().fit(X, y)


def test_transformers_are_examined_once():
    """The transformers of all candidates with the same settings are examined together."""
    X, y = problem()
    Counted.fits = 0
    pipeline = make_pipeline(Counted(np.abs), LooSVC())
    grid = {"loosvc__C": [0.1, 1.0, 10.0, 100.0]}
    GridSearchCV(pipeline, grid, scoring=loo_scorer(), cv=AllRows()).fit(X, y)
    assert Counted.fits == 5 + 2  # four candidates and the best model, and two fits to compare


def test_functions_are_told_apart_by_their_arguments():
    """A scorer takes an estimator, rows and labels; a loss takes labels and values."""
    assert is_scorer(lambda model, X, y: 0.0)
    assert is_scorer(lambda estimator, *rest: 0.0)
    assert is_scorer(lambda clf, X, y=None: 0.0)
    assert is_scorer(get_scorer("accuracy"))
    assert not is_scorer(lambda y, f: 0.0)
    assert not is_scorer(lambda y, f, sample_weight: 0.0)
    assert not is_scorer(lambda y, f, weight=None, beta=2: 0.0)
