"""Estimators that follow gradients: widths of features, and the best point of another search."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV

from benchmarks.harness.data import load
from span_hpo import (
    ARD,
    RBF,
    ClassCosts,
    Float,
    FunctionKernel,
    SpanObjective,
    SpanSVC,
    UniformCost,
    minimize,
)
from span_hpo.estimators.gradients import REFINING_EVALUATIONS, as_refine
from span_hpo.objective import with_derivatives
from tests.benchmarks.data_sets import with_data
from tests.places import ROOT
from tests.problems import two_moons
from tests.relevant import RELEVANT, thinned, two_of_twelve

pytestmark = pytest.mark.filterwarnings("ignore::span_hpo.ScalingWarning")


def test_two_relevant_features_are_found():
    """Of twelve features the two that matter come first, and the error falls with their number."""
    X, y = two_of_twelve(noise=0.05)
    new, truth = two_of_twelve(1000, seed=1)
    model = SpanSVC("ard").fit(X, y)
    first, second, third = list(model.feature_relevance_)[:3]
    assert {first, second} == set(RELEVANT)
    assert model.feature_relevance_[second] > 5 * model.feature_relevance_[third]
    plain = SpanSVC(n_trials=50, random_state=0).fit(X, y)
    assert model.score(new, truth) > 0.92
    assert model.score(new, truth) > plain.score(new, truth) + 0.1


@pytest.mark.slow
@with_data
def test_the_junction_of_splice_is_found():
    """Of 60 bases around a splice junction the four at the junction decide, as biology has it."""
    split = load("splice")
    names = [f"base {place}" for place in [*range(-30, 0), *range(1, 31)]]
    train, test = (pd.DataFrame(X, columns=names) for X in (split.X_train, split.X_test))
    model = SpanSVC("ard").fit(train, split.y_train)
    assert set(list(model.feature_relevance_)[:3]) <= {"base -2", "base -1", "base 1", "base 2"}
    assert 1 - model.score(test, split.y_test) <= 0.05  # 0.104 with one width
    letters = (
        train.mul(3).round().astype(int).astype(str).replace(dict(zip("0123", "ACGT", strict=True)))
    )
    of_letters = SpanSVC("ard", n_trials=10).fit(letters, split.y_train)
    assert of_letters.objective_.data.X.shape[1] == 4 * 60
    assert len(of_letters.best_params_) == 61
    assert set(of_letters.feature_relevance_) == set(names)


def test_search_is_minimize():
    """The point is that of `minimize` with the smooth error, and its loss the metric's own."""
    X, y = two_of_twelve(80)
    model = SpanSVC("ard", n_trials=25, scale=None).fit(X, y)
    objective = SpanObjective(X, y, kernel="ard", weighting="uniform", metric="smooth_error")
    found = minimize(objective, max_evaluations=25)
    assert model.best_params_ == found.params
    search = model.gradient_search_
    assert (search.metric, search.n_evaluations) == ("smooth_error", 25)
    assert [step.params for step in search.minimum.path] == [step.params for step in found.path]
    error = SpanObjective(X, y, kernel="ard", weighting="uniform")
    assert model.best_loss_ == error(found.params) == search.loss_after == model.loo_error_
    assert search.loss_before == error(found.path[0].params)
    assert model.study_ is None
    assert model.refinement_ is None


@pytest.mark.parametrize(
    ("metric", "followed"),
    [
        ("hinge", "hinge"),
        ("log_loss", "log_loss"),
        ("error", "smooth_error"),
        ("balanced_error", "balanced_smooth_error"),
        ("auc", "balanced_smooth_error"),
    ],
)
def test_metrics(metric, followed):
    """A metric with derivatives is followed itself; the loss is always that of the metric."""
    X, y = two_of_twelve(70)
    model = SpanSVC("ard", metric=metric, n_trials=12).fit(X, y)
    assert model.gradient_search_.metric == followed
    assert model.best_loss_ == model.objective_(model.best_params_)
    assert followed in repr(model.gradient_search_)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_rows_of_all_kinds(classes, is_sparse):
    """Dense and sparse rows of two or three classes have a width for each feature."""
    X, y = two_of_twelve(90)
    y = y if classes == 2 else np.where(X[:, 0] > 0.5, 2, y)
    X = thinned(X, 0.2) if is_sparse else X
    model = SpanSVC("ard", n_trials=15).fit(X, y)
    names = [f"gamma_{number}" for number in range(12)]
    assert list(model.best_params_) == [*names, "C"]
    assert set(model.feature_relevance_) == set(range(12))
    assert model.gradient_search_.minimum.loss < model.gradient_search_.minimum.path[0].loss
    assert model.predict_proba(X).shape == (90, classes)


