"""Searches by radius-margin bounds and by leave-one-out losses."""

import pytest

from benchmarks.harness.runner import Options
from benchmarks.search import ard, bound_searches
from tests.benchmarks.data_sets import with_data
from tests.benchmarks.results import rows_of


@with_data
def test_quick_searches_are_the_committed_ones(tmp_path):
    """A quick run measures thyroid, and finds the test errors that are in the CSV."""
    rows = bound_searches.run(Options(quick=True, folder=tmp_path)).rows
    assert [row["method"] for row in rows] == bound_searches.METHODS
    for row in rows:
        (committed,) = rows_of(
            "bound_searches.csv", dataset=row["dataset"], split=0, method=row["method"]
        )
        assert row["test_error"] == committed["test_error"]


@pytest.mark.parametrize("name", bound_searches.DATASETS)
def test_every_method_is_measured_on_each_split(name):
    """The CSV has all methods on the rows of the other comparison."""
    rows = rows_of("bound_searches.csv", dataset=name)
    assert len(rows) == ard.SPLITS[name] * len(bound_searches.METHODS)
    others = rows_of("ard.csv", dataset=name)
    assert {row["n_train"] for row in rows} == {row["n_train"] for row in others}
    assert all(int(row["evaluations"]) <= 60 for row in rows)


def test_the_table_has_a_line_for_each_set_and_three_means():
    """Errors, evaluations and times are averaged below the sets."""
    assert len(bound_searches.table().splitlines()) == 2 + len(bound_searches.DATASETS) + 3
