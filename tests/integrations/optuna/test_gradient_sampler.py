"""A sampler that follows gradients from the best points that another one has drawn."""

import math
import pickle
import warnings

import numpy as np
import optuna
import pytest
from optuna.samplers import RandomSampler, TPESampler
from optuna.trial import TrialState
from sklearn.datasets import load_digits

from span_hpo import ARD, SpanObjective, minimize
from span_hpo.integrations.optuna import (
    GradientSampler,
    OptunaObjective,
    best_model,
    best_trial,
    new_study,
    params_of,
    search,
    store_gradient,
    wants_gradient,
)
from span_hpo.integrations.optuna.gradient_sampler import gradient_sampler_of
from span_hpo.integrations.optuna.samplers import named_sampler
from tests.integrations.optuna.parts import AlwaysPrune, study_of
from tests.problems import two_moons


def hills(count=80, features=6, seed=0):
    """Return features of which two matter, and labels."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(count, features))
    y = np.where(X[:, 0] + 0.6 * np.sin(6 * X[:, 1]) > 0.8, 1.0, -1.0)
    return X, y


def ard(data=None, **settings):
    """Return an objective with one width per feature."""
    settings = {"kernel": ARD(), "weighting": "uniform", "metric": "smooth_error", **settings}
    return SpanObjective(*(hills() if data is None else data), **settings)


def quadratic(trial, sign=1.0, first=wants_gradient):
    """Return a function of a trial with its least value at (1, 1), and store its gradient."""
    is_step = first(trial)
    x = trial.suggest_float("x", 0.01, 100.0, log=True)
    y = trial.suggest_float("y", -4.0, 4.0)
    if is_step:
        store_gradient(trial, {"x": sign * 2 * math.log(x) / x, "y": sign * 2 * (y - 1)})
    return sign * (math.log(x) ** 2 + (y - 1) ** 2)


def steps(study):
    """Return the labels of all steps as (start, number), with their trials."""
    return {
        (trial.user_attrs["descent"]["start"], trial.user_attrs["descent"]["step"]): trial
        for trial in study.get_trials(deepcopy=False)
        if "descent" in trial.user_attrs
    }


def test_a_descent_begins_at_the_best_point():
    """Draws come first, then all steps from the best of them, then draws again."""
    study = study_of(sampler=GradientSampler(n_startup=6, n_steps=30, seed=0))
    study.optimize(quadratic, n_trials=44)
    best = min(study.trials[:6], key=lambda trial: trial.value).number
    assert list(steps(study))[:30] == [(best, number) for number in range(30)]
    assert [steps(study)[best, number].number for number in range(30)] == list(range(6, 36))
    assert [trial.number for trial in study.trials[36:42] if "descent" in trial.user_attrs] == []
    assert len(steps(study)) == 32  # a second descent after six more draws
    assert study.best_value < 1e-4


def test_the_steps_are_those_of_minimize():
    """From the same start, with the same penalty, the study holds the path of the function."""
    objective = ard()
    sampler = GradientSampler(RandomSampler(seed=1), n_startup=4, n_steps=12, penalty=0.5)
    study = study_of(sampler=sampler)
    study.optimize(OptunaObjective(objective), n_trials=16)
    start = next(iter(steps(study)))[0]
    path = minimize(
        objective, params_of(study.trials[start], objective), penalty=0.5, max_evaluations=12
    ).path
    for trial, step in zip(study.trials[4:], path, strict=True):
        for name, value in params_of(trial, objective).items():
            assert value == pytest.approx(step.params[name], rel=1e-6)
        assert trial.value == pytest.approx(step.loss, abs=1e-6)
        assert trial.value + trial.user_attrs["penalty"] == pytest.approx(step.value, abs=1e-6)


def test_gradients_are_computed_only_for_steps():
    """Drawn trials cost one evaluation, as they do for other samplers."""

    class Counting(SpanObjective):
        count = 0

        def value_and_gradient(self, *arguments, **options):
            self.count += 1
            return super().value_and_gradient(*arguments, **options)

    objective = Counting(*hills(), kernel=ARD(), weighting="uniform", metric="smooth_error")
    for sampler, expected in ((GradientSampler(n_startup=5, n_steps=3, seed=0), 3), (None, 3)):
        study = study_of(sampler=sampler)
        study.optimize(OptunaObjective(objective), n_trials=8)
        assert objective.count == expected
        with_gradient = [trial for trial in study.trials if "gradient" in trial.user_attrs]
        assert len(with_gradient) == (3 if sampler else 0)


def test_more_is_found_than_by_drawing():
    """With one width for each of 64 pixels, gradients find less loss, and as good a model."""
    digits = load_digits()
    chosen = np.random.default_rng(0).permutation(np.flatnonzero(np.isin(digits.target, (3, 8))))
    X, y = digits.data / 16, digits.target
    objective = ard(data=(X[chosen[:120]], y[chosen[:120]]))
    rest = chosen[120:]
    losses, scores = [], []
    for name in ("gradient", "tpe"):
        study = new_study(sampler=name, seed=0)
        search(study, objective, n_trials=50)
        assert len(study.trials) == 50
        losses.append(study.best_value)
        scores.append(best_model(study, objective).score(X[rest], y[rest]))
    assert losses[0] < 0.7 * losses[1]
    assert scores[0] > scores[1] - 0.01


@pytest.mark.parametrize("kind", [pytest.param("sqlite", marks=pytest.mark.slow), "journal"])
def test_a_seed_gives_the_same_trials(kind, tmp_path):
    """Also if the study is continued by other objects in between."""

    def sampler():
        return GradientSampler(named_sampler("tpe", 3), n_startup=4, n_steps=5)

    straight = new_study(sampler=sampler())
    search(straight, ard(), n_trials=14)
    url = f"sqlite:///{tmp_path}/study.db" if kind == "sqlite" else tmp_path / "study.journal"
    for count in (3, 7, 14):
        broken = new_study(sampler=sampler(), storage=url, study_name="hills")
        search(broken, ard(), n_trials=count)
    assert [trial.params for trial in broken.trials] == [t.params for t in straight.trials]
    assert len(steps(broken)) == 6
    assert list(steps(broken)) == list(steps(straight))


def test_a_study_that_maximises_is_climbed():
    """The mirrored function has the mirrored descent."""
    studies = [
        study_of(
            sampler=GradientSampler(RandomSampler(seed=0), n_startup=4, n_steps=9), **direction
        )
        for direction in ({}, {"direction": "maximize"})
    ]
    for study, sign in zip(studies, (1.0, -1.0), strict=True):
        study.optimize(lambda trial, sign=sign: quadratic(trial, sign), n_trials=13)
    down, up = ([trial.params for trial in study.trials] for study in studies)
    assert down == up
    assert studies[1].best_value == -studies[0].best_value


def test_several_directions_are_refused():
    """Steps cannot follow several gradients at once."""
    study = optuna.create_study(sampler=GradientSampler(), directions=["minimize"] * 2)
    with pytest.raises(ValueError, match="`study` must have one direction for a GradientSampler"):
        study.ask()


def test_hyperparameters_without_derivative_are_held():
    """Whole numbers, options and steps stay those of the best point."""

    def mixed(trial):
        n = trial.suggest_int("n", 1, 9)
        c = trial.suggest_categorical("c", ["a", "b"])
        s = trial.suggest_float("s", 0.0, 1.0, step=0.25)
        return quadratic(trial, first=lambda trial: True) + n + (c == "a") + s

    def first(trial):
        wants_gradient(trial)
        return mixed(trial)

    study = study_of(sampler=GradientSampler(n_startup=6, n_steps=10, seed=0))
    study.optimize(first, n_trials=16)
    start = study.trials[next(iter(steps(study)))[0]]
    assert len(steps(study)) == 9  # the start has its gradient
    for trial in steps(study).values():
        assert [trial.params[name] for name in "ncs"] == [start.params[name] for name in "ncs"]


@pytest.mark.parametrize(
    "settings", [{"metric": "auc"}, {"loo_method": "exact"}, {"metric": lambda y, f: 0.5}]
)
def test_a_loss_without_gradient_is_searched_by_draws(settings):
    """The sampler says so once, and all trials are those of the global sampler."""
    objective = SpanObjective(*two_moons(40), **{"metric": "smooth_error", **settings})
    study = new_study(sampler="gradient", seed=0)
    with pytest.warns(UserWarning, match="The loss has no gradient") as caught:
        search(study, objective, n_trials=20)
    assert len(caught) == 1
    assert not steps(study)
    plain = new_study(sampler="tpe", seed=0)
    search(plain, objective, n_trials=20)
    assert [t.params for t in study.trials] == [t.params for t in plain.trials]


def test_the_error_follows_the_smooth_error():
    """Trials have the error as their value, and the gradient of the smooth error."""
    objective = ard(metric="error")
    study = new_study(sampler=GradientSampler(n_startup=5, n_steps=15, seed=0))
    search(study, objective, n_trials=20)
    found = [trial for _, trial in sorted(steps(study).items())]
    assert len(found) == 15
    assert all(trial.value == objective(params_of(trial, objective)) for trial in found)
    assert min(t.user_attrs["smooth_error"] for t in found) < found[0].user_attrs["smooth_error"]


def test_a_function_that_asks_for_nothing_is_noticed():
    """Without gradients, no more than one point is repeated."""
    study = study_of(sampler=GradientSampler(n_startup=4, n_steps=9, seed=0))
    with pytest.warns(UserWarning, match=r"must ask wants_gradient\(trial\)"):
        study.optimize(lambda trial: quadratic(trial, first=lambda _: False), n_trials=15)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 14


def test_descents_in_vain_are_given_up():
    """If no start has a gradient, three points are repeated, and then all trials are drawn."""

    def flat(trial):
        wants_gradient(trial)
        return trial.suggest_float("x", 0.0, 1.0)

    study = study_of(sampler=GradientSampler(RandomSampler(seed=0), n_startup=3, n_steps=9))
    study.optimize(flat, n_trials=40)
    assert len(steps(study)) == 3
    assert {number for _, number in steps(study)} == {0}


def test_pruners_stop_draws_and_no_steps():
    """A pruner that wants to stop everything does not break a descent, which uses all rows."""
    objective = ard()
    study = new_study(sampler=GradientSampler(n_startup=8, n_steps=6, seed=0), pruner=AlwaysPrune())
    search(study, objective, n_trials=22, budgets=(0.25, 0.5, 1.0))
    found = steps(study)
    assert len(found) >= 6
    for trial in found.values():
        assert trial.state == TrialState.COMPLETE
        assert list(trial.intermediate_values) == [80]
    drawn = [trial for trial in study.trials if "descent" not in trial.user_attrs]
    assert TrialState.PRUNED in {trial.state for trial in drawn}
    assert study.trials[next(iter(found))[0]].state == TrialState.COMPLETE


@pytest.mark.parametrize("pruner", ["median", "percentile", "halving", "hyperband"])
def test_named_pruners_go_along(pruner):
    """Budgets of draws and steps without budgets share a study."""
    study = new_study(sampler="gradient", pruner=pruner, seed=0)
    search(study, ard(), n_trials=30)
    assert all(t.state == TrialState.COMPLETE for t in steps(study).values())
    assert len(study.trials) == 30
    assert len(steps(study)) >= 10


def test_steps_keep_constraints():
    """No descent begins at a violating trial, and the best trial keeps the constraint."""
    objective = ard()
    study = new_study(sampler=GradientSampler(n_startup=8, n_steps=12, seed=0))
    search(study, objective, n_trials=40, max_support=40)
    for start, _ in steps(study):
        assert study.trials[start].constraints["n_support"] <= 0
    assert best_trial(study).user_attrs["n_support"] <= 40
    assert len(steps(study)) >= 12


def test_threads_take_no_step_twice():
    """Of several threads one takes a step, and the others draw."""
    study = new_study(sampler=GradientSampler(n_startup=6, n_steps=10, seed=0))
    search(study, ard(), n_trials=48, n_jobs=4)
    labels = [
        (t.user_attrs["descent"]["start"], t.user_attrs["descent"]["step"])
        for t in study.trials
        if "descent" in t.user_attrs
    ]
    assert len(labels) == len(set(labels)) >= 10
    assert len(study.trials) == 48
    by_start = {}
    for start, number in labels:
        by_start.setdefault(start, []).append(number)
    assert all(numbers == list(range(len(numbers))) for numbers in by_start.values())


def test_queued_points_are_kept():
    """A point that a user has queued is evaluated, also in the middle of a descent."""
    study = study_of(sampler=GradientSampler(n_startup=4, n_steps=20, seed=0))
    study.optimize(quadratic, n_trials=10)
    study.enqueue_trial({"x": 7.0, "y": 2.0})
    study.optimize(quadratic, n_trials=4)
    assert study.trials[10].params == {"x": 7.0, "y": 2.0}
    assert [number for _, number in steps(study)] == list(range(9))


def test_a_retried_step_brings_its_gradient():
    """A storage with a heartbeat queues the point of a lost trial again, with its attributes."""
    objective = ard()
    study = study_of(sampler=GradientSampler(n_startup=4, n_steps=9, seed=0))
    study.optimize(OptunaObjective(objective), n_trials=6)
    lost = study.ask()
    assert wants_gradient(lost)
    label = lost.user_attrs["descent"]
    params = {
        name: lost.suggest_float(name, part.low, part.high, log=True)
        for name, part in objective.space.items()
    }
    study.tell(lost, state=TrialState.FAIL)
    study.enqueue_trial(params, user_attrs={"descent": label})
    study.optimize(OptunaObjective(objective), n_trials=2)
    retried, following = study.trials[-2:]
    assert retried.params == params
    assert "gradient" in retried.user_attrs
    assert following.user_attrs["descent"] == {**label, "step": label["step"] + 1}


def test_a_pickled_sampler_goes_on():
    """A study that is sent elsewhere takes the next step there."""
    study = study_of(sampler=GradientSampler(RandomSampler(seed=0), n_startup=4, n_steps=9))
    study.optimize(quadratic, n_trials=8)
    again = pickle.loads(pickle.dumps(study))
    for one in (study, again):
        one.optimize(quadratic, n_trials=3)
    assert [t.params for t in again.trials] == [t.params for t in study.trials]
    assert len(steps(again)) == 7


def test_the_sampler_of_a_study_is_found():
    """Also while a search has planned its trials."""
    sampler = GradientSampler()
    assert gradient_sampler_of(study_of(sampler=sampler)) is sampler
    assert gradient_sampler_of(study_of(sampler=TPESampler())) is None
    assert gradient_sampler_of(new_study(sampler="tpe", seed=0)) is None
    assert isinstance(gradient_sampler_of(new_study(sampler="gradient", seed=0)), GradientSampler)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sampler": "tpe"}, "`sampler` must be a sampler of Optuna, got str"),
        ({"sampler": TPESampler(), "seed": 0}, "`seed` must be None if there is a `sampler`"),
        ({"n_startup": 0}, "`n_startup` must be a whole number of at least 1, got 0"),
        ({"n_steps": 2.5}, "`n_steps` must be a whole number of at least 1, got 2.5"),
        ({"n_starts": 0}, "`n_starts` must be a whole number of at least 1, got 0"),
        ({"penalty": -1.0}, "`penalty` must be a finite number of at least 0, got -1.0"),
    ],
)
def test_wrong_arguments_are_errors(arguments, message):
    """They name the argument and what it must be."""
    with pytest.raises((TypeError, ValueError), match=message):
        GradientSampler(**arguments)


def test_other_samplers_are_left_alone():
    """Without a GradientSampler, nothing is asked for, and a fixed trial has no study."""
    study = study_of()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study.optimize(quadratic, n_trials=3)
    assert not steps(study)
    assert not wants_gradient(optuna.trial.FixedTrial({"x": 1.0}))
