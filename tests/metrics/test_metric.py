import numpy as np
import pytest
from sklearn.metrics import hinge_loss, roc_auc_score

from span_hpo.metrics import METRICS, as_metrics
from tests.problems import labels_and_values

NAMES = [
    "error",
    "balanced_error",
    "smooth_error",
    "hinge",
    "span_functional",
    "log_loss",
    "brier",
    "auc",
    "average_precision",
    "f1",
    "mcc",
]


def test_names_of_the_metrics():
    """The metrics of the contract exist, and no other."""
    assert list(METRICS) == NAMES


def test_zero_weight_of_a_class():
    """Metrics that need both classes say so; the others do without."""
    y, f, _ = labels_and_values()
    weight = np.where(y > 0, 1.0, 0.0)
    for metric in as_metrics(tuple(NAMES), weighted=True):
        if metric.name in ("balanced_error", "auc", "average_precision", "f1", "mcc"):
            with pytest.raises(ValueError, match=f"each class for {metric.name}, got only zeros"):
                metric.loss(y, f, weight)
        else:
            assert np.isfinite(metric.loss(y, f, weight))
    with pytest.raises(ValueError, match="`metric_weight` must be positive in some row"):
        as_metrics("error", weighted=True)[0].loss(y, f, np.zeros(len(y)))


def own_metric(y, decision_values):
    return float(np.mean(decision_values))


def own_weighted_metric(y, decision_values, weight):
    return float(np.average(decision_values, weights=weight))


def test_callable_metrics():
    """A callable gets labels and values, and weights only if it asks for them."""
    y, f, w = labels_and_values()
    assert as_metrics(own_metric, weighted=False)[0].loss(y, f, w) == np.mean(f)
    weighted = as_metrics(own_weighted_metric, weighted=True)[0]
    assert weighted.loss(y, f, w) == np.average(f, weights=w)
    assert weighted.name == "own_weighted_metric"
    hinge = as_metrics(hinge_loss, weighted=True)[0]
    assert hinge.loss(y, f, w) == pytest.approx(METRICS["hinge"](y, f, w))
    two = as_metrics((lambda y, f: 1.0, lambda y, f: 2.0), weighted=False)
    assert [metric.name for metric in two] == ["<lambda>", "<lambda>_2"]
    with pytest.raises(ValueError, match="`metric` own_metric must take an argument `weight` or"):
        as_metrics(own_metric, weighted=True)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, None, "0.1", np.array([1.0, 2.0])])
def test_callable_that_returns_no_number(wrong):
    """A failed metric is an error, never a loss."""
    y, f, w = labels_and_values()
    metric = as_metrics(lambda y, f: wrong, weighted=False)[0]
    with pytest.raises(ValueError, match=r"must (be a finite|return one) number, got"):
        metric.loss(y, f, w)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("accuracy", r"`metric` must be one of \['auc', 'average_precision', .* got 'accuracy'"),
        (3, "`metric` must be one of"),
        ((), "`metric` must name at least one metric"),
        (("auc", "auc"), "`metric` must not name a metric twice"),
        (roc_auc_score, "`metric` must be a loss.*got roc_auc_score of scikit-learn"),
    ],
)
def test_wrong_metrics_are_named(wrong, message):
    """An unknown metric lists the known ones."""
    with pytest.raises(ValueError, match=message):
        as_metrics(wrong, weighted=False)


def test_metrics_of_classes_are_known():
    """A metric that says that it needs only classes gives the same loss for any values of them."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(50) < 0.4, 1.0, -1.0)
    f = y + 2 * rng.normal(size=50)
    for metric in as_metrics(tuple(METRICS), weighted=False):
        losses = [metric.loss(y, values, np.ones(50)) for values in (f, f**3, np.sign(f))]
        assert (losses[0] == losses[1] == losses[2]) == (not metric.needs_values), metric.name
    (own,) = as_metrics(lambda y, f: 0.0, weighted=False)
    assert own.needs_values
