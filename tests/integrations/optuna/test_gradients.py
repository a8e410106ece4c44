"""Gradients that trials keep in their attributes."""

import json
import math

import numpy as np
import optuna
import pytest

from span_hpo.integrations.optuna import gradient_of, new_study, store_gradient


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
