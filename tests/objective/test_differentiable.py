"""The objective with derivatives that stands for one without."""

import numpy as np
import pytest

from span_hpo import SpanObjective
from span_hpo.metrics import METRICS
from span_hpo.metrics.slopes import SLOPES
from span_hpo.objective import with_derivatives
from tests.problems import two_moons

POINT = {"C": 3.0, "gamma": 0.7}


def rare(count=90):
    """Return rows of which one in six is positive."""
    X, y = two_moons(count, noise=0.4)
    kept = (y < 0) | (np.arange(count) % 5 == 1)
    return X[kept], y[kept]


def objective_of(metric, **settings):
    X, y = rare()
    return SpanObjective(X, y, weighting="uniform", metric=metric, **settings)


def smooth(h):
    return 1 / (1 + np.exp(4 * h))


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_metrics_with_derivatives_are_kept(metric):
    """Those without are replaced by a smooth error; for those of classes, of balanced classes."""
    objective = objective_of(metric)
    found = with_derivatives(objective).metrics[0].name
    if metric in SLOPES:
        assert found == metric
        assert with_derivatives(objective)(POINT) == objective(POINT)
    else:
        assert found == ("smooth_error" if metric == "error" else "balanced_smooth_error")
    assert objective.metrics[0].name == metric


def test_loss_is_the_smooth_error():
    """In place of the error it is the mean of the sigmoids, and the span-rule is the method."""
    objective = objective_of("error", loo_method="exact")
    found = with_derivatives(objective).evaluate(POINT)
    loo = objective.evaluate(POINT, loo_method="span", complete=True).loo
    assert found.loo.method == "span"
    assert found.loss == pytest.approx(smooth(loo.y * loo.decision_values).mean())
    assert objective.loo_method == "exact"


@pytest.mark.parametrize("weight", [None, "given"])
def test_classes_count_alike(weight):
    """In place of the balanced error it is the mean over classes of weighted mean sigmoids."""
    y = rare()[1]
    w = np.random.default_rng(0).uniform(0.1, 5, len(y)) if weight else np.ones(len(y))
    objective = objective_of("balanced_error", metric_weight=w if weight else None)
    loo = objective.evaluate(POINT, complete=True).loo
    rows = smooth(loo.y * loo.decision_values)
    expected = np.mean([np.average(rows[y == c], weights=w[y == c]) for c in (-1, 1)])
    assert with_derivatives(objective)(POINT) == pytest.approx(expected)


@pytest.mark.parametrize("metric", ["error", "auc"])
def test_gradient_is_that_of_its_loss(metric):
    """Central differences of the loss agree with the gradient."""
    found = with_derivatives(objective_of(metric, tol=1e-10))
    gradient = found.value_and_gradient(POINT).gradient
    for name, value in POINT.items():
        step = 1e-5 * value
        ends = [found({**POINT, name: value + sign * step}) for sign in (1, -1)]
        assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(gradient[name], rel=1e-4)


def test_classes_without_weight_do_not_count():
    """A class may be without weight in a user's metric, but not where classes count."""
    X, y = rare()
    y = np.where(X[:, 0] > 1.2, 2, y)
    weight = np.where(y == 2, 0.0, 1.0)
    objective = SpanObjective(
        X, y, weighting="uniform", metric=lambda y, f, weight: 0.0, metric_weight=weight
    )
    assert with_derivatives(objective).metric_weight.tolist() == weight.tolist()
    with pytest.raises(ValueError, match="positive in some row of each class for balanced_error"):
        SpanObjective(X, y, metric="balanced_error", metric_weight=weight)


def test_a_callable_is_kept_only_with_its_gradient():
    """A user's loss is minimised itself if it has derivatives, and else by the smooth error."""

    class Squares:
        __name__ = "squares"

        def __call__(self, y, values):
            return float(np.mean((y - values) ** 2))

        def gradient(self, y, values):
            return 2 * (values - y) / len(y)

    def absolute(y, values):
        return float(np.mean(abs(y - values)))

    assert with_derivatives(objective_of(Squares())).metrics[0].name == "squares"
    assert with_derivatives(objective_of(absolute)).metrics[0].name == "smooth_error"


def test_matrices_are_shared_and_rows_are_not():
    """Row losses that are kept for the honest estimate are those of the own loss only."""
    objective = objective_of("error")
    objective(POINT)
    known = objective.row_losses(POINT)
    found = with_derivatives(objective)
    found(POINT)
    assert found._kernels is objective._kernels
    np.testing.assert_array_equal(objective.row_losses(POINT).losses[0], known.losses[0])
    assert found.row_losses(POINT).rank[0] == found(POINT)
