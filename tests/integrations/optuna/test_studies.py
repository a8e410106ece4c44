"""Whole searches: studies, their storages, their defaults and their trials."""

import datetime
import sys
import threading
import time

import optuna
import pytest
from optuna.pruners import HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import QMCSampler, RandomSampler, TPESampler
from optuna.trial import TrialState, create_trial

from span_hpo import RBF, SpanObjective, UniformCost
from span_hpo.integrations.optuna.pruners import PRUNER_OF_NAME
from span_hpo.integrations.optuna.samplers import SAMPLER_OF_NAME
from span_hpo.integrations.optuna.studies import (
    as_storage,
    delete_study,
    finished_trials,
    new_study,
    search,
    trial_count,
)
from span_hpo.search import PRUNERS, SAMPLERS
from tests.places import ROOT
from tests.problems import two_moons
from tests.processes import ended


@pytest.fixture(params=["journal", "sqlite"])
def storage(request, tmp_path):
    """Give a place for studies, as a user names it."""
    return tmp_path / "a.journal" if request.param == "journal" else f"sqlite:///{tmp_path}/a.db"


def params_of_trials(study):
    return [trial.params for trial in study.trials]


@pytest.mark.parametrize(
    ("storage", "is_needed"), [("None", False), ("'a.journal'", False), ("'sqlite:///a.db'", True)]
)
def test_only_databases_import_sqlalchemy(storage, is_needed, tmp_path):
    """The first search of a process does not wait for a library that it does not need."""
    code = f"""
import os, sys
os.chdir({str(tmp_path)!r})
from sklearn.datasets import load_iris
from span_hpo import SpanSVC
SpanSVC(n_trials=2, storage={storage}, study_name="iris").fit(*load_iris(return_X_y=True))
print("sqlalchemy" in sys.modules)
"""
    found = ended([sys.executable, "-c", code], ROOT)
    assert found.stdout.strip() == str(is_needed), found.stderr


def test_paths_become_journals(tmp_path):
    """A path is a journal, a URL a database, and what Optuna knows already stays as it is."""
    assert isinstance(as_storage(tmp_path / "a"), optuna.storages.JournalStorage)
    assert isinstance(as_storage(str(tmp_path / "b")), optuna.storages.JournalStorage)
    database = as_storage(f"sqlite:///{tmp_path}/c.db")
    assert not isinstance(database, optuna.storages.JournalStorage)
    database.remove_session()
    memory = optuna.storages.InMemoryStorage()
    assert as_storage(memory) is memory
    assert as_storage(None) is None


def test_a_study_goes_on_where_it_was_kept(storage, objective):
    """Another process that names the same place has the same trials, and they are counted."""
    assert trial_count(storage, "moons") == 0
    first = new_study(storage=storage, study_name="moons", seed=0)
    search(first, objective, n_trials=5)
    again = new_study(storage=storage, study_name="moons", seed=0)
    assert params_of_trials(again) == params_of_trials(first)
    assert trial_count(storage, "moons") == 5
    assert trial_count(storage, "others") == 0
    search(again, objective, n_trials=8)
    assert trial_count(storage, "moons") == 8
    delete_study(storage, "moons")
    assert trial_count(storage, "moons") == 0


def test_counting_makes_no_file(tmp_path):
    """To ask for a study that is not there leaves nothing behind."""
    assert trial_count(tmp_path / "none.journal", "moons") == 0
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "content",
    [
        b"a,b,label\n1,2,3\n",
        b'{"name": "moons"}\n',
        b'{"op_code": 0, "study_name": "moons"',
        b"[1, 2]\n",
        b"\xff\xfe\x00",
    ],
)
def test_other_files_are_refused_and_stay_as_they_are(content, tmp_path):
    """A file that is no journal, or half of one, is named and not written to."""
    file = tmp_path / "rows.csv"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"`storage` must be the URL of a database, a journal"):
        new_study(storage=file, study_name="moons")
    assert file.read_bytes() == content


def test_databases_that_cannot_be_opened_are_named():
    """An unknown kind of database and a folder that is not there are errors of the argument."""
    for url in ("nosuchdatabase://host/name", "sqlite:////nowhere/at/all/study.db"):
        with pytest.raises(ValueError, match="`storage` must be the URL of a database") as caught:
            as_storage(url)
        assert url in str(caught.value)


def test_samplers_and_pruners_by_name():
    """Names give Optuna's classes, and objects of Optuna are taken as they are."""
    for name, kind in ((None, TPESampler), ("random", RandomSampler), ("qmc", QMCSampler)):
        assert type(new_study(sampler=name).sampler) is kind
    for name, kind in ((None, NopPruner), ("median", MedianPruner), ("hyperband", HyperbandPruner)):
        assert isinstance(new_study(pruner=name).pruner, kind)
    sampler, pruner = RandomSampler(seed=0), MedianPruner()
    study = new_study(sampler=sampler, pruner=pruner)
    assert (study.sampler, study.pruner) == (sampler, pruner)
    with pytest.raises(ValueError, match="`pruner` must be a pruner of Optuna or one of"):
        new_study(pruner=42)
    for argument in ("sampler", "pruner"):
        with pytest.raises(
            ValueError, match=f"`{argument}` must be a {argument} of Optuna or one of .*'best'"
        ):
            new_study(**{argument: "best"})


