"""Gradient steps from the best trials of a study, which become trials of it."""

import time

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from span_hpo import ARD, Float, SpanObjective, UniformCost, minimize
from span_hpo.integrations.optuna import (
    OptunaObjective,
    best_trial,
    new_study,
    params_of,
    refine,
    search,
)
from tests.integrations.optuna.parts import study_of
from tests.problems import two_moons


@pytest.fixture
def objective():
    X, y = two_moons(60)
    X = np.column_stack([X, np.random.default_rng(0).normal(size=(60, 2))])
    return SpanObjective(X, y, kernel=ARD(), weighting="uniform", metric="smooth_error")


@pytest.fixture
def study(objective):
    """Give a study with ten random trials."""
    study = new_study(sampler="random", seed=0)
    search(study, objective, n_trials=10)
    return study


def labels(study):
    """Return start and number of all steps, in the order of the trials."""
    found = [trial.user_attrs.get("descent") for trial in study.trials]
    return [(label["start"], label["step"]) for label in found if label]


def test_the_steps_are_those_of_minimize(study, objective):
    """They begin at the best trial by the penalised loss, and the best of them is returned.

    From the fifth on, the descent may have returned to its best point.
    """
    given = study.sampler
    found = refine(study, objective, n_steps=12)
    assert study.sampler is given
    assert [number for _, number in labels(study)] == list(range(12))
    assert len(study.trials) == 22
    start = study.trials[labels(study)[0][0]]
    path = minimize(objective, params_of(start, objective), max_evaluations=12).path
    values = [trial.value + trial.user_attrs["penalty"] for trial in study.trials[10:]]
    for trial, step, value in list(zip(study.trials[10:], path, values, strict=True))[:4]:
        assert params_of(trial, objective) == pytest.approx(step.params, rel=1e-6)
        assert value == pytest.approx(step.value, abs=1e-6)
    assert found.value + found.user_attrs["penalty"] == min(values)
    assert best_trial(study).value <= found.value
    penalised = [
        minimize(objective, params_of(trial, objective), max_evaluations=1).value
        for trial in study.trials[:10]
    ]
    assert start.number == int(np.argmin(penalised))


@pytest.mark.parametrize("seed", range(4, 8))
def test_a_tuned_study_is_refined_too(seed):
    """Steps find less loss after 30 trials of TPE, also where gradients lead away from a minimum.

    The loss rises at its jumps, while it falls between them. From three of these studies, Adam
    alone finds nothing better.
    """
    objective = SpanObjective(*two_moons(120, noise=0.35, seed=seed), metric="smooth_error")
    study = new_study(seed=0)
    search(study, objective, n_trials=30)
    before = study.best_value
    assert refine(study, objective, n_steps=20).value < before


def test_without_a_penalty_the_best_trial_is_returned(study, objective):
    """The loss alone decides then."""
    assert refine(study, objective, n_steps=8, penalty=0.0).number == best_trial(study).number


def test_several_starts_are_the_best_trials(study, objective):
    """Each descent has its own start among the trials that the study had."""
    losses = {trial.number: trial.value for trial in study.trials}
    refine(study, objective, n_steps=4, n_starts=3, penalty=0.0)
    starts = list(dict.fromkeys(start for start, _ in labels(study)))
    assert starts == sorted(losses, key=losses.get)[:3]
    assert labels(study) == [(start, number) for start in starts for number in range(4)]


def test_a_second_refinement_begins_at_the_new_best(study, objective):
    """It begins at the best point of the first, which has its gradient already."""
    first = refine(study, objective, n_steps=10, penalty=0.0)
    assert first.number >= 10
    second = refine(study, objective, n_steps=10, penalty=0.0)
    assert second.value <= first.value
    assert labels(study)[10:] == [(first.number, number) for number in range(1, 10)]


def test_an_interrupted_refinement_is_continued(study, objective):
    """The trials are those that there would have been without the break."""
    copy = new_study(sampler="random", seed=0)
    search(copy, objective, n_trials=10)
    refine(copy, objective, n_steps=9)

    class EnoughError(Exception):
        pass

    def interrupt(study, trial):
        if trial.number == 14:
            raise EnoughError

    with pytest.raises(EnoughError):
        refine(study, objective, n_steps=9, callbacks=[interrupt])
    assert len(study.trials) == 15
    refine(study, objective, n_steps=9)
    assert labels(study) == labels(copy)
    assert [t.params for t in study.trials] == [t.params for t in copy.trials]


