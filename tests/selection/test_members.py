"""Ensembles of fitted models, put together by hand."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss

from span_hpo import RBF, SpanObjective
from span_hpo.calibration import platt_sigmoid
from span_hpo.selection import ensemble_of
from tests.problems import two_moons

POINTS = [{"gamma": gamma, "C": C} for gamma in (0.05, 0.5, 5.0) for C in (0.3, 3.0, 300.0)]


def moons(count=80, **settings):
    """Return an objective with one cost for all rows."""
    return SpanObjective(*two_moons(count, noise=0.4), weighting="uniform", **settings)


def test_two_classes_by_hand():
    """Leave-one-out and new probabilities are means of Platt's sigmoids of each member."""
    weight = np.random.default_rng(0).uniform(0.2, 3, 80)
    objective = moons(metric_weight=weight)
    ensemble = ensemble_of(objective, POINTS)
    assert 1 < len(ensemble.members) < len(POINTS)
    new = two_moons(50, seed=5)[0]
    loo, proba = np.zeros(80), np.zeros(50)
    for share, params in zip(ensemble.weights, ensemble.params, strict=True):
        values = objective.evaluate(params, complete=True).loo.decision_values
        sigmoid = platt_sigmoid(objective.data.y, values, weight)
        loo += share * expit(sigmoid.slope * values + sigmoid.offset)
        f = objective.fit_model(params).decision_function(new)
        proba += share * expit(sigmoid.slope * f + sigmoid.offset)
    np.testing.assert_allclose(ensemble.loo_probabilities[:, 1], loo)
    np.testing.assert_allclose(ensemble.predict_proba(new)[:, 1], proba)
    np.testing.assert_allclose(expit(ensemble.decision_function(new)), proba)
    np.testing.assert_array_equal(ensemble.predict(new), np.where(proba >= 0.5, 1.0, -1.0))
    y = objective.data.y
    assert ensemble.loo_error == np.mean((loo > 0.5) != (y > 0))
    assert ensemble.loo_log_loss == pytest.approx(log_loss(y, loo, sample_weight=weight))


def test_no_candidate_is_better_by_leave_one_out():
    """The log loss of the ensemble is at most that of every single model."""
    objective = moons()
    loss = ensemble_of(objective, POINTS).loo_log_loss
    assert loss <= min(ensemble_of(objective, [point]).loo_log_loss for point in POINTS)


def test_several_classes():
    """The coupled probabilities of the members are averaged, and labels keep their kind."""
    X, y = load_iris(return_X_y=True)
    names = np.array(["one", "two", "three"])[y]
    objective = SpanObjective(X[::2], names[::2], weighting="uniform")
    ensemble = ensemble_of(objective, POINTS)
    proba = ensemble.predict_proba(X[1::2])
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_allclose(np.exp(ensemble.decision_function(X[1::2])), proba)
    elected = ensemble.predict(X[1::2])
    np.testing.assert_array_equal(elected, ensemble.classes_[proba.argmax(axis=1)])
    assert np.mean(elected == names[1::2]) > 0.9
    assert log_loss(names[1::2], proba, labels=ensemble.classes_) < 0.25


def test_repeated_points_count_once():
    """Only different points are candidates, and 30 of them at most."""
    objective = moons()
    once, often = ensemble_of(objective, POINTS), ensemble_of(objective, POINTS[:1] * 40 + POINTS)
    assert once.params == often.params
    np.testing.assert_array_equal(once.weights, often.weights)
    poor = [{"gamma": 1e-4, "C": 1e-3 + number * 1e-5} for number in range(30)]
    late = ensemble_of(objective, [*poor, *POINTS])
    assert all(params in poor for params in late.params)


def test_fixed_hyperparameters_and_no_points():
    """One model is an ensemble of itself; none is an error."""
    objective = SpanObjective(*two_moons(40), kernel=RBF(gamma=1.0), weighting="uniform")
    ensemble = ensemble_of(objective, [{"C": 2.0}])
    assert ensemble.weights.tolist() == [1.0]
    assert "member 1" in repr(ensemble)
    with pytest.raises(ValueError, match="at least one trial on all rows, got none"):
        ensemble_of(objective, [])
