"""The end of a run that finds nothing better."""

import pickle
import re

import pytest

from tests.cli.program import NOT_FEATURES, moons_table, run
from tests.integrations.ray.parts import moons

pytest.importorskip("ray")
from span_hpo.integrations.ray import (
    SettledStopper,
    best_result,
    finished_results,
    restored_tuner,
    tuner,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # of Ray's libraries


def report(stopper, trial, loss, *, done=True):
    assert not stopper(trial, {"loss": loss, "done": done, "n_rows": 10})


def test_only_last_reports_count():
    """Losses of smaller budgets are neither progress nor trials, and a trial counts once."""
    stopper = SettledStopper(patience=2)
    report(stopper, "a", 0.3)
    report(stopper, "b", 0.1, done=False)
    report(stopper, "b", 0.4)
    report(stopper, "b", 0.4)  # Ray repeats the last report of a function
    assert not stopper.stop_all()
    report(stopper, "c", 0.3)
    assert stopper.stop_all()
    report(stopper, "d", 0.2)
    assert not stopper.stop_all()
    assert stopper.losses == {"a": 0.3, "b": 0.4, "c": 0.3, "d": 0.2}


def test_the_state_survives():
    """A stopper that gets the state of another one, or is a copy of it, goes on counting."""
    stopper = SettledStopper(patience=1)
    report(stopper, "a", 0.3)
    other = SettledStopper(patience=1)
    other.set_state(pickle.loads(pickle.dumps(stopper.get_state())))
    for one in (other, pickle.loads(pickle.dumps(stopper))):
        assert not one.stop_all()
        report(one, "b", 0.3)
        assert one.stop_all()
    assert not stopper.stop_all()


@pytest.mark.parametrize("patience", [0, 1.5, "40"])
def test_patience_is_a_whole_number(patience):
    """Anything else is an error that names the argument, before anything is started."""
    with pytest.raises((TypeError, ValueError), match="`patience` must be a whole number"):
        tuner(moons(), patience=patience)


@pytest.mark.parametrize(("search", "scheduler"), [("optuna", "asha"), ("random", None)])
def test_a_run_ends_and_stays_ended(search, scheduler, cluster, tmp_path):
    """A run ends after so many trials without a lower loss, and once restored at once again."""
    stopper, objective = SettledStopper(patience=5), moons()
    results = tuner(
        objective,
        num_samples=80,
        search=search,
        scheduler=scheduler,
        patience=stopper,
        timeout=300,
        seed=0,
        storage_path=tmp_path,
        name="run",
    ).fit()
    assert stopper.stop_all()
    assert results.num_errors == 0
    complete = [r for r in finished_results(results) if r.metrics["n_rows"] == 120]
    assert sorted(r.metrics["loss"] for r in complete) == sorted(stopper.losses.values())
    assert len(complete) < 40
    losses = list(stopper.losses.values())
    assert len(losses) - 1 - losses.index(min(losses)) >= 5
    assert best_result(results, objective).metrics["loss"] == min(losses)
    again = restored_tuner(tmp_path / "run", objective).fit()
    assert len(finished_results(again)) == len(finished_results(results))


@pytest.mark.slow
def test_the_time_ends_a_run_before_the_patience(cluster, tmp_path):
    """The limit of time and the patience hold together: the first of them ends the run."""
    stopper = SettledStopper(patience=1000)
    results = tuner(
        moons(), num_samples=2000, patience=stopper, timeout=3, seed=0, storage_path=tmp_path
    ).fit()
    assert not stopper.stop_all()
    assert len(finished_results(results)) < 2000


@pytest.mark.slow
def test_the_command_line_ends_a_settled_run(tmp_path):
    """The engine ray ends with `--patience`, and the line of the trials says so."""
    moons_table().to_csv(tmp_path / "rows.csv", index=False)
    command = ("tune", "rows.csv", "--target", "label", *NOT_FEATURES, "--engine", "ray")
    printed = run(*command, "--trials", 80, "--patience", 5, "--seed", 0, folder=tmp_path)
    (trials,) = re.findall(r"^trials +(\d+) in .* s; the search has settled", printed, re.MULTILINE)
    assert 6 <= int(trials) < 80
