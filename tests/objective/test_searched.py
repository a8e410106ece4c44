import numpy as np
import pytest

from span_hpo import ARD, RBF, ImbalanceCost, SpanObjective, UniformCost
from span_hpo.kernels import median_squared_distance
from tests.problems import two_moons

X, y = two_moons(40)


def test_grids_cover_the_ranges():
    """So many values for all names, or a number for each, from the least to the largest."""
    objective = SpanObjective(X, y, kernel="linear")
    assert objective.grid(3) == {"C_-1": [2.0**-6, 4.0, 2.0**10], "C_1": [2.0**-6, 4.0, 2.0**10]}
    assert objective.grid({"C_-1": 2, "C_1": 1})["C_-1"] == [2.0**-6, 2.0**10]


def test_defaults_combine_the_guesses_of_kernel_and_weighting():
    """Two widths with equal and with balanced costs, each point once, for each name in `space`."""
    objective = SpanObjective(X, y, weighting=ImbalanceCost())
    typical = median_squared_distance(X)
    expected = {(gamma, 1.0, balance) for gamma in (0.5, 1 / typical) for balance in (0.0, 1.0)}
    found = objective.defaults()
    assert {(one["gamma"], one["C"], one["balance"]) for one in found} == expected
    assert len(found) == 4
    assert all(set(one) == set(objective.space) for one in found)


def test_widths_of_features_are_alike():
    """Searches may hold them together; one width, or none, has nothing to be compared with."""
    assert SpanObjective(X, y, kernel="ard").alike == ("gamma_0", "gamma_1")
    assert SpanObjective(X, y, kernel=ARD(gamma=1.0)).alike == ()
    assert SpanObjective(X, y).alike == ()


@pytest.mark.parametrize("rows", [None, 20])
def test_share_of_a_row(rows):
    """A row that turns from surely right to surely wrong adds this much to the smooth error."""
    objective = SpanObjective(X, y, metric="smooth_error")
    count = rows or 40
    values = 100.0 * np.ones(count)
    wrong = values.copy()
    wrong[3] = -100.0
    metric = objective.metrics[0]
    losses = [metric.loss(np.ones(count), one, np.ones(count)) for one in (wrong, values)]
    assert objective.share_of_row(rows) == pytest.approx(losses[0] - losses[1])


def test_budgets_are_numbers_of_rows():
    """Shares become numbers, and numbers stay; a budget without a class is an error."""
    objective = SpanObjective(X, y)
    assert objective.budget_rows([0.25, 0.5, 1.0]) == (10, 20, 40)
    assert objective.budget_rows([10, 40]) == (10, 40)
    with pytest.raises(ValueError, match="budgets"):
        objective.budget_rows([0.5, 0.25])


def test_memory_of_threads():
    """A fixed width takes one matrix, a searched one the distances and a matrix per thread."""
    one = 8e-6 * 40**2
    fixed = SpanObjective(X, y, kernel=RBF(gamma=1.0), weighting=UniformCost())
    assert fixed.memory(3).matrices == pytest.approx(one)
    searched = SpanObjective(X, y, weighting=UniformCost())
    assert searched.memory().matrices == pytest.approx(2 * one)
    assert searched.memory(3).matrices == pytest.approx(4 * one)
