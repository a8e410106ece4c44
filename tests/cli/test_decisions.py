"""The options about how a tuned model predicts."""

import json
from pathlib import Path

import numpy as np
import pytest

from span_hpo import RBF, Predictor, SpanSVC, UniformCost
from tests.cli.program import call, moons_table

FIXED = ("tune", "rows.csv", "--target", "label", "--weighting", "uniform", "--C", 1, "--gamma", 3)
USED = ("--drop", "town", "--drop", "trust", "--drop", "clinic")


def test_a_model_is_written_with_its_threshold(capsys):
    """The files of the model predict as the estimator does with the same arguments."""
    printed = call(*FIXED, *USED, "--miss-cost", "good=1,bad=10", "--json", capsys=capsys)
    result = json.loads(printed)
    frame = moons_table()
    model = SpanSVC(RBF(gamma=3.0), UniformCost(1.0), miss_cost={"good": 1, "bad": 10})
    model.fit(frame[["x", "z"]], frame["label"])
    assert (result["threshold"], result["threshold_loss"]) == (
        model.threshold_,
        model.threshold_loss_,
    )
    assert result["threshold"] > 0
    new = moons_table(150)
    loaded = Predictor.load("model.json")
    np.testing.assert_array_equal(loaded.predict(new), model.predict(new[["x", "z"]]))
    new.to_csv("new.csv", index=False)
    printed = call("predict", "model.json", "new.csv", capsys=capsys)
    assert printed.splitlines()[1:] == model.predict(new[["x", "z"]]).tolist()


def test_the_threshold_is_printed(capsys):
    """A line names the threshold and the loss there; without a threshold there is none."""
    printed = call(*FIXED, *USED, "--threshold", "loo", capsys=capsys)
    (line,) = [line for line in printed.splitlines() if line.startswith("threshold")]
    assert "error = " in line
    assert "optimistic" in line
    printed = call(*FIXED, *USED, "--force", capsys=capsys)
    assert "threshold" not in printed
    printed = call(*FIXED, *USED, "--force", "--threshold", 0.2, "--json", capsys=capsys)
    assert json.loads(printed)["threshold"] < 0


def test_an_ensemble_has_only_a_file_in_json(capsys):
    """Its members are printed, it predicts as in Python, and no older file stays beside it."""
    tune = ("tune", "rows.csv", "--target", "label", *USED, "--trials", 15, "--seed", 0)
    call(*tune, capsys=capsys)
    assert Path("model.libsvm").exists()
    printed = call(*tune, "--ensemble", "--force", capsys=capsys)
    assert not Path("model.libsvm").exists()
    assert "nothing is proven of an ensemble" in printed
    frame = moons_table()
    model = SpanSVC(n_trials=15, random_state=0, ensemble=True)
    model.fit(frame[["x", "z"]], frame["label"])
    lines = [line for line in printed.splitlines() if line.startswith("member")]
    assert len(lines) == len(model.members_) > 1
    moons_table(150).to_csv("new.csv", index=False)
    printed = call("predict", "model.json", "new.csv", "--proba", "--json", capsys=capsys)
    found, new = json.loads(printed), moons_table(150)[["x", "z"]]
    assert found["prediction"] == model.predict(new).tolist()
    np.testing.assert_allclose(found["probability of good"], model.predict_proba(new)[:, 1])
    message = call(
        *("predict", "model.json", "new.csv", "--features", "x.libsvm"), capsys=capsys, code=2
    )
    assert "--features must not be given for an ensemble" in message
    printed = call(*tune, "--ensemble", "--resume", "--json", capsys=capsys)
    result = json.loads(printed)
    assert (result["libsvm"], result["loo_error_bounds"]) == (None, None)
    assert [member["weight"] for member in result["ensemble"]] == model.weights_.tolist()
    assert result["loo_error"] == model.loo_error_


def test_an_ensemble_of_three_classes(capsys):
    """Decision values are logarithms of the probabilities, one for each class."""
    frame = moons_table()
    frame["label"] = np.array(["a", "b", "c"])[np.arange(len(frame)) % 3]
    frame.to_csv("three.csv", index=False)
    call(
        *("tune", "three.csv", "--target", "label", *USED, "--trials", 6, "--seed", 0),
        *("--ensemble",),
        capsys=capsys,
    )
    printed = call(
        *("predict", "model.json", "three.csv", "--values", "--proba", "--json"), capsys=capsys
    )
    found = json.loads(printed)
    for label in "abc":
        logs = found[f"log-probability of {label}"]
        np.testing.assert_allclose(np.exp(logs), found[f"probability of {label}"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--threshold", "best"), "--threshold must be loo or a probability, got 'best'"),
        (("--threshold", "1.5"), "--threshold must be None, 'loo' or a probability above 0"),
        (("--miss-cost", "good=1"), "--miss-cost must name each of the labels"),
        (("--miss-cost", "good=1,evil=2"), "--miss-cost must name each of the labels"),
        (("--miss-cost", "good=1,good=2,bad=3"), "--miss-cost must name each of the labels"),
        (("--miss-cost", "good=1,bad=0"), "--miss-cost must be a finite number above 0"),
        (("--miss-cost", "good"), "--miss-cost must be labels with costs, as in good=1,bad=10"),
        (("--miss-cost", "good=1,bad=2", "--threshold", "0.1"), "--threshold must be None or"),
        (("--threshold", "loo", "--metric", "auc"), "which no threshold changes"),
        (("--ensemble", "--scale-inside"), "--ensemble must be False with --scale-inside"),
    ],
)
def test_wrong_options(options, message, capsys):
    """One line names the option and what is wrong."""
    assert message in call(*FIXED, *USED, *options, capsys=capsys, code=2)
