"""Descents that are followed through the trials of a study."""

import math

import numpy as np
import pytest
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState, create_trial

from span_hpo.integrations.optuna.descents import Descents, Pace, is_sound
from span_hpo.integrations.optuna.workers import this_process
from span_hpo.search import Descent

PACE = Pace(n_steps=5, penalty=0.0)
SPACE = {
    "x": FloatDistribution(0.01, 100.0, log=True),
    "y": FloatDistribution(-4.0, 4.0),
    "n": IntDistribution(1, 9),
    "c": CategoricalDistribution(["a", "b"]),
    "s": FloatDistribution(0.0, 1.0, step=0.25),
}
START = {"x": 5.0, "y": 3.0, "n": 4, "c": "b", "s": 0.5}
DEAD = {**this_process(), "started": 1}


def value(params):
    """Return a function with its least value 0 at x = 1 and y = 1."""
    return math.log(params["x"]) ** 2 + (params["y"] - 1) ** 2


def slopes(params):
    """Return its derivatives by x and y."""
    return [2 * math.log(params["x"]) / params["x"], 2 * (params["y"] - 1)]


def trial_of(number, params, *, step=None, state=TrialState.COMPLETE, uphill=False, **attributes):
    """Return a trial, which is a step of the descent from trial 0 if it has a number."""
    sign = -1 if uphill else 1
    if step is not None:
        attributes["descent"] = {"start": 0, "step": step, "of": 5, "penalty": 0.0}
        if state == TrialState.COMPLETE:
            attributes.setdefault("gradient", [sign * slope for slope in slopes(params)])
    trial = create_trial(
        state=state,
        value=sign * value(params) if state == TrialState.COMPLETE else None,
        params=params,
        distributions=SPACE,
        user_attrs=attributes,
    )
    trial.number = number
    return trial


def start(**attributes):
    return trial_of(0, START, **attributes)


def by_hand(points):
    """Return where Adam stands after these points in the coordinates (ln x, y)."""
    lower, upper = np.array([math.log(0.01), -4.0]), np.array([math.log(100.0), 4.0])
    descent = Descent.at(np.array([math.log(START["x"]), START["y"]]))
    for z in points:
        gradient = np.array([2 * z[0], 2 * (z[1] - 1)])
        descent = descent.at_point(np.array(z)).moved(gradient, 5, lower, upper)
    return descent.point


def coordinates(params):
    return [math.log(params["x"]), params["y"]]


def followed(count, **last):
    """Return the start and so many steps of its descent, each at the point that is wanted."""
    trials = [start()]
    for number in range(count):
        step = Descents(trials, PACE).standing(0).step
        settings = last if number == count - 1 else {}
        trials.append(trial_of(number + 1, step.params, step=number, **settings))
    return trials


def begun(number, state, worker=None):
    trial = create_trial(
        state=state,
        user_attrs={
            "descent": {"start": 0, "step": 2, "of": 5, "penalty": 0.0},
            "worker": this_process() if worker is None else worker,
        },
    )
    trial.number = number
    return trial


def test_steps_are_those_of_adam():
    """The first step repeats the start, and what has no derivative keeps its value."""
    trials = followed(5)
    assert trials[1].params == START
    for count in range(1, 5):
        expected = by_hand([coordinates(trial.params) for trial in trials[1 : count + 1]])
        assert coordinates(trials[count + 1].params) == pytest.approx(expected, abs=1e-12)
        assert {n: trials[count + 1].params[n] for n in "ncs"} == {"n": 4, "c": "b", "s": 0.5}
    standing = Descents(trials, PACE).standing(0)
    assert (standing.step, standing.is_over, standing.n_gradients) == (None, True, 5)


def test_a_step_says_where_it_belongs():
    """Its label names the start, the number and the pace."""
    step = Descents(followed(2), PACE).standing(0).step
    assert step.label() == {"start": 0, "step": 2, "of": 5, "penalty": 0.0}


def test_a_start_with_a_gradient_is_not_repeated():
    """The first new trial is then the second point of the descent."""
    trials = [start(gradient=slopes(START))]
    step = Descents(trials, PACE).standing(0).step
    assert step.number == 1
    assert coordinates(step.params) == pytest.approx(by_hand([coordinates(START)]), abs=1e-12)


def test_the_point_of_the_trial_counts():
    """A trial that was not quite where the step was wanted is followed from where it was."""
    trials = followed(2)
    trials[2].params = {**trials[2].params, "x": 2.0}
    trials[2].user_attrs["gradient"] = slopes(trials[2].params)
    expected = by_hand([coordinates(trial.params) for trial in trials[1:]])
    step = Descents(trials, PACE).standing(0).step
    assert coordinates(step.params) == pytest.approx(expected, abs=1e-12)


def test_a_descent_that_rises_returns_to_its_best_point():
    """After three steps in vain, shorter steps lead from the best point to the end."""
    trials = followed(4)
    for trial in trials[2:]:
        trial.value = trials[1].value + trial.number
    step = Descents(trials, PACE).standing(0).step
    z = np.array(coordinates(START))
    gradient = np.array([2 * z[0], 2 * (z[1] - 1)])
    moved = Descent.at(z).moved(gradient, 2, np.full(2, -9.0), np.full(2, 9.0)).point
    assert step.number == 4
    assert coordinates(step.params) == pytest.approx(z + 0.4 * (moved - z), abs=1e-12)
    trials[3].value = 0.0  # it has found something better: it goes on
    straight = by_hand([coordinates(trial.params) for trial in trials[1:]])
    step = Descents(trials, PACE).standing(0).step
    assert coordinates(step.params) == pytest.approx(straight, abs=1e-12)


