"""The span-rule as a prediction of the test error, over the width and over the cost."""

import pytest

from benchmarks.harness.runner import Options
from benchmarks.papers import postal
from tests.benchmarks.data_sets import with_data
from tests.benchmarks.results import rows_of


@with_data
def test_quick_curves_are_measured(tmp_path):
    """A quick run measures three points of two subsets in each picture; none is bounded in (a)."""
    rows = postal.run(Options(quick=True, folder=tmp_path)).rows
    assert len(rows) == 2 * 2 * 3
    digits = [row for row in rows if row["dataset"] == "usps"]
    assert {(row["rows"], row["n_bounded"]) for row in digits} == {("317", "0")}
    assert set(postal.curves(rows, "usps")) == set(postal.CURVES)
    assert set(postal.curves(rows, "ida_breast_cancer")) == set(postal.CURVES) - {"rest_error"}


@pytest.mark.parametrize("name", postal.DATASETS)
def test_minima_of_prediction_and_test_error_coincide(name):
    """As in the published figure, the span-rule and the test error are least at one place."""
    rows = rows_of("postal.csv", dataset=name)
    assert len(rows) == postal.SUBSETS[name] * len(postal.GRIDS[name])
    found = postal.curves(rows, name)
    places = {min(points, key=lambda point: point[1])[0] for points in found.values()}
    assert len(places) == 1


def test_the_margin_of_the_digits_is_hard():
    """No row of the postal subsets is bounded, so the large C stands for the hard margin."""
    assert {row["n_bounded"] for row in rows_of("postal.csv", dataset="usps")} == {"0"}


def test_the_table_has_a_line_for_each_curve():
    """There are four curves of the digits, and three of breast cancer."""
    assert len(postal.table().splitlines()) == 2 + 4 + 3
