"""The committed cost of one evaluation."""

from benchmarks.cost import speed
from benchmarks.harness.runner import RESULTS, read_rows


def test_committed_figures_cover_what_was_asked():
    """Nine points of each of the five data sets are in the CSV."""
    rows = read_rows(RESULTS / "speed.csv")
    assert {row["dataset"] for row in rows} == set(speed.DATASETS)
    assert len(rows) == 9 * len(speed.DATASETS)