@pytest.mark.parametrize("kind", ["failed", "pruned", "without", "infinite", "violating"])
def test_what_cannot_be_followed_is_stepped_over(kind):
    """The descent goes back half of the way to the last point that could be followed."""
    trials = followed(2)
    bad = trial_of(3, Descents(trials, PACE).standing(0).step.params, step=2)
    if kind == "failed":
        bad.state, bad.value = TrialState.FAIL, None
    elif kind == "pruned":
        bad.state = TrialState.PRUNED
    elif kind == "without":
        del bad.user_attrs["gradient"]
    elif kind == "infinite":
        bad.value = math.inf
    else:
        bad = create_trial(
            value=bad.value,
            params=bad.params,
            distributions=SPACE,
            user_attrs=bad.user_attrs,
            constraints={"n_support": 1.0},
        )
    bad.number = 3
    step = Descents([*trials, bad], PACE).standing(0).step
    half = (np.array(coordinates(bad.params)) + coordinates(trials[2].params)) / 2
    assert step.number == 3
    assert coordinates(step.params) == pytest.approx(half, abs=1e-12)


def test_a_descent_without_a_first_gradient_is_over():
    """It has no direction to go."""
    trials = [start(), trial_of(1, START, step=0, gradient=None)]
    standing = Descents(trials, PACE).standing(0)
    assert (standing.step, standing.is_over, standing.n_gradients) == (None, True, 0)


@pytest.mark.parametrize("state", [TrialState.RUNNING, TrialState.WAITING])
def test_a_step_that_is_being_taken_is_not_offered(state):
    """Neither to a second process, nor while a trial waits to be repeated."""
    trials = [*followed(2), begun(3, state)]
    standing = Descents(trials, PACE).standing(0)
    assert (standing.step, standing.is_over) == (None, False)


def test_a_step_of_a_dead_process_is_repeated_once():
    """The point is offered again, but a point that kills two processes is stepped over."""
    trials = followed(2)
    wanted = Descents(trials, PACE).standing(0).step
    trials.append(begun(3, TrialState.RUNNING, DEAD))
    assert Descents(trials, PACE).standing(0).step == wanted
    trials[-1].state = TrialState.FAIL
    assert Descents(trials, PACE).standing(0).step == wanted
    trials.append(begun(4, TrialState.FAIL, DEAD))
    assert Descents(trials, PACE).standing(0).step.number == 3


def test_a_study_that_maximises_is_climbed():
    """The mirrored function leads to the mirrored steps, and the best start is the highest."""
    downhill = followed(3)
    uphill = [trial_of(0, START, uphill=True)]
    pace = Pace(5, 0.0, is_uphill=True)
    for number in range(3):
        step = Descents(uphill, pace).standing(0).step
        uphill.append(trial_of(number + 1, step.params, step=number, uphill=True))
        assert step.params == downhill[number + 1].params
    others = [start(), trial_of(1, {**START, "x": 1.0}), trial_of(2, {**START, "x": 90.0})]
    assert Descents(others, PACE).best() == [1, 0, 2]
    assert Descents(others, pace).best() == [2, 0, 1]


def test_where_a_descent_may_begin():
    """At trials that are complete and feasible and are no points of descents, the best first."""
    found = followed(2)
    failed = trial_of(3, START, state=TrialState.FAIL)
    pruned = trial_of(4, START, state=TrialState.PRUNED)
    whole = create_trial(value=0.0, params={"n": 1}, distributions={"n": SPACE["n"]})
    whole.number = 5  # no real number to move
    near, far = (trial_of(6 + i, {**START, "x": x}) for i, x in enumerate((1.5, 50.0)))
    trials = [*found, failed, pruned, whole, far, near]
    assert Descents(trials, PACE).best() == [6, 7]
    assert Descents(trials, PACE).best(but_not_of=[0]) == [6, 7]
    assert Descents(trials, PACE).best(but_not_of=[]) == [6, 2, 1, 7]
    assert Descents(trials, Pace(9, 0.0)).best() == [6, 0, 7]  # the other one has another pace


def test_the_penalty_decides_where_to_begin():
    """It is that of the attribute, or what a function returns."""
    trials = [start(penalty=0.0), trial_of(1, {**START, "y": 2.9}, penalty=9.0)]
    assert Descents(trials, PACE).best() == [0, 1]
    assert Descents(trials, PACE, lambda trial: 0.0).best() == [1, 0]


def test_a_start_outside_of_its_range_is_moved_inside():
    """A user may have queued such a point."""
    trial = start()
    trial.params = {**START, "x": 1e9}
    assert Descents([trial], PACE).standing(0).step.params == {**START, "x": 100.0}


def test_which_trials_are_sound():
    """Complete ones with a finite value."""
    assert is_sound(start())
    assert not is_sound(trial_of(1, START, state=TrialState.FAIL))
    trial = start()
    trial.value = math.inf
    assert not is_sound(trial)