def test_weights_of_rows_and_classes():
    """Weights of rows reach the gradients, and costs of classes are searched with the widths."""
    X, y = two_of_twelve(80)
    weight = np.random.default_rng(0).uniform(0.2, 3, 80)
    weight[::9] = 0
    kept = weight > 0
    model = SpanSVC("ard", ClassCosts(), n_trials=15).fit(X, y, sample_weight=weight)
    small = SpanSVC("ard", ClassCosts(), n_trials=15).fit(X[kept], y[kept], weight[kept])
    assert set(model.best_params_) >= {"C_0", "C_1"}
    assert model.best_params_ == small.best_params_
    np.testing.assert_array_equal(model.predict(X), small.predict(X))
    unweighted = SpanSVC("ard", ClassCosts(), n_trials=15).fit(X[kept], y[kept])
    assert model.best_params_ != unweighted.best_params_


def test_the_sum_of_the_weights_does_not_matter():
    """Weights that add up to 1, or are huge, have a start as good as weights around 1."""
    X, y = two_of_twelve(noise=0.05)
    plain = SpanSVC("ard", scale=None).fit(X, y)
    for weight in (1 / 150, 30.0):
        model = SpanSVC("ard", scale=None).fit(X, y, sample_weight=np.full(150, weight))
        start = model.gradient_search_.minimum.path[0].params
        assert start["C"] * weight == pytest.approx(2.0)
        assert start["gamma_0"] == plain.gradient_search_.minimum.path[0].params["gamma_0"]
        assert set(list(model.feature_relevance_)[:2]) == set(RELEVANT)


def test_higher_costs_where_the_first_have_no_gradient():
    """If all support vectors are bounded at the start, the search begins with higher costs."""
    X, y = two_moons(60, noise=0.1)
    kernel = ARD(gamma=Float(1e-4, 1e-3, log=True))
    model = SpanSVC(kernel, scale=None, n_trials=12).fit(X, y)
    path = model.gradient_search_.minimum.path
    assert path[0].reason
    assert not path[-1].reason
    assert path[-1].params["C"] >= 10


def test_a_sampler_may_be_named():
    """Then the widths are searched with Optuna, and there is a study and an honest error."""
    X, y = two_of_twelve(60)
    model = SpanSVC("ard", sampler="random", n_trials=6, random_state=0).fit(X, y)
    assert len(model.study_.trials) == 6
    assert model.gradient_search_ is None
    assert 0 <= model.honest_error_ <= 1
    assert len(model.feature_relevance_) == 12


def test_the_final_loss_may_be_exact():
    """The search follows the span-rule, and the method that is asked for judges its result."""
    X, y = two_of_twelve(50)
    model = SpanSVC("ard", n_trials=10, loo_method="exact").fit(X, y)
    low, high = model.loo_bounds_
    assert low == high == model.best_loss_ == model.loo_error_
    assert SpanSVC("ard", n_trials=2).fit(X, y).loo_method_ == "exact"  # few rows


def test_seeds_and_threads_change_nothing():
    """A search by gradients has no random part, and clones and pickles keep what it found."""
    X, y = two_of_twelve(60)
    model = SpanSVC("ard", n_trials=8, random_state=0).fit(X, y)
    other = clone(model).set_params(random_state=7, n_jobs=2).fit(X, y)
    assert model.best_params_ == other.best_params_
    copy = pickle.loads(pickle.dumps(model))
    assert copy.feature_relevance_ == model.feature_relevance_
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


