"""Descents in real storages, which several processes share and some of which are killed."""

import multiprocessing
import signal

import pytest
from optuna.trial import TrialState

from span_hpo import SpanObjective
from span_hpo.integrations.optuna import (
    abandoned_trials,
    finished_trials,
    refine,
    search,
)
from span_hpo.integrations.optuna.descents import Descents, Pace
from span_hpo.search import DEFAULT_PENALTY
from tests.integrations.optuna.worker import (
    descend_alone,
    descend_together,
    opened,
    refine_together,
)
from tests.problems import two_moons
from tests.processes import wait_for


def objective():
    return SpanObjective(*two_moons(60), metric="smooth_error")


def started(target, *arguments):
    """Start a process that works on a study."""
    process = multiprocessing.get_context("spawn").Process(target=target, args=arguments)
    process.start()
    return process


def run_two(target, *arguments):
    """Run two processes to their ends."""
    processes = [started(target, *arguments) for _ in range(2)]
    for process in processes:
        process.join(120)
        assert process.exitcode == 0


def labels(study):
    """Return start and number of each step that is complete."""
    found = [
        trial.user_attrs["descent"]
        for trial in study.trials
        if "descent" in trial.user_attrs and trial.state == TrialState.COMPLETE
    ]
    return [(label["start"], label["step"]) for label in found]


def check_points(study, n_steps):
    """Check that each step was taken where the steps before it lead to."""
    steps = {}
    for trial in study.trials:
        if "descent" in trial.user_attrs and trial.state == TrialState.COMPLETE:
            label = trial.user_attrs["descent"]
            earlier = [study.trials[label["start"]], *steps.get(label["start"], [])]
            wanted = Descents(earlier, Pace(n_steps, DEFAULT_PENALTY)).standing(label["start"]).step
            assert (wanted.number, wanted.params) == (label["step"], trial.params)
            steps.setdefault(label["start"], []).append(trial)


def test_two_processes_take_no_step_twice(tmp_path):
    """Each step is taken once, after the one before it, and no trial is lost."""
    check_two(f"journal:{tmp_path}/study.log", descend_together)


@pytest.mark.slow
@pytest.mark.parametrize("target", [descend_together, descend_alone])
def test_no_step_is_taken_twice_in_any_storage(url, target):
    """The same holds in databases, and for trials that no search counts."""
    check_two(url, target)


def check_two(url, target):
    """Run two processes, and check their steps."""
    with opened(url) as study:
        run_two(target, url, 20 if target is descend_together else 10)
        assert len(finished_trials(study)) == 20
        found = labels(study)
        assert len(found) == len(set(found)) >= 5
        assert len({trial.user_attrs["worker"]["pid"] for trial in study.trials}) == 2
        check_points(study, 8)


@pytest.mark.slow
def test_two_processes_refine_from_different_trials(url):
    """Each has a descent of its own, as long as it was asked for."""
    with opened(url) as study:
        search(study, objective(), n_trials=6)
        run_two(refine_together, url, 7)
        found = labels(study)
        starts = {start for start, _ in found}
        assert len(starts) == 2
        # One that begins where the other has ended need not repeat its first point.
        assert all((start, number) in found for start in starts for number in range(1, 7))
        assert len(found) == len(set(found)) >= 13
        check_points(study, 7)


def test_a_killed_descent_is_continued(tmp_path):
    """Another process repeats the step in which a process was killed, and goes on."""
    url = f"journal:{tmp_path}/study.log"
    with opened(url) as study:
        search(study, objective(), n_trials=3)
        process = started(refine_together, url, 400)
        wait_for(lambda: len(labels(study)) >= 3)
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        before = labels(study)
    with opened(url) as study:
        refine(study, objective(), n_steps=400, timeout=0.5)  # the same pace, but not to its end
        assert not abandoned_trials(study)
        after = labels(study)
        assert len(after) > len(before)
        assert len({start for start, _ in after}) == 1
        assert sorted(number for _, number in after) == list(range(len(after)))
        check_points(study, 400)
