"""The span bound with each row's own span, beside the published selection."""

import pytest

from benchmarks.harness.runner import Options
from benchmarks.papers import own_spans, published, weighted_points
from tests.benchmarks.data_sets import with_data
from tests.benchmarks.results import lines_of, rows_of


@with_data
def test_quick_points_are_measured(tmp_path):
    """A quick run measures nine points of splice, with the smaller bound by own spans."""
    rows = own_spans.run(Options(quick=True, folder=tmp_path)).rows
    assert len(rows) == 9
    for row in rows:
        assert float(row["own_span_bound"]) <= float(row["span_bound"]) * (1 + 1e-6)


@pytest.mark.parametrize("name", own_spans.DATASETS)
def test_committed_points_cover_the_grid(name):
    """The CSV has every point of the paper's grid, and own spans never give the larger bound."""
    rows = rows_of("own_spans.csv", dataset=name)
    assert len(rows) == weighted_points.grid_size("class_costs", quick=False)
    for row in rows:
        assert float(row["own_span_bound"]) <= float(row["span_bound"]) * (1 + 1e-6)


def test_own_spans_select_the_published_model_of_splice():
    """Eq. 66 selects the published test error of splice, and Theorem 1 selects another one."""
    rows = rows_of("own_spans.csv", dataset="splice")
    printed = published.SELECTED["splice"][published.CRITERIA.index("span_bound")]
    assert round(own_spans.selected(rows, "own_span_bound")[0], 4) == printed
    assert round(own_spans.selected(rows, "span_bound")[0], 4) != printed
    assert lines_of(own_spans.table())["splice"][-1] == f"{printed:.4f}"
