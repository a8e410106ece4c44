"""The command line as users run it: a process with files, pipes or a terminal."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pexpect
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris

import span_hpo
from span_hpo import RBF, ClassCosts, Predictor, SpanObjective, SpanSVC, UniformCost
from span_hpo.cli import main
from tests.places import ROOT
from tests.problems import two_moons

PROGRAM = [sys.executable, "-c", "from span_hpo.cli import main; main()"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def run(*arguments, folder, code=0):
    """Run the command in a process and return what it prints, if it ends as it should."""
    found = subprocess.run(
        [*PROGRAM, *map(str, arguments)],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode == code, found.stderr
    assert "Traceback" not in found.stderr
    if code:
        assert found.stdout == ""
        assert len(found.stderr.splitlines()) == 1, found.stderr
        return found.stderr
    return found.stdout


def heeds_ctrl_c():
    """Let a new process heed Ctrl-C, even if this one was started in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def started(*arguments, folder):
    """Run the command in a process, and see that it ends with the test."""
    with subprocess.Popen(
        [*PROGRAM, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heeds_ctrl_c,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def call(*arguments, capsys, code=0):
    """Run the command in this process, which is faster."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert ended.value.code == code, printed.err
    if code:
        assert len(printed.err.splitlines()) == 1, printed.err
        return printed.err
    return printed.out


def hashes(folder):
    """Return what every file of a folder holds."""
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def moons_table(rows=120):
    """Return a table of numbers, a category that matters, and labels with names."""
    X, y = two_moons(rows)
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "x": X[:, 0],
            "z": X[:, 1] * 40 + 7,
            "town": np.where(rng.random(rows) < 0.2, rng.choice(["a", "b"], rows), "c"),
            "trust": rng.random(rows).round(3),
            "clinic": rng.choice(["north", "south"], rows),
            "label": np.where(y > 0, "good", "bad"),
        }
    )


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """Every test has its own folder, with a table."""
    monkeypatch.chdir(tmp_path)
    moons_table().to_csv("rows.csv", index=False)


NOT_FEATURES = ("--drop", "trust", "--drop", "clinic")


def test_a_model_predicts_the_same_everywhere(tmp_path):
    """Tuned from a CSV file: `span-hpo predict`, Python and libsvm-official agree."""
    printed = run(
        *("tune", "rows.csv", "--target", "label", "--trials", 12, "--seed", 0, "--json"),
        *NOT_FEATURES,
        folder=tmp_path,
    )
    result = json.loads(printed)
    assert (result["rows"], result["features"], result["trials"]) == (120, 5, 12)
    new = moons_table(150).drop(columns="label")
    new["z"] += 0.5
    new.to_csv("new.csv", index=False)
    run(
        *("predict", "model.json", "new.csv", "--out", "out.csv", "--proba", "--values"),
        *("--features", "new.libsvm"),
        folder=tmp_path,
    )
    found = pd.read_csv("out.csv")

    predictor = Predictor.load("model.json")
    assert predictor.predict(new).tolist() == found["prediction"].tolist()
    np.testing.assert_allclose(
        predictor.predict_proba(new), found[["probability of bad", "probability of good"]]
    )
    values = found["value of good against bad"]
    np.testing.assert_allclose(predictor.decision_function(new), values)

    # The same search in Python.
    frame = moons_table()
    encoded = pd.get_dummies(frame[["x", "z", "town"]], columns=["town"], dtype=float)
    model = SpanSVC(n_trials=12, random_state=0).fit(encoded, frame["label"])
    assert model.best_params_ == result["best_params"]
    assert model.best_loss_ == result["best_loss"]
    encoded_new = pd.get_dummies(new[["x", "z", "town"]], columns=["town"], dtype=float)
    np.testing.assert_allclose(model.decision_function(encoded_new), values, atol=1e-9)
    np.testing.assert_allclose(
        model.predict_proba(encoded_new), predictor.predict_proba(new), atol=1e-9
    )

    svmutil = pytest.importorskip("libsvm.svmutil")
    y, x = svmutil.svm_read_problem("new.libsvm")
    theirs = svmutil.svm_load_model("model.libsvm")
    labels, _, decisions = svmutil.svm_predict(y, x, theirs, "-q")
    assert [["bad", "good"][int(label)] for label in labels] == found["prediction"].tolist()
    np.testing.assert_allclose(np.abs(np.ravel(decisions)), np.abs(values), atol=1e-9)


def test_what_tune_tells(tmp_path):
    """The printed numbers are those of the model; bounds contain the exact error."""
    printed = run(
        *("tune", "rows.csv", "--target", "label", "--group", "clinic", "--drop", "trust"),
        *("--trials", 8, "--seed", 1, "--out", "kept.json"),
        folder=tmp_path,
    )
    low, high = (
        float(text) for text in re.search(r"between ([\d.]+) and ([\d.]+)", printed).groups()
    )
    exact = float(re.search(r"^exact +([\d.]+), proven", printed, re.MULTILINE)[1])
    assert low <= exact <= high
    parameters = Predictor.load("kept.json").parameters
    for name, value in parameters.items():
        assert f"{name} {value:.6g}" in printed
    groups = re.findall(r"^(north|south) +(\d+) +([\d.]+)$", printed, re.MULTILINE)
    assert sum(int(count) for _, count, _ in groups) == 120
    of_groups = sum(int(count) * float(error) for _, count, error in groups) / 120
    assert of_groups == pytest.approx(exact, abs=1e-4)
    lines = [int(line) for line in re.search(r"suspects +lines ([\d, ]+)", printed)[1].split(",")]
    assert all(2 <= line <= 121 for line in lines)
    assert "kept.json, kept.libsvm" in printed


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
    assert "--resume goes on with it" in error
    found = json.loads(run(*command, *place, "--resume", "--trials", 1, "--json", folder=tmp_path))
    done = found["trials"]
    assert done >= 5
    more = json.loads(
        run(*command, *place, "--resume", "--trials", done + 7, "--json", folder=tmp_path)
    )
    assert more["trials"] == done + 7
    assert more["best_loss"] <= found["best_loss"]


def wait_for_trials(path, size=20_000):
    """Wait until a storage has grown to some trials."""
    deadline = time.monotonic() + 120  # the first fit after an installation compiles
    while time.monotonic() < deadline:
        if path.exists() and path.stat().st_size > size + (150_000 if path.suffix == ".db" else 0):
            return
        time.sleep(0.05)
    raise AssertionError(f"{path} does not grow")


def test_ctrl_c_in_a_terminal(tmp_path):
    """A terminal shows a progress bar; Ctrl-C keeps the trials and tells a command that goes on."""
    command = [*PROGRAM[1:], "tune", "rows.csv", "--target", "label", *NOT_FEATURES]
    terminal = pexpect.spawn(
        PROGRAM[0],
        [*command, "--seed", "0", "--trials", "100000"],
        cwd=str(tmp_path),
        env=ENVIRONMENT,
        dimensions=(40, 300),
        timeout=120,
        encoding="utf-8",
        codec_errors="replace",
        preexec_fn=heeds_ctrl_c,
    )
    terminal.expect(r"\d+/100000 ")
    wait_for_trials(tmp_path / "model.journal")
    terminal.sendintr()
    terminal.expect(pexpect.EOF)
    terminal.close()
    assert terminal.exitstatus == 130, terminal.before[-3000:]
    last = terminal.before.strip().splitlines()[-1]
    assert "Traceback" not in terminal.before
    done, again, best = re.search(
        r"Interrupted. (\d+) of 100000 trials are kept in model.journal. "
        r"Go on with: span-hpo (.+? --resume) \(or save the best of them: span-hpo (.+)\)",
        last,
    ).groups()
    assert int(done) >= 5
    assert again.endswith("--trials 100000 --resume")
    found = json.loads(run(*best.split(), "--json", folder=tmp_path))
    assert found["trials"] == int(done)


def test_ctrl_c_with_threads(tmp_path):
    """Ctrl-C also ends a search in several threads, with the same message."""
    command = ("tune", "rows.csv", "--target", "label", "--trials", "100000", "--jobs", "2")
    with started(*command, folder=tmp_path) as process:
        wait_for_trials(tmp_path / "model.journal")
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in error
    assert re.search(r"Interrupted. \d+ of 100000 trials are kept", error)


def test_fixed_values_are_not_searched(capsys):
    """With all hyperparameters given there is no study, and the model is that one fit."""
    printed = call(
        *(
            "tune",
            "rows.csv",
            "--target",
            "label",
            *NOT_FEATURES,
            "--C",
            "bad=2",
            "--C",
            "good=0.5",
        ),
        *("--gamma", 3, "--json"),
        capsys=capsys,
    )
    result = json.loads(printed)
    assert (result["trials"], result["storage"], result["best_params"]) == (0, None, {})
    assert not Path("model.journal").exists()
    frame = moons_table()
    encoded = pd.get_dummies(frame[["x", "z", "town"]], columns=["town"], dtype=float)
    model = SpanSVC(RBF(gamma=3.0), ClassCosts({"bad": 2.0, "good": 0.5}))
    assert model.fit(encoded, frame["label"]).loo_error_ == result["loo_error"]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ((), ["gamma", "C_bad", "C_good"]),
        (("--weighting", "uniform"), ["gamma", "C"]),
        (("--score", "trust"), ["gamma", "C_bad", "C_good", "A", "B"]),
        (("--score", "trust", "--weighting", "sigmoid", "--A", 4), ["gamma", "B", "C"]),
        (("--score", "trust", "--weighting", "power", "--C", 2), ["gamma", "tau"]),
        (("--score", "trust", "--weighting", "class*power", "--C", 2), ["gamma", "tau"]),
        (("--kernel", "linear"), ["C_bad", "C_good"]),
        (("--kernel", "poly", "--degree", 2, "--C", 1), ["gamma"]),
    ],
)
def test_kernels_and_weightings(options, names, capsys):
    """What is not given is searched."""
    printed = call(
        *("tune", "rows.csv", "--target", "label", "--drop", "clinic", "--trials", 5, "--seed", 0),
        *options,
        "--json",
        capsys=capsys,
    )
    assert sorted(json.loads(printed)["best_params"]) == sorted(names)


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


def test_loo_shows_every_estimate(capsys):
    """The table holds what the objective says, and the bounds contain the exact error."""
    settings = ("rows.csv", "--target", "label", *NOT_FEATURES, "--C", "4", "--gamma", "2")
    found = json.loads(call("loo", *settings, "--json", capsys=capsys))
    estimates = {row["estimate"]: row for row in found["estimates"]}
    bounds = {"support vectors / rows", "xi-alpha", "Jaakkola-Haussler", "Opper-Winther"}
    assert set(estimates) == {"span", "exact", "refit", "stopping", "span bound", *bounds}
    frame = moons_table()
    X = pd.get_dummies(frame[["x", "z", "town"]], columns=["town"], dtype=float)
    X = (X - X.min()) / (X.max() - X.min())
    for method in ("span", "exact", "refit", "stopping"):
        objective = SpanObjective(
            X, frame["label"], kernel=RBF(gamma=2.0), weighting=UniformCost(4.0), loo_method=method
        )
        assert estimates[method]["error"] == objective({})
    exact = estimates["exact"]["error"]
    assert exact == estimates["refit"]["error"] == estimates["stopping"]["error"]
    assert estimates["span"]["at_least"] <= exact <= estimates["span"]["at_most"]
    assert exact <= estimates["support vectors / rows"]["at_most"] + 1e-12
    assert exact <= min(estimates[name]["error"] for name in ("xi-alpha", "span bound"))
    table = call("loo", *settings, "--no-refit", "--metric", "log_loss", capsys=capsys)
    assert re.search(r"log_loss +error +at least +at most", table)
    assert not re.search(r"^refit", table, re.MULTILINE)


def test_compare_shows_value_and_seconds(capsys):
    """Exact equals refits; five folds are what scikit-learn's give."""
    settings = ("rows.csv", "--target", "label", *NOT_FEATURES, "--C", "4", "--gamma", "2")
    found = json.loads(call("compare", *settings, "--json", capsys=capsys))
    estimates = {row["estimate"]: row for row in found["estimates"]}
    assert list(estimates) == ["span-rule", "exact", "5-fold", "refit"]
    assert estimates["exact"]["loss"] == estimates["refit"]["loss"]
    assert all(row["seconds"] > 0 for row in estimates.values())
    table = call("compare", *settings, "--folds", 3, capsys=capsys)
    assert re.search(r"^3-fold +0\.\d{4} +\d", table, re.MULTILINE)


def test_defaults_of_one_point_are_shown(capsys):
    """Hyperparameters that are not given get values, which are told."""
    found = json.loads(
        call("loo", "rows.csv", "--target", "label", *NOT_FEATURES, "--json", capsys=capsys)
    )
    assert set(found["params"]) == {"gamma", "C_bad", "C_good"}


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_libsvm_files(kind, capsys):
    """LIBSVM's format goes in; a test file may have other features than the training rows."""
    X, y = load_iris(return_X_y=True)
    if kind == "sparse":
        X = np.hstack([X * (X > 2), np.zeros((150, 20))])
        X[0, -1] = 1.0
    dump_svmlight_file(X[::2], y[::2], "train", zero_based=False)
    more = np.hstack([X[1::2], np.ones((75, 1))])  # a feature that no training row has
    dump_svmlight_file(more, y[1::2], "test", zero_based=False)
    tuned = call("tune", "train", "--trials", 10, "--seed", 0, "--json", capsys=capsys)
    assert json.loads(tuned)["classes"] == {"0": 25, "1": 25, "2": 25}
    found = json.loads(call("predict", "model.json", "test", "--json", "--proba", capsys=capsys))
    assert found["error"] < 0.1
    assert found["error"] == np.mean(np.array(found["prediction"]) != y[1::2])
    total = sum(np.array(found[f"probability of {label}"]) for label in (0, 1, 2))
    np.testing.assert_allclose(total, 1.0)
    svmutil = pytest.importorskip("libsvm.svmutil")
    by_text = json.loads(call("predict", "model.libsvm", "test", "--json", capsys=capsys))
    labels, rows = svmutil.svm_read_problem("test")  # features that nobody has scaled
    theirs, _, _ = svmutil.svm_predict(labels, rows, svmutil.svm_load_model("model.libsvm"), "-q")
    assert by_text["prediction"] == theirs


def test_prediction_of_a_terminal_user(tmp_path):
    """Predictions are CSV on standard output; the error, where labels are known, is not."""
    run("tune", "rows.csv", "--target", "label", "--trials", 3, "--seed", 0, folder=tmp_path)
    found = subprocess.run(
        [*PROGRAM, "predict", "model.json", "rows.csv"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = found.stdout.splitlines()
    assert lines[0] == "prediction"
    assert len(lines) == 121
    assert set(lines[1:]) == {"good", "bad"}
    assert re.fullmatch(r"error 0\.\d{4} of 120 rows\n", found.stderr)


def test_unknown_categories_are_told(tmp_path):
    """A category that training rows did not have is 0 in all its features, with a note."""
    run("tune", "rows.csv", "--target", "label", "--trials", 3, "--seed", 0, folder=tmp_path)
    moons_table(4).assign(town="Rome").to_csv("new.csv", index=False)
    found = subprocess.run(
        [*PROGRAM, "predict", "model.json", "new.csv"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "column 'town' of new.csv has categories that were not there in training: Rome." in (
        found.stderr
    )


WRONG = {
    "no file": (("tune", "gone.csv", "--target", "label"), "gone.csv: No such file"),
    "a folder": (("predict", "..", "rows.csv"), r"\.\.: Is a directory"),
    "target": (("tune", "rows.csv"), "--target must name the column"),
    "option": (("tune", "rows.csv", "--colour", "red"), "No such option"),
    "command": (("tuen", "rows.csv"), "No such command"),
    "kernel": (("tune", "rows.csv", "--kernel", "rfb"), "is not one of 'rbf'"),
    "trials": (("tune", "rows.csv", "--target", "label", "--trials", 0), "--trials must be"),
    "jobs": (("tune", "rows.csv", "--target", "label", "--jobs", 0), "--jobs must be"),
    "timeout": (("tune", "rows.csv", "--target", "label", "--timeout", -1), "--timeout must be"),
    "cost": (("tune", "rows.csv", "--target", "label", "--C", "x"), "--C must be a number"),
    "negative cost": (("loo", "rows.csv", "--target", "label", "--C", -1), "--C must be a finite"),
    "class": (("loo", "rows.csv", "--target", "label", "--C", "ugly=1"), "--C must name each"),
    "gamma": (("loo", "rows.csv", "--target", "label", "--gamma", -1), "gamma"),
    "linear gamma": (
        ("loo", "rows.csv", "--target", "label", "--gamma", 1, "--kernel", "linear"),
        "--gamma must not be given for the kernel linear",
    ),
    "score": (
        ("loo", "rows.csv", "--target", "label", "--weighting", "power"),
        "--score must name a column",
    ),
    "unused score": (
        ("loo", "rows.csv", "--target", "label", "--weighting", "class", "--score", "trust"),
        "--score must go with a weighting",
    ),
    "score outside": (("loo", "rows.csv", "--target", "label", "--score", "z"), r"\[0, 1\]"),
    "steepness": (("loo", "rows.csv", "--target", "label", "--A", 1), "--A must not be given"),
    "budgets": (
        ("tune", "rows.csv", "--target", "label", "--budgets", "1,x"),
        "--budgets must be numbers",
    ),
    "few rows": (
        ("tune", "rows.csv", "--target", "label", "--budgets", "1,20"),
        "--budgets must have at least",
    ),
    "folds": (("compare", "rows.csv", "--target", "label", "--folds", 1), "--folds must be"),
    "no study": (("tune", "rows.csv", "--target", "label", "--resume"), "--resume needs a study"),
    "folder of out": (
        ("tune", "rows.csv", "--target", "label", "--out", "gone/model"),
        "gone/model.json must be in a folder",
    ),
    "storage": (
        ("tune", "rows.csv", "--target", "label", "--storage", __file__),
        "--storage must be the URL",
    ),
    "database": (
        ("tune", "rows.csv", "--target", "label", "--storage", "sqlite:///rows.csv"),
        "--storage must be the URL",
    ),
    "libsvm with target": (("tune", "rows.txt", "--target", "label"), "--target must not be given"),
    "model": (("predict", "rows.csv", "rows.csv"), "rows.csv must be a LIBSVM model"),
    "no model": (("predict", "gone.json", "rows.csv"), "gone.json: No such file"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_ends_with_one_line(case, tmp_path, capsys):
    """Exit code 2, one line that names what is wrong, no file changed or made."""
    before = hashes(tmp_path)
    arguments, message = WRONG[case]
    error = call(*arguments, capsys=capsys, code=2)
    assert error.startswith("span-hpo: ")
    assert re.search(message, error), error
    assert hashes(tmp_path) == before


def test_wrong_input_in_a_process(tmp_path):
    """The same in a process of its own."""
    error = run("tune", "rows.csv", "--target", "lable", folder=tmp_path, code=2)
    assert "--target must be a column of rows.csv" in error
    assert run("--version", folder=tmp_path).strip().endswith(span_hpo.__version__)
    assert "tune" in run("--help", folder=tmp_path)


def test_nothing_is_replaced_unasked(tmp_path, capsys):
    """A model, a study and predictions stay unless --force (or --resume) says otherwise."""
    command = ("tune", "rows.csv", "--target", "label", "--trials", 3, "--seed", 0)
    call(*command, capsys=capsys)
    call("predict", "model.json", "rows.csv", "--out", "out.csv", capsys=capsys)
    before = hashes(tmp_path)
    assert "exists already" in call(*command, capsys=capsys, code=2)
    again = ("predict", "model.json", "rows.csv", "--out", "out.csv")
    assert "out.csv exists already" in call(*again, capsys=capsys, code=2)
    Path("model.json").unlink()
    Path("model.libsvm").unlink()
    assert "has a study 'model' already" in call(*command, capsys=capsys, code=2)
    assert hashes(tmp_path).items() <= before.items()
    found = json.loads(call(*command, "--force", "--json", capsys=capsys))
    assert found["trials"] == 3
    call(*again, "--force", capsys=capsys)


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


def test_models_and_files_must_match(capsys):
    """A model of a table wants a table with its columns, one of numbered features wants these."""
    call("tune", "rows.csv", "--target", "label", "--trials", 2, "--seed", 0, capsys=capsys)
    dump_svmlight_file(*load_iris(return_X_y=True), "iris", zero_based=False)
    call("tune", "iris", "--trials", 2, "--seed", 0, "--out", "iris_model", capsys=capsys)
    error = call("predict", "model.json", "iris", capsys=capsys, code=2)
    assert "must be a table with the columns x, z, town" in error
    error = call("predict", "iris_model.json", "rows.csv", capsys=capsys, code=2)
    assert "must hold 4 numbered features" in error
    moons_table().drop(columns="z").to_csv("short.csv", index=False)
    error = call("predict", "model.json", "short.csv", capsys=capsys, code=2)
    assert "must have the columns 'z'" in error


def test_wrong_input_keeps_a_study(capsys):
    """--force deletes a study only when its first trial begins."""
    command = ("tune", "rows.csv", "--target", "label", "--seed", 0)
    call(*command, "--trials", 4, capsys=capsys)
    for wrong in (("--score", "x"), ("--budgets", "0.5,0.1"), ("--target", "x"), ("--trials", 0)):
        call(*command, *wrong, "--force", capsys=capsys, code=2)
    call(*command, "--C", 1, "--gamma", 1, "--force", capsys=capsys)  # searches nothing
    found = json.loads(call(*command, "--resume", "--trials", 5, "--json", capsys=capsys))
    assert found["trials"] == 5


def test_files_that_are_read_are_not_written(tmp_path, capsys):
    """Not even --force replaces the input, the model, or one output by another."""
    dump_svmlight_file(*two_moons(40), "rows.libsvm", zero_based=False)
    call("tune", "rows.csv", "--target", "label", "--trials", 2, "--seed", 0, capsys=capsys)
    before = hashes(tmp_path)
    for arguments in (
        ("tune", "rows.libsvm", "--out", "rows", "--force"),
        ("tune", "rows.csv", "--target", "label", "--out", "h", "--storage", "h.json"),
        ("tune", "rows.csv", "--target", "label", "--out", "h", "--storage", "rows.csv"),
        ("predict", "model.json", "rows.csv", "--out", "rows.csv", "--force"),
        ("predict", "model.json", "rows.csv", "--out", "model.json", "--force"),
        ("predict", "model.json", "rows.csv", "--out", "x", "--features", "x"),
    ):
        error = call(*arguments, capsys=capsys, code=2)
        assert "must be another file" in error
    assert hashes(tmp_path) == before


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


def test_broken_pipe(tmp_path):
    """A reader that has had enough does not make a traceback."""
    moons_table(20_000).to_csv("many.csv", index=False)
    run("tune", "rows.csv", "--target", "label", "--trials", 2, "--seed", 0, folder=tmp_path)
    shell = " ".join(f"'{part}'" for part in PROGRAM)
    found = subprocess.run(
        f"{shell} predict model.json many.csv --proba | head -n 1",
        shell=True,
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.startswith("prediction,")
    assert "Traceback" not in found.stderr
    assert "Broken pipe" not in found.stderr


@pytest.mark.slow
def test_demo(tmp_path):
    """The demo prints its table, with the span-rule near the refits, and writes a picture."""
    pytest.importorskip("matplotlib")
    printed = run("demo", folder=tmp_path)
    errors = {
        title.strip(): float(error)
        for title, error in re.findall(r"^(\S.+?) {2,}(0\.\d{4})", printed, flags=re.MULTILINE)
    }
    assert list(errors) == [
        "span-rule, one fit (optimistic: selected)",
        "exact leave-one-out, proven from one fit",
        "leave-one-out, 284 refits",
        "5-fold cross-validation, 5 fits",
        "test rows",
    ]
    span, exact, refit, *_ = errors.values()
    assert abs(span - refit) < 0.02
    assert exact == refit
    assert (tmp_path / "demo.png").stat().st_size > 10_000


def test_demo_without_matplotlib(monkeypatch, capsys):
    """What is missing is told before the search, and how to get it."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install 'span-hpo[optuna,plots]'" in call("demo", capsys=capsys, code=2)


def mutations(content, count, seed):
    """Yield damaged copies of a file."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        data = bytearray(content)
        kind = number % 8
        place = int(rng.integers(len(data)))
        if kind == 0:  # truncated
            del data[place:]
        elif kind == 1:  # binary noise
            data[place : place + 20] = rng.bytes(20)
        elif kind == 2:  # a few bits
            for spot in rng.integers(len(data), size=3):
                data[spot] ^= 1 << int(rng.integers(8))
        elif kind == 3:  # huge numbers
            huge = rng.choice([b"1e400", b"-1e308", b"9" * 400, b"nan", b"1e-320", b"99999999999"])
            numbers = [found.span() for found in re.finditer(rb"\d+", bytes(data))]
            start, end = numbers[int(rng.integers(len(numbers)))]
            data[start:end] = huge
        elif kind == 4:  # a wrong column, row or key
            words = [found.span() for found in re.finditer(rb"[^\s,:\"]+", bytes(data))]
            start, end = words[int(rng.integers(len(words)))]
            del data[start : end + 1]
        elif kind == 5:  # something twice
            data[place:place] = data[place : place + int(rng.integers(1, 200))]
        elif kind == 6:  # separators
            data[place : place + 1] = rng.choice([b",", b"\n", b'"', b"\0", b":", b"[", b"{", b"-"])
        else:  # a part is missing
            del data[place : place + int(rng.integers(1, 300))]
        yield bytes(data)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of poor fits to damaged data
@pytest.mark.parametrize(
    "kind", ["table", "parquet", "rows", "model.json", "model.libsvm", "new.csv", "study"]
)
def test_damaged_files(kind, tmp_path, capsys):
    """100 mutations of every kind of file: an answer or one clear line, never a traceback."""
    moons_table(40).to_csv("rows.csv", index=False)
    fixed = ("--C", 1, "--gamma", 1)
    call("tune", "rows.csv", "--target", "label", "--trials", 2, "--seed", 0, capsys=capsys)
    if kind == "parquet":
        moons_table(40).to_parquet("rows.parquet")
    if kind == "rows":
        dump_svmlight_file(*two_moons(40), "rows", zero_based=False)
    source, command = {
        "table": ("rows.csv", ("tune", "damaged.csv", "--target", "label", *fixed)),
        "parquet": ("rows.parquet", ("tune", "damaged.parquet", "--target", "label", *fixed)),
        "rows": ("rows", ("tune", "damaged", *fixed)),
        "model.json": ("model.json", ("predict", "damaged.json", "rows.csv")),
        "model.libsvm": ("model.libsvm", ("predict", "damaged.libsvm", "numbers")),
        "new.csv": ("rows.csv", ("predict", "model.json", "damaged.csv")),
        "study": (
            "model.journal",
            ("tune", "rows.csv", "--target", "label", "--resume", "--trials", 2),
        ),
    }[kind]
    if kind == "model.libsvm":
        dump_svmlight_file(np.ones((3, 7)), [1, 0, 1], "numbers", zero_based=False)
    if kind == "study":
        command += ("--storage", "damaged.journal", "--out", "model")
    else:
        command += ("--out", "out")
    Path("out.json").write_text("precious")
    damaged = next(Path(str(part)) for part in command if str(part).startswith("damaged"))
    content = Path(source).read_bytes()
    codes = []
    for mutation in mutations(content, 100, seed=len(kind)):
        damaged.write_bytes(mutation)
        before = hashes(tmp_path)
        arguments = command if kind == "study" else (*command, "--force")
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        code = ended.value.code
        codes.append(code)
        assert code in (0, 1, 2)
        assert "Traceback" not in printed.err
        if code:
            assert printed.out == ""
            assert printed.err.splitlines()[-1].startswith("span-hpo: ")
            after = hashes(tmp_path)
            if kind == "study":  # a journal may grow, if it can be read
                assert damaged.read_bytes().startswith(mutation)
                after.pop(tmp_path / damaged)
                before.pop(tmp_path / damaged)
            assert after == before
    assert codes.count(2) >= 20
