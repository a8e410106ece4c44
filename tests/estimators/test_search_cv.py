"""The search that takes one fit for each candidate."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import stats
from sklearn.base import clone, is_classifier
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.metrics import fbeta_score, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    LeaveOneOut,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from span_hpo import LooSVC, SpanSearchCV
from tests.problems import two_moons

SPACE = {"svc__C": stats.loguniform(0.1, 100), "svc__gamma": stats.loguniform(0.01, 10)}
PIPELINE = make_pipeline(StandardScaler(), SVC())
TWO_EQUAL_ROWS = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "SVC fails them itself: its gamma='scale' counts equal rows but not weights",
)


@parametrize_with_checks(
    [
        SpanSearchCV(SVC(), {"C": stats.loguniform(0.1, 10)}, n_iter=3, random_state=0),
        SpanSearchCV(LooSVC(), {"C": [1, 10]}, search="grid"),
        SpanSearchCV(PIPELINE, {"svc__C": [1, 10]}, search="grid"),
    ],
    expected_failed_checks=lambda one: TWO_EQUAL_ROWS,
)
def test_estimator_checks(estimator, check):
    """It is a classifier by scikit-learn's rules."""
    check(estimator)


@pytest.mark.parametrize("k", [2, 3])
def test_scores_are_those_of_refits(k):
    """With "refit", every score is that of ``LeaveOneOut`` on the transformed rows."""
    X, y = two_moons(40, noise=0.4)
    y = y if k == 2 else np.array(["a", "b", "c"])[(np.arange(40) + (X[:, 1] > 0)) % 3]
    search = SpanSearchCV(
        PIPELINE, SPACE, n_iter=4, search="random", random_state=0, loo_method="refit"
    ).fit(X, y)
    features = StandardScaler().fit_transform(X)
    for params, score in zip(
        search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
    ):
        own = {name.removeprefix("svc__"): value for name, value in params.items()}
        folds = cross_val_score(SVC(**own, tol=1e-8), features, y, cv=LeaveOneOut())
        assert score == pytest.approx(folds.mean())


@pytest.mark.parametrize("scoring", ["roc_auc", "f1", "neg_brier_score", "f1_macro", "precision"])
def test_other_scores_are_those_of_refits(scoring):
    """The scorer sees the labels and values that ``LeaveOneOut`` predicts."""
    X, y = two_moons(50, noise=0.4)
    search = SpanSearchCV(
        SVC(gamma=1.0), {"C": [0.5, 5.0]}, search="grid", scoring=scoring, loo_method="refit"
    ).fit(X, y)
    if scoring == "neg_brier_score":
        assert (search.cv_results_["mean_test_score"] > -0.25).all()
        return
    for C, score in zip((0.5, 5.0), search.cv_results_["mean_test_score"], strict=True):
        model, method = SVC(C=C, gamma=1.0, tol=1e-8), "predict"
        if scoring == "roc_auc":
            method = "decision_function"
        predicted = cross_val_predict(model, X, y, cv=LeaveOneOut(), method=method)
        metric = sklearn.metrics.get_scorer(scoring)

        class Known(SVC):
            classes_ = np.array([-1.0, 1.0])

            def predict(self, X):
                return predicted  # noqa: B023  called at once

            decision_function = predict

        assert score == pytest.approx(metric(Known(), X, y))


def test_candidates_are_those_of_randomized_search():
    """The same seed gives the same candidates, so that results can be compared one by one."""
    X, y = two_moons(80)
    settings = {"n_iter": 12, "random_state": 3}
    ours = SpanSearchCV(PIPELINE, SPACE, search="random", **settings).fit(X, y)
    theirs = RandomizedSearchCV(PIPELINE, SPACE, cv=5, **settings).fit(X, y)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    scores = [one.cv_results_["mean_test_score"] for one in (ours, theirs)]
    assert np.corrcoef(scores)[0, 1] > 0.7


