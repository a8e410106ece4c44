"""Contours of radius-margin bounds."""

import pytest

from benchmarks.harness.runner import Options
from benchmarks.papers import bound_contours, radius_margin
from tests.benchmarks.data_sets import with_data
from tests.benchmarks.results import rows_of


@with_data
def test_quick_contours_are_the_committed_ones(tmp_path):
    """A quick run measures nine points of each set, which are in the CSV."""
    rows = bound_contours.run(Options(quick=True, folder=tmp_path)).rows
    assert len(rows) == 2 * 9
    for row in rows:
        names = ("dataset", "ln_sigma2", "ln_C")
        (committed,) = rows_of("bound_contours.csv", **{name: row[name] for name in names})
        for column in ("l1", "l2"):
            assert float(row[column]) == pytest.approx(float(committed[column]), rel=1e-5)


@pytest.mark.parametrize("name", bound_contours.DATASETS)
def test_searches_end_at_the_lowest_contour(name):
    """No point of the grid is lower than the minimum of the search by more than two percent."""
    rows = rows_of("bound_contours.csv", dataset=name)
    assert len(rows) == len(bound_contours.GRID) ** 2
    for svm in radius_margin.SVMS:
        (search,) = rows_of("radius_margin.csv", dataset=name, svm=svm)
        least = min(float(row[svm]) for row in rows)
        if (name, svm) != ("ida_banana", "l1"):  # whose minimum lies elsewhere, at large costs
            assert float(search["value"]) <= 1.02 * least
