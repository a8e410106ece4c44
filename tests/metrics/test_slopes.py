import numpy as np
import pytest

from span_hpo.calibration import platt_sigmoid
from span_hpo.metrics import METRICS, as_metrics
from span_hpo.metrics.slopes import SLOPES
from span_hpo.solver import rows_of_pairs
from tests.problems import labels_and_values

STEP = 1e-2  # Platt's sigmoid is fitted to about ten digits, so that steps must be large


def slopes_by_differences(loss, f):
    """Return central differences of the loss by each value, with an error of fourth order."""
    found = np.zeros(f.shape)
    for place in np.ndindex(f.shape):
        of_steps = []
        for step in (STEP, 2 * STEP):
            ends = []
            for sign in (1, -1):
                moved = f.copy()
                moved[place] += sign * step
                ends.append(loss(moved))
            of_steps.append((ends[0] - ends[1]) / (2 * step))
        found[place] = (4 * of_steps[0] - of_steps[1]) / 3
    return found


def away_from_kinks(y, f):
    """Return values whose margins differ from 1 by more than the steps."""
    near = np.abs(y * f - 1) < 3 * STEP
    return np.where(near, f + 7 * STEP, f)


@pytest.mark.parametrize("name", SLOPES)
@pytest.mark.parametrize("seed", range(4))
def test_slopes_are_those_of_central_differences(name, seed):
    """The derivative by each value, with weights of all sizes, and some of 0."""
    y, f, w = labels_and_values(seed, count=40)
    w[::7] = 0.0
    w[1::5] *= 1e-5 if seed % 2 else 1.0
    f = away_from_kinks(y, f * (1.0, 0.5, 3.0, 1.0)[seed])
    expected = slopes_by_differences(lambda moved: METRICS[name](y, moved, w), f)
    found = SLOPES[name](y, f, w)
    np.testing.assert_allclose(found, expected, atol=2e-6 * np.abs(expected).max())
    assert not found[w == 0].any()


@pytest.mark.parametrize("name", ["log_loss", "brier"])
def test_slopes_through_a_sigmoid_that_does_not_use_the_values(name):
    """Values that rank the classes the wrong way round have slope 0."""
    y, f, w = labels_and_values(0)
    assert platt_sigmoid(y, -f, w).slope == 0
    assert not SLOPES[name](y, -f, w).any()
    same = np.full(len(y), 0.3)
    assert np.isfinite(SLOPES[name](y, same, w)).all()


@pytest.mark.parametrize("name", ["log_loss", "brier"])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_slopes_scale_with_the_values(name, scale):
    """The sigmoid follows the unit of the values, so that slopes are in one over that unit."""
    y, f, w = labels_and_values(1)
    expected = SLOPES[name](y, f, w)
    found = scale * SLOPES[name](y, scale * f, w)
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


def test_slopes_by_hand():
    """Two rows: a kink of the hinge counts as its flat side, and functionals count their rows."""
    y, f, w = np.array([1.0, -1.0, 1.0, -1.0]), np.array([0.5, 1.0, 1.0, -2.0]), np.ones(4)
    np.testing.assert_allclose(SLOPES["hinge"](y, f, w), [-0.25, 0.25, 0.0, 0.0])
    np.testing.assert_allclose(SLOPES["span_functional"](y, f, w), [-0.25, 0.25, -0.25, 0.0])
    zero = np.zeros(4)
    np.testing.assert_allclose(SLOPES["smooth_error"](y, zero, w), -y / 4)


@pytest.mark.parametrize("name", SLOPES)
def test_slopes_of_several_classes(name):
    """The mean over the pairs has the slopes of each pair on its own rows, and 0 elsewhere."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=30).astype(float)
    y[:4] = range(4)
    f, w = 1.3 * rng.normal(size=(30, 6)), rng.uniform(0.1, 3.0, 30)
    for column, (rows, signs) in enumerate(rows_of_pairs(y)):
        f[rows, column] = away_from_kinks(signs, f[rows, column])
    (metric,) = as_metrics(name, weighted=True)
    expected = slopes_by_differences(lambda moved: metric.loss(y, moved, w), f)
    found = metric.gradient(y, f, w)
    np.testing.assert_allclose(found, expected, atol=2e-6 * np.abs(expected).max())


def test_all_smooth_metrics_have_slopes():
    """Metrics that jump or depend on ranks have none, and an error names those that have."""
    y, f, w = labels_and_values(0)
    for metric in as_metrics(tuple(METRICS), weighted=True):
        if metric.name in ("error", "balanced_error", "auc", "average_precision", "f1", "mcc"):
            message = f"`metric` must have a derivative, which {metric.name} has not: use one of"
            with pytest.raises(ValueError, match=message):
                metric.gradient(y, f, w)
        else:
            assert np.isfinite(metric.gradient(y, f, w)).all()


class Squares:
    """A user's metric with a derivative."""

    def __call__(self, y, decision_values, weight=None):
        return float(np.average((y - decision_values) ** 2, weights=weight))

    def gradient(self, y, decision_values, weight=None):
        weight = np.ones(len(y)) if weight is None else weight
        return 2 * (decision_values - y) * weight / weight.sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_of_users_with_a_derivative(weighted):
    """A callable with a method `gradient` gets labels, values, and weights if there are some."""
    y, f, w = labels_and_values(0)
    (metric,) = as_metrics(Squares(), weighted=weighted)
    expected = slopes_by_differences(lambda moved: metric.loss(y, moved, w), f)
    np.testing.assert_allclose(metric.gradient(y, f, w), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            [1.0, 2.0],
            r"`gradient` of the metric Wrong must return finite numbers of .* got shape \(2,\)",
        ),
        (np.full(60, np.nan), r"finite numbers of shape \(60,\), got nan in row 0"),
        (np.append(np.ones(59), np.inf), r"shape \(60,\), got inf in row 59"),
        (
            "up",
            r"metric Wrong must return finite numbers of shape \(60,\), got 'up'",
        ),
    ],
)
def test_derivatives_of_users_that_are_wrong(wrong, message):
    """An error names the metric, what it must return and what it has returned."""

    class Wrong(Squares):
        def gradient(self, y, decision_values):
            return wrong

    (metric,) = as_metrics(Wrong(), weighted=False)
    with pytest.raises(ValueError, match=message):
        metric.gradient(*labels_and_values(0))


def test_metrics_of_users_without_a_derivative():
    """A plain function, or one whose derivative ignores the weights, is rejected by name."""
    (metric,) = as_metrics(lambda y, f: 0.0, weighted=False)
    with pytest.raises(ValueError, match="must have a derivative, which <lambda> has not"):
        metric.gradient(*labels_and_values(0))

    class WithoutWeights(Squares):
        def gradient(self, y, decision_values):
            return decision_values

    message = "`gradient` of the metric WithoutWeights must take an argument `weight`"
    with pytest.raises(ValueError, match=message):
        as_metrics(WithoutWeights(), weighted=True)


@pytest.mark.parametrize("name", ["log_loss", "brier"])
def test_slopes_of_values_that_are_nearly_equal(name):
    """Values at the margin, which differ in their last digits only, still fit a sigmoid."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(40) % 10 == 0, -1.0, 1.0)
    f = rng.normal(size=40) + 0.7 * y
    w = np.ones(40)
    expected = SLOPES[name](y, f, w)
    for shift, scale in ((1.0, 1e-5), (-1e3, 1e-2)):
        found = scale * SLOPES[name](y, shift + scale * f, w)
        np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())