def test_a_grid_search_is_replaced_word_for_word():
    """Attributes and columns are those of ``GridSearchCV``, and the best model predicts."""
    X, y = two_moons(60)
    grid = {"svc__C": [0.1, 1, 10], "svc__gamma": ["scale", 1.0], "svc__class_weight": [{-1: 2}]}
    ours = SpanSearchCV(PIPELINE, grid, search="grid").fit(X, y)
    theirs = GridSearchCV(PIPELINE, grid).fit(X, y)
    public = {name for name in vars(theirs) if name.endswith("_")}
    assert public <= set(vars(ours))
    assert set(theirs.cv_results_) - set(ours.cv_results_) == {
        f"split{fold}_test_score" for fold in range(1, 5)
    }
    assert ours.best_params_ == ours.cv_results_["params"][ours.best_index_]
    assert ours.best_score_ == ours.cv_results_["mean_test_score"].max()
    assert ours.cv_results_["rank_test_score"][ours.best_index_] == 1
    assert (ours.n_splits_, ours.multimetric_, ours.n_features_in_) == (1, False, 2)
    assert ours.classes_.tolist() == [-1, 1]
    expected = clone(PIPELINE).set_params(**ours.best_params_).fit(X, y)
    np.testing.assert_array_equal(ours.decision_function(X), expected.decision_function(X))
    np.testing.assert_array_equal(ours.predict(X), expected.predict(X))
    assert ours.score(X, y) == expected.score(X, y)
    assert type(ours.best_estimator_[-1]) is SVC
    assert not hasattr(ours, "predict_proba")


def test_standard_errors_are_those_of_the_rows():
    """Errors of accuracies are binomial, and other scores have one where they are best."""
    X, y = two_moons(60, noise=0.5)
    search = SpanSearchCV(
        SVC(),
        {"C": [0.01, 1, 100]},
        search="grid",
        scoring=["accuracy", "roc_auc"],
        refit="roc_auc",
        loo_method="refit",
    ).fit(X, y)
    results = search.cv_results_
    accuracy = results["mean_test_accuracy"]
    np.testing.assert_allclose(
        results["std_test_accuracy"], np.sqrt(accuracy * (1 - accuracy) / 59)
    )
    known = np.isfinite(results["std_test_roc_auc"])
    assert known.tolist() == (results["rank_test_roc_auc"] == 1).tolist()
    assert 0.01 < results["std_test_roc_auc"][search.best_index_] < 0.1


def test_probabilities_come_from_a_loo_svc():
    """A `LooSVC`, alone or in a pipeline, is fitted with the best parameters and calibrated."""
    X, y = two_moons(60)
    for estimator, space in (
        (LooSVC(), {"C": [0.1, 1, 10]}),
        (make_pipeline(MinMaxScaler(), LooSVC()), {"loosvc__C": [0.1, 1, 10]}),
    ):
        search = SpanSearchCV(estimator, space, search="grid").fit(X, y)
        found = search.predict_proba(X)
        np.testing.assert_allclose(found.sum(axis=1), 1)
        assert type(search.best_estimator_) is type(estimator)
        model = search.best_estimator_
        model = model if isinstance(model, LooSVC) else model[-1]
        assert 1 - model.loo_error_ == search.best_score_
    assert SpanSearchCV(LooSVC(loo_method="refit"), {}, search="grid").fit(X, y).loo_method_ == (
        "refit"
    )


def test_several_scores_and_one_that_decides():
    """Each score has its columns, and `refit` names the one that chooses."""
    X, y = two_moons(80, noise=0.5)
    scoring = {
        "acc": "accuracy",
        "area": "roc_auc",
        "our": "balanced_error",
        "f2": make_scorer(fbeta_score, beta=2),
    }
    space, settings = {"C": stats.loguniform(0.01, 1000)}, {"n_iter": 6, "random_state": 0}
    for decisive in ("our", "f2"):
        search = SpanSearchCV(SVC(), space, scoring=scoring, refit=decisive, **settings).fit(X, y)
        results = search.cv_results_
        assert search.multimetric_
        assert search.best_score_ == results[f"mean_test_{decisive}"].max()
        assert list(search.scorer_) == list(scoring)
        expected = search.scorer_[decisive](search.best_estimator_, X, y)
        assert search.score(X, y) == pytest.approx(expected)
        for name in scoring:
            assert results[f"rank_test_{name}"].min() == 1
    np.testing.assert_allclose(results["mean_test_acc"], 1 - results["loo_error"])
    search = SpanSearchCV(SVC(), space, scoring=scoring, refit=False, **settings).fit(X, y)
    assert not hasattr(search, "best_index_")
    assert not hasattr(search, "predict")


