"""Samplers beside a grid: a short run, the grid's pick by hand, and the committed figures."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.harness.data import load
from benchmarks.harness.runner import RESULTS, Options, read_rows
from benchmarks.search import samplers
from span_hpo import Problem, leave_one_out, solve
from tests.benchmarks.data_sets import with_data

DATASET = "breast_cancer"
KEY = ("dataset", "space", "metric", "search", "seed")
VALUES = {  # by hand: what the short run has on its grids
    "gamma fixed": {"gamma": [None], "C": [2.0**k for k in (-6, -2, 2, 6, 10)]},
    "gamma searched": {"gamma": [2.0**k for k in (-6, -1, 4)], "C": [2.0**k for k in (-6, 2, 10)]},
}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("samplers")
    return samplers.run(Options(quick=True, folder=folder)).rows


def keys_of(rows):
    return sorted(tuple(str(row[name]) for name in KEY) for row in rows)


@with_data
def test_a_short_run_has_every_search(found):
    """There is one row for each space, metric and search; a grid has no seed."""
    searches = [("grid", ""), ("tpe", "0"), ("cmaes", "0"), ("gp", "0")]
    expected = product([DATASET], samplers.SPACES, samplers.METRICS, searches)
    assert keys_of(found) == sorted((*rest, *search) for *rest, search in expected)


@with_data
def test_a_row_has_the_figures_of_its_search_only(found):
    """A sampler has figures after each number of trials, a grid after all its points."""
    for row in found:
        stages = {name.rpartition("_")[2] for name in row if name.startswith("loss") and row[name]}
        assert stages == ({"grid"} if row["search"] == "grid" else {"6", "12"})


@with_data
def test_more_trials_do_not_raise_the_loss(found):
    """The loss never increases with the trials, and no evaluation takes longer than its search."""
    for row in (row for row in found if row["search"] != "grid"):
        assert float(row["loss_12"]) <= float(row["loss_6"])
        assert float(row["evaluation_s_12"]) <= float(row["seconds_12"])
        assert 0 < int(row["different_points"]) <= 12


@with_data
@pytest.mark.parametrize("metric", samplers.METRICS)
@pytest.mark.parametrize("space", samplers.SPACES)
def test_the_grid_picks_what_solving_every_point_picks(found, space, metric):
    """Loss and test error are those of the best point by `solve` and `leave_one_out`."""
    split = load(DATASET)
    y, d = split.y_train, split.X_train.shape[1]
    points = []
    for gamma, low, high in product(VALUES[space]["gamma"], *[VALUES[space]["C"]] * 2):
        width = gamma or 1 / d
        K = rbf_kernel(split.X_train, gamma=width)
        solution = solve(Problem(K, y, np.where(y > 0, high, low)))
        values = leave_one_out(solution).decision_values
        smooth = np.mean(expit(-4 * y * values))
        loss = np.mean(y * values <= 0) if metric == "error" else smooth
        points.append((loss, smooth, solution.n_support, width, solution))
    loss, _, _, width, solution = min(points, key=lambda point: point[:3])
    K_test = rbf_kernel(split.X_test, split.X_train, gamma=width)
    predicted = np.where(K_test @ (y * solution.alpha) + solution.b > 0, 1, -1)
    (row,) = [
        row
        for row in found
        if (row["space"], row["metric"], row["search"]) == (space, metric, "grid")
    ]
    assert float(row["loss_grid"]) == pytest.approx(loss, rel=1e-6)
    # One row of 583 may change sides: the model is fitted with another tolerance.
    assert float(row["test_error_grid"]) == pytest.approx(
        np.mean(predicted != split.y_test), abs=1.5 / len(predicted)
    )
    assert int(row["different_points"]) == len(points)


def test_full_grids_have_the_points_of_the_paper():
    """Both grids have 1,089 points, as many as 33 by 33 costs."""
    for points in samplers.FULL.points.values():
        assert np.prod(list(points.values())) == 33 * 33


def test_committed_figures_cover_all_searches():
    """The CSV has every search of every data set once, and no figure of its stages is missing."""
    rows = read_rows(RESULTS / "samplers.csv")
    assert keys_of(rows) == keys_of(samplers.FULL.keys())
    for row in rows:
        for stage in samplers.FULL.stages[row["search"]]:
            assert 0 < float(row[f"test_error_{stage}"]) < 0.5
            assert float(row[f"loss_{stage}"]) < 0.5


def test_tables_have_a_line_for_each_search_and_data_set():
    """One line for each space, search and number of trials; one for each data set."""
    lines = samplers.table().splitlines()[2:]
    assert len(lines) == 2 * (1 + 3 * 3)
    details = samplers.details_table().splitlines()[2:]
    assert [line.split("|")[1].strip() for line in details] == samplers.DATASETS
