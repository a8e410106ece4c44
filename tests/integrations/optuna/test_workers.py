from pathlib import Path

import pytest
from optuna.trial import TrialState

from span_hpo.integrations.optuna import abandoned_trials
from span_hpo.integrations.optuna.workers import sign
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