def test_a_function_may_choose():
    """A rule of one standard error takes the fewest support vectors among good candidates."""
    X, y = two_moons(80, noise=0.5)

    def fewest(results):
        best = results["mean_test_score"].argmax()
        least = results["mean_test_score"][best] - results["std_test_score"][best]
        good = results["mean_test_score"] >= least
        return int(np.where(good, results["n_support"], np.inf).argmin())

    search = SpanSearchCV(SVC(), {"C": [0.1, 1, 10, 100, 1000]}, search="grid", refit=fewest).fit(
        X, y
    )
    results = search.cv_results_
    assert search.best_index_ == fewest(results)
    assert search.best_params_["C"] == search.best_estimator_.C
    assert results["n_support"][search.best_index_] <= results["n_support"].min() * 2
    with pytest.raises(AttributeError, match=r"`refit` must be True or the name of a score"):
        search.honest_  # noqa: B018


def test_transformers_are_searched():
    """Parameters of transformers, and transformers themselves, are part of a candidate."""
    X, y = two_moons(60)
    X = np.column_stack([X, np.random.default_rng(0).normal(size=(60, 8))])
    pipeline = make_pipeline(StandardScaler(), PCA(), SVC())
    grid = {
        "standardscaler": [StandardScaler(), "passthrough", MinMaxScaler()],
        "pca__n_components": [2, 5],
        "svc__C": [1.0, 10.0],
    }
    search = SpanSearchCV(pipeline, grid, search="grid", loo_method="refit").fit(X, y)
    assert len(search.cv_results_["params"]) == 12
    best = clone(pipeline).set_params(**search.best_params_)
    features = best[:-1].fit_transform(X)
    expected = cross_val_score(best[-1].set_params(tol=1e-8), features, y, cv=LeaveOneOut())
    assert search.best_score_ == pytest.approx(expected.mean())
    assert isinstance(grid["standardscaler"][0], StandardScaler)
    assert not hasattr(grid["standardscaler"][0], "mean_")


def test_data_frames_keep_their_names():
    """A pipeline gets the DataFrame itself, with columns of text."""
    X, y = two_moons(60)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": np.where(y > 0, "u", "v")})
    columns = make_column_transformer((StandardScaler(), ["a", "b"]), (OneHotEncoder(), ["kind"]))
    search = SpanSearchCV(make_pipeline(columns, SVC()), {"svc__C": [1, 10]}, search="grid").fit(
        frame, y
    )
    assert search.feature_names_in_.tolist() == ["a", "b", "kind"]
    assert search.best_score_ == 1.0
    assert search.predict(frame).tolist() == y.tolist()


def test_weights_are_costs_and_weights_of_scores():
    """A weight of 0 removes a row, and others count in the costs and in the score."""
    X, y = two_moons(60, noise=0.5)
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.1, 3, 60)
    search = SpanSearchCV(SVC(), {"gamma": [0.5, 2.0]}, search="grid", loo_method="refit")
    search.fit(X, y, sample_weight=weight)
    wrong = []
    for row in range(60):
        others = np.arange(60) != row
        model = SVC(gamma=0.5, tol=1e-8).fit(X[others], y[others], weight[others])
        wrong.append(model.predict(X[[row]])[0] != y[row])
    expected = 1 - weight[wrong].sum() / weight.sum()
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(expected)
    best = SVC(**search.best_params_).fit(X, y, weight)
    np.testing.assert_array_equal(search.decision_function(X), best.decision_function(X))
    weight[::4] = 0
    with_zeros = search.fit(X, y, sample_weight=weight).cv_results_["mean_test_score"]
    kept = weight > 0
    without = search.fit(X[kept], y[kept], sample_weight=weight[kept])
    np.testing.assert_allclose(with_zeros, without.cv_results_["mean_test_score"])


def test_metadata_routing():
    """With routing, the SVM must request the weights, and a search can be part of a pipeline."""
    X, y = two_moons(60)
    weight = np.linspace(0.1, 3, 60)
    plain = SpanSearchCV(SVC(), {"C": [1, 10]}, search="grid").fit(X, y, sample_weight=weight)
    with sklearn.config_context(enable_metadata_routing=True):
        svm = SVC().set_fit_request(sample_weight=True)
        search = SpanSearchCV(svm, {"C": [1, 10]}, search="grid")
        routed = clone(search).fit(X, y, sample_weight=weight)
        inside = make_pipeline("passthrough", search.set_fit_request(sample_weight=True))
        inside.fit(X, y, sample_weight=weight)
    for found in (routed, inside[-1]):
        np.testing.assert_array_equal(
            found.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
        )
        np.testing.assert_array_equal(found.decision_function(X), plain.decision_function(X))


