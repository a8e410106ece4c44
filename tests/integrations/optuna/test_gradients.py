"""Gradients that trials keep in their attributes."""

import json
import math

import numpy as np
import optuna
import pytest

from span_hpo import ARD, Float, SpanObjective, UniformCost
from span_hpo.integrations.optuna import gradient_of, new_study, store_gradient
from span_hpo.integrations.optuna.gradients import evaluated_step, has_gradient, penalty_at
from tests.problems import two_moons


def told(**parts):
    """Return a trial that has suggested these hyperparameters."""
    trial = new_study(sampler="random", seed=0).ask()
    for name, part in parts.items():
        if isinstance(part, list):
            trial.suggest_categorical(name, part)
        elif isinstance(part[0], int):
            trial.suggest_int(name, *part)
        else:
            trial.suggest_float(name, *part[:2], step=part[2] if part[2:] else None)
    return trial


def noisy_moons(count=60):
    """Return the moons with two more features that are noise."""
    X, y = two_moons(count)
    return np.column_stack([X, np.random.default_rng(0).normal(size=(count, 2))]), y


def test_a_gradient_comes_back_by_name():
    """Names of any order come back, and derivatives keep nine digits."""
    trial = told(b=(0.0, 1.0), a=(0.0, 1.0), n=(1, 9), c=["x", "y"], s=(0.0, 1.0, 0.25))
    store_gradient(trial, {"b": 1 / 3, "a": np.float32(-2.5e-30), "n": 7.0})
    found = gradient_of(trial.study.tell(trial, 0.0))
    assert list(found) == ["a", "b"]
    assert found["b"] == pytest.approx(1 / 3, rel=1e-9)
    assert found["a"] == pytest.approx(-2.5e-30, rel=1e-7)


@pytest.mark.parametrize(
    ("gradient", "message"),
    [
        ({"a": 1.0}, r"`gradient` must name exactly \['a', 'b'\], got \['a'\]"),
        ({"a": 1.0, "b": 1.0, "z": 1.0}, r"must name exactly .*'z'"),
        ([1.0, 2.0], r"must name exactly .* got \[1.0, 2.0\]"),
        ({"a": 1.0, "b": math.nan}, r"`gradient\['b'\]` must be a finite number, got nan"),
        ({"a": 1.0, "b": "steep"}, r"`gradient\['b'\]` must be a (finite )?number, got 'steep'"),
    ],
)
def test_what_is_no_gradient_is_refused(gradient, message):
    """Missing, unknown and infinite derivatives are errors, and nothing is stored."""
    trial = told(a=(0.0, 1.0), b=(0.0, 1.0))
    with pytest.raises((TypeError, ValueError), match=message):
        store_gradient(trial, gradient)
    assert gradient_of(trial) is None


def test_a_gradient_of_other_hyperparameters_is_none():
    """An attribute that another program has written does not count as a gradient."""
    for wrong in (None, [1.0], {"a": 1.0}, "steep"):
        trial = told(a=(0.0, 1.0), b=(0.0, 1.0))
        trial.set_user_attr("gradient", wrong)
        assert gradient_of(trial) is None


def test_a_thousand_derivatives_fit_into_any_database():
    """The text is far below the 65,535 bytes that MySQL allows, for names of any length."""
    slopes = np.random.default_rng(0).normal(size=1000) * np.logspace(-300, 300, 1000)
    names = [f"gamma_{'wavelength_' * 10}{number}" for number in range(1000)]
    trial = optuna.trial.create_trial(
        value=0.0,
        params=dict.fromkeys(names, 0.5),
        distributions=dict.fromkeys(names, optuna.distributions.FloatDistribution(0, 1)),
    )
    asked = new_study(sampler="random", seed=0).ask(trial.distributions)
    store_gradient(asked, dict(zip(names, slopes.tolist(), strict=True)))
    assert len(json.dumps(asked.user_attrs["gradient"])) < 20_000
    found = gradient_of(asked)
    np.testing.assert_allclose([found[name] for name in names], slopes, rtol=1e-8)


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
        raise ValueError("`weighting` must have a derivative, which this one has not.")


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
    assert has_gradient(SpanObjective(*two_moons(20), **settings)) is expected
