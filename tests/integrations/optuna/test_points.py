"""Searches of points by a function of one's own."""

import math

import pytest

from span_hpo import Choice, Float
from span_hpo.integrations.optuna import new_study, search_points
from tests.integrations.optuna.parts import study_of

SPACE = {"x": Float(0.0, 1.0), "kind": Choice([{"a": 1}, None])}


def searched(sampler="tpe", **settings):
    """Return a study and the points that its function was called with."""
    study, points = new_study(sampler=sampler, seed=0), {}

    def evaluate(number, point):
        points[number] = point
        if point["x"] > 0.9:
            return math.nan, {"failure": "too large"}
        return point["x"], {"number": number}

    search_points(study, SPACE, evaluate, **settings)
    return study, points


def test_points_are_those_of_the_trials():
    """The function gets options themselves, and its attributes are those of the trial."""
    study, points = searched(n_trials=20)
    assert sorted(points) == list(range(20))
    assert all(point["kind"] in SPACE["kind"].options for point in points.values())
    for trial in study.trials:
        assert trial.params["x"] == points[trial.number]["x"]
        if points[trial.number]["x"] > 0.9:
            assert trial.state.name == "FAIL"
            assert trial.user_attrs["failure"] == "too large"
        else:
            assert trial.user_attrs["number"] == trial.number
    assert study.best_value == min(point["x"] for point in points.values())


def test_seeds_decide_the_points():
    """The same seed gives the same points, which differ from each other."""
    (_, first), (_, again) = searched(n_trials=8), searched(n_trials=8)
    assert first == again
    assert len({point["x"] for point in first.values()}) == 8


def test_patience_ends_the_search():
    """After so many trials without a lower loss there are no more."""
    study, _ = searched(n_trials=200, patience=5)
    values = [trial.value for trial in study.trials if trial.value is not None]
    assert len(values) < 200
    assert values[-6] == min(values)
    with pytest.raises(ValueError, match="`patience` must be a whole number of at least 1, got 0"):
        searched(n_trials=3, patience=0)


def test_a_function_without_gradients_is_searched_by_draws():
    """The points are those of the global sampler, and a warning says why."""
    with pytest.warns(UserWarning, match="The loss has no gradient"):
        study, points = searched(sampler="gradient", n_trials=25)
    assert points == searched(n_trials=25)[1]
    assert not any("descent" in trial.user_attrs for trial in study.trials)


def test_threads_and_limits():
    """Threads share the trials, and without any limit there is no search."""
    study, points = searched(n_trials=12, n_jobs=2)
    assert len(study.trials) == len(points) == 12
    with pytest.raises(ValueError, match=r"`n_trials` must be"):
        search_points(study_of(), SPACE, None, n_trials=None)
