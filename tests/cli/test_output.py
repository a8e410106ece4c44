import json
import re

import numpy as np
import pytest

from span_hpo import RBF, Predictor, SpanSVC, UniformCost
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
    assert re.search(r"^suspects +.*expected wrong labels: [\d.]+ ", printed, re.MULTILINE)
    assert "kept.json, kept.libsvm" in printed


def test_suspects_are_named_by_their_lines(tmp_path):
    """The lines of labels that were flipped are printed, with the number that is expected."""
    table = moons_table(300)
    flipped = np.arange(0, 300, 12)
    table.loc[flipped, "label"] = table.loc[flipped, "label"].map({"good": "bad", "bad": "good"})
    table.to_csv(tmp_path / "flipped.csv", index=False)
    options = ("--target", "label", "--drop", "town", "--drop", "clinic", "--drop", "trust")
    command = ("tune", "flipped.csv", *options, "--gamma", 2, "--C", 1, "--weighting", "uniform")
    printed = run(*command, folder=tmp_path)
    shown, more, among, in_all = re.search(
        r"^suspects +lines ([\d, ]+) and (\d+) more \(expected wrong labels: ([\d.]+) among these, "
        r"([\d.]+) in all rows\)$",
        printed,
        re.MULTILINE,
    ).groups()
    lines = [int(line) for line in shown.split(",")]
    assert len(set(lines) & set(flipped + 2)) >= 8
    result = json.loads(run(*command, "--force", "--json", folder=tmp_path))
    assert result["suspects"][:10] == lines
    assert len(result["suspects"]) == 10 + int(more)
    assert sum(result["suspect_probabilities"]) == pytest.approx(float(among), abs=0.06)
    assert result["expected_label_errors"] == pytest.approx(float(in_all), abs=0.06)


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


def test_letters_of_labels_and_a_legend(tmp_path):
    """Names keep the letters of labels, also in a study; a legend stands for what is lost."""
    table = moons_table()
    for labels, expected in (
        (("No", "Sí \u2013 naïve"), ["C_No", "C_Sí \u2013 naïve"]),
        (("a b", "a/b"), ["C_0", "C_1"]),
    ):
        table["label"] = np.where(np.arange(120) % 2 == 0, *labels)
        table.to_csv(tmp_path / "rows.csv", index=False)
        command = ("rows.csv", "--target", "label", "--drop", "trust", "--drop", "clinic")
        command += ("--weighting", "class")
        options = ("--trials", 3, "--seed", 0, "--force")
        printed = run("tune", *command, *options, folder=tmp_path)
        again = json.loads(
            run("tune", *command, *options[:4], "--resume", "--json", folder=tmp_path)
        )
        assert set(expected) < set(again["best_params"])
        legend = re.findall(r"^legend +(.*)$", printed, re.MULTILINE)
        point = run("loo", *command, "--no-refit", folder=tmp_path)
        assert re.findall(r"^legend +(.*)$", point, re.MULTILINE) == legend
        if labels[0] == "No":
            assert not legend
        else:
            assert legend == ["C_0 is the cost of class 'a b', C_1 is the cost of class 'a/b'"]


def test_only_a_selected_loss_is_called_optimistic(tmp_path):
    """After a search the loss is optimistic; a loss of given hyperparameters is not."""
    command = ("tune", "rows.csv", "--target", "label", "--drop", "trust", "--drop", "clinic")
    searched = run(*command, "--trials", 3, "--seed", 0, folder=tmp_path)
    assert "(optimistic, because it was selected)" in searched
    fixed = run(*command, "--C", 1, "--gamma", 1, "--force", folder=tmp_path)
    assert "optimistic" not in fixed
    assert "nothing was searched" in fixed


FEW = ("few.csv", "--target", "label", "--drop", "trust", "--drop", "clinic")
LEAK = (
    "4 of 30 rows (13 %) alone define the minimum or maximum of a feature. The scaling still "
    "depends on these rows when they are left out, so that the leave-one-out error may be too low. "
)


def test_many_rows_that_define_the_scaling_are_reported(tmp_path):
    """The share of the rows is printed with the options that help, and is part of the JSON."""
    moons_table(30).to_csv(tmp_path / "few.csv", index=False)
    command = [*PROGRAM, "tune", *FEW, "--C", "1", "--gamma", "1", "--force"]
    found = ended(command, tmp_path)
    assert found.stderr == (
        f"Warning: {LEAK}--scale-inside refits them with a scaling of the other rows, and --scale "
        "none does not scale.\n"
    )
    assert "\nscaling    minmax; 4 rows (13 %) with the only minimum or maximum\n" in found.stdout
    result = json.loads(ended([*command, "--json"], tmp_path).stdout)
    assert (result["scaling"], result["scaling_rows"]) == ("minmax", 4)
    assert result["scaling_share"] == pytest.approx(4 / 30)
    assert result["scale_inside"] is False
    found = ended([*PROGRAM, "loo", *FEW, "--no-refit"], tmp_path)
    assert found.stderr == (
        f"Note: {LEAK}`span-hpo tune --scale-inside` refits them with a scaling of the other rows, "
        "and --scale none does not scale.\n"
    )
    assert "\nscaling    minmax; 4 rows (13 %) with the only minimum or maximum\n" in found.stdout


def test_refits_of_the_scaling_are_reported(tmp_path):
    """With --scale-inside the errors are those of the estimator, and no warning remains."""
    frame = moons_table(30)
    frame.to_csv(tmp_path / "few.csv", index=False)
    command = [*PROGRAM, "tune", *FEW, "--C", "1", "--gamma", "1", "--force", "--scale-inside"]
    found = ended(command, tmp_path)
    assert found.stderr == ""
    shown = (
        "scaling    minmax; 4 rows (13 %) with the only minimum or maximum; 4 refits with a "
        "scaling of the other rows"
    )
    assert shown in found.stdout
    result = json.loads(ended([*command, "--json"], tmp_path).stdout)
    model = SpanSVC(RBF(gamma=1.0), UniformCost(1.0), scale_inside=True)
    model.fit(frame[["x", "z", "town"]], frame["label"])
    assert result["loo_error"] == result["exact_error"] == model.loo_error_
    assert result["loo_error_bounds"] == list(model.loo_bounds_)
    assert f"LOO error  {model.loo_error_:.4f}, scaled without each row; the" in found.stdout
    found = ended([*command, "--scale", "standard"], tmp_path)
    assert found.stderr == (
        "Warning: --scale-inside makes 30 refits, one for every row, because every row takes part "
        "in the scaling standard. With --scale minmax it would make 4.\n"
    )


def test_sparse_files_are_not_scaled_by_default(tmp_path):
    """A LIBSVM file of which most numbers are zeros is scaled on request only."""
    lines = [f"{i % 2} {i % 2 + 1}:{1 + i % 3} {10 + i}:{2 + i % 5}" for i in range(40)]
    (tmp_path / "text.libsvm").write_text("\n".join(lines))
    command = [*PROGRAM, "tune", "text.libsvm", "--C", "1", "--gamma", "1", "--force"]
    found = ended(command, tmp_path)
    assert found.stderr == ""
    assert "\nscaling    none\n" in found.stdout
    assert Predictor.load(tmp_path / "model.json").scaling is None
    found = ended([*command, "--scale", "minmax"], tmp_path)
    assert "Warning: 40 of 40 rows (100 %) alone define the largest absolute" in found.stderr
    assert Predictor.load(tmp_path / "model.json").scaling is not None
