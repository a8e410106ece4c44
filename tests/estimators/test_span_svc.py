"""The classifier that tunes itself."""

import pickle

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
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
    ScalingWarning,
    SigmoidScore,
    SpanObjective,
    SpanSVC,
    UniformCost,
)
from span_hpo.estimators.scaling import SCALES
from span_hpo.integrations.optuna import honest_estimate
from span_hpo.kernels import KERNELS
from span_hpo.loo import METHODS
from span_hpo.metrics import METRICS
from span_hpo.search import PRUNERS, SAMPLERS
from span_hpo.weighting import WEIGHTINGS
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
@pytest.mark.filterwarnings("ignore:The search by gradients has ended")  # on the same few rows
@parametrize_with_checks(
    [
        SpanSVC(**FIXED, tol=1e-6),
        SpanSVC(n_trials=3),
        SpanSVC(n_trials=3, ensemble=True),
        SpanSVC("ard", n_trials=2, refine=2),
        SpanSVC(**FIXED, tol=1e-6, impute="median"),
    ],
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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"loo_method": "foo"}, "`loo_method` must be one of"),
        ({"patience": 0}, "`patience` must be a whole number of at least 1, got 0"),
        ({"n_trials": 0}, "`n_trials` must be a whole number of at least 1, got 0"),
        ({"n_jobs": 0}, "`n_jobs` must be a whole number of at least 1"),
        ({"metric": ("error", "auc")}, "`metric` must be one metric for a search"),
        ({"kernel": "gauss"}, "`kernel` must be one of"),
    ],
)
def test_wrong_settings_are_named_before_warnings(settings, message):
    """A fit that cannot be made does not warn of its scaling first."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 20)), np.arange(40) % 2  # most rows define some minimum or maximum
    with pytest.warns(ScalingWarning):
        SpanSVC(RBF(gamma=1.0), UniformCost(1.0)).fit(X, y)
    with pytest.raises(ValueError, match=message):  # and no warning, which would be an error
        SpanSVC(**settings).fit(X, y)


def test_class_costs_by_label():
    """A search over one cost per class, with another kernel."""
    X, y = two_moons(60)
    labels = np.where(y > 0, "yes", "no")
    model = SpanSVC(Linear(), ClassCosts(), n_trials=5, random_state=0).fit(X, labels)
    assert set(model.best_params_) == {"C_no", "C_yes"}
    assert set(model.predict(X)) <= {"no", "yes"}


def test_help_names_what_can_be_chosen():
    """``help(SpanSVC)`` lists every word that an argument accepts."""
    described = SpanSVC.__doc__
    words = [*KERNELS, *WEIGHTINGS, *METRICS, *METHODS, *SAMPLERS, *PRUNERS, *SCALES]
    missing = [word for word in words if f'"{word}"' not in described]
    assert not missing


def test_an_honest_estimate_of_the_search():
    """The optimism of the search is corrected; it is that of the study, also after a pickle."""
    X, _ = two_moons(80)
    y = np.random.default_rng(0).choice(["no", "yes"], 80)
    model = SpanSVC(n_trials=40, random_state=0).fit(X, y)
    low, high = model.honest_interval_
    assert model.best_loss_ < model.honest_error_ < high
    assert low < 0.5 < high
    assert model.honest_error_ == honest_estimate(model.study_, model.objective_).error
    assert pickle.loads(pickle.dumps(model)).honest_error_ == model.honest_error_


def test_no_honest_estimate_without_a_search_or_a_mean():
    """The attribute is absent, and the message says why."""
    X, y = two_moons(40)
    with pytest.raises(AttributeError, match="after a search with Optuna only"):
        SpanSVC(**FIXED).fit(X, y).honest_error_  # noqa: B018  the access itself raises
    model = SpanSVC(n_trials=3, metric="auc").fit(X, y)
    with pytest.raises(AttributeError, match=r"`honest_interval_` is not available: .* has none"):
        model.honest_interval_  # noqa: B018  as above
    assert not hasattr(model, "honest_error_")
