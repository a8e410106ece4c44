"""Selection on the grids of the weighted-SVM span paper: what is selected and shown."""

from itertools import product

import numpy as np
import pytest

from benchmarks.harness.data import load
from benchmarks.harness.runner import RESULTS, Options, read_rows
from benchmarks.papers import published, weighted, weighted_points
from span_hpo import RBF, Problem, leave_one_out, solve
from span_hpo.kernels import KernelCache
from tests.benchmarks.data_sets import with_data


def quick(folder, *names):
    return Options(list(names), quick=True, folder=folder)


@with_data
def test_quick_run_writes_all_files(tmp_path):
    """Both kinds of grid are measured and summarised; a second run measures nothing."""
    options = quick(tmp_path, "breast_cancer", "bank")
    weighted.run(options)
    assert len(read_rows(tmp_path / "class_costs.csv")) == 9
    assert len(read_rows(tmp_path / "scores.csv")) == 12
    assert len(read_rows(tmp_path / "widths.csv")) == 8
    searched = read_rows(tmp_path / "weighted_widths.csv")
    assert {row["dataset"] for row in searched} == {"breast_cancer"}
    rows = read_rows(tmp_path / "weighted.csv")
    assert {row["criterion"] for row in rows} == set(weighted.CRITERIA)
    assert {row["dataset"] for row in rows} == {"breast_cancer", "bank"}
    models = read_rows(tmp_path / "weighted_models.csv")
    assert [row["points"] for row in models] == ["9", "12"]
    curves = read_rows(tmp_path / "weighted_curves.csv")
    assert {row["parameter"] for row in curves} == {"A", "B", "C"}
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}
    weighted.run(options)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before


@with_data
def test_summaries_keep_what_was_measured_elsewhere(tmp_path):
    """Without the points of a split its committed rows stay."""
    weighted.run(quick(tmp_path, "breast_cancer", "bank"))
    before = (tmp_path / "weighted.csv").read_text()
    for name in ("class_costs.csv", "widths.csv", "scores.csv"):
        (tmp_path / name).unlink()
    weighted.run(quick(tmp_path, "bank"))
    after = read_rows(tmp_path / "weighted.csv")
    assert {row["dataset"] for row in after} == {"breast_cancer", "bank"}
    assert (tmp_path / "weighted.csv").read_text() == before


def test_worst_of_ties_is_reported():
    """If a criterion has several minima the worst test error among them counts."""
    points = [
        {"span_error": s, "test_error": t}
        for s, t in (("0.1", "0.3"), ("0.1", "0.2"), ("0.4", "0.1"))
    ]
    chosen = weighted.selected(points, "span_error")
    assert chosen["worst_of_ties"] == 0.3
    assert chosen["mean_of_ties"] == pytest.approx(0.25)
    assert chosen["ties"] == 2
    assert chosen["rmse"] == pytest.approx(np.sqrt((0.04 + 0.01 + 0.09) / 3), abs=1e-6)


@with_data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["splice", "a1a"])
def test_rows_of_table_2(name):
    """On a split that is known the span-rule picks what was published, to the digit."""
    split = load(name)
    K = KernelCache(RBF(gamma=1 / split.n_features), split.X_train).matrix({})
    test = weighted_points.UnseenRows(split, 1 / split.n_features)
    y, points = split.y_train, []
    for C_neg, C_pos in product(*weighted_points.grid("class_costs").values()):
        solution = solve(Problem(K, y, np.where(y > 0, C_pos, C_neg)))
        error = leave_one_out(solution, certify=False).error
        counts = {"n_in_bound": solution.n_in_bound, "n_support": solution.n_support}
        points.append({"span_error": error, "test_error": test.error(solution), **counts})
    chosen = weighted.selected(points, "span_error")
    assert round(chosen["worst_of_ties"], 4) == published.SELECTED[name][0]
    assert round(min(point["test_error"] for point in points), 4) == published.LEAST[name]
    assert chosen["rmse"] == pytest.approx(published.RMSE[name][0], abs=0.001)
    _, in_bound, support = published.COUNTS[name]
    assert np.mean([point["n_in_bound"] for point in points]) == pytest.approx(in_bound, rel=0.03)
    assert np.mean([point["n_support"] for point in points]) == pytest.approx(support, rel=0.01)


def test_what_is_shown_is_published_and_committed():
    """Every set of the committed CSV has its published figures in every table."""
    rows = read_rows(RESULTS / "weighted.csv")
    names = {row["dataset"] for row in rows}
    assert {"splice", "a1a", "ida_image", "parkinson", "bank"} <= names <= set(weighted.DATASETS)
    for name in names:
        known = [f"({value:.4f})" for value in (*published.SELECTED[name], published.LEAST[name])]
        (line,) = (
            line
            for line in weighted.selection_table().splitlines()
            if line.startswith(f"| {name} |")
        )
        assert all(value in line for value in known)
        for table in (weighted.rmse_table, weighted.counts_table, weighted.seconds_table):
            assert f"| {name} |" in table()
