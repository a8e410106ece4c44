"""The comparison of gradient steps with more trials: its searches, its rows, its table."""

from itertools import product

import numpy as np
import pytest

from benchmarks.harness.runner import RESULTS, Options, read_rows
from benchmarks.search import ard, refine
from span_hpo import SpanObjective
from tests.benchmarks.data_sets import with_data
from tests.benchmarks.results import lines_of, rows_of
from tests.problems import two_moons

SMALL = "ida_thyroid"


def test_searches_have_the_trials_that_they_are_named_for():
    """A refined search continues the trials of the same search without steps."""
    objective = SpanObjective(*two_moons(60), metric="smooth_error")
    losses = {}
    for name, count in {"TPE 50": 50, "TPE 50, refined": 70, "TPE 70": 70}.items():
        params, evaluations = refine.METHODS[name](objective)
        losses[name] = objective(params)
        assert evaluations == count
    assert losses["TPE 50, refined"] <= losses["TPE 50"]
    assert losses["TPE 70"] <= losses["TPE 50"]
    for name in ("ARD, GradientSampler", "ARD, minimize"):
        assert refine.METHODS[name](objective)[1] == 60


@with_data
@pytest.mark.slow
def test_a_run_has_every_method(tmp_path):
    """Losses are those of the chosen models, which are tested on the rows of `ard`."""
    rows = refine.run(Options(datasets=[SMALL], folder=tmp_path)).rows
    assert [row["method"] for row in rows] == list(refine.METHODS)
    assert [row["evaluations"] for row in rows] == ["50", "70", "70", "150", "60", "60", "150"]
    for row in rows:
        assert (row["n_train"], row["n_features"]) == ("140", "5")
        assert 0 <= float(row["test_error"]) < 0.2
        assert 0 < float(row["loss"]) < 0.2


def test_committed_figures_are_complete():
    """Every method has a row for every split, and more trials of a search find no higher loss."""
    rows = read_rows(RESULTS / "refine.csv")
    keys = [(row["dataset"], row["split"], row["method"]) for row in rows]
    assert sorted(keys) == sorted(
        (name, str(split), method)
        for name in refine.DATASETS
        for split, method in product(range(ard.splits_of(name)), refine.METHODS)
    )
    losses = {key: float(row["loss"]) for key, row in zip(keys, rows, strict=True)}
    for name, split, method in keys:
        if method in refine.ISOTROPIC:
            # A repeated evaluation may differ in its last digits.
            assert losses[name, split, method] <= losses[name, split, "TPE 50"] + 1e-9
        if method == "TPE 150":
            assert losses[name, split, method] <= losses[name, split, "TPE 70"] + 1e-9


def test_the_table_follows_from_the_csv():
    """Cells hold the means of losses and test errors over the splits, and the last lines means."""
    lines = lines_of(refine.table())
    found = []
    for name in refine.DATASETS:
        cells = [cell.split(" / ") for cell in lines[name][3:]]
        for method, cell in zip(refine.METHODS, cells, strict=True):
            own = rows_of("refine.csv", dataset=name, method=method)
            for column, text in zip(("loss", "test_error"), cell, strict=True):
                assert text == f"{np.mean([float(row[column]) for row in own]):.4f}"
        found.append([[float(number) for number in cell] for cell in cells])
    overall = [[float(n) for n in cell.split(" / ")] for cell in lines["mean over the sets"][3:]]
    np.testing.assert_allclose(overall, np.mean(found, axis=0), atol=1.01e-4)
