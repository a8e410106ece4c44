"""Searches by radius-margin bounds, beside what was published."""

import numpy as np
import pytest

from benchmarks.harness.runner import Options
from benchmarks.papers import published, radius_margin
from tests.benchmarks.data_sets import with_data
from tests.benchmarks.results import lines_of, rows_of

TO_THE_DIGIT = [name for name in radius_margin.DATASETS if name != "ijcnn1"]


@with_data
def test_quick_searches_are_the_committed_ones(tmp_path):
    """A quick run measures two sets, and finds what is in the CSV."""
    rows = radius_margin.run(Options(quick=True, folder=tmp_path)).rows
    assert len(rows) == 2 * 2
    for row in rows:
        (committed,) = rows_of("radius_margin.csv", dataset=row["dataset"], svm=row["svm"])
        assert float(row["value"]) == pytest.approx(float(committed["value"]), rel=1e-5)
        assert row["accuracy"] == committed["accuracy"]
        assert row["evaluations"] == committed["evaluations"]


@pytest.mark.parametrize("name", TO_THE_DIGIT)
def test_published_accuracies_come_out(name):
    """The accuracies of Table 4.1 are those of the CSV, to the last printed digit."""
    for svm, printed in zip(radius_margin.SVMS, published.RADIUS_MARGIN[name], strict=True):
        (row,) = rows_of("radius_margin.csv", dataset=name, svm=svm)
        assert round(100 * float(row["accuracy"]), 2) == printed[2]
        assert int(row["evaluations"]) <= printed[0] + 3


@pytest.mark.parametrize("name", radius_margin.DATASETS)
def test_searches_start_where_they_should_and_stay_in_the_box(name):
    """Each path begins at (0, 0), has a point for every step, and ends at the minimum."""
    for svm in radius_margin.SVMS:
        (row,) = rows_of("radius_margin.csv", dataset=name, svm=svm)
        path = radius_margin.path_of(row)
        assert path[0].tolist() == [0.0, 0.0]
        assert len(path) == int(row["steps"]) <= int(row["evaluations"])
        assert np.abs(path).max() <= radius_margin.SIDE
        np.testing.assert_allclose(path[-1], [float(row["ln_C"]), float(row["ln_sigma2"])])
        assert row["reason"] == "The value has converged."


def test_no_row_is_bounded_where_the_paper_says_so():
    """On image and splice, the search of the L1-SVM ends at ln C = 10 without bounded rows."""
    for name in ("ida_image", "splice"):
        (row,) = rows_of("radius_margin.csv", dataset=name, svm="l1")
        assert (float(row["ln_C"]), row["n_bounded"]) == (10.0, "0")


def test_the_table_holds_the_published_numbers():
    """Numbers of values and steps and accuracies have the printed ones in brackets."""
    lines = lines_of(radius_margin.table())
    assert len(lines) == len(radius_margin.DATASETS)
    for name in TO_THE_DIGIT:
        for first, printed in zip((1, 6), published.RADIUS_MARGIN[name], strict=True):
            cells = [lines[name][first + place] for place in (0, 1, 3)]
            assert cells[0].endswith(f"({printed[0]})")
            assert cells[1].endswith(f"({printed[1]})")
            assert cells[2] == f"{printed[2]:.2f} ({printed[2]:.2f})"
