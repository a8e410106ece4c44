"""Pruners, on real studies: what they are set to, and what they must not stop."""

import multiprocessing
import pickle
import re
import warnings
from collections import Counter

import optuna
import pytest
from optuna.pruners import MedianPruner, NopPruner, PercentilePruner, SuccessiveHalvingPruner
from optuna.trial import TrialState, create_trial

from span_hpo import SpanObjective
from span_hpo.integrations.optuna import (
    OptunaObjective,
    best_trial,
    enqueue_defaults,
    new_study,
    search,
)
from span_hpo.integrations.optuna.pruners import LEAST_COMPLETE, is_start
from span_hpo.search import PRUNERS
from tests.integrations.optuna.parts import AlwaysPrune, study_of
from tests.integrations.optuna.worker import STUDY, prune_together, storage_of
from tests.problems import two_moons

NAMES = [name for name in PRUNERS if name != "none"]
BUDGETS = (0.25, 0.5, 1.0)


@pytest.fixture(params=["memory", "journal", "sqlite"])
def storage(request, tmp_path):
    """Give a place for studies, as a user names it."""
    places = {"memory": None, "journal": tmp_path / "a.journal"}
    return places.get(request.param, f"sqlite:///{tmp_path}/a.db")


def states(study):
    return Counter(trial.state for trial in study.get_trials(deepcopy=False))


def share_complete(study):
    found = states(study)
    return found[TrialState.COMPLETE] / (found[TrialState.COMPLETE] + found[TrialState.PRUNED])


@pytest.mark.parametrize("n_trials", [1, 7, 25])
def test_a_pruner_that_always_prunes_leaves_its_share(storage, objective, n_trials):
    """The stated share of the trials is complete, the defaults are, and there is a best trial."""
    study = new_study(pruner=AlwaysPrune(), storage=storage, study_name="moons", seed=0)
    search(study, objective, n_trials=n_trials, budgets=BUDGETS)
    assert len(study.trials) == n_trials
    assert share_complete(study) >= LEAST_COMPLETE
    starts = [trial for trial in study.trials if is_start(trial)]
    assert [trial.params for trial in starts] == [
        pytest.approx(params) for params in objective.defaults()[:n_trials]
    ]
    assert {trial.state for trial in starts} == {TrialState.COMPLETE}
    if n_trials == 25:  # the least number that is a quarter of them
        assert states(study)[TrialState.COMPLETE] == 7
    assert best_trial(study).state == TrialState.COMPLETE


def test_a_study_of_the_user_is_protected_as_well(objective):
    """With `Study.optimize`, enqueued points are complete, and so is the share of the others."""
    study = study_of(pruner=AlwaysPrune())
    enqueue_defaults(study, objective)
    study.enqueue_trial({"gamma": 1.0})  # the rest is drawn
    study.optimize(OptunaObjective(objective, budgets=BUDGETS), n_trials=33)
    starts = len(objective.defaults()) + 1
    assert [t.state for t in study.trials[:starts]] == [TrialState.COMPLETE] * starts
    assert study.trials[starts].state == TrialState.PRUNED
    assert states(study)[TrialState.COMPLETE] == 9  # the least number that is a quarter of 33


def test_points_that_are_enqueued_late_are_complete(objective):
    """A point is not stopped because it comes after others."""
    study = study_of(pruner=AlwaysPrune())
    function = OptunaObjective(objective, budgets=BUDGETS)
    study.optimize(function, n_trials=3)
    study.enqueue_trial({"gamma": 1.0, "C_-1": 1.0, "C_1": 2.0})
    study.optimize(function, n_trials=1)
    assert [t.state for t in study.trials] == [
        TrialState.COMPLETE,
        TrialState.PRUNED,
        TrialState.PRUNED,
        TrialState.COMPLETE,
    ]


