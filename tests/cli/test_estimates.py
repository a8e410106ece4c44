import json
import re

import pandas as pd
import pytest

from span_hpo import RBF, SpanObjective, UniformCost
from tests.cli.program import NOT_FEATURES, call, moons_table


def test_loo_shows_every_estimate(capsys):
    """The table holds what the objective says, and the bounds contain the exact error."""
    settings = ("rows.csv", "--target", "label", *NOT_FEATURES, "--C", "4", "--gamma", "2")
    found = json.loads(call("loo", *settings, "--stopping", "--json", capsys=capsys))
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
    assert exact <= min(estimates[name]["at_most"] for name in ("xi-alpha", "span bound"))
    table = call("loo", *settings, "--no-refit", "--metric", "log_loss", capsys=capsys)
    assert re.search(r"log_loss +error +at least +at most", table)
    assert not re.search(r"^refit", table, re.MULTILINE)


def test_bounds_stand_under_at_most(capsys):
    """Upper bounds have no error of their own, and say when they are not proven."""
    settings = ("rows.csv", "--target", "label", *NOT_FEATURES, "--gamma", "2", "--no-refit")
    table = call("loo", *settings, "--C", "good=4", "--C", "bad=0.1", capsys=capsys)
    lines = {line[:22].strip(): line for line in table.splitlines()}
    columns = next(line for line in table.splitlines() if "at most" in line)
    end = columns.index("at most") + len("at most")
    for name in ("support vectors / rows", "xi-alpha", "Jaakkola-Haussler", "span bound"):
        cells = lines[name][22:end].split()
        assert cells[:2] == ["-", "-"], name
        assert float(cells[2]) > 0
    for name, reason in {
        "xi-alpha": "proven only for equal costs",
        "Jaakkola-Haussler": "proven only for fits without an offset",
        "Opper-Winther": "not an estimate for the",
    }.items():
        assert reason in lines[name]
    n_bounded = int(re.search(r"not an estimate for the (\d+) bounded rows", table)[1])
    support, in_bound = re.search(r"(\d+) support vectors, (\d+) in-bound", table).groups()
    assert n_bounded == int(support) - int(in_bound)
    equal = json.loads(call("loo", *settings, "--C", "4", "--json", capsys=capsys))
    remarks = {row["estimate"]: row.get("remark") for row in equal["estimates"]}
    assert remarks["xi-alpha"] is None


def test_stopping_is_shown_on_request(capsys):
    """The method "stopping", which can take a thousand times as long, has to be asked for."""
    settings = ("rows.csv", "--target", "label", *NOT_FEATURES, "--no-refit", "--json")
    for options, expected in (((), False), (("--stopping",), True)):
        found = json.loads(call("loo", *settings, *options, capsys=capsys))
        assert ("stopping" in [row["estimate"] for row in found["estimates"]]) is expected


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


def test_compare_shows_the_errors_of_groups(capsys):
    """The errors of the groups make up the exact error, in the table and as JSON."""
    settings = ("rows.csv", "--target", "label", "--group", "town", "--drop", "trust", "--no-refit")
    found = json.loads(call("compare", *settings, "--json", capsys=capsys))
    counts = moons_table()["town"].value_counts()
    assert {name: group["rows"] for name, group in found["groups"].items()} == counts.to_dict()
    total = sum(group["rows"] * group["error"] for group in found["groups"].values())
    exact = next(row for row in found["estimates"] if row["estimate"] == "exact")
    assert total / counts.sum() == pytest.approx(exact["loss"])
    assert "LOO error" in call("compare", *settings, capsys=capsys)


def test_defaults_of_one_point_are_shown(capsys):
    """Hyperparameters that are not given get values, which are printed."""
    found = json.loads(
        call("loo", "rows.csv", "--target", "label", *NOT_FEATURES, "--json", capsys=capsys)
    )
    assert set(found["params"]) == {"gamma", "C"}
