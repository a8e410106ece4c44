"""The committed cost of a call at random costs."""

from benchmarks.cost import evaluation
from span_hpo.weighting import COST_RANGE
from tests.benchmarks.results import lines_of, rows_of


def test_random_costs_are_in_the_range_of_a_search():
    """Both costs spread over the range that is searched by default, and are the same each time."""
    pairs = evaluation.random_costs()
    assert pairs == evaluation.random_costs()
    assert len(pairs) == evaluation.PAIRS
    costs = [cost for pair in pairs for cost in pair]
    assert COST_RANGE.low <= min(costs) < 0.1
    assert 100 < max(costs) <= COST_RANGE.high


def test_committed_figures_belong_together():
    """The CSV has all pairs of costs, and ratios that follow from its times."""
    for name, cells in lines_of(evaluation.table()).items():
        rows = rows_of("evaluation.csv", dataset=name)
        pairs = [(float(row["C_pos"]), float(row["C_neg"])) for row in rows]
        assert pairs == evaluation.random_costs()
        assert {row["rows"] for row in rows} == {cells[1]}
        for row in rows:
            ratio = float(row["call_ms"]) / float(row["svc_fit_ms"])
            assert abs(ratio - float(row["call_per_fit"])) <= 1e-3 * ratio + 1e-4
            assert float(row["certificate_share"]) < 1
