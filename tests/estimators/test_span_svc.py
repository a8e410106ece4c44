"""The classifier that tunes itself."""

import pickle
import subprocess
import sys

import joblib
import numpy as np
import optuna
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from span_hpo import (
    RBF,
    ClassCosts,
    Float,
    Linear,
    Precomputed,
    Predictor,
    SigmoidScore,
    SpanObjective,
    SpanSVC,
    UniformCost,
)
from tests.places import ROOT
from tests.problems import two_moons

FIXED = {"kernel": RBF(gamma=0.5), "weighting": UniformCost(1.0)}
TWO_EQUAL_ROWS = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "a row of weight 2 is left out as a whole, two equal rows one by one: another calibration",
)


@parametrize_with_checks(
    [SpanSVC(**FIXED, tol=1e-6), SpanSVC(n_trials=3), SpanSVC(**FIXED, tol=1e-6, impute="median")],
    expected_failed_checks=lambda one: TWO_EQUAL_ROWS,
)
def test_estimator_checks(estimator, check):
    """It is a classifier by scikit-learn's rules, with and without a search."""
    check(estimator)


def test_search_finds_what_the_study_has():
    """The model is that of the study's best trial, and its loss the leave-one-out loss."""
    X, y = two_moons(100)
    model = SpanSVC(n_trials=20, random_state=0).fit(X, y)
    assert len(model.study_.trials) == 20
    assert model.best_loss_ == model.study_.best_value
    assert model.best_params_ in [trial.params for trial in model.study_.trials]
    scaled = model.scaler_.transform(X)
    objective = SpanObjective(scaled, y)
    assert objective(model.best_params_) == model.best_loss_ == model.loo_error_
    expected = objective.fit_model(model.best_params_)
    np.testing.assert_array_equal(model.predict(X), expected.predict(scaled))
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(scaled))
    low, high = model.loo_bounds_
    assert low <= SpanObjective(scaled, y, loo_method="exact")(model.best_params_) <= high


def test_seed_decides_the_search():
    """Equal seeds give equal models, other seeds other trials."""
    X, y = two_moons(60)
    first, again, other = (SpanSVC(n_trials=8, random_state=seed).fit(X, y) for seed in (1, 1, 2))
    assert first.best_params_ == again.best_params_
    trials = [[trial.params for trial in model.study_.trials] for model in (first, other)]
    assert trials[0] != trials[1]


def test_nothing_to_search_needs_no_optuna():
    """One weighted fit with its leave-one-out result, and Optuna is not imported."""
    code = """
import sys
sys.modules["optuna"] = None
import numpy as np
from span_hpo import RBF, SpanSVC, UniformCost
from tests.problems import two_moons
X, y = two_moons(60)
model = SpanSVC(RBF(gamma=0.5), UniformCost(1.0)).fit(X, y)
print(model.study_, model.best_params_, round(model.loo_error_, 6))
try:
    SpanSVC().fit(X, y)
except ImportError as error:
    print(error)
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.splitlines()
    assert found[0].startswith("None {} 0.")
    assert "pip install 'span-hpo[optuna]'" in found[1]


def test_sample_weight_multiplies_costs():
    """A weight is a factor of the row's cost in the fit, and its weight in the metric."""
    X, y = two_moons(60)
    weight = np.random.default_rng(0).uniform(0.2, 3, 60)
    model = SpanSVC(RBF(gamma=2.0), UniformCost(2.0), scale=None).fit(X, y, sample_weight=weight)
    plain = SVC(C=2.0, gamma=2.0, tol=1e-6).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-3)
    wrong = model.loo_.y * model.loo_.decision_values <= 0
    assert model.best_loss_ == pytest.approx(weight[wrong].sum() / weight.sum())


def test_repeated_rows_are_rows_of_double_weight():
    """Without a search the model, though not its leave-one-out result, is that of equal rows."""
    X, y = two_moons(50)
    repeated = np.repeat(np.arange(50), 1 + np.arange(50) % 3)
    weighted = SpanSVC(**FIXED, tol=1e-8).fit(X, y, sample_weight=1 + np.arange(50) % 3)
    plain = SpanSVC(**FIXED, tol=1e-8).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted.decision_function(X), plain.decision_function(X), atol=1e-3)


def test_rows_without_weight_are_not_there():
    """Scaling, search, result and suspects know nothing of rows with weight 0."""
    X, y = two_moons(80)
    X[::4] *= 50
    weight = np.ones(80)
    weight[::4] = 0
    kept = weight > 0
    model = SpanSVC(n_trials=6, random_state=0).fit(X, y, sample_weight=weight)
    small = SpanSVC(n_trials=6, random_state=0).fit(X[kept], y[kept])
    assert model.best_params_ == small.best_params_
    np.testing.assert_array_equal(model.predict(X), small.predict(X))
    np.testing.assert_array_equal(model.suspects_, np.flatnonzero(kept)[small.suspects_])
    with pytest.raises(ValueError, match="at least one non-zero"):
        SpanSVC().fit(X, y, sample_weight=np.zeros(80))