def test_optuna_is_not_needed():
    """A search by gradients does not import Optuna."""
    code = """
import sys
sys.modules["optuna"] = None
from span_hpo import SpanSVC
from tests.relevant import two_of_twelve
print(len(SpanSVC("ard", n_trials=3, scale=None).fit(*two_of_twelve(60)).best_params_))
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert found.stdout == "13\n"


@pytest.mark.parametrize("trials", [None, 10_000])
def test_time_limit(trials):
    """The search ends with the time, after its first evaluation."""
    X, y = two_of_twelve(60)
    model = SpanSVC("ard", n_trials=trials, timeout=0.05 if trials else 60).fit(X, y)
    search = model.gradient_search_
    if trials is None:
        assert search.n_evaluations == 60  # the default of `minimize`
    else:
        assert 1 <= search.n_evaluations < 1000
        assert search.minimum.reason == "The time is up."


class Interrupted:
    """The hinge loss of a user who presses Ctrl-C in the fifth evaluation."""

    __name__ = "interrupted"

    def __init__(self):
        self.calls = 0

    def __call__(self, y, values):
        return float(np.maximum(1 - y * values, 0).mean())

    def gradient(self, y, values):
        self.calls += 1
        if self.calls == 5:
            raise KeyboardInterrupt
        return np.where(y * values < 1, -y, 0) / len(y)


def test_ctrl_c_keeps_the_best_point():
    """The search ends with a warning, and the model is that of the best point so far."""
    X, y = two_of_twelve(80)
    with pytest.warns(UserWarning, match="interrupted after 4 evaluations"):
        model = SpanSVC("ard", "uniform", metric=Interrupted(), loo_method="span").fit(X, y)
    search = model.gradient_search_
    assert search.n_evaluations == 4
    best = min(search.minimum.path, key=lambda step: step.value)
    assert (model.best_params_, model.best_loss_) == (best.params, pytest.approx(best.loss))
    assert model.predict(X).shape == (80,)


def test_grid_search_over_kernels_and_steps():
    """GridSearchCV compares kernels and numbers of steps."""
    X, y = two_of_twelve(90)
    grid = {"kernel": ["rbf", "ard"], "refine": [False, 3]}
    search = GridSearchCV(SpanSVC(n_trials=5, random_state=0), grid, cv=2).fit(X, y)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_score_ > 0.5


def test_refining_keeps_the_better():
    """The loss is at most that of the study, and the steps begin at the best trial."""
    X, y = two_moons(80, noise=0.3)
    kept = []
    for seed in range(4):
        model = SpanSVC(metric="smooth_error", n_trials=3, random_state=seed, refine=15)
        model.fit(X, y)
        steps = model.refinement_
        assert steps.minimum.path[0].params == model.study_.best_params
        assert (steps.n_evaluations, steps.loss_before) == (15, model.study_.best_value)
        assert model.best_loss_ == min(steps.loss_before, steps.loss_after)
        assert model.objective_(model.best_params_) == model.best_loss_
        chosen = steps.minimum.params if steps.is_kept else model.study_.best_params
        assert model.best_params_ == chosen
        kept.append(steps.is_kept)
    assert any(kept)


def test_refining_does_not_trade_the_error_for_a_smooth_one():
    """Steps along the smooth error are kept only if the error itself is not higher."""
    X, y = two_moons(60, noise=0.4)
    for seed in range(3):
        model = SpanSVC(n_trials=20, random_state=seed, refine=True).fit(X, y)
        assert model.refinement_.n_evaluations == REFINING_EVALUATIONS
        assert model.best_loss_ <= model.study_.best_value
        if model.refinement_.loss_after > model.refinement_.loss_before:
            assert not model.refinement_.is_kept


def test_refining_after_other_searches():
    """A user's search, a search by gradients and an ensemble are refined; a fixed point is not."""
    X, y = two_of_twelve(60)
    start = {"gamma": 1.0, "C": 1.0}
    own = SpanSVC(search=lambda objective: start, metric="hinge", refine=8).fit(X, y)
    assert own.refinement_.minimum.path[0].params == start
    twice = SpanSVC("ard", n_trials=5, refine=5).fit(X, y)
    assert twice.refinement_.minimum.path[0].params == twice.gradient_search_.minimum.params
    fixed = SpanSVC(RBF(gamma=1.0), UniformCost(1.0), refine=True).fit(X, y)
    assert fixed.refinement_ is None
    several = SpanSVC(n_trials=5, ensemble=True, refine=5, random_state=0).fit(X, y)
    assert several.best_params_ in [several.study_.best_params, several.refinement_.minimum.params]


def test_refining_keeps_widths_equal_unless_others_are_worth_it():
    """Steps from equal widths are kept only if they gain more than three standard errors."""
    rng, kept = np.random.default_rng(0), []
    noise = rng.normal(size=(60, 8))
    problems = [(noise, rng.random(60) < 1 / (1 + np.exp(-2 * noise[:, 0]))), two_of_twelve(100)]
    for X, y in [*problems, (noise, rng.integers(2, size=60))]:
        objective = SpanObjective(X, y, kernel="ard", weighting="uniform", metric="smooth_error")
        names = [name for name in objective.space if name != "C"]
        alike = minimize(SpanObjective(X, y, weighting="uniform", metric="smooth_error")).params
        start = {**dict.fromkeys(names, alike["gamma"]), "C": alike["C"]}
        model = SpanSVC("ard", "uniform", metric="smooth_error", scale=None, refine=60)
        model.set_params(search=lambda objective, start=start: start).fit(X, y)
        steps = model.refinement_
        compared = steps.minimum.comparison
        if compared is None:  # no step has gained anything
            assert steps.minimum.params == start
            continue
        assert compared.gain == pytest.approx(compared.alike.value - steps.minimum.value)
        losses = [
            objective.row_losses(point.params).losses[0]
            for point in (compared.alike, compared.apart)
        ]
        error = np.std(losses[0] - losses[1], ddof=1) / np.sqrt(len(y))
        assert compared.standard_error == pytest.approx(error, rel=0.02, abs=1e-5)
        least = max(3 * compared.standard_error, 0.5 / len(y))
        assert compared.is_worth_it == (compared.gain > least)
        assert not steps.is_kept or compared.is_worth_it
        assert (model.best_params_ == start) == (not steps.is_kept)
        kept.append(steps.is_kept)
    assert set(kept) == {False, True}


