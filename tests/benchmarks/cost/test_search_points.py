"""The cost of exact leave-one-out at the points of a search."""

from benchmarks.cost import search_points
from tests.benchmarks.data_sets import with_data
from tests.benchmarks.results import rows_of


@with_data
def test_the_points_are_those_of_the_search(monkeypatch):
    """The first committed points are drawn again by a search of the same seed."""
    monkeypatch.setattr(search_points, "TRIALS", 12)
    search_points.searched.cache_clear()
    _, points = search_points.searched("ida_heart")
    search_points.searched.cache_clear()
    rows = rows_of("search_points.csv", dataset="ida_heart")
    for params, row in zip(points, rows, strict=False):
        found = [params["C_1"], params["C_-1"], params["gamma"]]
        assert found == [float(row[name]) for name in ("C_pos", "C_neg", "gamma")]


def test_committed_figures_belong_together():
    """No row was refitted, and an exact error differs from that of the span-rule by a few rows."""
    for row in rows_of("search_points.csv"):
        assert row["n_refit"] == "0"
        assert abs(float(row["exact_error"]) - float(row["span_error"])) < 0.2
        ratio = float(row["classes_ms"]) / float(row["svc_fit_ms"])
        assert abs(ratio - float(row["classes_per_fit"])) <= 1e-3 * ratio + 1e-4
