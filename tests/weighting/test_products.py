import numpy as np
import pytest

from span_hpo import ClassCosts, Float, PowerScore, SigmoidScore, SpanObjective, UniformCost
from span_hpo.data import as_dataset
from span_hpo.weighting.products import bind_to
from tests.weighting.rows import DATA, Q, X, costs


def test_weightings_multiply():
    """A product multiplies row by row and searches what both search."""
    assert list(bind_to(SigmoidScore(C=1.0) * ClassCosts(), DATA).space) == [
        "A",
        "B",
        "C_-1",
        "C_1",
    ]
    product = bind_to(ClassCosts() * SigmoidScore(C=1.0), DATA)
    assert list(product.space) == ["C_-1", "C_1", "A", "B"]
    params = {"C_-1": 2.0, "C_1": 4.0, "A": 3.0, "B": 0.1}
    expected = [2, 4, 2, 4] / (1 + np.exp(-3 * (Q - 0.1)))
    np.testing.assert_allclose(product.costs(DATA, params), expected)
    triple = bind_to(ClassCosts([1, 2]) * PowerScore(C=1, tau=1) * UniformCost(3), DATA)
    np.testing.assert_allclose(triple.costs(DATA, {}), 3 * Q * [1, 2, 1, 2])


def test_name_searched_by_both_factors():
    """A product in which both factors search C says so."""
    with pytest.raises(ValueError, match="`C` must be searched once, got it from the first factor"):
        assert (UniformCost() * SigmoidScore()).space


class OwnRule:
    """A user's rule: rows of a group share a cost."""

    space = {"per_group": Float(1, 10)}  # noqa: RUF012  what a user would write

    def costs(self, data, params):
        return np.where(data.groups == "a", 1.0, params["per_group"])


def test_users_own_weighting():
    """Anything with `space` and `costs` is a weighting, alone or in a product."""
    data = as_dataset(X, [0, 1, 0, 1], groups=["a", "a", "b", "b"])
    assert costs(OwnRule(), {"per_group": 7.0}, data).tolist() == [1, 1, 7, 7]
    product = bind_to(UniformCost(2.0) * OwnRule(), data)
    assert product.costs(data, {"per_group": 7.0}).tolist() == [2, 2, 14, 14]
    other_way = bind_to(OwnRule() * UniformCost(2.0), data)
    assert other_way.costs(data, {"per_group": 7.0}).tolist() == [2, 2, 14, 14]


def test_rule_that_gives_wrong_costs():
    """Costs of a user's rule are checked: one per row, finite, not negative."""

    class Wrong(OwnRule):
        space = {}  # noqa: RUF012  what a user would write

        def __init__(self, values):
            self.values = values

        def costs(self, data, params):
            return self.values

    for values, message in (
        ([1.0], "`costs` must hold one value for each of the 4 rows"),
        ([1, np.nan, 1, 1], "`costs` must be finite, got nan in row 1"),
        ([1, -1, 1, 1], "`costs` must not be negative, got -1.0 in row 1"),
    ):
        with pytest.raises(ValueError, match="`costs` must") as caught:
            SpanObjective(X, [0, 1, 0, 1], kernel="linear", weighting=Wrong(values))({})
        assert message in str(caught.value)