def test_ensembles_of_a_path():
    """Members are points of the path, and relevances are their weighted mean."""
    X, y = two_of_twelve(90)
    model = SpanSVC("ard", n_trials=25, ensemble=True).fit(X, y)
    path = [step.params for step in model.gradient_search_.minimum.path]
    assert all(params in path for params in model.members_params_)
    assert sum(model.feature_relevance_.values()) > 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"storage": "sqlite:///x.db"}, "`storage` must be None for a search by gradients"),
        ({"study_name": "x"}, "`study_name` must be None.*sampler='tpe'"),
        ({"pruner": "median"}, "`pruner` must be None"),
        ({"budgets": (0.5, 1.0)}, "`budgets` must be None"),
        ({"patience": 4}, "`patience` must be None.*got 4"),
        ({"n_trials": None}, "n_trials"),
        ({"n_trials": 0}, "n_trials"),
        ({"refine": -1}, "`refine` must be a whole number of at least 1, got -1"),
        ({"refine": "yes"}, "`refine` must be True, False or a number of evaluations, got 'yes'"),
    ],
)
def test_bad_settings(settings, message):
    """What only a search with Optuna uses is refused before the search."""
    X, y = two_of_twelve(30)
    with pytest.raises(ValueError, match=message):
        SpanSVC("ard", **settings).fit(X, y)


def product(X, Z, shift):
    return X @ Z.T + shift


class WithoutGradient:
    """A user's weighting as it may be written."""

    space = {"C": Float(0.1, 10, log=True)}  # noqa: RUF012

    def costs(self, data, params):
        return np.full(len(data), params["C"])


def test_no_derivative():
    """What has none is named before the search begins."""
    X, y = two_of_twelve(30)
    shifted = FunctionKernel(product, {"shift": Float(0.1, 1)})
    began = []

    def search(objective):
        began.append(objective)
        return {}

    with pytest.raises(ValueError, match="`kernel` must have a derivative"):
        SpanSVC(shifted, search=search, refine=True).fit(X, y)
    with pytest.raises(ValueError, match=r"`weighting` must have a derivative.*WithoutGradient"):
        SpanSVC(weighting=WithoutGradient(), search=search, refine=True).fit(X, y)
    with pytest.raises(ValueError, match="`weighting` must have a derivative"):
        SpanSVC("ard", WithoutGradient()).fit(X, y)
    with pytest.raises(ValueError, match="at least one real number without a step"):
        SpanSVC(RBF(gamma=Float(1, 2, step=0.5)), UniformCost(1.0), refine=True).fit(X, y)
    assert not began


def test_a_kernel_matrix_may_be_refined():
    """The costs of a kernel without hyperparameters have derivatives."""
    X, y = two_moons(60)
    K = rbf_kernel(X, gamma=1.0)
    model = SpanSVC("precomputed", n_trials=3, random_state=0, refine=4).fit(K, y)
    assert model.refinement_.n_evaluations == 4


def test_no_gradient_at_the_start_is_said():
    """Where no support vector is in-bound, the model is that of the start, with a warning."""
    X, y = two_moons(40)
    kernel, weighting = ARD(gamma=Float(1e-6, 1e-5, log=True)), UniformCost(Float(0.01, 0.02))
    with pytest.warns(UserWarning, match="There is no gradient at the start"):
        model = SpanSVC(kernel, weighting, n_trials=9).fit(X, y)
    path = model.gradient_search_.minimum.path
    assert len(path) < 9
    assert all(step.reason for step in path)


def test_no_honest_error_of_a_path():
    """The path of a search by gradients is no sample of trials, and the message says so."""
    X, y = two_of_twelve(40)
    model = SpanSVC("ard", n_trials=2).fit(X, y)
    with pytest.raises(AttributeError, match="`honest_error_` is there after a search with Optuna"):
        _ = model.honest_error_
    with pytest.raises(AttributeError, match="needs a kernel with a width for each feature"):
        _ = SpanSVC(RBF(gamma=1.0), UniformCost(1.0)).fit(X, y).feature_relevance_


def test_numbers_of_evaluations():
    """True stands for a number, and False and None for no steps."""
    assert [as_refine(given) for given in (True, np.True_, False, None, 7)] == [30, 30, 0, 0, 7]


def test_the_objective_stays_as_it_is():
    """Searching by another metric leaves the objective of the estimator alone."""
    X, y = two_of_twelve(40)
    model = SpanSVC("ard", n_trials=2, metric="auc").fit(X, y)
    assert model.objective_.metrics[0].name == "auc"
    assert with_derivatives(model.objective_).metrics[0].name == "balanced_smooth_error"
