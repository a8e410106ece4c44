"""The end of a search that finds nothing better."""

import datetime
import subprocess
import sys
import threading

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState, create_trial

from span_hpo import SpanObjective
from span_hpo.integrations.optuna import (
    OptunaObjective,
    StopWhenSettled,
    finished_trials,
    has_settled,
    new_study,
    search,
)
from tests.integrations.optuna.parts import AlwaysPrune, study_of
from tests.problems import two_moons
from tests.processes import ENVIRONMENT

OPTIMIZE, SEARCH, ARGUMENT = "study.optimize", "search", "patience="


def since_best(study):
    """Return the finished trials after the first one of the least loss, by their ends."""
    trials = sorted(finished_trials(study), key=lambda trial: trial.datetime_complete)
    losses = [np.inf if t.state == TrialState.PRUNED else t.value for t in trials]
    return len(losses) - 1 - int(np.argmin(losses))


def run(way, study, objective, patience, n_jobs=1):
    """Search with a callback or with the argument of `search`."""
    callbacks, settings = [StopWhenSettled(patience)], {"n_trials": 300, "n_jobs": n_jobs}
    if way == OPTIMIZE:
        study.optimize(OptunaObjective(objective), callbacks=callbacks, **settings)
    elif way == SEARCH:
        search(study, objective, callbacks=callbacks, **settings)
    else:
        search(study, objective, patience=patience, **settings)


@pytest.mark.parametrize("place", ["memory", "journal"])
@pytest.mark.parametrize("way", [OPTIMIZE, SEARCH, ARGUMENT])
def test_a_search_ends_after_so_many_trials_without_a_lower_loss(way, place, objective, tmp_path):
    """One thread stops at the trial that completes the count, not before and not after."""
    storage = None if place == "memory" else tmp_path / "a.journal"
    study = new_study(storage=storage, study_name="moons", seed=0)
    run(way, study, objective, patience=8)
    assert since_best(study) == 8
    losses = [trial.value for trial in study.trials]
    assert all(loss >= min(losses) for loss in losses[-8:])
    assert min(losses[:-8]) == min(losses)


@pytest.mark.parametrize("way", [OPTIMIZE, SEARCH, ARGUMENT])
def test_threads_end_together(way, objective):
    """With several threads, only trials that were running end after the last of the count."""
    study = new_study(seed=0)
    run(way, study, objective, patience=8, n_jobs=3)
    assert len(study.trials) < 300
    assert 8 <= since_best(study) <= 8 + 3 or not has_settled(study, 8)
    assert all(trial.state.is_finished() for trial in study.trials)


def test_earlier_trials_count(objective, tmp_path):
    """A study that has settled gets no trial more, unless the patience is longer."""
    for patience in (5, 5, 9):
        study = new_study(storage=tmp_path / "a.journal", study_name="moons", seed=0)
        search(study, objective, n_trials=300, patience=patience)
        assert since_best(study) == patience
    # A callback is asked after a trial only.
    study.optimize(OptunaObjective(objective), n_trials=50, callbacks=[StopWhenSettled(9)])
    assert since_best(study) in (0, 10)


def test_pruned_trials_count_and_failed_ones_do_not():
    """A pruned trial is a finished one without a lower loss, whatever it has reported."""
    study = study_of()
    study.add_trial(create_trial(value=0.5))
    assert not has_settled(study, 1)
    study.add_trial(create_trial(state=TrialState.FAIL))
    assert not has_settled(study, 1)
    study.add_trial(create_trial(state=TrialState.PRUNED, intermediate_values={1: 0.1}))
    assert has_settled(study, 1)
    study.add_trial(create_trial(value=0.4))
    assert not has_settled(study, 1)
    study.add_trial(create_trial(value=0.4))
    assert has_settled(study, 1)


def test_nothing_but_pruned_trials_is_no_result(objective):
    """A study without a complete trial has not settled, and goes on."""
    study = study_of()
    study.add_trials([create_trial(state=TrialState.PRUNED)] * 50)
    assert not has_settled(study)
    pruned = new_study(pruner=AlwaysPrune(), seed=0)
    search(pruned, objective, n_trials=60, budgets=(0.25, 0.5, 1.0), patience=10)
    assert since_best(pruned) == 10
    assert TrialState.PRUNED in {trial.state for trial in finished_trials(pruned)[-10:]}


