"""Searches by gradients on the command line, and gradient steps after other searches."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from span_hpo import ARD, Predictor, SpanSVC
from span_hpo.io import read_libsvm
from tests.cli.program import NOT_FEATURES, call, moons_table
from tests.relevant import RELEVANT, two_of_twelve

pytestmark = pytest.mark.filterwarnings("ignore::span_hpo.ScalingWarning")
TUNE = ("tune", "rows.csv", "--target", "label", *NOT_FEATURES)
ARD_KERNEL = ("--kernel", "ard")


def tuned(*options, capsys):
    """Return the result of a command as values."""
    return json.loads(call(*options, "--json", "--force", capsys=capsys))


def test_widths_are_those_of_python(capsys):
    """The command finds what SpanSVC finds with a DataFrame, and the file predicts the same."""
    result = tuned(*TUNE, *ARD_KERNEL, capsys=capsys)
    frame = moons_table()[["x", "z", "town"]]
    model = SpanSVC("ard").fit(frame, moons_table()["label"])
    assert result["best_params"] == pytest.approx(model.best_params_)
    assert result["feature_relevance"] == pytest.approx(model.feature_relevance_)
    assert list(result["feature_relevance"]) == list(model.feature_relevance_)
    assert (result["search"], result["trials"], result["storage"]) == ("gradients", 50, None)
    assert result["gradient_search"] == model.gradient_search_.figures()
    assert result["refinement"] is None
    assert sorted(path.name for path in Path().iterdir()) == [
        "model.json",
        "model.libsvm",
        "rows.csv",
    ]
    loaded = Predictor.load("model.json")
    np.testing.assert_allclose(loaded.predict_proba(frame), model.predict_proba(frame), atol=1e-9)
    call("predict", "model.json", "rows.csv", "--out", "new.csv", capsys=capsys)
    predictions = pd.read_csv("new.csv")["prediction"]
    assert predictions.tolist() == model.predict(frame).tolist()


def test_relevant_columns_come_first(capsys):
    """The table of relevances is sorted, and names the columns that matter."""
    X, y = two_of_twelve()
    names = [f"sensor {number}" for number in range(12)]
    pd.DataFrame(X, columns=names).assign(label=y).to_csv("sensors.csv", index=False)
    printed = call("tune", "sensors.csv", "--target", "label", *ARD_KERNEL, capsys=capsys)
    lines = printed.split("\ncolumn ")[1].splitlines()
    found = [re.fullmatch(r"(sensor \d+) +([\d.]+)", line).groups() for line in lines[1:]]
    assert {name for name, _ in found[:2]} == {names[place] for place in RELEVANT}
    values = [float(value) for _, value in found]
    assert values == sorted(values, reverse=True)
    assert len(found) == 12
    assert "honest     none, because the path of a search by gradients" in printed
    assert re.search(r"^trials +50 in .* s, along the gradient of smooth_error$", printed, re.M)
    assert re.search(
        r"^widths +they differ: differing ones gain 0\.\d+, with standard", printed, re.M
    )
    assert re.search(r"^chosen +gamma_sensor_0 .*, and 1 more, which --json lists$", printed, re.M)
    assert "study" not in printed


def test_many_columns(capsys):
    """Only the twenty most relevant columns are printed."""
    X = np.random.default_rng(0).normal(size=(60, 25))
    frame = pd.DataFrame(X, columns=[f"c{number}" for number in range(25)])
    frame.assign(label=X[:, 0] > 0).to_csv("wide.csv", index=False)
    command = ("tune", "wide.csv", "--target", "label", *ARD_KERNEL, "--scale", "standard")
    printed = call(*command, "--trials", 5, capsys=capsys)
    assert "and 5 columns with less, which --json lists" in printed


def test_numbered_features(capsys):
    """Features in LIBSVM's format keep their numbers, and LIBSVM's model the rescaled features."""
    X, y = two_of_twelve(80)
    rows = [
        " ".join([str(label), *(f"{10 * k + 1}:{value:.6f}" for k, value in enumerate(row))])
        for row, label in zip(X, y, strict=True)
    ]
    Path("rows.libsvm").write_text("\n".join(rows))
    result = tuned("tune", "rows.libsvm", *ARD_KERNEL, "--trials", 40, capsys=capsys)
    first = list(result["feature_relevance"])[:2]
    assert set(first) == {str(10 * place + 1) for place in RELEVANT}
    assert "gamma_111" in result["best_params"]
    call(
        *("predict", "model.json", "rows.libsvm", "--features", "scaled", "--out", "a.csv"),
        capsys=capsys,
    )
    scaled, _ = read_libsvm("scaled", 111)
    ours = Predictor.load("model.json").decision_function(read_libsvm("rows.libsvm", 111)[0])
    plain = Predictor.load_libsvm("model.libsvm", n_features=111).decision_function(scaled)
    np.testing.assert_allclose(plain, ours, atol=1e-6)


def test_steps_after_a_study(capsys):
    """--refine begins at the best trial, which is kept unless the steps have found a better one."""
    options = ("--trials", 6, "--seed", 4, "--metric", "smooth_error")
    before = tuned(*TUNE, *options, capsys=capsys)
    after = tuned(*TUNE, *options, "--refine", capsys=capsys)
    steps = after["refinement"]
    assert (steps["loss_before"], steps["evaluations"]) == (before["best_loss"], 30)
    assert steps["is_kept"]
    assert after["best_loss"] == steps["loss_after"] < before["best_loss"]
    assert (after["search"], after["trials"]) == ("optuna", 6)
    printed = call(*TUNE, *options, "--refine", "--resume", capsys=capsys)
    shown = f"{steps['loss_before']:.4f} before, {steps['loss_after']:.4f} after 30 evaluations"
    assert f"refined    smooth_error = {shown} along the gradient of smooth_error\n" in printed


def test_a_sampler_keeps_a_study(capsys):
    """With a sampler, widths have trials that can be continued."""
    options = (*ARD_KERNEL, "--sampler", "random", "--seed", 0)
    assert tuned(*TUNE, *options, "--trials", 3, capsys=capsys)["search"] == "optuna"
    printed = call(*TUNE, *options, "--trials", 5, "--resume", "--json", capsys=capsys)
    result = json.loads(printed)
    assert (result["trials"], result["gradient_search"]) == (5, None)
    assert set(result["feature_relevance"]) == {"x", "z", "town"}


def test_ensembles_and_fixed_widths(capsys):
    """An ensemble has a file and relevances; one width that is given for all is not searched."""
    options = (*ARD_KERNEL, "--sampler", "random", "--seed", 0, "--trials", 12, "--ensemble")
    result = tuned(*TUNE, *options, capsys=capsys)
    frame = moons_table()[["x", "z", "town"]]
    settings = {"sampler": "random", "random_state": 0, "n_trials": 12, "ensemble": True}
    model = SpanSVC("ard", **settings).fit(frame, moons_table()["label"])
    assert result["feature_relevance"] == pytest.approx(model.feature_relevance_)
    found = Predictor.load("model.json").predict_proba(frame)
    np.testing.assert_allclose(found, model.predict_proba(frame), atol=1e-9)
    fixed = tuned(*TUNE, *ARD_KERNEL, "--gamma", 2, "--C", 1, "--refine", capsys=capsys)
    assert (fixed["search"], fixed["trials"], fixed["refinement"]) == (None, 0, None)
    same = SpanSVC(ARD(gamma=2.0), search=lambda objective: {"C": 1.0})
    assert fixed["loo_error"] == same.fit(frame, moons_table()["label"]).loo_error_


@pytest.mark.parametrize("command", ["loo", "compare"])
def test_estimates_of_one_point(command, capsys):
    """Widths that are not given have defaults, which are printed."""
    printed = call(command, "rows.csv", "--target", "label", *ARD_KERNEL, "--json", capsys=capsys)
    params = json.loads(printed)["params"]
    assert {"gamma_x", "gamma_town", "C"} <= set(params)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--storage", "x"), "--storage must not be given for a search by gradients.*got 'x'"),
        (("--resume",), "--resume must not be given.*Name a sampler, such as --sampler tpe"),
        (("--pruner", "median"), "--pruner must not be given"),
        (("--budgets", "0.5,1"), "--budgets must not be given"),
        (("--patience", 5), "--patience must not be given.*got 5"),
        (("--share-gamma", "a"), "--share-gamma must name columns"),
    ],
)
def test_options_of_other_searches(options, message, capsys):
    """What needs trials that are kept is refused, and nothing is written."""
    error = call(*TUNE, *ARD_KERNEL, *options, capsys=capsys, code=2)
    assert re.search(message, error)
    assert not Path("model.json").exists()


def test_costs_are_refined(capsys):
    """A kernel without hyperparameters has costs, whose gradient is followed."""
    options = ("--kernel", "linear", "--trials", 3, "--seed", 0, "--refine")
    result = tuned(*TUNE, *options, capsys=capsys)
    assert result["refinement"]["evaluations"] == 30