def test_seeds_decide_what_is_tried(objective):
    """Equal seeds try the same, others do not, and a study that goes on does not begin again."""
    studies = [new_study(sampler="random", seed=seed) for seed in (1, 1, 2)]
    for study in studies:
        search(study, objective, n_trials=8)
    first, again, other = map(params_of_trials, studies)
    assert first == again
    assert first != other


@pytest.mark.parametrize("seed", [0, 2**32 - 1])
def test_a_study_that_goes_on_tries_something_new(storage, seed):
    """With the same seed the second half of a search does not repeat the first."""
    objective = SpanObjective(*two_moons(40), kernel=RBF(gamma=1.0), weighting=UniformCost())
    for n_trials in (6, 12):
        study = new_study(storage=storage, study_name="moons", sampler="random", seed=seed)
        search(study, objective, n_trials=n_trials)
    tried = [trial.params["C"] for trial in study.trials]
    assert len(tried) == 12
    assert len(set(tried)) == 12


def test_defaults_come_first_and_finished_trials_count(objective):
    """A search begins with the defaults and ends when the study has so many trials in all."""
    study = new_study(seed=0)
    search(study, objective, n_trials=6)
    for trial, wanted in zip(study.trials, objective.defaults(), strict=False):
        assert trial.params == pytest.approx(wanted)
    search(study, objective, n_trials=6)
    assert len(study.trials) == 6
    search(study, objective, n_trials=4)
    assert len(study.trials) == 6
    search(study, objective, n_trials=7)
    assert len(study.trials) == 7


def test_failed_trials_do_not_count(objective):
    """Trials that have failed are made up for; those that a pruner has ended count."""
    study = new_study(seed=0)
    study.tell(study.ask(), state=TrialState.FAIL)
    study.tell(study.ask(), state=TrialState.PRUNED)
    running = create_trial(state=TrialState.RUNNING)  # nobody has signed it for a day
    running.datetime_start = datetime.datetime.now() - datetime.timedelta(days=1)
    study.add_trial(running)
    search(study, objective, n_trials=5)
    states = [trial.state for trial in finished_trials(study)]
    assert states == [TrialState.PRUNED] + [TrialState.COMPLETE] * 4
    assert len(study.trials) == 7


def test_callbacks_see_every_trial(objective):
    """Each is called with the study and the trial that has ended, in threads too."""
    study, seen = new_study(seed=0), []
    search(
        study,
        objective,
        n_trials=6,
        n_jobs=2,
        callbacks=[lambda of, trial: seen.append((of is study, trial.number))],
    )
    assert sorted(seen) == [(True, number) for number in range(6)]


def test_two_searches_in_threads_share_a_study(tmp_path, objective):
    """Searches that begin at the same time end with exactly so many trials."""
    path = tmp_path / "a.journal"
    studies = [new_study(storage=path, study_name="moons", seed=0) for _ in range(2)]
    threads = [
        threading.Thread(target=search, args=(study, objective), kwargs={"n_trials": 14})
        for study in studies
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    done = finished_trials(studies[0])
    assert len(done) == 14
    assert len({tuple(trial.params.values()) for trial in done}) == 14


def test_a_search_ends_when_it_is_told_to(objective):
    """A condition ends a search after a trial, and while it waits for another process."""
    study, seen = new_study(seed=0), []
    search(
        study,
        objective,
        n_trials=50,
        callbacks=[lambda *_: seen.append(1)],
        until=lambda: len(seen) >= 3,
    )
    assert len(study.trials) == 3
    elsewhere = {"worker": {"host": "elsewhere", "place": "x", "pid": 1, "started": 1}}
    study.add_trial(create_trial(state=TrialState.RUNNING, user_attrs=elsewhere))
    end = time.monotonic() + 0.5
    search(study, objective, n_trials=4, until=lambda: time.monotonic() > end)
    search(study, objective, n_trials=4, timeout=0.3)
    assert len(finished_trials(study)) == 3


def test_a_time_alone_limits_a_search(objective):
    """Without a number of trials, as many are made as the time allows, in threads too."""
    for n_jobs in (1, 2):
        study, start = new_study(seed=0), time.monotonic()
        search(study, objective, n_trials=None, timeout=0.5, n_jobs=n_jobs)
        assert 0.4 < time.monotonic() - start < 10
        assert len(finished_trials(study)) > 5
    with pytest.raises(ValueError, match=r"`n_trials` must be .* if there is no `timeout`"):
        search(study, objective, n_trials=None)


def test_the_first_trial_is_finished_however_short_the_time(objective):
    """A search has one trial at least, and no other one after its time."""
    study = new_study(seed=0)
    search(study, objective, n_trials=50, timeout=1e-9)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE]
    search(study, objective, n_trials=50, timeout=1e-9)
    assert len(study.trials) == 1