def test_threads_leave_the_share(objective):
    """Threads that decide at the same time do not stop more trials than one of them."""
    study = new_study(pruner=AlwaysPrune(), seed=0)
    search(study, objective, n_trials=60, budgets=BUDGETS, n_jobs=4)
    assert share_complete(study) >= LEAST_COMPLETE
    assert states(study)[TrialState.PRUNED] >= 20


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_processes_leave_the_share(kind, tmp_path):
    """Processes on one storage decide by its trials, and together stop no more than one would."""
    url = f"{'sqlite:///' if kind == 'sqlite' else 'journal:'}{tmp_path}/study"
    context = multiprocessing.get_context("spawn")
    optuna.create_study(study_name=STUDY, storage=storage_of(url))
    workers = [context.Process(target=prune_together, args=(url, 40)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    study = optuna.load_study(study_name=STUDY, storage=storage_of(url))
    found = states(study)
    assert found[TrialState.COMPLETE] + found[TrialState.PRUNED] == 40
    assert share_complete(study) >= LEAST_COMPLETE
    starts = [trial for trial in study.trials if is_start(trial)]
    assert len(starts) == len(SpanObjective(*two_moons(60)).defaults())
    assert {trial.state for trial in starts} == {TrialState.COMPLETE}


def test_trials_of_others_count(objective):
    """A running trial may yet be stopped, one of a process that is gone cannot."""
    here = OptunaObjective(objective, budgets=BUDGETS)
    for pid, wanted in ((None, TrialState.COMPLETE), (2**30, TrialState.PRUNED)):
        study = study_of(pruner=AlwaysPrune())
        study.optimize(here, n_trials=3)
        attributes = dict(study.trials[0].user_attrs["worker"])
        if pid is None:
            attributes["host"] = "elsewhere"
        else:
            attributes["pid"] = pid
        running = create_trial(state=TrialState.RUNNING, user_attrs={"worker": attributes})
        study.add_trial(running)
        study.optimize(here, n_trials=1)
        assert study.trials[-1].state == wanted


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("sampler", ["tpe", "random", "qmc", "cmaes"])
@pytest.mark.parametrize("name", NAMES)
def test_names_need_no_budgets(name, sampler):
    """A pruner of a name stops trials at the default budgets, and leaves its share and defaults."""
    if sampler == "cmaes":
        pytest.importorskip("cmaes")
    objective = SpanObjective(*two_moons(160))
    study = new_study(sampler=sampler, pruner=name, study_name="moons", seed=0)
    search(study, objective, n_trials=40)
    assert states(study)[TrialState.PRUNED] >= 3
    assert share_complete(study) >= LEAST_COMPLETE
    for trial in study.trials:
        steps = list(trial.intermediate_values)
        assert steps == [20, 40, 80, 160][: len(steps)]
        if trial.state == TrialState.COMPLETE:
            assert trial.value == objective(trial.params)
    assert all(t.state == TrialState.COMPLETE for t in study.trials if is_start(t))


def test_names_work_in_a_study_of_the_user():
    """`Study.optimize` has the budgets of the pruner too."""
    objective = SpanObjective(*two_moons(160))
    study = new_study(sampler="random", pruner="halving", seed=0)
    study.optimize(OptunaObjective(objective), n_trials=20)
    assert states(study)[TrialState.PRUNED] >= 3


@pytest.mark.parametrize(
    ("budgets", "rungs", "factor"),
    [
        ((0.125, 0.25, 0.5, 1.0), (20, 40, 80), 2),
        ((10, 40, 160), (10, 40), 4),
        ((100, 160), (100,), 2),  # the budgets grow by less than Optuna's least factor
    ],
)
def test_halving_has_one_rung_for_each_budget(budgets, rungs, factor):
    """It stops what Optuna's pruner with the rungs of these budgets stops."""
    objective = SpanObjective(*two_moons(160))
    expected = SuccessiveHalvingPruner(min_resource=rungs[0], reduction_factor=factor)
    found = []
    for pruner in ("halving", expected):
        study = new_study(sampler="random", pruner=pruner, seed=0)
        search(study, objective, n_trials=20, budgets=budgets)
        found.append([(trial.state, trial.intermediate_values) for trial in study.trials])
        for trial in study.trials:
            steps = list(trial.intermediate_values)[: len(rungs)]
            noted = [key for key in trial.system_attrs if key.startswith("completed_rung_")]
            assert len(noted) == len(steps)
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["median", "percentile"])
def test_the_first_ten_trials_are_not_judged(name):
    """As in the benchmark, ten complete trials come before the first that is stopped."""
    study = new_study(sampler="random", pruner=name, seed=0)
    search(study, SpanObjective(*two_moons(160)), n_trials=30)
    assert [t.state for t in study.trials[:10]] == [TrialState.COMPLETE] * 10
    benchmark = PercentilePruner(10.0, n_startup_trials=10)
    again = new_study(sampler="random", pruner=benchmark, seed=0)
    search(again, SpanObjective(*two_moons(160)), n_trials=30, budgets=(0.125, 0.25, 0.5, 1.0))
    same = [t.state for t in again.trials] == [t.state for t in study.trials]
    assert same == (name == "percentile")


def test_a_pruner_follows_other_budgets():
    """A study that goes on with other budgets has the rungs of these."""
    objective = SpanObjective(*two_moons(160))
    study = new_study(sampler="random", pruner="halving", study_name="moons", seed=0)
    for n_trials, budgets in ((10, None), (20, (40, 160))):
        search(study, objective, n_trials=n_trials, budgets=budgets)
    for trial in study.trials[10:]:
        assert sum(key.startswith("completed_rung_") for key in trial.system_attrs) == 1


@pytest.mark.parametrize("name", NAMES)
def test_few_rows_have_fewer_budgets(name):
    """Shares that do not hold all classes are left out, and no error names budgets."""
    objective = SpanObjective(*two_moons(10))
    study = new_study(sampler="random", pruner=name, seed=0)
    search(study, objective, n_trials=12)
    complete = [t for t in study.trials if t.state == TrialState.COMPLETE]
    assert {tuple(t.intermediate_values) for t in complete} == {(2, 5, 10)}


def test_several_metrics_have_no_budgets():
    """A study with several directions uses all rows, and is not warned of its pruner."""
    objective = SpanObjective(*two_moons(80), metric=("error", "hinge"))
    study = study_of(directions=["minimize"] * 2, pruner=new_study(pruner="halving").pruner)
    study.optimize(OptunaObjective(objective), n_trials=2)
    assert {trial.user_attrs["n_rows"] for trial in study.trials} == {80}


IDLE = {
    "an object": (lambda: MedianPruner(n_startup_trials=2), None, "MedianPruner"),
    "one equal to Optuna's default": (MedianPruner, None, "MedianPruner"),
    "a name": (lambda: "halving", (1.0,), "'halving'"),
    "one of the user": (AlwaysPrune, (1.0,), "AlwaysPrune"),
}


@pytest.mark.parametrize("case", IDLE)
def test_a_pruner_that_can_stop_nothing_is_named(case, objective):
    """One warning says that budgets are missing, and which would do; all trials are complete."""
    pruner, budgets, name = IDLE[case]
    study = new_study(pruner=pruner(), seed=0)
    message = (
        "`budgets` must have several numbers or shares of rows so that the pruner "
        f"{name} can stop a trial, got [80] rows: pass, for example, 0.125, 0.25, 0.5, 1.0, or no "
        "pruner."
    )
    with pytest.warns(UserWarning, match=f"^{re.escape(message)}$") as caught:
        search(study, objective, n_trials=6, budgets=budgets)
    assert len(caught) == 1
    assert states(study) == {TrialState.COMPLETE: 6}


def test_pruners_that_nobody_asked_for_are_not_named(objective):
    """Neither Optuna's default pruner nor one that does nothing is worth a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for study in (optuna.create_study(), new_study(), new_study(pruner=NopPruner())):
            study.optimize(OptunaObjective(objective), n_trials=2)
            assert states(study) == {TrialState.COMPLETE: 2}


@pytest.mark.parametrize("name", NAMES)
def test_named_pruners_can_be_pickled(name):
    """A study that is sent to a process keeps the budgets of its pruner."""
    study = new_study(sampler="random", pruner=name, seed=0)
    copy = pickle.loads(pickle.dumps(study))
    copy.optimize(OptunaObjective(SpanObjective(*two_moons(160))), n_trials=1)
    assert list(copy.trials[0].intermediate_values) == [20, 40, 80, 160]
