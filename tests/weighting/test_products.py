import numpy as np
import pytest

from span_hpo import ClassCosts, Float, PowerScore, SigmoidScore, SpanObjective, UniformCost
from span_hpo.data import as_dataset
from span_hpo.weighting.products import bind_to, sample_costs

X = np.arange(8.0).reshape(4, 2)
Q = np.array([0.0, 0.25, 0.5, 1.0])
DATA = as_dataset(X, [-1, 1, -1, 1], scores=Q)


def costs(weighting, params=None, data=DATA):
    return sample_costs(bind_to(weighting, data), data, params or {})


def test_uniform_cost():
    """Every row costs C, searched or fixed."""
    assert costs(UniformCost(), {"C": 3.0}).tolist() == [3.0] * 4
    assert costs(UniformCost(C=2)).tolist() == [2.0] * 4
    assert UniformCost().space == {"C": Float(2**-6, 2**10, log=True)}


def test_class_costs_by_label():
    """Each class has its own cost; the second label in sorted order is the positive class."""
    found = costs(ClassCosts(), {"C_-1": 2.0, "C_1": 5.0})
    assert found.tolist() == [2.0, 5.0, 2.0, 5.0]
    for fixed in ({-1: 2.0, 1: 5.0}, [2.0, 5.0], (2.0, 5.0), np.array([2.0, 5.0])):
        assert costs(ClassCosts(fixed)).tolist() == found.tolist()
    half = bind_to(ClassCosts({-1: 2.0, 1: Float(1, 9)}), DATA)
    assert half.space == {"C_1": Float(1, 9)}
    assert half.costs(DATA, {"C_1": 5.0}).tolist() == found.tolist()


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([-1, 1], ["C_-1", "C_1"]),
        ([-1.0, 1.0], ["C_-1", "C_1"]),
        ([0.5, 1.0], ["C_0.5", "C_1"]),
        ([False, True], ["C_False", "C_True"]),
        (["bad", "good"], ["C_bad", "C_good"]),
        (["> 50k", "<= 50k"], ["C____50k", "C___50k"]),
        (["a b", "a/b"], ["C_0", "C_1"]),
    ],
)
def test_names_of_class_costs(labels, names):
    """Parameters are named after the labels; names that would collide are numbered."""
    data = as_dataset(X, labels * 2)
    assert list(bind_to(ClassCosts(), data).space) == names


def test_names_of_class_costs_can_be_chosen():
    """`names` replaces the names made from the labels."""
    weighting = bind_to(ClassCosts(names=["low", "high"]), DATA)
    assert weighting.costs(DATA, {"low": 1.0, "high": 3.0}).tolist() == [1, 3, 1, 3]


def test_sigmoid_of_a_score():
    """C_i = max(C / (1 + exp(-A (q - B))), floor), eq. 39 of the span paper."""
    found = costs(SigmoidScore(), {"A": 4.0, "B": 0.5, "C": 2.0})
    np.testing.assert_allclose(found, 2 / (1 + np.exp(-4 * (Q - 0.5))))
    low = costs(SigmoidScore(), {"A": 10.0, "B": 0.9, "C": 0.02})
    assert low.min() == 0.01
    assert costs(SigmoidScore(A=1, B=0, C=1, floor=0.6)).min() == 0.6


def test_steep_sigmoids_do_not_overflow():
    """Any finite steepness gives finite costs and no warning."""
    found = costs(SigmoidScore(A=1e8, B=0.5, C=3.0))
    np.testing.assert_allclose(found, [0.01, 0.01, 1.5, 3.0])


def test_power_of_a_score():
    """C_i = C q^tau; with tau = 0 all rows cost C, also where q = 0."""
    np.testing.assert_allclose(costs(PowerScore(), {"C": 3.0, "tau": 2.0}), 3 * Q**2)
    assert costs(PowerScore(tau=0.0), {"C": 3.0}).tolist() == [3.0] * 4


def test_scores_by_name():
    """With several scores the weighting names its own."""
    data = as_dataset(X, [0, 1, 0, 1], scores={"q": Q, "age": 1 - Q})
    np.testing.assert_allclose(costs(PowerScore("age", C=1, tau=1), data=data), 1 - Q)
    with pytest.raises(ValueError, match="`score` must be one of"):
        costs(PowerScore(C=1, tau=1), data=data)


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


@pytest.mark.parametrize(
    ("weighting", "params", "message"),
    [
        (UniformCost(), {"C": -1.0}, "`C` must be a finite number of at least 0, got -1.0"),
        (UniformCost(C="1"), {}, "`C` must be a finite number of at least 0, got '1'"),
        (UniformCost(), {"C": np.inf}, "`C` must be a finite number of at least 0, got inf"),
        (ClassCosts(), {"C_-1": np.nan, "C_1": 1}, "`C_-1` must be a finite number"),
        (SigmoidScore(), {"A": None, "B": 0, "C": 1}, "`A` must be a finite number, got None"),
        (SigmoidScore(floor=-1), {"A": 1, "B": 0, "C": 1}, "`floor` must be a finite number of"),
        (PowerScore(), {"C": 1, "tau": -1}, "`tau` must be a finite number of at least 0, got -1"),
    ],
)
def test_wrong_parameters_are_named(weighting, params, message):
    """A parameter that makes no cost is an error."""
    with pytest.raises(ValueError, match="must be") as caught:
        costs(weighting, params)
    assert message in str(caught.value)


def test_score_outside_the_unit_interval():
    """Sigmoid and power need scores in [0, 1] and say which row is not."""
    data = as_dataset(X, [0, 1, 0, 1], scores=[0.5, 1.5, 0.1, -2.0])
    for weighting in (SigmoidScore(A=1, B=0, C=1), PowerScore(C=1, tau=1)):
        with pytest.raises(ValueError, match=r"`scores` must lie in \[0, 1\] .* got 1.5 in row 1"):
            costs(weighting, data=data)


def test_wrong_class_costs_are_named():
    """Labels, number of costs and number of names must fit the data."""
    with pytest.raises(ValueError, match=r"`per_class` must name exactly the labels \[-1, 1\]"):
        costs(ClassCosts({0: 1.0, 1: 2.0}))
    with pytest.raises(ValueError, match="`per_class` must have one entry for each of the labels"):
        costs(ClassCosts([1.0]))
    with pytest.raises(ValueError, match="`names` must have one entry for each of the labels"):
        costs(ClassCosts(names=["C"]))
    with pytest.raises(ValueError, match="`names` must differ from each other"):
        costs(ClassCosts(names=["C", "C"]))
    with pytest.raises(ValueError, match="`ClassCosts` must know the labels"):
        assert ClassCosts().space


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
