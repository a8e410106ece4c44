"""Searches: grids, random candidates, and samplers of Optuna."""

import subprocess
import sys
import time

import numpy as np
import pytest
from scipy import stats
from sklearn.decomposition import PCA
from sklearn.exceptions import FitFailedWarning
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from span_hpo import SpanObjective, SpanSearchCV
from span_hpo.estimators.candidate_search import KINDS, CandidateSearch
from tests.places import ROOT
from tests.problems import two_moons

SPACE = {"C": stats.loguniform(0.1, 100), "gamma": stats.loguniform(0.01, 10)}
X, y = two_moons(60)


def search_for(space=SPACE, **settings):
    """Return the search of an estimator with these arguments."""
    return CandidateSearch.of(SpanSearchCV(SVC(), space, **settings), [space])


def fitted(**settings):
    return SpanSearchCV(SVC(), SPACE, random_state=0, **settings).fit(X, y)


@pytest.mark.parametrize("kind", ["tpe", "qmc", "cmaes"])
def test_samplers_draw_candidates(kind):
    """A study has the candidates, and a seed decides them."""
    search, again = (fitted(search=kind, n_iter=8) for _ in range(2))
    assert search.cv_results_["params"] == again.cv_results_["params"]
    assert [trial.params for trial in search.study_.trials] == search.cv_results_["params"]
    values = [trial.value for trial in search.study_.trials]
    np.testing.assert_allclose(values, 1 - search.cv_results_["mean_test_score"])
    assert search.study_.trials[0].user_attrs["loo_error"] == search.cv_results_["loo_error"][0]
    assert "gp" in KINDS


def test_lists_and_dictionaries_are_options_of_a_sampler():
    """Options that are no plain values come back as they were given."""
    space = {"class_weight": [None, {-1.0: 3.0}], "C": [1, 2], "gamma": stats.norm(2, 0.1)}
    search = SpanSearchCV(SVC(), space, n_iter=10, random_state=0).fit(X, y)
    weights = [params["class_weight"] for params in search.cv_results_["params"]]
    assert all(weight in space["class_weight"] for weight in weights)
    assert {params["C"] for params in search.cv_results_["params"]} == {1, 2}
    assert 1.5 < np.mean(search.cv_results_["param_gamma"]) < 2.5


def test_a_sampler_is_better_than_chance():
    """Later candidates of TPE are better than its first ones."""
    scores = fitted(n_iter=40).cv_results_["mean_test_score"]
    assert scores[-20:].mean() > scores[:10].mean()


@pytest.mark.parametrize("kind", ["random", "tpe"])
def test_patience_and_timeout_end_a_search(kind):
    """The search ends when nothing gets better, or in time; the first candidate is evaluated."""
    search = fitted(search=kind, n_iter=2000, patience=10)
    scores = search.cv_results_["mean_test_score"]
    assert len(scores) < 2000
    assert scores[:-10].max() >= scores[-10:].max()
    start = time.monotonic()
    search = fitted(search=kind, n_iter=3000, timeout=0.05)
    assert time.monotonic() - start < 60
    assert 1 <= len(search.cv_results_["params"]) < 3000
    assert len(fitted(search="random", n_iter=3, timeout=1e-9).cv_results_["params"]) == 1


@pytest.mark.parametrize(
    "settings", [{"search": "tpe"}, {"search": "random", "patience": 1000}], ids=["tpe", "random"]
)
def test_ctrl_c_keeps_the_best_so_far(settings):
    """A warning says how many candidates there are; without any, the interrupt is passed on."""
    left = [10]  # one of them for the check before the first fit

    def error(y, decision_values):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return float(np.mean(y * decision_values <= 0))

    with pytest.warns(UserWarning, match=r"interrupted after \d candidates. The model is that of"):
        search = fitted(scoring=error, n_iter=100, loo_method="span", **settings)
    assert len(search.cv_results_["params"]) == 8
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    left[0] = 2
    with pytest.raises(KeyboardInterrupt):
        fitted(scoring=error, n_iter=100, loo_method="span", **settings)


@pytest.mark.parametrize("kind", ["random", "grid", "tpe"])
def test_threads_find_the_same(kind):
    """Scores of the candidates do not depend on the number of threads."""
    space = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]} if kind == "grid" else SPACE
    settings = {"n_iter": 6, "search": kind, "random_state": 0}
    one, two = (SpanSearchCV(SVC(), space, n_jobs=n, **settings).fit(X, y) for n in (None, 2))
    if kind != "tpe":
        assert one.cv_results_["params"] == two.cv_results_["params"]
    for found in (one, two):
        for params, score in zip(
            found.cv_results_["params"], found.cv_results_["mean_test_score"], strict=True
        ):
            alone = {name: [value] for name, value in params.items()}
            assert SpanSearchCV(SVC(), alone, search="grid").fit(X, y).best_score_ == score


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"search": "bayes"}, r"`search` must be one of \['grid', 'random', 'tpe'.*, got 'bayes'"),
        ({"search": None}, "`search` must be one of"),
        ({"n_iter": 0}, "`n_iter` must be a whole number of at least 1, got 0"),
        ({"patience": 0}, "`patience` must be a whole number of at least 1"),
        ({"timeout": 0}, "`timeout` must be a finite number above 0"),
        ({"n_jobs": 0}, "`n_jobs` must be"),
        ({"search": "grid", "space": {"C": [1]}, "patience": 3}, "`patience` must be None for"),
    ],
)
def test_settings_are_checked(settings, message):
    """One sentence says which setting is not valid."""
    with pytest.raises(ValueError, match=message):
        search_for(**settings)


