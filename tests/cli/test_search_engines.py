import json
import re
from pathlib import Path

import pytest

from tests.cli.program import NOT_FEATURES, call, moons_table, run, started, wait_for_trials


@pytest.mark.parametrize("storage", ["journal", "sqlite:///trials.db"])
def test_killed_and_resumed(storage, tmp_path):
    """A process that is killed loses no finished trial; `--resume` does the rest."""
    command = ["tune", "rows.csv", "--target", "label", *NOT_FEATURES, "--seed", "0"]
    place = [] if storage == "journal" else ["--storage", storage]
    grows = tmp_path / ("model.journal" if storage == "journal" else "trials.db")
    with started(*command, *place, "--trials", "100000", folder=tmp_path):
        wait_for_trials(grows)  # and then it is killed
    assert not (tmp_path / "model.json").exists()
    error = run(*command, *place, "--trials", 5, folder=tmp_path, code=2)
    assert "Use --resume to continue it" in error
    found = json.loads(run(*command, *place, "--resume", "--trials", 1, "--json", folder=tmp_path))
    done = found["trials"]
    assert done >= 5
    more = json.loads(
        run(*command, *place, "--resume", "--trials", done + 7, "--json", folder=tmp_path)
    )
    assert more["trials"] == done + 7
    assert more["best_loss"] <= found["best_loss"]


def test_samplers_and_pruners(capsys):
    """Samplers and pruners are chosen by name; a pruner has budgets."""
    pytest.importorskip("cmaes")
    for sampler in ("random", "qmc", "cmaes"):
        printed = call(
            *("tune", "rows.csv", "--target", "label", "--trials", 12, "--seed", 0, "--json"),
            *("--sampler", sampler, "--pruner", "percentile", "--metric", "smooth_error"),
            *("--budgets", "30,0.5,1.0", "--out", sampler, "--loo-method", "exact"),
            capsys=capsys,
        )
        assert json.loads(printed)["trials"] == 12
    journal = Path("qmc.journal").read_text()
    assert '"n_rows"' in journal
    assert journal.count('"state":2') > 0  # pruned


def test_resume_refuses_another_objective(capsys):
    """Losses of another metric or of other rows are not mixed with those of a study."""
    command = ("tune", "rows.csv", "--target", "label", "--trials", 3, "--seed", 0)
    call(*command, capsys=capsys)
    more = ("--resume", "--trials", 5)
    error = call(*command, *more, "--metric", "auc", capsys=capsys, code=2)
    assert "metrics was ['error'], got ['auc']" in error
    moons_table(130).to_csv("rows.csv", index=False)
    error = call(*command, *more, capsys=capsys, code=2)
    assert "rows was 120, got 130" in error


def test_wrong_input_keeps_a_study(capsys):
    """--force deletes a study only when its first trial begins."""
    command = ("tune", "rows.csv", "--target", "label", "--seed", 0)
    call(*command, "--trials", 4, capsys=capsys)
    for wrong in (("--score", "x"), ("--budgets", "0.5,0.1"), ("--target", "x"), ("--trials", 0)):
        call(*command, *wrong, "--force", capsys=capsys, code=2)
    call(*command, "--C", 1, "--gamma", 1, "--force", capsys=capsys)  # searches nothing
    found = json.loads(call(*command, "--resume", "--trials", 5, "--json", capsys=capsys))
    assert found["trials"] == 5


def test_resumed_searches_look_at_new_points(capsys):
    """The same seed does not repeat the random points of an earlier call."""
    command = ("tune", "rows.csv", "--target", "label", "--seed", 0, "--sampler", "random")
    call(*command, "--trials", 8, capsys=capsys)
    call(*command, "--trials", 14, "--resume", capsys=capsys)
    text = Path("model.journal").read_text()
    values = re.findall(r'"param_name":"gamma","param_value_internal":([\d.e-]+)', text)
    drawn = values[4:]  # the first four are defaults
    assert len(drawn) == 10
    assert len(set(drawn)) == 10


def test_resume_checks_also_when_nothing_is_left(capsys):
    """A study of other data or fixed values is refused even if it has all its trials."""
    command = ("tune", "rows.csv", "--target", "label", "--seed", 0, "--trials", 3, "--resume")
    call(*command[:-1], "--gamma", 0.5, capsys=capsys)
    error = call(*command, "--gamma", 0.7, capsys=capsys, code=2)
    assert "kernel was" in error
    moons_table(130).to_csv("rows.csv", index=False)
    assert "rows was 120" in call(*command, "--gamma", 0.5, capsys=capsys, code=2)
