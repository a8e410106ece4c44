from pathlib import Path

import pytest
from optuna.trial import TrialState

from span_hpo.integrations.optuna import abandoned_trials
from span_hpo.integrations.optuna.workers import (
    FAILURE,
    draw_of,
    is_claimed,
    is_gone,
    is_interrupted,
    is_own,
    is_signed,
    sign,
    start_of,
    this_process,
)
from tests.integrations.optuna.parts import study_of


def test_a_process_that_is_alive_has_abandoned_nothing(objective):
    """Trials of this process, of other machines and of other programs are not judged."""
    study = study_of()
    own, foreign, unsigned = study.ask(), study.ask(), study.ask()
    sign(own)
    foreign.set_user_attr("worker", {**own.user_attrs["worker"], "host": "elsewhere", "pid": 1})
    container = study.ask()
    container.set_user_attr("worker", {**own.user_attrs["worker"], "place": "other", "pid": 2**22})
    odd = study.ask()
    odd.set_user_attr("worker", {"host": own.user_attrs["worker"]["host"]})
    assert abandoned_trials(study, fail=True) == []
    states = [study.trials[t.number].state for t in (own, foreign, unsigned, container, odd)]
    assert states == [TrialState.RUNNING] * 5


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes cannot be judged")
def test_a_number_that_another_process_has_taken():
    """A process that has the number of a worker, but started later, is not that worker."""
    study = study_of()
    trial = study.ask()
    sign(trial)
    trial.set_user_attr("worker", {**trial.user_attrs["worker"], "started": 1})
    assert [found.number for found in abandoned_trials(study)] == [trial.number]


def test_a_signature_is_written_once():
    """A trial that a search has claimed keeps its draw when the objective signs it again."""
    study = study_of()
    claimed, plain, unsigned = study.ask(), study.ask(), study.ask()
    sign(claimed, draw=7, start=None)
    sign(claimed)
    sign(plain)
    found = [study.trials[trial.number] for trial in (claimed, plain, unsigned)]
    assert [draw_of(trial) for trial in found] == [7, 1, 2]
    assert [start_of(trial) for trial in found] == [None, None, None]
    assert [is_claimed(trial) for trial in found] == [True, False, False]
    assert [is_signed(trial) for trial in found] == [True, True, False]
    assert [is_own(trial) for trial in found] == [True, True, False]


def test_an_interruption_is_no_failure_of_a_fit():
    """A failed trial was interrupted if it is signed and no fit has failed in it."""
    study = study_of()
    interrupted, failed, foreign = study.ask(), study.ask(), study.ask()
    sign(interrupted)
    sign(failed)
    failed.set_user_attr(FAILURE, "no convergence")
    for trial in (interrupted, failed, foreign):
        assert not is_interrupted(study.trials[trial.number])
        study.tell(trial, state=TrialState.FAIL)
    assert [is_interrupted(trial) for trial in study.trials] == [True, False, False]


def test_this_process_is_not_gone():
    """What is no record of a process is not judged either."""
    for worker in (this_process(), None, "text", {}, {"pid": "1"}):
        assert not is_gone(worker)
