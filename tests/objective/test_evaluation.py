import functools
import json
from html.parser import HTMLParser

import numpy as np
import pytest

from span_hpo import RBF, SpanObjective, UniformCost
from span_hpo.calibration import platt_sigmoid
from span_hpo.metrics import METRICS
from span_hpo.objective.evaluation import model_rank
from tests.problems import two_moons


class Cells(HTMLParser):
    def __init__(self):
        super().__init__()
        self.texts, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_evaluation_prints_loss_and_parameters():
    """As text and as HTML, with names escaped."""
    X, y = two_moons(40)
    objective = SpanObjective(X, np.where(y > 0, "<b>", "a"), metric=("error", "hinge"))
    evaluation = objective.evaluate({"gamma": 1.0, "C_a": 2.0, "C__b_": 0.123456789})
    text = repr(evaluation)
    for piece in ("error", "hinge", "gamma", "0.123457", "40 rows", "support vectors"):
        assert piece in text
    page = Cells()
    page.feed(evaluation._repr_html_())
    assert not page.open
    assert "0.123457" in page.texts
    assert "hinge" in page.texts


def evaluated(**settings):
    """Return an evaluation of fixed hyperparameters on 40 rows."""
    fixed = {"kernel": RBF(gamma=1.0), "weighting": UniformCost(2.0), **settings}
    return SpanObjective(*two_moons(40), **fixed).evaluate({})


def test_models_are_ranked_by_loss_then_smooth_error_then_size():
    """Each criterion only breaks the ties of those before it; what is not known ranks last."""
    ranked = [
        (0.1, {"smooth_error": 0.9, "n_support": 99}),
        (0.2, {"smooth_error": 0.1, "n_support": 50}),
        (0.2, {"smooth_error": 0.2, "n_support": 5}),
        (0.2, {"smooth_error": 0.2, "n_support": 6}),
        (0.2, {"smooth_error": 0.2}),
        (0.2, {"n_support": 1}),
        (0.2, {}),
        (0.3, {"smooth_error": 0.0, "n_support": 2}),
    ]
    for shuffled in (ranked[::-1], ranked[4:] + ranked[:4]):
        assert sorted(shuffled, key=lambda model: model_rank(*model)) == ranked


def test_smooth_error_by_its_formula():
    """It is the weighted mean of 1 / (1 + exp(4 y f)), whatever the metric is."""
    weight = np.random.default_rng(0).uniform(0.5, 2, 40)
    evaluation = evaluated(metric="auc", metric_weight=weight)
    margins = evaluation.loo.y * evaluation.loo.decision_values
    expected = np.average(1 / (1 + np.exp(4 * margins)), weights=weight)
    assert evaluation.smooth_error == pytest.approx(expected)
    assert evaluation.rank == (evaluation.loss, evaluation.smooth_error, evaluation.n_support)


def test_standard_errors_of_evaluations():
    """The error has that of a share; a rank metric has one on demand, but no figure of it."""
    evaluation = evaluated()
    share = evaluation.loss
    expected = np.sqrt(share * (1 - share) / 39)
    assert evaluation.standard_error == pytest.approx(expected)
    assert evaluation.figures()["loo_standard_error"] == evaluation.standard_error
    assert f"{expected:.4f}" in repr(evaluation)
    ranks = evaluated(metric="auc")
    assert 0 < ranks.standard_error < 0.2
    assert "loo_standard_error" not in ranks.figures()
    assert ranks.row_losses is None


def test_paired_standard_errors():
    """Rows that both evaluations get wrong do not count; without any difference it is 0."""
    objective = SpanObjective(*two_moons(40, noise=0.5), weighting=UniformCost())
    one, other = (objective.evaluate({"gamma": gamma, "C": 1.0}) for gamma in (0.3, 30.0))
    wrong = [e.loo.y * e.loo.decision_values <= 0 for e in (one, other)]
    differences = wrong[0].astype(float) - wrong[1]
    expected = differences.std(ddof=1) / np.sqrt(40)
    assert 0 < expected < np.hypot(one.standard_error, other.standard_error)
    assert one.paired_standard_error(other) == pytest.approx(expected)
    assert one.paired_standard_error(one) == 0
    ranks = evaluated(metric="auc")
    assert ranks.paired_standard_error(ranks) == 0