def test_the_honest_estimate():
    """On labels that are pure noise the best score is too good, and the estimate is not."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 5)), np.arange(100) % 2
    space = {"C": stats.loguniform(0.01, 100), "gamma": stats.loguniform(0.01, 10)}
    search = SpanSearchCV(SVC(), space, search="random", n_iter=60, random_state=0).fit(X, y)
    low, high = search.honest_interval_
    assert search.honest_.optimistic == pytest.approx(1 - search.best_score_)
    assert search.honest_.optimistic < search.honest_error_
    assert low < search.honest_error_ < high
    assert low < 0.5 < high
    area = SpanSearchCV(SVC(), {"C": [1]}, search="grid", scoring="roc_auc").fit(X, y)
    with pytest.raises(AttributeError, match=r"`scoring` must be a mean over rows .*'roc_auc'"):
        area.honest_error_  # noqa: B018


def test_a_selection_of_features_by_labels_is_refused():
    """On noise, features that are selected by all labels would give an error far below 0.5."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3000)), np.arange(60) % 2
    pipeline = make_pipeline(SelectKBest(k=20), SVC())
    leaking = cross_val_score(SVC(), SelectKBest(k=20).fit_transform(X, y), y, cv=LeaveOneOut())
    assert 1 - leaking.mean() < 0.2
    search = SpanSearchCV(pipeline, {"svc__C": [1.0, 10.0]}, search="grid")
    with pytest.raises(ValueError, match=r"step 'selectkbest' \(SelectKBest\).*Use GridSearchCV"):
        search.fit(X, y)
    assert not hasattr(search, "cv_results_")
    search.set_params(param_distributions={"selectkbest__k": [3000, 20]})
    with pytest.raises(ValueError, match=r"Use GridSearchCV with folds"):
        search.fit(X, y)


@pytest.mark.parametrize(
    ("settings", "kind", "message"),
    [
        ({"estimator": LinearSVC()}, TypeError, "got LinearSVC. Use GridSearchCV"),
        ({"estimator": SVC(kernel="sigmoid")}, ValueError, "'sigmoid' is not. Use GridSearchCV"),
        ({"estimator": SVC(probability=True)}, ValueError, r"got True. Give LooSVC\(\)"),
        ({"param_distributions": {"probability": [True]}}, ValueError, "not search `probability`"),
        ({"param_distributions": {"c": [1]}}, ValueError, "got 'c'. Did you mean 'C'"),
        ({"param_distributions": []}, ValueError, "has no candidates"),
        ({"n_iter": 0}, ValueError, "`n_iter` must be"),
        ({"scoring": "f1_samples"}, ValueError, "`scoring` must give one number"),
        ({"scoring": ["accuracy", "f1"]}, ValueError, r"one of the scores \['accuracy', 'f1'\]"),
        ({"scoring": "accuracy", "refit": "f1"}, ValueError, "`refit` must be True, False or"),
        ({"loo_method": "best"}, ValueError, "`loo_method` must be one of"),
    ],
)
def test_bad_input_is_refused_before_any_fit(settings, kind, message, monkeypatch):
    """One sentence says what is wrong, and no SVM is fitted before."""
    import span_hpo.objective.span_objective as objectives

    def refuse(*arguments, **settings):
        raise AssertionError("an objective was made")

    monkeypatch.setattr(objectives.SpanObjective, "__init__", refuse)
    given = {"estimator": SVC(), "param_distributions": {"C": [1, 2]}} | settings
    with pytest.raises(kind, match=message):
        SpanSearchCV(**given).fit(*two_moons(30))


@pytest.mark.parametrize(
    ("own", "kind", "message"),
    [
        ({"threshold": "loo"}, 3, "`threshold` must not be given for more than two classes"),
        ({"miss_cost": {"a": 1, "b": 2}}, 2, "`miss_cost` must name each of the labels"),
        ({"threshold": 2.0}, 2, "`threshold` must be None, 'loo' or a probability"),
        ({"threshold": "loo", "metric": "auc"}, 2, "which no threshold changes"),
        ({"metric": "nonsense"}, 2, "`metric` must be one of"),
    ],
)
@pytest.mark.parametrize("in_pipeline", [False, True])
def test_arguments_of_the_final_model_are_checked_before_any_fit(
    own, kind, message, in_pipeline, monkeypatch
):
    """What the LooSVC itself would refuse after the search is refused before it."""
    import span_hpo.objective.span_objective as objectives

    def refuse(*arguments, **settings):
        raise AssertionError("an objective was made")

    monkeypatch.setattr(objectives.SpanObjective, "__init__", refuse)
    estimator, grid = LooSVC(**own), {"C": [1, 10]}
    if in_pipeline:
        estimator, grid = make_pipeline(StandardScaler(), estimator), {"loosvc__C": [1, 10]}
    with pytest.raises(ValueError, match=message):
        SpanSearchCV(estimator, grid, search="grid").fit(two_moons(30)[0], np.arange(30) % kind)


