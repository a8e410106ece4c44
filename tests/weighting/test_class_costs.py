import numpy as np
import pytest

from span_hpo import ClassCosts, Float, UniformCost
from span_hpo.data import as_dataset
from span_hpo.weighting.products import bind_to
from tests.weighting.rows import DATA, X, costs


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


@pytest.mark.parametrize(
    ("weighting", "params", "message"),
    [
        (UniformCost(), {"C": -1.0}, "`C` must be a finite number of at least 0, got -1.0"),
        (UniformCost(C="1"), {}, "`C` must be a finite number of at least 0, got '1'"),
        (UniformCost(), {"C": np.inf}, "`C` must be a finite number of at least 0, got inf"),
        (ClassCosts(), {"C_-1": np.nan, "C_1": 1}, "`C_-1` must be a finite number"),
    ],
)
def test_wrong_parameters_are_named(weighting, params, message):
    """A parameter that makes no cost is an error."""
    with pytest.raises(ValueError, match="must be") as caught:
        costs(weighting, params)
    assert message in str(caught.value)


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
