"""Trials that several processes share, and those that a killed process has left behind."""

import datetime
import threading
import time

import pytest
from optuna.trial import TrialState, create_trial

from span_hpo.integrations.optuna import finished_trials, new_study, search
from span_hpo.integrations.optuna.claims import Claims, SurplusTrialError
from span_hpo.integrations.optuna.workers import (
    draw_of,
    is_interrupted,
    sign,
    start_of,
    this_process,
)

STARTS = [{"x": 0.25}, {"x": 0.5}]


def claimed(claims):
    """Ask for a trial as `Study.optimize` does, and claim it."""
    study = claims.study
    given, study.sampler = study.sampler, claims.sampler
    trial = study.ask()
    try:
        claims.claim(trial)
        trial.suggest_float("x", 0, 1)
    except SurplusTrialError:
        study.tell(trial, state=TrialState.FAIL)
        raise
    finally:
        study.sampler = given
    return study.trials[trial.number]


def begun_long_ago(worker=None):
    """Return a trial that is running for a day."""
    trial = create_trial(
        state=TrialState.RUNNING, user_attrs={} if worker is None else {"worker": worker}
    )
    trial.datetime_start = datetime.datetime.now() - datetime.timedelta(days=1)
    return trial


def test_starts_come_first_and_then_numbered_draws():
    """Each trial says which start it has, or the number of its draw."""
    study = new_study(seed=0)
    claims = Claims(study, 4, STARTS)
    trials = [claimed(claims) for _ in range(4)]
    assert [trial.params for trial in trials[:2]] == STARTS
    assert [start_of(trial) for trial in trials] == [0, 1, None, None]
    assert [draw_of(trial) for trial in trials] == [None, None, 0, 1]


def test_no_more_trials_than_wanted():
    """A trial that comes too late is given up, counts as interrupted, and takes no draw."""
    study = new_study(seed=0)
    claims = Claims(study, 2, [])
    first, second = claimed(claims), claimed(claims)
    with pytest.raises(SurplusTrialError):
        claimed(claims)
    assert (claims.surplus, claims.taken()) == (1, 2)
    assert is_interrupted(study.trials[2])
    study.tell(second.number, state=TrialState.FAIL)  # without a failure of a fit
    claims.release(second.number)
    repeated = claimed(claims)
    assert (draw_of(repeated), repeated.params) == (1, second.params)
    study.tell(first.number, 0.5)
    study.tell(repeated.number, 0.25)
    assert len(finished_trials(study)) == 2


def test_a_fit_that_has_failed_is_not_repeated():
    """A trial with a failure has used its draw, and does not count."""
    study = new_study(seed=0)
    claims = Claims(study, 2, [])
    trial = study.ask()
    sign(trial, draw=0)
    trial.set_user_attr("failure", "no convergence")
    study.tell(trial, state=TrialState.FAIL)
    assert claims.taken() == 0
    assert draw_of(claimed(claims)) == 1


@pytest.mark.parametrize("who", ["nobody", "dead", "lost", "own"])
def test_trials_that_nobody_works_on_do_not_block(who):
    """Unsigned trials, and those of dead, lost and former workers, do not count for ever."""
    worker = {
        "nobody": None,
        "dead": {**this_process(), "started": 1},
        "lost": {**this_process(), "host": "elsewhere"},
        "own": {**this_process(), "draw": 0},  # of a search that has ended with an error
    }[who]
    study = new_study(seed=0)
    study.add_trial(begun_long_ago(worker))
    assert Claims(study, 1, []).taken() == 0


def test_trials_that_others_work_on_count():
    """A trial of a machine that cannot be judged counts as long as it may be running."""
    study = new_study(seed=0)
    study.add_trial(
        create_trial(
            state=TrialState.RUNNING,
            user_attrs={"worker": {**this_process(), "host": "elsewhere", "draw": 0}},
        )
    )
    claims = Claims(study, 2, [])
    assert claims.taken() == 1
    assert draw_of(claimed(claims)) == 1


def test_a_trial_that_is_about_to_be_signed_is_waited_for():
    """The earlier of two trials is claimed first, even if its process is slower."""
    study = new_study(seed=0)
    claims = Claims(study, 1, [])
    earlier, later = study.ask(), study.ask()
    caught = []

    def claim():
        try:
            claims.claim(later)
        except SurplusTrialError as error:
            caught.append(error)

    thread = threading.Thread(target=claim)
    thread.start()
    time.sleep(0.2)
    assert not caught
    claims.claim(earlier)
    thread.join(10)
    assert len(caught) == 1
    assert draw_of(study.trials[earlier.number]) == 0


def test_clocks_that_are_ahead_block_nobody(monkeypatch):
    """A trial that seems to begin tomorrow is not waited for until then."""
    monkeypatch.setattr("span_hpo.integrations.optuna.claims.SECONDS_TO_SIGN", 0.2)
    study, trial = new_study(seed=0), begun_long_ago()
    trial.datetime_start = datetime.datetime.now() + datetime.timedelta(days=1)
    study.add_trial(trial)
    assert Claims(study, 1, []).taken() == 0


def test_points_that_a_user_has_queued_are_kept(objective):
    """They come first and count, and draws and starts go on after them."""
    study = new_study(seed=0)
    point = {name: part.low * 2 for name, part in objective.space.items()}
    study.enqueue_trial(point)
    search(study, objective, n_trials=6)
    assert study.trials[0].params == pytest.approx(point)
    assert [start_of(trial) for trial in study.trials] == [None, 0, 1, None, None, None]
    assert [draw_of(trial) for trial in study.trials] == [None, None, None, 0, 1, 2]
