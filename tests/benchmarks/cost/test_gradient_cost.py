"""The committed cost of a loss with its gradient."""

from statistics import median

import numpy as np
import pytest

from benchmarks.cost import gradient_cost
from tests.benchmarks.data_sets import with_data
from tests.benchmarks.results import lines_of, rows_of


@with_data
@pytest.mark.parametrize("widths", [2, 100])
def test_objectives_have_so_many_widths(widths):
    """Features are dealt to groups, or columns of noise are added."""
    objective = gradient_cost.objective_of("splice", 250, widths)
    assert len(objective.data) == 250
    assert len(objective.alike) == widths
    columns = np.concatenate([list(own) for own in objective.kernel.groups.values()])
    assert sorted(columns) == list(range(max(60, widths)))


def test_committed_figures_belong_together():
    """The CSV has all points, and ratios that follow from its times."""
    rows = rows_of("gradient_cost.csv")
    sizes = [(name, size) for name, all_rows in gradient_cost.ROWS.items() for size in all_rows]
    assert len(rows) == len(sizes) * len(gradient_cost.WIDTHS) * len(gradient_cost.PLACES)
    for row in rows:
        ratio = float(row["gradient_ms"]) / float(row["value_ms"])
        assert float(row["ratio"]) == pytest.approx(ratio, rel=5e-3)
    for size, cells in lines_of(gradient_cost.table()).items():
        own = [row for row in rows if row["rows"] == size]
        assert int(cells[1]) == len({row["dataset"] for row in own})
        for widths, cell in zip(gradient_cost.WIDTHS, cells[2:], strict=True):
            ratios = [float(row["ratio"]) for row in own if row["widths"] == str(widths)]
            assert cell == f"{median(ratios):.2f} ({max(ratios):.2f})"


def test_a_gradient_costs_about_one_more_evaluation():
    """With 1,000 rows or more it takes two evaluations at 100 widths, and never three."""
    rows = rows_of("gradient_cost.csv")
    large = [row for row in rows if row["widths"] == "100" and int(row["rows"]) >= 1000]
    assert median(float(row["ratio"]) for row in large) <= 2
    assert max(float(row["ratio"]) for row in rows) <= 3
