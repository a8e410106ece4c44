"""Evaluations of candidates, in batches, in order and in threads."""

import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import loguniform
from sklearn.datasets import load_digits
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.svm import SVC

from span_hpo import FunctionKernel, LooSVC, SpanObjective, SpanSearchCV
from span_hpo.calibration import loo_sigmoids
from span_hpo.estimators.outcomes import (
    SearchedRows,
    bootstrap_error,
    outcome_of,
    outcomes_in_batches,
    outcomes_in_order,
)
from span_hpo.estimators.scoring import read_scoring
from span_hpo.estimators.search_rows import TrainingRows
from span_hpo.estimators.shared_objectives import SharedObjectives
from span_hpo.selection import honest_estimate_of
from tests.problems import two_moons

X, y = two_moons(60, noise=0.4)
CANDIDATES = [
    {"polynomialfeatures__degree": degree, "svc__C": C, "svc__gamma": gamma}
    for degree in (1, 2)
    for gamma in (0.1, 1.0)
    for C in (0.1, 1.0, 10.0)
]
PIPELINE = make_pipeline(PolynomialFeatures(), SVC())


def indefinite(rows, others):
    """Return a kernel that is not positive semi-definite, which no fit accepts."""
    return np.tanh(rows @ others.T + 0.5)


def shared_for(estimator=PIPELINE, metrics=("error",), X=X, y=y):
    rows = TrainingRows(X, y, None, False, {})
    return SharedObjectives(estimator, rows, metrics=metrics, loo_method="span", memory_limit=None)


@pytest.mark.parametrize("threads", [1, 3])
def test_batches_find_what_single_evaluations_find(threads):
    """Candidates that are evaluated together have the same losses, figures and row losses."""
    expected = [outcome_of(shared_for(), candidate) for candidate in CANDIDATES]
    batches, ordered = {}, {}
    outcomes_in_batches(
        shared_for(),
        CANDIDATES,
        prefix="svc__",
        threads=threads,
        found=batches,
    )
    outcomes_in_order(
        shared_for(), CANDIDATES, threads=threads, is_over=lambda: False, found=ordered
    )
    for number, outcome in enumerate(expected):
        for found in (batches[number], ordered[number]):
            assert found.params is CANDIDATES[number]
            assert found.losses == outcome.losses
            assert found.figures == pytest.approx(outcome.figures, rel=1e-6)
            np.testing.assert_array_equal(found.rows.losses[0], outcome.rows.losses[0])


def test_an_outcome_is_that_of_an_evaluation():
    """Losses, standard errors, bounds and figures are those of the objective."""
    shared = shared_for(metrics=("balanced_error", "hinge", "auc"))
    placed = shared.placed(CANDIDATES[3])
    evaluation = placed.objective.evaluate(placed.point)
    found = outcome_of(shared, CANDIDATES[3])
    assert found.losses == tuple(evaluation.losses.values())
    assert found.standard_errors[0] == evaluation.standard_error
    assert found.standard_errors[1] > 0
    assert math.isnan(found.standard_errors[2])
    figures = found.figures
    assert (figures["loo_error_low"], figures["loo_error_high"]) == evaluation.loo.error_bounds
    assert figures["n_support"] == evaluation.n_support
    assert found.rank(0) == evaluation.rank


def test_a_search_that_is_over_begins_nothing():
    """The first candidate is always evaluated, and no other one after the end."""
    found = {}
    outcomes_in_order(shared_for(), CANDIDATES, threads=1, is_over=lambda: True, found=found)
    assert list(found) == [0]
    outcomes_in_order(
        shared_for(), CANDIDATES, threads=1, is_over=lambda: len(found) > 3, found=found
    )
    assert sorted(found) == [0, 1, 2, 3]


@pytest.mark.parametrize("threads", [1, 2])
def test_failed_fits_are_no_numbers(threads):
    """A candidate whose fit fails has scores of NaN and a reason, and the others count."""
    kernel = FunctionKernel(indefinite)
    candidates = [{"kernel": kernel, "C": 1e4}, {"kernel": "rbf"}]
    shared, found = shared_for(SVC()), {}
    outcomes_in_batches(shared, candidates, prefix="", threads=threads, found=found)
    assert math.isnan(found[0].losses[0])
    assert found[0].rows is None
    assert "positive semi-definite" in found[0].failure
    assert found[1].failure is None
    assert found[1].losses[0] < 0.5
    assert found[0].rank(0) > found[1].rank(0)
    assert outcome_of(shared, candidates[0]).failure == found[0].failure


@pytest.mark.parametrize("threads", [1, 3])
def test_other_errors_surface(threads):
    """An error that is no failed fit ends the search."""
    found = {}
    candidates = [{"svc__C": 1.0}, {"svc__C": -1.0}, *({"svc__C": 2.0},) * 5]
    with pytest.raises(ValueError, match="`C` must be a finite number above 0"):
        outcomes_in_order(
            shared_for(), candidates, threads=threads, is_over=lambda: False, found=found
        )


