"""Steps along gradients as trials of another search."""

import math

import numpy as np
import pytest

from span_hpo import ARD, Float, SpanObjective, UniformCost
from span_hpo.errors import NoDerivativeError
from span_hpo.search import (
    check_gradient,
    evaluated_step,
    has_gradient,
    penalty_at,
    shortened,
)
from tests.problems import two_moons


def noisy_moons(count=60):
    """Return the moons with two more features that are noise."""
    X, y = two_moons(count)
    return np.column_stack([X, np.random.default_rng(0).normal(size=(count, 2))]), y


@pytest.mark.parametrize("metric", ["smooth_error", "hinge", "error"])
@pytest.mark.parametrize("penalty", [0.0, 2.0])
def test_the_gradient_is_that_of_the_loss_and_the_penalty(metric, penalty):
    """It agrees with central differences; that of "error" belongs to the smooth error."""
    X, y = noisy_moons()
    objective = SpanObjective(X, y, kernel=ARD(), weighting="uniform", metric=metric, tol=1e-10)
    rng = np.random.default_rng(1)
    params = {name: float(rng.uniform(0.3, 1.0)) for name in objective.space}
    evaluation, attributes = evaluated_step(objective, params, len(y), penalty)
    assert evaluation.loss == pytest.approx(objective(params), abs=1e-9)

    def value(point):
        of_widths = penalty_at(objective, point, penalty)["penalty"]
        smooth = "smooth_error" if metric == "error" else metric
        return objective.value_and_gradient(point, metric=smooth).loss + of_widths

    assert attributes["penalty"] == pytest.approx(penalty_at(objective, params, penalty)["penalty"])
    for name, slope in zip(sorted(objective.space), attributes["gradient"], strict=True):
        step = 1e-5 * params[name]
        ends = [value({**params, name: params[name] + sign * step}) for sign in (-1, 1)]
        assert slope == pytest.approx((ends[1] - ends[0]) / (2 * step), abs=2e-5)


def test_the_penalty_is_zero_for_equal_widths():
    """It counts in rows of the evaluation, and one width for all features has no penalty."""
    X, y = noisy_moons()
    objective = SpanObjective(X, y, kernel=ARD(), weighting=UniformCost(1.0))
    equal = dict.fromkeys(objective.space, 0.5)
    assert penalty_at(objective, equal, 1.0) == {"penalty": 0.0}
    wider = {**equal, "gamma_0": 5.0}
    whole, half = (penalty_at(objective, wider, 1.0, n)["penalty"] for n in (None, len(y) // 2))
    assert half == pytest.approx(2 * whole)
    assert whole > 0
    assert penalty_at(SpanObjective(X, y), {"gamma": 1.0, "C_-1": 1.0, "C_1": 2.0}, 1.0) == {}
    outside = {**equal, "gamma_0": 1e9}  # moved to the end of its range
    assert math.isfinite(penalty_at(objective, outside, 1.0)["penalty"])


def test_no_gradient_is_said():
    """Where there is none, the evaluation is there, and an attribute says why."""
    X, y = two_moons(40)
    objective = SpanObjective(X, y, weighting=UniformCost(Float(1e-6, 1.0)), metric="smooth_error")
    evaluation, attributes = evaluated_step(objective, {"gamma": 1.0, "C": 1e-5}, 40, 1.0)
    assert evaluation.n_in_bound < 2
    assert list(attributes) == ["no_gradient"]
    assert "in-bound support vectors" in attributes["no_gradient"]


class WithoutDerivative(UniformCost):
    """A weighting whose derivative nobody knows."""

    def gradient(self, data, params, weights):
        """Raise, as a weighting without a derivative does."""
        raise NoDerivativeError("`weighting` must have a derivative, which this one has not.")


def test_a_weighting_without_derivative_has_an_evaluation():
    """Its trials count, without a gradient; errors of the evaluation itself surface."""
    X, y = two_moons(40)
    objective = SpanObjective(X, y, weighting=WithoutDerivative(), metric="smooth_error")
    evaluation, attributes = evaluated_step(objective, {"gamma": 1.0, "C": 1.0}, 40, 1.0)
    assert evaluation.loss == objective({"gamma": 1.0, "C": 1.0})
    assert "must have a derivative" in attributes["no_gradient"]
    with pytest.raises(ValueError, match="`C` must"):
        evaluated_step(objective, {"gamma": 1.0, "C": -1.0}, 40, 1.0)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"metric": "smooth_error"}, True),
        ({"metric": "error"}, True),
        ({"metric": "log_loss"}, True),
        ({"metric": "auc"}, False),
        ({"metric": lambda y, f: 0.5}, False),
        ({"metric": ("smooth_error", "hinge")}, False),
        ({"metric": "smooth_error", "loo_method": "exact"}, False),
    ],
)
def test_which_losses_have_a_gradient(settings, expected):
    """One metric with a derivative, or the error, by the span-rule."""
    objective = SpanObjective(*two_moons(20), **settings)
    assert has_gradient(objective) is expected
    if expected:
        check_gradient(objective)
    else:
        with pytest.raises(ValueError, match=r"`(metric|loo_method|objective)` must"):
            check_gradient(objective)


def test_nine_digits_are_kept():
    """The text of a number is short, and its value is as accurate as a fit."""
    numbers = (np.random.default_rng(0).normal(size=100) * np.logspace(-300, 300, 100)).tolist()
    np.testing.assert_allclose(shortened(numbers), numbers, rtol=5e-9)
    assert all(len(repr(number)) <= 16 for number in shortened(numbers))
