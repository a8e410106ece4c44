"""The classifier that tunes itself."""

import os
import pickle
import signal
import subprocess
import sys
import time

import joblib
import numpy as np
import optuna
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
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
from span_hpo.estimators.scaling import SCALES
from span_hpo.kernels.functions import KERNELS
from span_hpo.loo import METHODS
from span_hpo.metrics import METRICS
from span_hpo.search import PRUNERS, SAMPLERS
from span_hpo.weighting import WEIGHTINGS
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


@pytest.mark.filterwarnings("ignore::span_hpo.ScalingWarning")  # the checks use few rows
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
    objective = SpanObjective(scaled, y, weighting="uniform")
    assert objective(model.best_params_) == model.best_loss_ == model.loo_error_
    expected = objective.fit_model(model.best_params_)
    np.testing.assert_array_equal(model.predict(X), expected.predict(scaled))
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(scaled))
    low, high = model.loo_bounds_
    assert low <= objective.evaluate(model.best_params_, loo_method="exact").loss <= high


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


def test_suspects_are_probably_wrong():
    """Rows with a probability above one half are listed, and most of them were flipped."""
    X, y = two_moons(400, noise=0.15)
    flipped = np.random.default_rng(0).choice(400, 40, replace=False)
    y[flipped] *= -1
    model = SpanSVC(**FIXED).fit(X, y)
    p, suspects = model.label_error_probability_, model.suspects_
    assert p.shape == (400,)
    assert set(suspects) == set(np.flatnonzero(p > 0.5))
    assert (np.diff(p[suspects]) <= 0).all()
    right = np.isin(suspects, flipped)
    assert len(suspects) >= 25
    assert right.mean() > 0.85
    assert p[suspects].sum() == pytest.approx(right.sum(), rel=0.2)


def test_overlap_is_no_suspicion():
    """A quarter of the rows is misclassified, but no label is wrong, and hardly any is listed."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    X = rng.normal(size=(400, 2)) + y[:, None]
    model = SpanSVC(**FIXED).fit(X, y)
    assert model.loo_error_ > 0.2
    assert len(model.suspects_) <= 2


def test_suspects_of_a_kernel_matrix_and_of_another_fit():
    """A kernel matrix knows the distances; a new fit forgets the suspects of the previous one."""
    X, y = two_moons(300, noise=0.1)
    y[:40] *= -1
    settings = {"weighting": UniformCost(1.0), "scale": None}
    plain = SpanSVC("linear", **settings).fit(X, y)
    model = SpanSVC("precomputed", **settings).fit(X @ X.T, y)
    np.testing.assert_array_equal(model.suspects_, plain.suspects_)
    assert len(plain.suspects_)
    y[:40] *= -1
    assert not len(plain.fit(X, y).suspects_)


def test_suspects_need_a_fit():
    """Before `fit` there are no suspects."""
    with pytest.raises(NotFittedError, match="not fitted yet"):
        SpanSVC().suspects_  # noqa: B018  the access itself raises


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


@pytest.mark.parametrize("pruner", ["median", "percentile", "halving", "hyperband"])
def test_pruners_need_no_budgets(pruner):
    """A pruner of a name stops trials, but not the defaults, and a quarter is complete."""
    X, y = two_moons(160)
    model = SpanSVC(pruner=pruner, sampler="random", n_trials=30, random_state=0).fit(X, y)
    states = [trial.state.name for trial in model.study_.trials]
    assert 8 <= states.count("COMPLETE") < 30
    starts = len(model.objective_.defaults())
    assert states[:starts] == ["COMPLETE"] * starts
    assert model.study_.trials[0].intermediate_values.keys() == {20, 40, 80, 160}


def test_a_pruner_without_budgets_is_named():
    """A pruner object that can stop no trial is worth one warning, which names the budgets."""
    with pytest.warns(UserWarning, match="`budgets` must have several numbers .* MedianPruner can"):
        SpanSVC(pruner=optuna.pruners.MedianPruner(), n_trials=3).fit(*two_moons(40))


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
        (
            {"n_jobs": 0},
            "`n_jobs` must be a whole number of at least 1, or -1 for all cores",
        ),
        ({"metric": ("error", "auc")}, "`metric` must be one metric for a search"),
        ({"metric": "accuracy"}, "`metric` must be one of"),
        ({"kernel": "gauss"}, "`kernel` must be one of"),
        ({"budgets": (2.0,)}, "`budgets` must have shares of at most 1.0, got 2.0"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    """What cannot be is refused by name."""
    with pytest.raises(ValueError, match="must") as caught:
        SpanSVC(**settings).fit(*two_moons(40))
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


def test_all_cores_search():
    """With `n_jobs=-1` the trials run in threads, and their losses are those of one thread."""
    X, y = two_moons(60)
    model = SpanSVC(n_trials=8, n_jobs=-1, random_state=0).fit(X, y)
    assert len(model.study_.trials) == 8
    assert model.objective_(model.best_params_) == model.best_loss_ == model.study_.best_value


class Pressing:
    """A metric that presses Ctrl-C at its n-th call."""

    def __init__(self, at):
        self.left = at

    def __call__(self, y, decision_values):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)  # the main thread handles it
        return float(np.mean(y * decision_values <= 0))


@pytest.fixture
def heeded():
    """Let this process heed Ctrl-C, even if it was started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_keeps_the_best_so_far(heeded, n_jobs):
    """A warning says how many trials there are, and the model is that of the best of them."""
    X, y = two_moons(60)
    model = SpanSVC(metric=Pressing(at=9), n_trials=10_000, n_jobs=n_jobs, random_state=0)
    with pytest.warns(UserWarning, match=r"interrupted after \d+ trials\. The model is that of"):
        model.fit(X, y)
    losses = [trial.value for trial in model.study_.trials if trial.value is not None]
    assert 7 <= len(losses) <= 12
    assert model.best_loss_ == min(losses)
    assert model.predict(X).shape == (60,)


def test_ctrl_c_before_the_first_trial_interrupts(heeded):
    """Without a finished trial there is no model, and the interrupt is passed on."""
    with pytest.raises(KeyboardInterrupt):
        SpanSVC(metric=Pressing(at=1), random_state=0).fit(*two_moons(60))


def test_as_many_trials_as_the_time_allows():
    """With `n_trials=None` the `timeout` ends the search, and without one there is an error."""
    start = time.monotonic()
    model = SpanSVC(n_trials=None, timeout=0.5, random_state=0).fit(*two_moons(60))
    assert 0.4 < time.monotonic() - start < 10
    assert len(model.study_.trials) > 5
    with pytest.raises(ValueError, match=r"`n_trials` must be .* Give one of the two"):
        SpanSVC(n_trials=None).fit(*two_moons(60))


def test_help_names_what_can_be_chosen():
    """``help(SpanSVC)`` lists every word that an argument accepts."""
    described = SpanSVC.__doc__
    words = [*KERNELS, *WEIGHTINGS, *METRICS, *METHODS, *SAMPLERS, *PRUNERS, *SCALES]
    missing = [word for word in words if f'"{word}"' not in described]
    assert not missing
