"""Studies in real storages, with several processes, some of which are killed."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from span_hpo import SpanObjective
from span_hpo.integrations.optuna import (
    OptunaObjective,
    abandoned_trials,
    best_model,
    best_trial,
    finished_trials,
)
from tests.integrations.optuna.worker import STUDY, opened, search_together
from tests.places import ROOT
from tests.problems import two_moons
from tests.processes import wait_for


def worker(url, trials, slow=1_000_000):
    command = [
        sys.executable,
        "-m",
        "tests.integrations.optuna.worker",
        url,
        str(trials),
        str(slow),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)


def killed_in_its_fourth_trial(url):
    """Run a worker that is killed in the middle of a trial."""
    process = worker(url, 10, slow=3)
    with opened(url) as study:

        def in_the_fourth():
            trials = study.get_trials()
            return len(trials) == 4 and "worker" in trials[3].user_attrs

        wait_for(in_the_fourth)
        time.sleep(0.3)  # until the trial's parameters are written
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def test_what_is_stored_is_what_was_found(url):
    """A study goes on in another storage object with everything that the first one wrote."""
    objective = SpanObjective(*two_moons(60))
    with opened(url) as study:
        study.optimize(OptunaObjective(objective, max_support=60), n_trials=5)
    with opened(url) as study:
        study.optimize(OptunaObjective(objective, max_support=60), n_trials=3)
        assert len(study.trials) == 8
        for trial in study.trials:
            evaluation = objective.evaluate(trial.params)
            assert trial.value == evaluation.loss
            assert trial.user_attrs["n_support"] == evaluation.n_support
            assert trial.user_attrs["loo_error_bounds"] == list(evaluation.loo.error_bounds)
            assert trial.constraints == {"n_support": evaluation.n_support - 60}
        X, _ = two_moons(60)
        expected = objective.fit_model(best_trial(study).params).decision_function(X)
        np.testing.assert_array_equal(best_model(study, objective).decision_function(X), expected)


def test_three_processes_share_a_study(url):
    """Every process does its trials, none is lost, and each says who did it."""
    with opened(url):  # makes the tables once
        pass
    processes = [worker(url, 5) for _ in range(3)]
    for process in processes:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    with opened(url) as study:
        assert [trial.number for trial in study.trials] == list(range(15))
        assert all(trial.state == TrialState.COMPLETE for trial in study.trials)
        shares = Counter(trial.user_attrs["worker"]["pid"] for trial in study.trials)
        assert shares == {process.pid: 5 for process in processes}
        objective = SpanObjective(*two_moons(60))
        assert all(trial.value == objective(trial.params) for trial in study.trials)


@pytest.mark.slow
@pytest.mark.parametrize("trials", [12, 40])
def test_processes_that_share_a_search_end_with_exactly_so_many(url, trials):
    """Two searches at the same time finish the trials that are wanted, and draw none twice."""
    with opened(url):  # makes the tables once
        pass
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=search_together, args=(url, trials)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300)
        assert process.exitcode == 0
    with opened(url) as study:
        done = finished_trials(study)
        assert len(done) == trials
        assert len({tuple(trial.params.values()) for trial in done}) == trials
        states = {trial.state for trial in study.trials}
        assert states <= {TrialState.COMPLETE, TrialState.FAIL}


def test_killed_worker_loses_no_finished_trial(url):
    """Finished trials stay; the one that nobody works on is recognised, told, and can be ended."""
    killed_in_its_fourth_trial(url)
    with opened(url) as study:
        states = [trial.state for trial in study.trials]
        assert states == [TrialState.COMPLETE] * 3 + [TrialState.RUNNING]
        assert [trial.number for trial in abandoned_trials(study)] == [3]
        objective = OptunaObjective(SpanObjective(*two_moons(60)))
        with pytest.warns(
            UserWarning, match=r"Trials \[3\] of the study 'moons' are still RUNNING"
        ):
            study.optimize(objective, n_trials=1)
        study.optimize(objective, n_trials=1)  # is told once
        abandoned_trials(study, fail=True)
        assert study.trials[3].state == TrialState.FAIL
        assert abandoned_trials(study) == []
        assert len(study.get_trials(states=(TrialState.COMPLETE,))) == 5
        assert best_trial(study).value == min(t.value for t in study.trials if t.value is not None)


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.filterwarnings("ignore:Trials .* are still RUNNING:UserWarning")
def test_heartbeat_retries_the_trial_of_a_killed_worker(kind, tmp_path, request):
    """With a heartbeat the parameters of the lost trial are tried again."""
    if kind == "sqlite":
        url = f"sqlite:///{tmp_path}/study.db#heartbeat"
    else:
        address = request.getfixturevalue("postgres")
        with opened(address) as study:
            optuna.delete_study(study_name=STUDY, storage=study._storage)
        url = f"{address}#heartbeat"
    killed_in_its_fourth_trial(url)
    time.sleep(3)  # the grace period
    with opened(url) as study:
        study.optimize(OptunaObjective(SpanObjective(*two_moons(60))), n_trials=2)
        lost = study.trials[3]
        assert lost.state == TrialState.FAIL
        retried = [t for t in study.trials if t.system_attrs.get("failed_trial") == 3]
        assert [trial.state for trial in retried] == [TrialState.COMPLETE]
        assert retried[0].params == lost.params