def test_the_time_limit_holds(study, objective):
    """A slow refinement ends early, and goes on later."""

    def slow(study, trial):
        time.sleep(0.2)

    refine(study, objective, n_steps=15, timeout=0.3, callbacks=[slow])
    assert 1 <= len(labels(study)) <= 3
    refine(study, objective, n_steps=15)
    done = [t for t in study.trials if "descent" in t.user_attrs and t.state.name == "COMPLETE"]
    assert sorted(t.user_attrs["descent"]["step"] for t in done) == list(range(15))


@pytest.mark.parametrize("limit", [{"max_support": 45}, {}])
def test_constraints_hold(objective, limit):
    """No descent begins at a trial that violates them, and steps have the limit of the trials."""
    study = new_study(sampler="random", seed=1)
    search(study, objective, n_trials=12, max_support=45)
    found = refine(study, objective, n_steps=6, n_starts=2, **limit)
    assert found.user_attrs["n_support"] <= 45
    for start, _ in labels(study):
        assert study.trials[start].constraints["n_support"] <= 0
    for trial in study.trials:
        assert trial.constraints["n_support"] == trial.user_attrs["n_support"] - 45


def test_constraints_that_steps_cannot_keep_are_refused(objective):
    """Constraints of a user's own function are named, and no trial is added."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    function = OptunaObjective(objective)

    def constrained(trial):
        loss = function(trial)
        trial.set_constraint("cheap", trial.params["C"] - 2000.0)
        return loss

    study.optimize(constrained, n_trials=3)
    with pytest.raises(ValueError, match=r"no constraints but .*, got \['cheap'\]: use a Gradie"):
        refine(study, objective)
    assert len(study.trials) == 3


def test_one_width_for_all_features_is_refined_too():
    """Twenty steps lower the loss of a study of three hyperparameters, and the result is unbiased.

    The loss of the trial is that of the objective at its hyperparameters.
    """
    objective = SpanObjective(*two_moons(80), metric="smooth_error")
    study = new_study(sampler="random", seed=0)
    search(study, objective, n_trials=10)
    before = study.best_value
    found = refine(study, objective)
    assert found.value < before
    assert len(study.trials) == 30
    assert found.value == pytest.approx(objective(params_of(found, objective)), abs=1e-12)


def test_a_start_without_gradient_is_said():
    """The result is then the best trial, and a warning gives the reason."""
    X, y = two_moons(40)
    objective = SpanObjective(X, y, weighting=UniformCost(Float(1e-6, 1e-5)), metric="smooth_error")
    study = new_study(sampler="random", seed=0)
    search(study, objective, n_trials=4)
    with pytest.warns(UserWarning, match="There is no gradient at the start: The fit has 0 in-b"):
        found = refine(study, objective, n_steps=8)
    assert len(study.trials) == 5
    assert found.value == best_trial(study).value


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"metric": "auc"}, "`metric` must have a derivative, which auc has not"),
        ({"loo_method": "exact", "metric": "hinge"}, "`loo_method` must be 'span' to"),
        ({"metric": ("smooth_error", "hinge")}, "`objective` must have one metric"),
    ],
)
def test_a_loss_without_gradient_is_an_error(settings, message):
    """The error says what a loss with a gradient needs."""
    objective = SpanObjective(*two_moons(30), **settings)
    study = study_of(directions=["minimize"] * len(objective.metrics))
    study.optimize(OptunaObjective(objective), n_trials=2)
    with pytest.raises(ValueError, match=message):
        refine(study, objective)


def test_wrong_arguments_are_errors(study, objective):
    """They name the argument, and the study is left as it was."""
    other = SpanObjective(*two_moons(30), metric="smooth_error")
    with pytest.raises(ValueError, match="`study` must have a trial that is complete"):
        refine(new_study(), other)
    with pytest.raises(ValueError, match="`study`"):
        refine(study, other)
    with pytest.raises(ValueError, match="`study` must have directions"):
        refine(optuna.create_study(direction="maximize"), objective)
    for name, wrong in {"n_steps": 0, "n_starts": 0, "penalty": -1.0, "timeout": 0}.items():
        with pytest.raises(ValueError, match=f"`{name}` must be"):
            refine(study, objective, **{name: wrong})
    assert len(study.trials) == 10
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)
