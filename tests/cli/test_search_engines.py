import json
import random
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from span_hpo import SpanSVC
from span_hpo.integrations.optuna import honest_estimate
from span_hpo.integrations.optuna.journals import Journal
from span_hpo.integrations.optuna.workers import this_process
from tests.cli.program import (
    ENVIRONMENT,
    NOT_FEATURES,
    PROGRAM,
    call,
    moons_table,
    run,
    started,
    wait_for_trials,
)
from tests.processes import ended

TUNE = ("tune", "rows.csv", "--target", "label", *NOT_FEATURES, "--seed", "0")


@pytest.mark.parametrize(
    "storage", ["journal", pytest.param("sqlite:///trials.db", marks=pytest.mark.slow)]
)
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


@pytest.mark.parametrize("pruner", ["median", "percentile", "halving", "hyperband"])
def test_pruners_need_no_budgets(pruner, capsys):
    """A pruner stops trials at the default budgets, but at least a quarter is complete."""
    printed = call(
        *("tune", "rows.csv", "--target", "label", "--trials", 30, "--seed", 0, "--json"),
        *("--pruner", pruner, "--metric", "smooth_error", "--sampler", "random"),
        capsys=capsys,
    )
    assert json.loads(printed)["trials"] == 30
    journal = Path("model.journal").read_text()
    complete, pruned = journal.count('"state":1'), journal.count('"state":2')
    assert complete + pruned == 30
    assert 8 <= complete < 30
    assert '"step":15,' in journal  # an eighth of 120 rows


def test_a_pruner_with_one_budget_is_named(tmp_path):
    """A warning names the option, and the search is made without pruning."""
    options = ["--trials", "3", "--pruner", "halving", "--budgets", "1.0"]
    found = ended([*PROGRAM, *TUNE, *options], tmp_path)
    assert found.returncode == 0
    assert found.stderr.splitlines() == [
        "Warning: --budgets must have several numbers or shares of rows so that the pruner "
        "'halving' can stop a trial, got [120] rows: pass, for example, 0.125, 0.25, 0.5, 1.0, or "
        "no pruner."
    ]


def test_resume_refuses_another_objective(capsys):
    """Losses of other metrics, scalings or rows are not mixed with those of a study."""
    command = ("tune", "rows.csv", "--target", "label", "--trials", 3, "--seed", 0)
    call(*command, capsys=capsys)
    more = ("--resume", "--trials", 5)
    error = call(*command, *more, "--metric", "auc", capsys=capsys, code=2)
    assert "metrics was ['error'], got ['auc']" in error
    error = call(*command, *more, "--scale", "standard", capsys=capsys, code=2)
    assert "scaling was 'minmax', got 'standard'" in error
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


def test_honest_estimate_of_a_study(capsys):
    """It is that of the study in Python, also if a search is resumed and has nothing left to do."""
    command = ("tune", "rows.csv", "--target", "label", "--seed", 0, "--trials", 12, "--json")
    found = json.loads(call(*command, *NOT_FEATURES, capsys=capsys))
    again = json.loads(call(*command, *NOT_FEATURES, "--resume", capsys=capsys))
    names = ("honest_error", "honest_interval", "honest_note")
    assert {name: found[name] for name in names} == {name: again[name] for name in names}
    frame = moons_table()
    encoded = pd.get_dummies(frame[["x", "z", "town"]], columns=["town"], dtype=float)
    model = SpanSVC(n_trials=12, random_state=0).fit(encoded, frame["label"])
    estimate = honest_estimate(model.study_, model.objective_)
    assert found["honest_error"] == estimate.error
    assert found["honest_interval"] == list(estimate.interval)
    assert found["best_loss"] == estimate.optimistic < estimate.error


def test_searches_without_an_honest_estimate(capsys):
    """A metric that is no mean, and trials on a part of the rows, are named."""
    command = ("tune", "rows.csv", "--target", "label", "--trials", 3, "--seed", 0)
    for options, reason in (
        (("--metric", "auc"), "none, because auc is not a mean of losses of the rows"),
        (("--budgets", "0.25,0.5"), "none, because no trial uses all 120 rows"),
    ):
        printed = call(*command, *options, "--force", capsys=capsys)
        assert printed.splitlines()[0].split(maxsplit=1) == ["honest", reason]
        found = json.loads(call(*command, *options, "--force", "--json", capsys=capsys))
        assert (found["honest_error"], found["honest_interval"]) == (None, None)
        assert found["honest_note"] == reason


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


