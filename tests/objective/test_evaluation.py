import json
from html.parser import HTMLParser

import numpy as np
import pytest

from span_hpo import RBF, SpanObjective, UniformCost
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