def test_evaluations_that_cannot_be_paired():
    """Other rows, other weights and other metrics are named."""
    objective = SpanObjective(*two_moons(40))
    params = {"gamma": 1.0, "C_-1": 1.0, "C_1": 1.0}
    evaluation = objective.evaluate(params)
    weighted = SpanObjective(*two_moons(40), metric_weight=np.arange(1, 41)).evaluate(params)
    for other, message in (
        (objective.evaluate(params, rows=20), "same 40 rows .* got 20 rows"),
        (weighted, "same 40 rows with the same weights"),
        (evaluated(metric="hinge"), "by the metric error, got hinge"),
    ):
        with pytest.raises(ValueError, match=f"`other` must be an evaluation .*{message}"):
            evaluation.paired_standard_error(other)
    for other in (3, None, evaluation.loss):
        with pytest.raises(TypeError, match="`other` must be an evaluation, got"):
            evaluation.paired_standard_error(other)


def test_functions_of_one_name_are_different_metrics():
    """Two lambdas have no common standard error, and one lambda in two objectives has."""
    functions = [lambda y, f: float(np.mean(y * f < 0)), lambda y, f: float(np.mean(y * f < 1))]
    first, second, again = (evaluated(metric=functions[number]) for number in (0, 1, 0))
    with pytest.raises(ValueError, match="metric <lambda>, got another function called <lambda>"):
        first.paired_standard_error(second)
    assert first.paired_standard_error(again) == 0.0
    own_hinge = functools.partial(METRICS["hinge"], w=np.ones(40))
    own_hinge.__name__ = "hinge"
    own = evaluated(metric=own_hinge)
    with pytest.raises(ValueError, match="metric hinge, got another function called hinge"):
        evaluated(metric="hinge").paired_standard_error(own)


@pytest.mark.parametrize("metric", ["log_loss", "brier"])
def test_standard_errors_hold_the_calibration_fixed(metric):
    """They are those of the mean over rows under the sigmoid that is fitted to all values."""
    X, y = two_moons(60, noise=0.5)
    objective = SpanObjective(X, y, metric=metric, kernel=RBF(gamma=1.0), weighting=UniformCost())
    one, other = (objective.evaluate({"C": C}) for C in (0.1, 10.0))
    losses = []
    for values in (one.loo.decision_values, other.loo.decision_values):
        of_second = platt_sigmoid(y, values, np.ones(60)).probability(values)
        own = np.where(y > 0, of_second, 1 - of_second)
        losses.append(-np.log(own) if metric == "log_loss" else (1 - own) ** 2)
    for error, of_rows in (
        (one.standard_error, losses[0]),
        (one.paired_standard_error(other), losses[0] - losses[1]),
    ):
        assert error == pytest.approx(np.std(of_rows, ddof=1) / np.sqrt(60), rel=1e-6)


@pytest.mark.parametrize("method", ["span", "exact", "refit"])
def test_figures_are_plain_numbers(method):
    """What a storage gets passes through JSON unchanged, and says what the evaluation says."""
    evaluation = evaluated(loo_method=method)
    figures = evaluation.figures()
    assert json.loads(json.dumps(figures)) == figures
    assert figures["loo_error"] == np.mean(evaluation.loo.y * evaluation.loo.decision_values <= 0)
    assert figures["n_rows"] == 40
    assert figures["n_in_bound"] <= figures["n_support"] <= 40
    low, high = figures["loo_error_bounds"]
    assert low <= evaluated(loo_method="refit").loo.error <= high


def test_a_proven_error_is_called_so():
    """Bounds that agree are one number; others are shown as what the exact error is between."""
    exact, span = evaluated(loo_method="exact"), evaluated()
    low, high = span.loo.error_bounds
    assert low < high
    assert f"{exact.loo.error:.4f}, proven" in repr(exact)
    assert f"between {low:.4f} and {high:.4f}" in repr(span)


def test_cross_validation_prints_its_losses():
    """Every loss is there by its name, below the number of parts."""
    objective = SpanObjective(
        *two_moons(40),
        kernel=RBF(gamma=1.0),
        weighting=UniformCost(2.0),
        metric=("error", "hinge"),
    )
    found = objective.cross_validate({}, folds=4)
    lines = repr(found).splitlines()
    assert lines[0].startswith("4-fold cross-validation in ")
    assert [line.split() for line in lines[1:]] == [
        [name, f"{loss:.6g}"] for name, loss in found.losses.items()
    ]
