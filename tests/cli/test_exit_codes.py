import re
import subprocess
from pathlib import Path

import pytest

import span_hpo
from span_hpo.cli.exit_codes import message_of
from span_hpo.runtime import ArgumentError
from tests.cli.program import ENVIRONMENT, PROGRAM, call, hashes, moons_table, run

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
    "impute": (
        ("tune", "rows.csv", "--target", "label", "--impute", "mean"),
        "not one of 'median'",
    ),
    "encoding": (
        ("tune", "rows.csv", "--target", "label", "--encoding", "latin-99"),
        "--encoding must be the name of a text encoding such as latin-1, got 'latin-99'",
    ),
    "decimal": (
        ("tune", "rows.csv", "--target", "label", "--decimal", "x"),
        r"--decimal must be '\.' or ',', got 'x'",
    ),
    "delimiter": (
        ("tune", "rows.csv", "--target", "label", "--delimiter", "::"),
        "--delimiter must be one character",
    ),
    "libsvm with impute": (
        ("tune", "rows.txt", "--impute", "median"),
        "--impute must not be given for a file in LIBSVM's format",
    ),
    "libsvm with rows to drop": (
        ("tune", "rows.txt", "--drop-rows"),
        "--drop-rows must not be given for a file in LIBSVM's format",
    ),
    "quantity": (
        ("tune", "rows.csv", "--target", "x"),
        r"column 'x' of rows.csv must hold classes, got 1\d\d different numbers .* or use "
        "--classify if each number is a class",
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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_output_that_cannot_be_written(tmp_path):
    """A full disk behind standard output is one line and exit code 1, at any amount of output."""
    run("tune", "rows.csv", "--target", "label", "--trials", 1, "--seed", 0, folder=tmp_path)
    for arguments in (["predict", "model.json", "rows.csv"], ["--help"]):
        with open("/dev/full", "w") as full:
            found = subprocess.run(
                [*PROGRAM, *arguments],
                cwd=tmp_path,
                env=ENVIRONMENT,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert found.returncode == 1
        assert "No space left on device" in found.stderr.splitlines()[-1]
        assert "Traceback" not in found.stderr


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ArgumentError("gamma", "must be positive."), "--gamma must be positive."),
        (ArgumentError("--trials", "must be positive."), "--trials must be positive."),
        (ArgumentError("X", "must be finite."), "`X` must be finite."),
        (ArgumentError("drop", "it.", "If it is useless,"), "If it is useless, --drop it."),
        (
            ArgumentError("impute", "median, or leave rows out with `drop_rows`.", "Set"),
            "Set --impute median, or leave rows out with --drop-rows.",
        ),
        (ArgumentError("drop", "`X` or `dropped`."), "--drop `X` or `dropped`."),
        (ValueError("`gamma` is quoted"), "`gamma` is quoted"),
        (FileNotFoundError(2, "No such file", "a.csv"), "a.csv: No such file."),
        (OSError(28, "No space left on device"), "No space left on device."),
    ],
)
def test_messages_name_options(error, message):
    """Errors about arguments name options, but only for arguments that have one."""
    assert message_of(error) == message
