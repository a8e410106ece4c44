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


def test_the_radius_selects_the_published_models():
    """With the radius in place of the diameter, both published test errors are selected."""
    for name in own_spans.DATASETS:
        rows = rows_of("own_spans.csv", dataset=name)
        printed = published.SELECTED[name][published.CRITERIA.index("span_bound")]
        assert round(own_spans.selected(rows, "with_radius")[0], 4) == printed


def test_own_spans_select_a_model_near_to_the_published_one():
    """On splice, the published model is second by eq. 66, and Theorem 1 answers one class."""
    rows = rows_of("own_spans.csv", dataset="splice")
    printed = published.SELECTED["splice"][published.CRITERIA.index("span_bound")]
    assert round(own_spans.selected(rows, "span_bound")[0], 2) == 0.48
    first, second = sorted(rows, key=lambda row: float(row["own_span_bound"]))[:2]
    assert round(float(first["test_error"]), 4) == 0.1306
    assert round(float(second["test_error"]), 4) == printed
    assert lines_of(own_spans.table())["splice"][-1] == f"{printed:.4f}"
