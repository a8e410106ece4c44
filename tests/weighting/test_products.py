import numpy as np
import pytest

from span_hpo import (
    ClassCosts,
    Float,
    ImbalanceCost,
    Int,
    PowerScore,
    SigmoidScore,
    SpanObjective,
    UniformCost,
)
from span_hpo.data import as_dataset
from span_hpo.weighting.products import bind_to, cost_gradient
from tests.weighting.rows import DATA, Q, X, assert_gradient_is_right, costs


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


def test_gradients_of_products_are_those_of_central_differences():
    """Each factor multiplies the derivatives of the other, in any order and number."""
    params = {"C_-1": 2.0, "C_1": 4e3, "A": 3.0, "B": 0.1}
    assert_gradient_is_right(ClassCosts() * SigmoidScore(C=1.0), params)
    params = {"A": 3.0, "B": 0.1, "C_-1": 2e-3, "C_1": 4.0}
    assert_gradient_is_right(SigmoidScore(C=1.0) * ClassCosts(), params)
    params = {"C": 2.0, "balance": 0.5, "tau": 1.5, "A": 3.0}
    product = ImbalanceCost() * PowerScore(C=1.0) * SigmoidScore(B=0.2, C=2.0)
    assert_gradient_is_right(product, params)
    assert_gradient_is_right(UniformCost(2.0) * PowerScore(C=1.0), {"tau": 2.0})


class DifferentiableRule(OwnRule):
    """The same rule with a derivative."""

    def gradient(self, data, params, weights):
        return {"per_group": float(weights[data.groups == "b"].sum()), "unknown": 1.0}


def test_gradients_of_users_own_weightings():
    """They count alone and in products; a rule without one is named, in a product too."""
    data = as_dataset(X, [0, 1, 0, 1], scores=Q, groups=["a", "a", "b", "b"])
    assert_gradient_is_right(DifferentiableRule(), {"per_group": 7.0}, data)
    params = {"per_group": 7.0, "tau": 2.0}
    assert_gradient_is_right(DifferentiableRule() * PowerScore(C=1.0), params, data)
    message = "`weighting` must have a derivative, which OwnRule has not: give it a method `gradi"
    for weighting in (OwnRule(), OwnRule() * PowerScore(C=1.0)):
        with pytest.raises(ValueError, match=message):
            cost_gradient(weighting, data, params, np.ones(4))


def test_weightings_without_real_numbers_need_no_derivative():
    """Whole numbers and options are not moved by gradients."""

    class Whole(OwnRule):
        space = {"per_group": Int(1, 10)}  # noqa: RUF012  what a user would write

    data = as_dataset(X, [0, 1, 0, 1], groups=["a", "a", "b", "b"])
    assert cost_gradient(Whole(), data, {"per_group": 3}, np.ones(4)) == {}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, r"must return a mapping with the names \['per_group'\], got {}"),
        (3.0, r"must return a mapping with the names \['per_group'\], got 3.0"),
        ({"per_group": np.nan}, "`derivative of the costs by per_group` must be a finite number"),
        ({"per_group": None}, "`derivative of the costs by per_group` must be a finite number"),
    ],
)
def test_derivatives_of_a_rule_that_are_wrong(wrong, message):
    """They must hold a finite number for each searched real number."""

    class Wrong(OwnRule):
        def gradient(self, data, params, weights):
            return wrong

    with pytest.raises(ValueError, match=message):
        cost_gradient(Wrong(), DATA, {"per_group": 3.0}, np.ones(4))
