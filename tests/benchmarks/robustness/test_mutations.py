"""Figures about damaged files."""

from benchmarks.robustness.mutations import BENCHMARK, MUTATIONS, run, summary
from benchmarks.robustness.targets import TARGETS
from benchmarks.robustness.watched import Outcome
from tests.benchmarks.results import rows_of


def test_summary():
    """Ends are counted, and what is over a limit; memory and time are the largest."""
    found = [
        Outcome("accepted", "", 1.0, 6.0),
        Outcome("refused", "`x` must be", 201.0, 0.5),
        Outcome("traceback", "OverflowError", 3.0, 0.1),
    ]
    assert summary(found) == {
        "accepted": 1,
        "refused": 1,
        "tracebacks": 1,
        "over_memory": 1,
        "over_time": 1,
        "largest_memory": 201.0,
        "longest_seconds": 6.0,
    }


def test_committed_figures():
    """Every reader has seen all mutations, and none of them had a traceback."""
    for reader in TARGETS:
        rows = rows_of(BENCHMARK.csv, reader=reader)
        assert sum(int(row["mutations"]) for row in rows) == MUTATIONS
        assert sum(int(row["tracebacks"]) for row in rows) == 0
    assert run == BENCHMARK.run
