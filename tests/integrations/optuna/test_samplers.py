"""Draws that depend on the seed, their number and the history, and on nothing else."""

import pickle
import sys

import optuna
import pytest
from optuna.samplers import GridSampler, QMCSampler, RandomSampler, TPESampler
from optuna.trial import TrialState

from span_hpo import SpanSVC
from span_hpo.integrations.optuna import grid_sampler, new_study, search, search_space
from span_hpo.integrations.optuna.samplers import (
    SAMPLER_OF_NAME,
    PlannedSampler,
    SeededSampler,
    named_sampler,
    quiet,
)
from span_hpo.integrations.optuna.workers import sign
from tests.problems import two_moons

MISSING = {"cmaes": ("cmaes", "span-hpo[optuna]"), "gp": ("torch", "pip install torch")}
NAMES = ["tpe", "random", "qmc", "cmaes"]


def value(params):
    return sum((part - 2.0) ** 2 for part in params.values())


def asked(study, space, draw):
    """Ask for a trial that has a number of its draw, as a search does."""
    given, study.sampler = study.sampler, PlannedSampler(study.sampler, study)
    trial = study.ask()
    sign(trial, draw=draw)
    for name, part in space.items():
        trial.suggest_float(name, part.low, part.high, log=part.log)
    study.sampler = given
    return trial


def test_a_sampler_without_a_seed_is_the_one_of_optuna():
    """Only a seed needs a sampler that repeats itself."""
    assert type(named_sampler("tpe", None)) is TPESampler
    assert type(named_sampler("qmc", None)) is QMCSampler
    assert isinstance(named_sampler("tpe", 0), SeededSampler)
    assert set(SAMPLER_OF_NAME) >= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_repeated_draw_is_the_same(name, objective):
    """Trials that fail in between, and another process, do not change what is drawn."""
    if name == "cmaes":
        pytest.importorskip("cmaes")
    space = search_space(objective)
    straight, broken = (new_study(sampler=name, seed=3) for _ in range(2))
    for draw in range(25):
        trial = asked(straight, space, draw)
        straight.tell(trial, value(trial.params))
        if draw % 3 == 0:  # the process is killed, and another one repeats the trial
            broken.tell(asked(broken, space, draw), state=TrialState.FAIL)
            broken.sampler = named_sampler(name, 3)
        repeated = asked(broken, space, draw)
        assert repeated.params == trial.params
        broken.tell(repeated, value(repeated.params))
    assert len(broken.trials) > len(straight.trials)


@pytest.mark.parametrize("name", NAMES)
def test_draws_differ(name, objective):
    """No two draws of a search are the same, and another seed draws something else."""
    if name == "cmaes":
        pytest.importorskip("cmaes")
    tried = []
    for seed in (0, 1):
        study = new_study(sampler=name, seed=seed)
        search(study, objective, n_trials=12)
        tried.append([tuple(trial.params.values()) for trial in study.trials])
    starts = len(objective.defaults())
    assert len(set(tried[0])) == 12
    if name == "qmc":  # a sequence that is not scrambled has no seed
        assert tried[0] == tried[1]
    else:
        assert not set(tried[0][starts:]) & set(tried[1][starts:])


def test_threads_draw_different_points(objective):
    """Trials that run at the same time have different numbers of draws."""
    study = new_study(sampler="random", seed=0)
    search(study, objective, n_trials=16, n_jobs=4)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 16


def test_a_seeded_sampler_can_be_pickled(objective):
    """A study that is sent elsewhere goes on with the same draws."""
    for name in ("tpe", "qmc"):
        study = new_study(sampler=name, seed=0)
        first = study.ask(search_space(objective))
        study.tell(first, 0.5)
        again = pickle.loads(pickle.dumps(study))
        assert (
            again.ask(search_space(objective)).params == study.ask(search_space(objective)).params
        )


def test_a_planned_sampler_lets_others_draw(objective):
    """Samplers of users draw as they do without a plan, also one that visits a grid."""
    study = optuna.create_study(sampler=RandomSampler(seed=0))
    plain = optuna.create_study(sampler=RandomSampler(seed=0))
    planned = asked(study, search_space(objective), 0)
    space = search_space(objective)
    assert planned.params == plain.ask(space).params
    points = {"gamma": 2, "C_-1": 2, "C_1": 1}
    study = new_study(sampler=grid_sampler(objective, points, seed=0))
    search(study, objective, n_trials=20)
    assert isinstance(study.sampler, GridSampler)
    found = {tuple(trial.params.values()) for trial in study.trials}
    assert len(found) == len(study.trials) == 4 + len(objective.defaults())


def test_logging_is_quiet_for_a_while():
    """The level is as before afterwards."""
    level = optuna.logging.get_verbosity()
    with quiet():
        assert optuna.logging.get_verbosity() == optuna.logging.ERROR
    assert optuna.logging.get_verbosity() == level


@pytest.mark.parametrize("name", ["cmaes", "gp"])
@pytest.mark.filterwarnings("ignore::span_hpo.ScalingWarning")  # few rows
def test_a_missing_package_is_named_before_the_first_trial(name, monkeypatch):
    """A sampler whose package is not installed says how to install it, and no study is created."""
    module, command = MISSING[name]
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    storage = optuna.storages.InMemoryStorage()
    with pytest.raises(ImportError, match=f"'{name}' needs the package {module}: ") as raised:
        new_study(sampler=name, storage=storage, study_name="kept", seed=0)
    assert command in str(raised.value)
    assert not storage.get_all_studies()
    with pytest.raises(ImportError, match=f"needs the package {module}"):
        SpanSVC(sampler=name).fit(*two_moons(20))
