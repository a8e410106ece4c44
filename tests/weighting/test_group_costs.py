import numpy as np
import pytest

from span_hpo import ClassCosts, GroupCosts, PowerScore, SpanObjective, minimize
from span_hpo.data import as_dataset
from span_hpo.weighting.products import bind_to, sample_costs
from tests.problems import two_moons
from tests.weighting.rows import X, assert_gradient_is_right, costs

GROUPS = ["bob", "ann", "bob", "cy"]
DATA = as_dataset(X, [0, 1, 0, 1], groups=GROUPS)
PARAMS = {"C": 2.0, "shrinkage": 0.25, "ratio_ann": 4.0, "ratio_bob": 0.5, "ratio_cy": 1.0}


def test_costs_of_groups():
    """A group costs C times its ratio over the geometric mean of all, to the power that is left."""
    mean = (4.0 * 0.5 * 1.0) ** (1 / 3)
    expected = [2.0 * (ratio / mean) ** 0.75 for ratio in (0.5, 4.0, 0.5, 1.0)]
    np.testing.assert_allclose(costs(GroupCosts(), PARAMS, DATA), expected)


def test_the_mean_is_the_cost_whatever_the_shrinkage():
    """C is the geometric mean of the costs of the groups, and all of them for shrinkage 1."""
    for shrinkage in (0.0, 0.4, 1.0):
        found = costs(GroupCosts(), {**PARAMS, "shrinkage": shrinkage}, DATA)
        assert np.exp(np.log(found[[0, 1, 3]]).mean()) == pytest.approx(2.0)
    np.testing.assert_allclose(found, 2.0)


@pytest.mark.parametrize("shrinkage", [0.1, 0.9])
def test_gradients_are_those_of_central_differences(shrinkage):
    """The derivatives by C, the shrinkage and every ratio."""
    assert_gradient_is_right(GroupCosts(), {**PARAMS, "shrinkage": shrinkage}, DATA)
    partly = GroupCosts(C=1.0, ratio={"ann": 3.0, "bob": GroupCosts().ratio, "cy": 1.0})
    assert_gradient_is_right(partly, {"shrinkage": shrinkage, "ratio_bob": 0.7}, DATA)


def test_some_of_the_rows():
    """On part of the rows, in which a group is missing, each row keeps its cost."""
    weighting = bind_to(GroupCosts(), DATA)
    rows = np.array([1, 3])
    part = sample_costs(weighting, DATA.take(rows), PARAMS)
    assert part.tolist() == sample_costs(weighting, DATA, PARAMS)[rows].tolist()


def test_names_hold_the_groups():
    """Where a name cannot hold its group, the legend says what it stands for."""
    data = as_dataset(X, [0, 1, 0, 1], groups=["a b", "a_b", "c", "c"])
    bound = bind_to(GroupCosts(), data)
    assert list(bound.space) == ["C", "shrinkage", "ratio_0", "ratio_1", "ratio_2"]
    assert bound.legend(data)["ratio_0"] == "ratio of group 'a b'"
    numbers = bind_to(GroupCosts(), as_dataset(X, [0, 1, 0, 1], groups=[10, 9, 10, 9]))
    assert list(numbers.space) == ["C", "shrinkage", "ratio_9", "ratio_10"]
    assert bind_to(numbers, as_dataset(X, [0, 1, 0, 1], groups=[9, 10, 9, 9])) == numbers


def test_a_source_of_wrong_labels_gets_a_low_cost():
    """Of three annotators, one of whom guesses, a search gives the least cost to that one."""
    rng = np.random.default_rng(0)
    rows, y = two_moons(150)
    groups = np.array(["good", "guesses", "fine"])[rng.integers(3, size=150)]
    y = np.where(groups == "guesses", rng.choice([-1, 1], size=150), y)
    weight = (groups != "guesses").astype(float)  # rows whose labels can be trusted judge
    objective = SpanObjective(
        rows,
        y,
        groups=groups,
        weighting=ClassCosts() * GroupCosts(C=1.0),
        metric="smooth_error",
        metric_weight=weight,
    )
    params = minimize(objective, max_evaluations=80).params
    least = min(("fine", "good", "guesses"), key=lambda group: params[f"ratio_{group}"])
    assert least == "guesses"


@pytest.mark.parametrize(
    ("weighting", "groups", "message"),
    [
        (GroupCosts(), None, "`groups` must hold one group for each row, got none"),
        (GroupCosts(ratio={"ann": 1.0}), GROUPS, "`ratio` must name exactly the groups ['ann', '"),
        (GroupCosts(ratio=-1.0), GROUPS, "`ratio_ann` must be a finite number above 0, got -1"),
    ],
)
def test_wrong_arguments_are_named(weighting, groups, message):
    """The message names the argument, and says what was received."""
    data = as_dataset(X, [0, 1, 0, 1], groups=groups)
    with pytest.raises(ValueError, match="must") as caught:
        costs(weighting, {"C": 1.0, "shrinkage": 0.0}, data)
    assert message in str(caught.value)


def test_searches_by_gradients_do_not_raise_ratios():
    """Ratios begin at 1 and are no costs, so that a walk over scales leaves them alone."""
    rows, y = two_moons(40)
    groups = np.arange(40) % 3
    weights = np.full(40, 1 / 40)
    objective = SpanObjective(
        rows, y, groups=groups, scores=weights, weighting=PowerScore(C=1.0, tau=1.0) * GroupCosts()
    )
    assert objective.scales[0] == ("C",)
    assert {value for name, value in objective.centres()[0].items() if "ratio" in name} == {1.0}


def test_groups_of_several_types():
    """Their order does not depend on that of the rows, and lists are refused by name."""
    first = as_dataset(X, [0, 1, 0, 1], groups=np.array([1, "a", 3, 2], dtype=object))
    other = as_dataset(X, [0, 1, 0, 1], groups=np.array(["a", 2, 1, 3], dtype=object))
    assert first.grouped[0] == other.grouped[0] == (1, 2, 3, "a")
    assert bind_to(bind_to(GroupCosts(), first), other) == bind_to(GroupCosts(), first)
    lists = np.empty(4, dtype=object)
    lists[:] = [[1], [2], [1], [2]]
    with pytest.raises(ValueError, match="`groups` must hold names or numbers"):
        _ = as_dataset(X, [0, 1, 0, 1], groups=lists).grouped


def test_other_groups_and_lists_are_refused():
    """A weighting keeps to the groups that it was bound to, and ratios to their names."""
    bound = bind_to(GroupCosts(), DATA)
    other = as_dataset(X, [0, 1, 0, 1], groups=["bob", "dan", "bob", "cy"])
    with pytest.raises(ValueError, match="`groups` must be those of the weighting"):
        bind_to(bound, other)
    with pytest.raises(ValueError, match="got 'dan'"):
        sample_costs(bound, other, PARAMS)
    with pytest.raises(TypeError, match="`ratio` must be one number or dimension, or a mapping"):
        bind_to(GroupCosts(ratio=[1.0, 2.0, 3.0]), DATA)
    with pytest.raises(ValueError, match="must know the groups before it has parameters"):
        _ = GroupCosts().space