def test_a_trial_that_violates_a_constraint_is_no_progress():
    """Its loss cannot be that of the best trial."""
    study = study_of()
    study.add_trial(create_trial(value=0.5))
    study.add_trial(create_trial(value=0.1, constraints={"n_support": 3.0}))
    assert has_settled(study, 1)
    study.add_trial(create_trial(value=0.4, constraints={"n_support": 0.0}))
    assert not has_settled(study, 1)


def test_studies_that_maximise():
    """Larger values are progress, and smaller ones are not."""
    study = study_of(direction="maximize")
    values = [0.1, 0.3, 0.2, 0.3, 0.4, 0.1, 0.4, 0.3, 0.9]
    study.optimize(lambda t: values[t.number], n_trials=9, callbacks=[StopWhenSettled(3)])
    assert [trial.value for trial in study.trials] == values[:8]


def test_trials_count_in_the_order_in_which_they_end():
    """A lower loss of a trial that began early and took long is new when it comes."""
    start = datetime.datetime(2026, 1, 1)
    study = study_of()
    for value, seconds in ((0.1, 60), (0.5, 10), (0.4, 20), (0.4, 30)):
        trial = create_trial(value=value)
        trial.datetime_complete = start + datetime.timedelta(seconds=seconds)
        study.add_trial(trial)
    assert not has_settled(study, 1)
    assert since_best(study) == 0


def test_several_directions_are_refused(objective):
    """Pairs of losses have no order, which one sentence says."""
    two = SpanObjective(*two_moons(80), metric=("error", "log_loss"))
    study = optuna.create_study(directions=["minimize"] * 2)
    with pytest.raises(ValueError, match=r"`study` must have one direction to settle, got 2\."):
        search(study, two, n_trials=5, patience=5)
    assert not study.trials  # it was refused before anything was fitted
    with pytest.raises(ValueError, match="one direction to settle"):
        study.optimize(OptunaObjective(two), n_trials=5, callbacks=[StopWhenSettled()])


@pytest.mark.parametrize("patience", [0, -1, 2.5, True, "40"])
def test_patience_is_a_whole_number(patience, objective):
    """Anything else is an error that names the argument, before any trial."""
    study = new_study()
    for use in (
        StopWhenSettled,
        lambda patience: has_settled(study, patience),
        lambda patience: search(study, objective, n_trials=3, patience=patience),
    ):
        with pytest.raises((TypeError, ValueError), match="`patience` must be a whole number"):
            use(patience)
    assert not study.trials


def test_searches_in_threads_share_the_count(objective, tmp_path):
    """Two searches of one journal end both, and each sees the trials of the other."""
    studies = [
        new_study(storage=tmp_path / "a.journal", study_name="moons", seed=0) for _ in range(2)
    ]
    threads = [
        threading.Thread(
            target=search, args=(study, objective), kwargs={"n_trials": 300, "patience": 10}
        )
        for study in studies
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert has_settled(studies[0], 10)
    assert len(finished_trials(studies[0])) < 300


PROCESS = """
import optuna, sys
from span_hpo import SpanObjective
from span_hpo.integrations.optuna import OptunaObjective, StopWhenSettled, new_study, search
from tests.problems import two_moons
optuna.logging.set_verbosity(optuna.logging.WARNING)
study = new_study(storage="a.journal", study_name="moons", seed=0)
objective = SpanObjective(*two_moons(60))
if sys.argv[1] == "callback":
    search(study, objective, n_trials=400, callbacks=[StopWhenSettled(12)])
else:
    search(study, objective, n_trials=400, patience=12)
"""


def test_processes_that_share_a_study_end(tmp_path):
    """Processes stop by themselves, and what they have finished together has settled."""
    processes = [
        subprocess.Popen([sys.executable, "-c", PROCESS, way], cwd=tmp_path, env=ENVIRONMENT)
        for way in ("callback", "argument")
    ]
    assert [process.wait(60) for process in processes] == [0, 0]
    study = new_study(storage=tmp_path / "a.journal", study_name="moons")
    workers = {trial.user_attrs["worker"]["pid"] for trial in finished_trials(study)}
    assert workers <= {process.pid for process in processes}
    assert has_settled(study, 12)
    assert len(finished_trials(study)) < 400
    assert since_best(study) <= 12 + 2