def test_weights_do_not_hide_the_only_score():
    """A weighting that takes the only score finds it beside the weights."""
    X, y = two_moons(60)
    scores = np.linspace(0, 1, 60)
    weighting = SigmoidScore(A=5.0, B=0.5, C=4.0)
    model = SpanSVC(RBF(gamma=1.0), weighting)
    model.fit(X, y, sample_weight=np.full(60, 2.0), scores=scores)
    same = SpanSVC(RBF(gamma=1.0), SigmoidScore(A=5.0, B=0.5, C=8.0, floor=0.02))
    same.fit(X, y, scores=scores)
    np.testing.assert_allclose(model.decision_function(X), same.decision_function(X), rtol=1e-10)


def test_groups_reach_the_weighting():
    """A weighting of one's own sees the groups that went through `fit`."""

    class ByGroup:
        space = {"C": Float(0.1, 10, log=True)}  # noqa: RUF012  as a user may write it

        def costs(self, data, params):
            return np.where(data.groups == "b", 0.1, 1.0) * params["C"]

    X, y = two_moons(60)
    groups = np.where(np.arange(60) % 3 == 0, "b", "a")
    model = SpanSVC(RBF(gamma=1.0), ByGroup(), n_trials=4).fit(X, y, groups=groups)
    assert set(model.best_params_) == {"C"}


@pytest.mark.parametrize("kernel", ["precomputed", Precomputed()])
def test_precomputed_kernel(kernel):
    """A kernel matrix is used as it is, also with rows of weight 0."""
    X, y = two_moons(60)
    K = rbf_kernel(X, gamma=1.0)
    weight = np.ones(60)
    weight[:5] = 0
    model = SpanSVC(kernel, UniformCost(1.0)).fit(K, y, sample_weight=weight)
    direct = SpanSVC(RBF(gamma=1.0), UniformCost(1.0), scale=None).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.decision_function(K), direct.decision_function(X), atol=1e-3)