def run_with_little_space(size, *arguments, folder):
    """Run the command where no file may have more bytes than `size`; return how it ends."""
    return subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )


@pytest.mark.parametrize(("storage", "size"), [("journal", 20_000), ("sqlite:///a.db", 140_000)])
def test_a_full_disk_keeps_the_study(storage, size, tmp_path, capsys):
    """One line and exit code 1; with more space, `--resume` does the rest of the same search."""
    place = [] if storage == "journal" else ["--storage", storage]
    command = (*TUNE, *place, "--json", "--trials", "30")
    found = run_with_little_space(size, *command, folder=tmp_path)
    assert (found.returncode, found.stdout) == (1, "")
    (line,) = found.stderr.splitlines()
    done = int(re.search(r"(\d+) of 30 trials are kept in .* Continue with: span-hpo ", line)[1])
    assert 0 < done < 30
    resumed = json.loads(call(*command, "--resume", capsys=capsys))
    assert resumed["trials"] == 30
    whole = json.loads(call(*command, "--out", "other", capsys=capsys))
    assert resumed["best_params"] == whole["best_params"]


def test_a_model_that_cannot_be_written_keeps_the_study(tmp_path):
    """The line says that the trials are kept, and the command that it names writes the model."""
    command = (*TUNE, "--trials", "150", "--out", "gone/model", "--storage", "kept.journal")
    (tmp_path / "gone").mkdir()
    with started(*command, folder=tmp_path) as process:
        wait_for_trials(tmp_path / "kept.journal", size=2000)
        shutil.rmtree(tmp_path / "gone")
        _, error = process.communicate(timeout=60)
    assert process.returncode == 2
    (line,) = error.splitlines()
    assert "gone/model.json: No such file or directory. 150 of 150 trials are kept in kept" in line
    again = line.partition("Continue with: span-hpo ")[2].removesuffix(".")
    (tmp_path / "gone").mkdir()
    assert "150 in" in run(*again.split(), folder=tmp_path)


def test_a_journal_that_disappears(tmp_path):
    """A search whose storage is deleted ends with one line."""
    with started(*TUNE, "--trials", "9999", folder=tmp_path) as process:
        wait_for_trials(tmp_path / "model.journal", size=2000)
        (tmp_path / "model.journal").unlink()
        _, error = process.communicate(timeout=60)
    assert process.returncode == 2
    assert error == "span-hpo: model.journal: No such file or directory.\n"


@pytest.mark.parametrize("line", [1, 2, 3, 5, 8, 13, 21, 34])
def test_a_journal_that_disappears_while_it_is_written(line, monkeypatch, capsys):
    """A search ends with one line also if its storage is deleted just before a line is written."""
    cut, looks = Journal._cut, []

    def look(journal):
        found = cut(journal)
        looks.append(found)
        if len(looks) == line:
            Path("model.journal").unlink()
        return found

    monkeypatch.setattr(Journal, "_cut", look)
    error = call(*TUNE, "--trials", 9, capsys=capsys, code=2)
    assert error == "span-hpo: model.journal: No such file or directory.\n"
    assert not Path("model.journal").exists()
    assert not Path("model.json").exists()


