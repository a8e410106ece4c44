import numpy as np
import pytest
from sklearn.datasets import make_classification

from span_hpo import ClassCosts, ImbalanceCost, SpanObjective, SpanSVC, UniformCost
from span_hpo.estimators.defaults import as_loo_method, chosen_loo_method, weighting_for
from span_hpo.metrics import METRICS
from tests.problems import two_moons

pytestmark = pytest.mark.filterwarnings("ignore::span_hpo.ScalingWarning")  # of few rows
ALIKE = {"error", "smooth_error", "hinge", "log_loss", "brier"}


@pytest.mark.parametrize("metric", METRICS)
def test_the_metric_decides_what_is_searched(metric):
    """One cost is searched if all rows count alike, and otherwise an exponent of balance too."""
    expected = UniformCost() if metric in ALIKE else ImbalanceCost()
    assert weighting_for(None, metric) == expected
    X, y = two_moons(40)
    model = SpanSVC(metric=metric, n_trials=4, random_state=0).fit(X, y)
    assert set(model.best_params_) == {"gamma", *expected.space}


def test_a_given_weighting_and_other_metrics():
    """A weighting that is given is kept, and for a callable metric classes may be balanced."""
    assert weighting_for("class", "error") == ClassCosts()
    assert weighting_for(UniformCost(2.0), "auc") == UniformCost(2.0)
    assert weighting_for(None, lambda y, values: 0.0) == ImbalanceCost()


def test_the_objective_keeps_its_own_defaults():
    """`SpanObjective` searches one cost per class by the span-rule."""
    objective = SpanObjective(*two_moons(40))
    assert set(objective.space) == {"C_-1", "C_1", "gamma"}
    assert objective.loo_method == "span"


@pytest.mark.parametrize(
    ("rows", "n_classes", "metric", "expected"),
    [
        (22, 2, "error", "exact"),
        (60, 2, "error", "exact"),
        (60, 3, "error", "exact"),
        (61, 3, "error", "span"),
        (200, 2, "error", "span"),
        (200, 3, "error", "span"),
        (150, 2, "auc", "exact"),
        (150, 2, "average_precision", "exact"),
        (1200, 2, "auc", "span"),
    ],
)
def test_rows_classes_and_metric_decide_the_method(rows, n_classes, metric, expected):
    """Few rows and rankings are worth the exact method, which is told and used."""
    X, y = make_classification(
        rows, 4, n_informative=4, n_redundant=0, n_classes=n_classes, random_state=0
    )
    objective = SpanObjective(X, y, metric=metric, weighting="uniform")
    assert chosen_loo_method(objective) == expected
    if rows < 1000:
        model = SpanSVC(metric=metric, n_trials=3, random_state=0).fit(X, y)
        assert model.loo_method_ == model.objective_.loo_method == expected
        assert model.loo_method == "auto"


def test_many_undefined_spans_decide_the_method():
    """Where no support vector is in-bound at the first default, the exact method is chosen."""
    X, y = np.repeat([[0.0], [1.0]], 60, axis=0), np.tile([0, 1], 60)
    objective = SpanObjective(X, y, weighting="uniform")
    first = objective.evaluate(objective.defaults()[0])
    assert first.loo.n_undefined > 0.1 * len(y)
    assert chosen_loo_method(objective) == "exact"


def test_a_given_method_is_kept():
    """Only "auto" is decided by the data, and unknown methods are named."""
    X, y = two_moons(20)
    assert SpanSVC(loo_method="span", n_trials=2).fit(X, y).loo_method_ == "span"
    assert as_loo_method("auto") == "auto"
    with pytest.raises(ValueError, match=r"`loo_method` must be one of \['auto', 'span'.*'fast'"):
        SpanSVC(loo_method="fast").fit(X, y)


def test_the_exact_loss_is_the_exact_error():
    """With few rows the loss of the search is that of refits, so no better one was overlooked."""
    X, y = two_moons(24)
    model = SpanSVC(n_trials=10, random_state=0).fit(X, y)
    scaled = model.scaler_.transform(X)
    refits = SpanObjective(scaled, y, weighting="uniform", loo_method="refit")
    assert model.best_loss_ == refits(model.best_params_)
    assert model.best_loss_ == min(refits(trial.params) for trial in model.study_.trials)