def test_several_classes():
    """Digits: ten classes, their probabilities, and labels of any kind."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, np.array([f"d{digit}" for digit in y]), train_size=300, random_state=0, stratify=y
    )
    model = SpanSVC(n_trials=8, random_state=0).fit(X_train, y_train)
    assert model.score(X_test, y_test) > 0.93
    probabilities = model.predict_proba(X_test)
    assert probabilities.shape == (len(y_test), 10)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (probabilities >= 0).all()
    elected = model.classes_[probabilities.argmax(axis=1)]
    assert np.mean(elected == model.predict(X_test)) > 0.97
    assert log_loss(y_test, probabilities, labels=model.classes_) < 0.4


def test_exact_method_calibrates_with_values():
    """With loo_method="exact" the values behind the probabilities are exact, not bounds."""
    X, y = two_moons(60)
    model = SpanSVC(**FIXED, loo_method="exact").fit(X, y)
    assert model.loo_.exact.all()
    assert model.loo_bounds_ == (model.loo_error_, model.loo_error_)


def test_suspects_are_the_flipped_labels():
    """Most of the rows whose label was flipped come first."""
    X, y = two_moons(200, noise=0.15)
    flipped = np.random.default_rng(0).choice(200, 12, replace=False)
    y[flipped] *= -1
    model = SpanSVC(n_trials=15, random_state=0).fit(X, y)
    assert len(set(model.suspects_[:14]) & set(flipped)) >= 9
    margins = model.loo_.y * model.loo_.decision_values
    assert (margins[model.suspects_] <= 0).all()
    assert (np.diff(margins[model.suspects_]) >= 0).all()
    assert len(model.suspects_) == round(model.loo_error_ * 200)


def test_suspects_of_several_classes():
    """A wrong iris is found among three classes."""
    X, y = load_iris(return_X_y=True)
    y = y.copy()
    y[[10, 60]] = 2, 0
    model = SpanSVC(n_trials=10, random_state=0).fit(X, y)
    assert {10, 60} <= set(model.suspects_[:6])


def test_budgets_storage_and_resume(tmp_path):
    """A study in a file goes on: trials that are there count, and are not done again."""
    X, y = two_moons(80)
    settings = {
        "storage": f"sqlite:///{tmp_path}/study.db",
        "study_name": "moons",
        "budgets": (0.25, 1.0),
        "pruner": optuna.pruners.MedianPruner(n_startup_trials=2),
        "random_state": 0,
    }
    SpanSVC(n_trials=5, **settings).fit(X, y)
    model = SpanSVC(n_trials=9, **settings).fit(X, y)
    assert len(model.study_.trials) == 9
    again = SpanSVC(n_trials=9, **settings).fit(X, y)
    assert len(again.study_.trials) == 9
    assert again.best_params_ == model.best_params_
    for one in (model, again):
        one.study_._storage.remove_session()


@pytest.mark.parametrize("kind", ["journal", "database"])
def test_a_study_keeps_its_scaling(kind, tmp_path):
    """A fit that scales its features in another way does not add trials to a study."""
    X, y = two_moons(40)
    X = (X - X.min(0)) / np.ptp(X, 0)  # "minmax" changes nothing
    place = f"sqlite:///{tmp_path}/a.db" if kind == "database" else str(tmp_path / "a.journal")
    settings = {"storage": place, "study_name": "moons", "random_state": 0}
    first = SpanSVC(n_trials=2, **settings).fit(X, y)
    for scale in ("standard", None):
        with pytest.raises(ValueError, match=f"but scaling was 'minmax', got {scale!r}. Give the"):
            SpanSVC(n_trials=4, scale=scale, **settings).fit(X, y)
    again = SpanSVC(n_trials=4, **settings).fit(X, y)
    assert len(again.study_.trials) == 4
    for model in (first, again):
        model.study_._storage.remove_session()


def test_a_kernel_matrix_is_not_scaled():
    """The description of an objective names a scaling only where features were scaled."""
    X, y = two_moons(40)
    model = SpanSVC("precomputed", UniformCost(1.0)).fit(rbf_kernel(X), y)
    assert model.objective_.description()["scaling"] is None
    scaled = SpanSVC(RBF(gamma=0.5), UniformCost(1.0)).fit(X, y)
    assert scaled.objective_.description()["scaling"] == "minmax"


def test_works_where_scikit_learn_estimators_do():
    """Pipeline, clone, pickle, joblib, cross_val_score and GridSearchCV."""
    X, y = two_moons(80)
    model = SpanSVC(n_trials=4, random_state=0)
    pipeline = make_pipeline(FunctionTransformer(), model).fit(X, y)
    fitted = pipeline[-1]
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(pipeline)).predict(X), pipeline.predict(X)
    )
    assert clone(fitted).get_params() == model.get_params()
    assert cross_val_score(model, X, y, cv=3).mean() > 0.7
    grid = GridSearchCV(model, {"metric": ["error", "hinge"]}, cv=2).fit(X, y)
    assert grid.best_score_ > 0.7
    scores = joblib.Parallel(n_jobs=2)(
        joblib.delayed(lambda seed: SpanSVC(n_trials=3, random_state=seed).fit(X, y).best_loss_)(s)
        for s in (0, 0)
    )
    assert scores[0] == scores[1]


def test_metadata_routing():
    """Weights, scores and groups find their way through a pipeline when they are asked for."""
    X, y = two_moons(60)
    scores = np.linspace(0, 1, 60)
    with sklearn.config_context(enable_metadata_routing=True):
        model = SpanSVC(RBF(gamma=1.0), SigmoidScore(C=4.0, A=3.0, B=0.5))
        model.set_fit_request(sample_weight=True, scores=True, groups=True)
        pipeline = make_pipeline(FunctionTransformer(), model)
        pipeline.fit(X, y, sample_weight=np.ones(60), scores=scores, groups=np.arange(60))
    direct = SpanSVC(RBF(gamma=1.0), SigmoidScore(C=4.0, A=3.0, B=0.5)).fit(X, y, scores=scores)
    np.testing.assert_allclose(pipeline[-1].loo_.decision_values, direct.loo_.decision_values)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_trials": 0}, "`n_trials` must be a whole number of at least 1, got 0"),
        ({"n_jobs": 0}, "`n_jobs` must be a whole number of at least 1, got 0"),
        ({"metric": ("error", "auc")}, "`metric` must be one metric for a search"),
        ({"metric": "accuracy"}, "`metric` must be one of"),
        ({"kernel": "gauss"}, "`kernel` must be one of"),
        ({"budgets": (2.0,)}, "`budgets` must have shares of at most 1.0, got 2.0"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    """What cannot be is refused by name."""
    with pytest.raises(ValueError, match="must") as caught:
        SpanSVC(**settings).fit(*two_moons(30))
    assert message in str(caught.value)


def test_class_costs_by_label():
    """A search over one cost per class, with another kernel."""
    X, y = two_moons(60)
    labels = np.where(y > 0, "yes", "no")
    model = SpanSVC(Linear(), ClassCosts(), n_trials=5, random_state=0).fit(X, labels)
    assert set(model.best_params_) == {"C_no", "C_yes"}
    assert set(model.predict(X)) <= {"no", "yes"}


@pytest.mark.parametrize("scale", ["minmax", "standard", None])
def test_model_can_be_kept_in_a_file(tmp_path, scale):
    """A predictor with the scaler gives the predictions of the classifier, from raw features."""
    X, y = load_iris(return_X_y=True)
    model = SpanSVC(n_trials=4, scale=scale, random_state=0).fit(X, y)
    predictor = Predictor.from_svc(
        model.estimator_, scaler=model.scaler_, parameters=model.best_params_
    )
    predictor.save(tmp_path / "model.json")
    loaded = Predictor.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_another_search():
    """A function may choose the hyperparameters; what it returns is checked."""
    X, y = two_moons(80)
    model = SpanSVC(search=lambda objective: objective.defaults()[1]).fit(X, y)
    assert model.best_params_ == model.objective_.defaults()[1]
    assert model.study_ is None
    with pytest.raises(ValueError, match="`params` must name exactly"):
        SpanSVC(search=lambda objective: {}).fit(X, y)