def test_a_line_that_was_cut_is_dropped_by_resume(capsys):
    """`--resume` says in one line where the copy is; other calls leave the journal as it is."""
    call(*TUNE, "--trials", 3, capsys=capsys)
    journal = Path("model.journal")
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"op_code":4,"wor')
    call(*TUNE, "--trials", 5, capsys=capsys, code=2)
    assert journal.read_bytes() == whole + b'{"op_code":4,"wor'
    found = ended([*PROGRAM, *TUNE, "--trials", "5", "--resume", "--json"], ".")
    assert json.loads(found.stdout)["trials"] == 5
    (line,) = found.stderr.splitlines()
    assert line.endswith("It is dropped, and a copy is kept in model.journal.cut1.")
    assert journal.read_bytes().startswith(whole)
    assert Path("model.journal.cut1").read_bytes() == b'{"op_code":4,"wor'


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes cannot be judged")
def test_a_lock_of_a_killed_process_keeps_nobody_waiting(capsys):
    """A lock that a killed process has left is removed, long before Optuna's 30 seconds."""
    call(*TUNE, "--trials", 3, capsys=capsys)
    Path("model.journal.lock").write_text(json.dumps({**this_process(), "started": 1}))
    start = time.monotonic()
    call(*TUNE, "--trials", 5, "--resume", capsys=capsys)
    assert time.monotonic() - start < 25
    assert not Path("model.journal.lock").exists()


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["two.journal", "sqlite:///two.db"])
def test_two_commands_share_a_study(storage, tmp_path):
    """Both end with exactly so many trials, and with the same model."""
    place = ("--storage", storage, "--json")
    run(*TUNE, *place, "--trials", 1, folder=tmp_path)
    command = (*TUNE, *place, "--trials", "40", "--resume")
    with started(*command, folder=tmp_path) as one, started(*command, folder=tmp_path) as two:
        found = [json.loads(process.communicate(timeout=300)[0]) for process in (one, two)]
    assert [result["trials"] for result in found] == [40, 40]
    assert found[0]["best_params"] == found[1]["best_params"]


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["tpe", "random", "qmc", "cmaes"])
def test_a_search_that_was_killed_finds_the_same_model(sampler, tmp_path):
    """Kills at random moments change neither a trial nor the model of a search with a seed."""
    if sampler == "cmaes":
        pytest.importorskip("cmaes")
    command = (*TUNE, "--sampler", sampler, "--trials", "60", "--json")
    whole = json.loads(run(*command, "--out", "whole", folder=tmp_path))
    end = (tmp_path / "whole.journal").stat().st_size
    moments, journal = random.Random(0), tmp_path / "model.journal"
    # Kills come well before the end of the search, however fast the machine is.
    for share in (0.1, 0.25, 0.4, 0.55):
        again = ["--resume"] if journal.exists() else []
        with started(*command, *again, folder=tmp_path) as process:
            wait_for_trials(journal, size=int(share * end))
            time.sleep(moments.uniform(0, 0.03))
            assert process.poll() is None  # and then it is killed
    found = json.loads(run(*command, "--resume", folder=tmp_path))
    assert found["best_params"] == whole["best_params"]
    assert (tmp_path / "model.json").read_bytes() == (tmp_path / "whole.json").read_bytes()


@pytest.mark.parametrize(("sampler", "module"), [("cmaes", "cmaes"), ("gp", "torch")])
def test_a_missing_package_of_a_sampler(sampler, module, capsys, monkeypatch):
    """The command says what to install before any trial, and leaves no files."""
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    error = call(*TUNE, "--sampler", sampler, "--out", "kept", capsys=capsys, code=2)
    assert f"The sampler '{sampler}' needs the package {module}: pip install" in error
    assert not list(Path().glob("kept*"))


def test_jobs_on_all_cores(capsys):
    """--jobs -1 runs as many trials as --trials asks for, on all cores."""
    printed = call(*TUNE, "--jobs", -1, "--trials", 6, "--json", capsys=capsys)
    assert json.loads(printed)["trials"] == 6


def test_many_rows_are_forecast(tmp_path):
    """Notes on standard error forecast the memory of many rows, and the time that is left."""
    moons_table(3010).to_csv(tmp_path / "many.csv", index=False)
    command = ("tune", "many.csv", "--target", "label", *NOT_FEATURES, "--seed", "0")
    fixed = ("--gamma", "1", "--weighting", "uniform", "--trials", "5", "--json")
    found = ended([*PROGRAM, *command, *fixed], tmp_path)
    notes = [line for line in found.stderr.splitlines() if line.startswith("Note: ")]
    assert [note.split()[1:4] for note in notes] == [
        ["The", "kernel", "matrices"],
        ["The", "first", "3"],
    ]
    assert json.loads(found.stdout)["trials"] == 5


def test_a_search_that_has_settled_ends(capsys):
    """`--patience` ends a search, and the line of the trials says so; it can be resumed."""
    command = ("tune", "rows.csv", "--target", "label", *NOT_FEATURES, "--seed", 0)
    printed = call(*command, "--trials", 300, "--patience", 6, capsys=capsys)
    (trials,) = re.findall(
        r"^trials +(\d+) in .* s; the search has settled, with no lower loss in "
        r"the last 6$",
        printed,
        re.MULTILINE,
    )
    assert 7 <= int(trials) < 300
    again = ("--resume", "--json", "--trials", 300, "--patience")
    same = json.loads(call(*command, *again, 6, capsys=capsys))
    assert (same["trials"], same["settled"], same["patience"]) == (int(trials), True, 6)
    more = json.loads(call(*command, *again, 9, capsys=capsys))
    assert more["trials"] >= int(trials) + 3
    short = json.loads(
        call(*command, "--force", "--trials", 3, "--patience", 9, "--json", capsys=capsys)
    )
    assert (short["trials"], short["settled"]) == (3, False)