@pytest.mark.parametrize("kind", ["grid", "tpe"])
def test_figures_do_not_depend_on_the_other_scores(kind):
    """With "exact", ties and columns are those of the exact values, whatever else is scored."""
    space = {"C": [0.3, 3.0, 30.0], "gamma": [0.3, 3.0]}
    if kind == "tpe":
        space = {"C": loguniform(0.1, 100), "gamma": [0.3, 3.0]}
    one, two = (
        SpanSearchCV(
            SVC(), space, search=kind, n_iter=5, scoring=scoring, refit=refit, random_state=0,
            loo_method="exact",
        ).fit(X, y)
        for scoring, refit in (("accuracy", True), (["accuracy", "roc_auc"], "accuracy"))
    )  # fmt: skip
    for name in ("smooth_error", "n_undefined", "loo_error"):
        np.testing.assert_allclose(one.cv_results_[name], two.cv_results_[name], atol=1e-9)
    for params, smooth in zip(
        one.cv_results_["params"], one.cv_results_["smooth_error"], strict=True
    ):
        values = LooSVC(**params, loo_method="exact").fit(X, y).loo_decision_values_
        assert smooth == pytest.approx(np.mean(expit(-4 * y * values)), abs=1e-6)


@pytest.mark.parametrize("loo_method", ["auto", "exact"])
def test_an_indefinite_kernel_is_no_candidate(loo_method):
    """A kernel that a LooSVC refuses has no leave-one-out values in a search either."""
    search = SpanSearchCV(
        SVC(), {"kernel": [lambda a, b: -(a @ b.T), "rbf"]}, search="grid", loo_method=loo_method
    )
    with pytest.warns(FitFailedWarning, match="positive semi-definite"):
        search.fit(X, y)
    assert search.best_params_ == {"kernel": "rbf"}


def test_the_honest_estimate_is_that_of_all_points():
    """Row losses that were kept give the estimate that the points give when evaluated again."""
    candidates = [{"C": C, "gamma": 1.0} for C in np.geomspace(0.01, 100, 25)]
    shared = shared_for(SVC())
    outcomes = [outcome_of(shared, candidate) for candidate in candidates]
    found = SearchedRows.of(outcomes, shared).honest_estimate()
    placed = [shared.placed(candidate) for candidate in candidates]
    expected = honest_estimate_of(
        placed[0].objective,
        [one.point for one in placed],
        [outcome.rank(0) for outcome in outcomes],
    )
    assert (found.error, found.interval) == (expected.error, expected.interval)
    assert found.optimistic == expected.optimistic == min(one.losses[0] for one in outcomes)
    assert found.n_trials == 25


def test_the_bootstrap_judges_scores_that_are_no_means():
    """The standard error of F1 is the spread of F1 over samples of rows within the classes."""
    shared = shared_for(SVC(), metrics=("error", "f1"))
    outcome = outcome_of(shared, {"gamma": 1.0})
    found = bootstrap_error(shared, outcome, 1)
    placed = shared.placed({"gamma": 1.0})
    values = placed.objective.evaluate(placed.point).loo.decision_values
    rng = np.random.default_rng(1)
    scores = []
    for _ in range(400):
        rows = np.concatenate([rng.choice(np.flatnonzero(y == c), (y == c).sum()) for c in (-1, 1)])
        scores.append(f1_score(y[rows], np.where(values[rows] > 0, 1, -1)))
    assert found == pytest.approx(np.std(scores), rel=0.25)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["neg_log_loss", "roc_auc_ovr"])
def test_the_bootstrap_holds_probabilities_fixed(name, weighted):
    """The spread of a score of probabilities is that of fixed ones, which are fitted only once."""
    labels = (np.arange(60) % 3).astype(int)
    weight = np.linspace(0.5, 2.0, 60) if weighted else np.ones(60)
    scores = read_scoring(name, np.arange(3), weighted=True)
    shared = SharedObjectives(
        SVC(), TrainingRows(X, labels, weight, True, {}), metrics=(scores["score"].metric,),
        loo_method="span", memory_limit=None,
    )  # fmt: skip
    found = bootstrap_error(shared, outcome_of(shared, {"gamma": 1.0}), 0)
    fixed = LooSVC(gamma=1.0, loo_method="span").fit(X, labels, weight).loo_proba_
    rng, spread = np.random.default_rng(1), []
    for _ in range(300):
        rows = np.concatenate([rng.choice(np.flatnonzero(labels == c), 20) for c in range(3)])
        if name == "neg_log_loss":
            chosen = np.log(fixed[rows, labels[rows]])
            spread.append(np.average(chosen, weights=weight[rows]))
        else:
            spread.append(
                roc_auc_score(
                    labels[rows], fixed[rows], multi_class="ovr", sample_weight=weight[rows]
                )
            )
    assert found == pytest.approx(np.std(spread), rel=0.25)


def test_the_bootstrap_fits_no_sigmoid(monkeypatch):
    """Ten classes have 45 sigmoids, which are fitted for the score and once for its spread."""
    fits = []
    monkeypatch.setattr(
        "span_hpo.estimators.left_out.loo_sigmoids",
        lambda *given: fits.append(1) or loo_sigmoids(*given),
    )
    rows, labels = load_digits(return_X_y=True)
    search = SpanSearchCV(SVC(), {"C": [1.0]}, search="grid", scoring="neg_log_loss")
    search.fit(rows[:120], labels[:120])
    assert search.cv_results_["std_test_score"][0] > 0
    assert len(fits) < 9


def test_several_classes():
    """Candidates of three classes are evaluated in batches as well."""
    labels = np.arange(60) % 3
    shared, found = shared_for(SVC(), y=labels), {}
    candidates = [{"C": 1.0}, {"C": 5.0}]
    outcomes_in_batches(shared, candidates, prefix="", threads=1, found=found)
    objective = SpanObjective(X, labels, kernel=shared.placed({}).objective.kernel)
    gamma = 1 / (2 * X.var())
    costs = dict.fromkeys(("C_0", "C_1", "C_2"), 5.0)
    assert found[1].losses[0] == objective.evaluate({"gamma": gamma, **costs}).loss
