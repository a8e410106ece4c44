"""The jumps of losses where rows change their kind, and their committed figures."""

import itertools

import numpy as np
import pytest

from benchmarks.robustness import jumps
from tests.benchmarks.results import lines_of, rows_of


@pytest.mark.parametrize("dataset", jumps.DATASETS)
def test_both_sides_of_a_change_are_neighbours(dataset):
    """Rows differ in their kind, and decision values only by rounding."""
    fit = jumps.fits(dataset, "cost", 0)
    found = list(itertools.islice(jumps.changes(fit, np.geomspace(0.5, 5.0, 12)), 2))
    assert found
    for one, other in found:
        assert not (
            np.array_equal(one.in_bound, other.in_bound)
            and np.array_equal(one.bounded, other.bounded)
        )
        np.testing.assert_allclose(one.decision_values, other.decision_values, atol=1e-8)


def test_problems_follow_from_their_numbers():
    """The fit of a problem is the same each time, for each way in which it moves."""
    for moved in jumps.MOVED:
        one, other = (jumps.fits("equal rows", moved, 2)(1.5) for _ in range(2))
        np.testing.assert_array_equal(one.alpha, other.alpha)


def test_committed_jumps_are_small_with_a_penalty():
    """With a strength of 1e-4 or more, losses and values jump by less than 1e-5."""
    rows = rows_of("jumps.csv")
    assert len(rows) == len(jumps.DATASETS) * len(jumps.MOVED) * jumps.PROBLEMS
    assert sum(int(row["changes"]) for row in rows) > 1000
    for eta in jumps.STRENGTHS:
        worst = max(float(row[f"value_{eta:g}"]) for row in rows)
        if eta >= 1e-4:
            assert worst < 1e-5
        elif eta == 0:
            assert worst > 0.1
    for name, cells in lines_of(jumps.table()).items():
        own = rows if name == "all" else rows_of("jumps.csv", dataset=name)
        assert int(cells[1]) == sum(int(row["changes"]) for row in own)
        assert float(cells[2]) == pytest.approx(max(float(row["loss_0"]) for row in own), rel=0.1)
