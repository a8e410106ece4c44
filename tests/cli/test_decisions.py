"""The options about how a tuned model predicts."""

import json

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
    ],
)
def test_wrong_options(options, message, capsys):
    """One line names the option and what is wrong."""
    assert message in call(*FIXED, *USED, *options, capsys=capsys, code=2)
