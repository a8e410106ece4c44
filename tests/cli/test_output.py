import re

import pytest

from span_hpo import Predictor
from tests.cli.program import PROGRAM, moons_table, run
from tests.processes import ended


def test_what_tune_prints(tmp_path):
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


def test_prediction_of_a_terminal_user(tmp_path):
    """Predictions are CSV on standard output; the error, where labels are known, is not."""
    run("tune", "rows.csv", "--target", "label", "--trials", 3, "--seed", 0, folder=tmp_path)
    found = ended([*PROGRAM, "predict", "model.json", "rows.csv"], tmp_path)
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert lines[0] == "prediction"
    assert len(lines) == 121
    assert set(lines[1:]) == {"good", "bad"}
    assert re.fullmatch(r"The error on 120 rows is 0\.\d{4}\.\n", found.stderr)


def test_unknown_categories_give_a_warning(tmp_path):
    """A category that training rows did not have is 0 in all its features, with a note."""
    run("tune", "rows.csv", "--target", "label", "--trials", 3, "--seed", 0, folder=tmp_path)
    moons_table(4).assign(town="Rome").to_csv("new.csv", index=False)
    found = ended([*PROGRAM, "predict", "model.json", "new.csv"], tmp_path)
    assert found.returncode == 0, found.stderr
    warning = (
        "column 'town' of new.csv has categories that do not occur in the training rows: Rome."
    )
    assert warning in found.stderr
