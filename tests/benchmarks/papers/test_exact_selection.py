"""Selection by the exact leave-one-out error, beside what was published."""

import numpy as np
import pytest

from benchmarks.harness.data import load
from benchmarks.harness.runner import RESULTS, Options, read_rows
from benchmarks.papers import exact_selection, published
from span_hpo import RBF, Problem, leave_one_out, solve
from span_hpo.kernels import KernelCache
from tests.benchmarks.data_sets import with_data
from tests.benchmarks.results import lines_of, rows_of

SINGLE = {"ida_diabetis", "ida_flare_solar", "ida_thyroid", "ida_twonorm", "splice"}


@with_data
def test_quick_selection_measures_grid_and_other_splits(tmp_path):
    """A quick run selects on the first splits and tests the selected model on the others."""
    options = Options(quick=True, folder=tmp_path)
    rows = exact_selection.run(options).rows
    # Two models and two kernels on five splits of titanic and one of thyroid; then five more.
    assert len(rows) == 2 * 2 * (5 + 1) + 2 * 5
    others = [row for row in rows if int(row["split"]) >= exact_selection.SELECTING]
    assert {row["kernel"] for row in others} == set(exact_selection.KERNELS)
    for row in others:
        first = exact_selection.selecting(rows, row["dataset"], row["kernel"])
        model = exact_selection.selected(first)
        assert model == (float(row["C"]), float(row["gamma"]))
    assert len(exact_selection.run(options).rows) == len(rows)  # nothing is measured again


@pytest.mark.parametrize("name", exact_selection.DATASETS)
@pytest.mark.parametrize("kernel", exact_selection.KERNELS)
def test_committed_selection_covers_the_grid(name, kernel):
    """Every point of the grids is there for each split that selects, and every fit converged."""
    rows = rows_of("exact_selection.csv", dataset=name, kernel=kernel)
    splits = range(1 if name in SINGLE else exact_selection.SELECTING)
    for split in splits:
        models = {
            (float(row["C"]), float(row["gamma"])) for row in rows if row["split"] == str(split)
        }
        assert models == set(exact_selection.GRIDS[kernel])
    assert {row["converged"] for row in rows} == {"True"}


def test_the_smoothest_of_equal_models_is_selected():
    """Of equal mean errors the smallest C counts, then the smallest gamma; later splits do not."""
    rows = [
        {"dataset": "x", "kernel": "rbf", "split": split, "C": C, "gamma": g, "loo_error": error}
        for split, C, g, error in (
            ("0", "9.0", "0.1", "0.200000"),
            ("0", "2.0", "0.5", "0.206667"),
            ("1", "2.0", "0.5", "0.193333"),
            ("1", "9.0", "0.1", "0.200000"),
            ("0", "2.0", "0.7", "0.2"),
            ("7", "5.0", "0.1", "0.0"),
        )
    ]
    assert exact_selection.selected(exact_selection.selecting(rows, "x", "rbf")) == (2.0, 0.5)


@with_data
def test_a_committed_error_is_that_of_refits():
    """The exact leave-one-out error in the CSV is what one fit for each row gives."""
    rows = read_rows(RESULTS / "exact_selection.csv")
    C, gamma = exact_selection.selected(exact_selection.selecting(rows, "ida_heart", "rbf"))
    (row,) = rows_of("exact_selection.csv", dataset="ida_heart", split=0, C=C, gamma=gamma)
    split = load("ida_heart", scaled=False)
    K = KernelCache(RBF(gamma=gamma), split.X_train).matrix({})
    solution = solve(Problem(K, split.y_train, np.full(len(split.y_train), C)))
    refits = leave_one_out(solution, "refit")
    assert refits.error == pytest.approx(float(row["loo_error"]), abs=1e-6)


# Data set, kernel: where the mean of the least leave-one-out errors is the published number.
TO_THE_DIGIT = [
    ("ida_banana", "rbf"),
    ("ida_heart", "linear"),
    ("ida_heart", "rbf"),
    ("ida_image", "linear"),
    ("ida_ringnorm", "linear"),
    ("ida_titanic", "linear"),
    ("ida_waveform", "linear"),
    ("ida_waveform", "rbf"),
]


@pytest.mark.parametrize(("name", "kernel"), TO_THE_DIGIT)
def test_published_leave_one_out_errors_come_out(name, kernel):
    """The least exact errors of the five realisations average to the published percentage."""
    rows = read_rows(RESULTS / "exact_selection.csv")
    least = exact_selection.least_errors(exact_selection.selecting(rows, name, kernel))
    printed = published.EXACT_ERRORS[name][exact_selection.KERNELS.index(kernel)][0]
    assert len(least) == exact_selection.SELECTING
    assert round(100 * np.mean(least), 2) == printed


@pytest.mark.parametrize("name", sorted(set(exact_selection.DATASETS) - SINGLE))
def test_test_errors_are_near_the_published_ones(name):
    """With nine or ten realisations the test error is within two points of the published one."""
    line = lines_of(exact_selection.table())[name]
    for cell in (line[4], line[7]):
        ours, published = (float(part.split(" ± ")[0]) for part in cell.rstrip(")").split(" ("))
        assert abs(ours - published) < 2


def test_selection_tables_hold_the_published_numbers():
    """Each line has the published leave-one-out and test errors of both kernels in its cells."""
    lines = lines_of(exact_selection.table())
    assert list(lines) == exact_selection.DATASETS
    for name, kernels in published.EXACT_ERRORS.items():
        for first, (loo, test, deviation) in zip((3, 6), kernels, strict=True):
            assert lines[name][first].endswith(f"({loo:.2f})")
            assert lines[name][first + 1].endswith(f"({test:.2f} ± {deviation:.2f})")
    assert list(lines_of(exact_selection.time_table())) == exact_selection.DATASETS