def test_a_metric_of_the_final_model_takes_the_weights():
    """A loss without weights is refused if there are any, and else it is not."""

    def own_loss(y, decision_values):
        return float(np.mean(y * decision_values < 0))

    X, y = two_moons(30)
    search = SpanSearchCV(LooSVC(metric=own_loss), {"C": [1]}, search="grid")
    with pytest.raises(ValueError, match="own_loss must take an argument `weight`"):
        search.fit(X, y, sample_weight=np.ones(30))
    assert search.fit(X, y).best_params_ == {"C": 1}


@pytest.mark.parametrize("method", ["auto", "span", "exact", "refit"])
@pytest.mark.parametrize("in_pipeline", [False, True])
def test_the_final_model_has_the_method_of_the_search(method, in_pipeline):
    """The leave-one-out error of the best estimator is that in the results."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(90, 4))
    y = (X[:, 0] + rng.normal(size=90) > 0).astype(int)
    estimator, grid = LooSVC(), {"C": [0.3, 100.0], "gamma": [0.05, 1.0]}
    if in_pipeline:
        estimator = make_pipeline(StandardScaler(), estimator)
        grid = {f"loosvc__{name}": values for name, values in grid.items()}
    search = SpanSearchCV(estimator, grid, search="grid", loo_method=method).fit(X, y)
    best = search.best_estimator_[-1] if in_pipeline else search.best_estimator_
    assert best.loo_method_ == search.loo_method_
    assert method in ("auto", search.loo_method_)
    assert best.loo_error_ == search.cv_results_["loo_error"][search.best_index_]


def test_methods_that_contradict_each_other_are_refused():
    """Either of the search and the LooSVC may name the method, or both the same."""
    X, y = two_moons(30)
    for own, given in (("span", "auto"), ("auto", "span"), ("span", "span")):
        search = SpanSearchCV(LooSVC(loo_method=own), {"C": [1]}, search="grid", loo_method=given)
        assert search.fit(X, y).best_estimator_.loo_method_ == "span"
    search = SpanSearchCV(LooSVC(loo_method="exact"), {"C": [1]}, search="grid", loo_method="span")
    with pytest.raises(ValueError, match="'auto' or that of the LooSVC, 'exact', got 'span'"):
        search.fit(X, y)


def test_groups_are_refused():
    """Leaving single rows out says nothing about new groups."""
    X, y = two_moons(30)
    with pytest.raises(ValueError, match=r"`groups` must be None.*GroupKFold"):
        SpanSearchCV(SVC(), {"C": [1]}).fit(X, y, groups=y)


def test_it_can_be_cloned_pickled_and_nested():
    """A search is an estimator among others: parameters, copies, and an outer cross-validation."""
    X, y = two_moons(60)
    search = SpanSearchCV(PIPELINE, SPACE, n_iter=5, random_state=0, scoring="roc_auc_ovr")
    assert is_classifier(search)
    assert search.get_params()["estimator__svc__C"] == 1.0
    search.set_params(estimator__svc__kernel="linear", n_iter=4)
    assert clone(search).estimator[-1].kernel == "linear"
    with pytest.raises(NotFittedError):
        search.predict(X)
    fitted = pickle.loads(pickle.dumps(search.fit(X, y)))
    np.testing.assert_array_equal(fitted.predict(X), search.predict(X))
    assert len(fitted.study_.trials) == 4
    outer = SpanSearchCV(SVC(), {"C": [1, 10]}, search="grid")
    assert cross_val_score(outer, X, y, cv=3).mean() > 0.8


def test_verbose_prints_two_lines(capsys):
    """One line says how many candidates there are, another one which is the best."""
    SpanSearchCV(SVC(), {"C": [1, 10]}, search="grid", verbose=1).fit(*two_moons(30))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "SpanSearchCV: 2 candidates, with one fit of all rows for each"
    assert lines[1].startswith("SpanSearchCV: best score 0.")