@pytest.mark.parametrize("budgets", [(1.0,), (0.1, 1.0)])
def test_the_time_ends_an_evaluation(budgets):
    """A trial is given up in the middle when the time is over, and repeated in the next search."""
    slow = SpanObjective(*two_moons(400), loo_method="refit")
    study = new_study(sampler="random", seed=0)
    start = time.monotonic()
    search(study, slow, n_trials=1)
    once = time.monotonic() - start
    search(study, slow, n_trials=50, budgets=budgets, timeout=0.3 * once)
    complete, cut = study.trials
    assert (complete.state, cut.state) == (TrialState.COMPLETE, TrialState.FAIL)
    assert "failure" not in cut.user_attrs  # which would be a fit that failed
    search(study, slow, n_trials=2, budgets=budgets)
    assert study.trials[-1].params == cut.params
    assert study.trials[-1].state == TrialState.COMPLETE


def test_a_callback_can_stop_a_search(objective):
    """`Study.stop` ends the whole search, as it ends `Study.optimize`."""
    study = new_study(seed=0)
    search(study, objective, n_trials=9, callbacks=[lambda study, _: study.stop()])
    assert len(study.trials) == 1


class Interrupted:
    """The error, whose computation the user interrupts at some calls."""

    __name__ = "error"

    def __init__(self, *calls):
        self.calls = calls
        self.count = 0

    def __call__(self, y, f):
        """Return the error, or be interrupted."""
        self.count += 1
        if self.count in self.calls:
            raise KeyboardInterrupt
        return float((y * f <= 0).mean())


@pytest.mark.parametrize("sampler", ["tpe", "random", "qmc"])
def test_an_interrupted_search_goes_on_as_if_it_had_not_been(sampler, storage):
    """Interrupts in a start and in a draw change neither the later trials nor the best one."""
    data = two_moons(40)
    whole = new_study(sampler=sampler, seed=5)
    search(whole, SpanObjective(*data, metric=Interrupted()), n_trials=14)
    objective, interrupts = SpanObjective(*data, metric=Interrupted(2, 7, 8, 14)), 0
    while True:
        study = new_study(sampler=sampler, storage=storage, study_name="moons", seed=5)
        try:
            search(study, objective, n_trials=14)
            break
        except KeyboardInterrupt:
            interrupts += 1
    assert interrupts == 4
    assert len(study.trials) == 18
    found = [(trial.params, trial.value) for trial in finished_trials(study)]
    assert found == [(trial.params, trial.value) for trial in whole.trials]


class FullStorage(optuna.storages.InMemoryStorage):
    """Storage that fails while it is `full`."""

    full = False

    def set_trial_user_attr(self, trial_id, key, value):
        """Fail if there is no space."""
        if self.full:
            raise OSError(28, "No space left on device", "study")
        super().set_trial_user_attr(trial_id, key, value)

    def set_trial_state_values(self, trial_id, state, values=None):
        """Fail if there is no space."""
        if self.full:
            raise OSError(28, "No space left on device", "study")
        return super().set_trial_state_values(trial_id, state, values)


def test_a_storage_that_fails_is_the_error_of_the_search(objective):
    """What the storage raises surfaces, and a later search in the same process goes on."""
    storage = FullStorage()
    study = new_study(storage=storage, study_name="moons", seed=0)

    def fill(_, trial):
        storage.full = trial.number == 4

    with pytest.raises(OSError, match="No space left on device: 'study'"):
        search(study, objective, n_trials=8, callbacks=[fill])
    storage.full = False
    search(study, objective, n_trials=8)
    assert len(finished_trials(study)) == 8


def test_a_study_of_something_else_is_refused(objective):
    """Another loss in the same study is an error before any trial, and nothing is queued."""
    study = new_study(seed=0)
    search(study, objective, n_trials=3)
    other = SpanObjective(*two_moons(80), metric="hinge")
    with pytest.raises(ValueError, match=r"metrics was \['error'\], got \['hinge'\]"):
        search(study, other, n_trials=9)
    assert len(study.trials) == 3


def test_the_users_logging_is_left_alone(objective, capfd):
    """A search prints no line for its trials, and the level of Optuna's logging is as before."""
    optuna.logging.set_verbosity(optuna.logging.INFO)
    capfd.readouterr()
    search(new_study(seed=0), objective, n_trials=3)
    assert optuna.logging.get_verbosity() == optuna.logging.INFO
    assert capfd.readouterr() == ("", "")


def test_every_name_has_its_sampler_and_pruner():
    """The adapter makes exactly the samplers and pruners that have names."""
    assert tuple(SAMPLER_OF_NAME) == SAMPLERS
    assert tuple(PRUNER_OF_NAME) == PRUNERS


@pytest.mark.parametrize(("argument", "names"), [("sampler", SAMPLERS), ("pruner", PRUNERS)])
def test_unknown_names_are_refused(argument, names):
    """The message lists the names that there are."""
    with pytest.raises(
        ValueError, match=f"`{argument}` must be a {argument} of Optuna or one of"
    ) as raised:
        new_study(**{argument: "nothing"})
    assert str(list(names)) in str(raised.value)