@pytest.mark.parametrize("kind", ["grid", "random", "tpe"])
@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"C": [1.0, -1.0]}, "`C` must be a finite number above 0, got -1.0"),
        ({"kernel": ["rbf", "sigmoid"]}, "'sigmoid' is not. Use GridSearchCV"),
        ({"class_weight": ["equal"]}, "`class_weight` must be a dictionary"),
        ({"degree": [2.5], "kernel": ["poly"]}, "`degree` must be a whole number"),
    ],
)
def test_arguments_are_checked_before_any_fit(kind, space, message):
    """Each value of a list is one that the SVM can have."""
    with pytest.raises(ValueError, match=message):
        search_for(space, search=kind).check_arguments(SVC().get_params(), "")


@pytest.mark.parametrize("kind", ["grid", "random", "tpe"])
def test_weights_of_unknown_classes_are_refused_before_any_fit(kind, monkeypatch):
    """Dictionaries of class weights are compared with the labels, also those not drawn yet."""
    fits = []
    monkeypatch.setattr(SpanObjective, "evaluate", lambda *rest, **more: fits.append(rest))
    space = {"class_weight": [None, {-1.0: 1, 7.0: 2}], "C": stats.loguniform(0.1, 10)}
    if kind == "grid":
        space["C"] = [1.0]
    search = SpanSearchCV(SVC(), space, search=kind, n_iter=9, loo_method="span")
    with pytest.raises(ValueError, match=r"`class_weight` must have labels of `y`.*7"):
        search.fit(X, y)
    assert not fits


class RaisingKernel:
    """A kernel of a user that fails."""

    def __call__(self, X, Z):
        raise RuntimeError("no such kernel")


def kernel_of_nothing(X, Z):
    return np.full((len(X), len(Z)), np.nan)


@pytest.mark.parametrize("loo_method", ["auto", "span"])
@pytest.mark.parametrize("count", [60, 160])
@pytest.mark.parametrize(
    ("settings", "space"),
    [
        ({"search": "grid"}, {}),
        ({"search": "random", "patience": 50}, {}),
        ({"search": "tpe", "n_iter": 8}, {"svc__C": stats.loguniform(0.1, 10)}),
    ],
    ids=["grid", "random", "tpe"],
)
@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("pca__n_components", [2, 400], "n_components=400"),
        ("svc__kernel", ["rbf", RaisingKernel()], "RuntimeError: no such kernel"),
        ("svc__kernel", [kernel_of_nothing, "rbf"], "finite"),
    ],
    ids=["transformer", "raises", "nan"],
)
def test_a_candidate_that_fails_has_a_score_of_nan(
    settings, space, name, options, message, loo_method, count
):
    """What a transformer or kernel raises is told in a warning, and the other candidates count."""
    rows, labels = two_moons(count)
    pipeline = make_pipeline(PCA(), SVC())
    search = SpanSearchCV(
        pipeline, {name: options, **space}, random_state=0, loo_method=loo_method, **settings
    )
    with pytest.warns(FitFailedWarning, match=message):
        search.fit(rows, labels)
    bad = next(option for option in options if option not in (2, "rbf"))
    for params, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        assert np.isnan(score) == (params[name] == bad or type(params[name]) is RaisingKernel)
    assert search.best_params_[name] in (2, "rbf")
    assert 0 < search.honest_error_ < 0.5
    nothing = SpanSearchCV(pipeline, {name: [bad]}, search="grid", loo_method=loo_method)
    with pytest.raises(ValueError, match=f"No candidate could be fitted.*{message}"):
        nothing.fit(rows, labels)


def test_ends_of_ranges_are_checked():
    """A sampler would draw invalid costs sooner or later."""
    with pytest.raises(ValueError, match=r"`C` must be a finite number above 0, got -1"):
        search_for({"C": stats.uniform(-1, 3)}).check_arguments({}, "")


def test_grids_and_random_searches_need_no_optuna():
    """Only the samplers of Optuna ask for it."""
    code = """
import sys
sys.modules["optuna"] = None
from sklearn.svm import SVC
from span_hpo import Float, SpanSearchCV
from tests.problems import two_moons
for search in ("grid", "random", "tpe"):
    try:
        C = Float(1.0, 2.0) if search == "tpe" else [1.0]
        print(SpanSearchCV(SVC(), {"C": C}, search=search).fit(*two_moons(40)).best_params_)
    except ImportError as error:
        print(error)
"""
    lines = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout.splitlines()
    assert lines[:2] == ["{'C': 1.0}"] * 2
    assert "search='tpe' needs Optuna: pip install 'span-hpo[optuna]'" in lines[2]


def test_few_combinations_are_tried_once_each():
    """A sampler has nothing to add to lists with at most `n_iter` combinations."""
    space = {"C": [0.1, 1.0, 10.0], "gamma": [0.5, 2.0]}
    search = SpanSearchCV(SVC(), space, n_iter=6, patience=50, random_state=0).fit(X, y)
    tried = [(params["C"], params["gamma"]) for params in search.cv_results_["params"]]
    assert sorted(tried) == sorted((C, gamma) for C in space["C"] for gamma in space["gamma"])
    assert search.study_ is None
    assert SpanSearchCV(SVC(), space, n_iter=5, random_state=0).fit(X, y).study_ is not None
