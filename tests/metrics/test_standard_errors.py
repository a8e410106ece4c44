import numpy as np
import pytest

from span_hpo.metrics import METRICS, as_metrics, paired_standard_error, standard_error
from tests.problems import labels_and_values

MEANS = ["error", "balanced_error", "smooth_error", "hinge"]


def bootstrapped(metric, y, f, w, seed=1, resamples=4000):
    """Return losses of bootstrap samples that are drawn within the classes."""
    rng = np.random.default_rng(seed)
    classes = [np.flatnonzero(y == label) for label in np.unique(y)]
    found = []
    for _ in range(resamples):
        rows = np.concatenate([rng.choice(own, len(own)) for own in classes])
        found.append(metric.loss(y[rows], f[rows], w[rows]))
    return np.array(found)


def two_models(seed=0, count=150):
    """Return labels, the values of two similar models and weights."""
    y, f, w = labels_and_values(seed, count)
    return y, f, f + 0.6 * np.random.default_rng(seed + 9).normal(size=count), w


def test_standard_error_of_the_error_in_closed_form():
    """It is the root of p (1 - p) / (n - 1)."""
    y, f, _ = labels_and_values(count=80)
    (metric,) = as_metrics("error", weighted=False)
    share = metric.loss(y, f, np.ones(80))
    expected = np.sqrt(share * (1 - share) / 79)
    assert standard_error(metric, y, f, np.ones(80)) == pytest.approx(expected)


def test_standard_error_of_balanced_error_in_closed_form():
    """Variances of the rates of the classes add up."""
    y, f, _ = labels_and_values(count=80)
    wrong = y * f <= 0
    variance = sum(np.var(wrong[y == c], ddof=1) / (y == c).sum() for c in (-1, 1)) / 4
    (metric,) = as_metrics("balanced_error", weighted=False)
    assert standard_error(metric, y, f, np.ones(80)) == pytest.approx(np.sqrt(variance))


@pytest.mark.parametrize("name", MEANS)
def test_standard_errors_of_means_agree_with_the_bootstrap(name):
    """The closed form and thousands of weighted resamples give the same within a tenth."""
    (metric,) = as_metrics(name, weighted=True)
    y, f, other, w = two_models()
    losses, others = (bootstrapped(metric, y, values, w) for values in (f, other))
    # A bootstrap within classes keeps their sizes, which matter little here.
    assert standard_error(metric, y, f, w) == pytest.approx(losses.std(), rel=0.1)
    paired = paired_standard_error(metric, y, f, other, w)
    assert paired == pytest.approx((losses - others).std(), rel=0.1)
    assert paired < np.hypot(losses.std(), others.std())


@pytest.mark.parametrize("name", ["auc", "f1", "mcc"])
def test_standard_errors_of_other_metrics(name):
    """They agree with another bootstrap of the rows, and are the same in every call."""
    (metric,) = as_metrics(name, weighted=True)
    y, f, other, w = two_models()
    losses, others = (bootstrapped(metric, y, v, w, resamples=150) for v in (f, other))
    assert standard_error(metric, y, f, w) == pytest.approx(losses.std(), rel=0.3)
    paired = paired_standard_error(metric, y, f, other, w)
    assert paired == pytest.approx((losses - others).std(), rel=0.3)
    assert paired == paired_standard_error(metric, y, f, other, w)


def test_a_tiny_class_is_in_every_sample():
    """Metrics that need both classes have a standard error with one row of a class, or weights."""
    y, f = np.array([-1.0] * 20 + [1.0, 1.0]), np.linspace(-1, 1, 22)
    weight = np.ones(22)
    weight[-1] = 0.0
    for metric in as_metrics(("auc", "f1"), weighted=True):
        assert np.isfinite(standard_error(metric, y, f, weight))


def test_own_metrics_have_standard_errors():
    """A function of a user that is a mean has about the standard error of the mean."""
    y, f, _ = labels_and_values(count=200)
    (own,) = as_metrics(lambda y, f: float(np.mean(np.maximum(0, 1 - y * f))), weighted=False)
    (hinge,) = as_metrics("hinge", weighted=False)
    expected = standard_error(hinge, y, f, np.ones(200))
    assert standard_error(own, y, f, np.ones(200)) == pytest.approx(expected, rel=0.2)
    assert paired_standard_error(own, y, f, f, np.ones(200)) == 0


def test_every_metric_has_a_standard_error_of_several_classes():
    """Also where it is averaged over the pairs."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0.0, 1, 2], 15)
    values = rng.normal(size=(45, 3))
    names = tuple(name for name in METRICS if name not in ("average_precision", "auc"))
    for metric in as_metrics(names, weighted=False):
        assert 0 < standard_error(metric, codes, values, np.ones(45)) < 0.5
