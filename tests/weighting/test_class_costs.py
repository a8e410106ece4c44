import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

from span_hpo import (
    ClassCosts,
    Float,
    ImbalanceCost,
    SigmoidScore,
    SpanObjective,
    SpanSVC,
    UniformCost,
)
from span_hpo.data import as_dataset
from span_hpo.weighting.products import bind_to, cost_gradient
from tests.weighting.rows import DATA, X, assert_gradient_is_right, costs


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
        (["No", "Sí \u2013 naïve"], ["C_No", "C_Sí \u2013 naïve"]),
        (["да", "нет"], ["C_да", "C_нет"]),
        (["猫\n", "猫\t"], ["C_0", "C_1"]),
        (["é\n", "ü"], ["C_é_", "C_ü"]),
    ],
)
def test_names_of_class_costs(labels, names):
    """Parameters are named after the labels; names that would collide are numbered."""
    data = as_dataset(X, labels * 2)
    assert list(bind_to(ClassCosts(), data).space) == names


@pytest.mark.parametrize(
    ("labels", "legend"),
    [
        ([-1.0, 1.0], {}),
        (["No", "Sí \u2013 naïve"], {}),
        (["> 50k", "no"], {"C___50k": "cost of class '> 50k'"}),
        (["a b", "a/b"], {"C_0": "cost of class 'a b'", "C_1": "cost of class 'a/b'"}),
    ],
)
@pytest.mark.filterwarnings("ignore::span_hpo.ScalingWarning")  # few rows
def test_names_without_their_labels_have_a_legend(labels, legend):
    """Products and objectives say which label a name stands for that does not hold it."""
    scores = np.linspace(0, 1, 4)
    for weighting in (ClassCosts(), ClassCosts() * SigmoidScore(C=1.0)):
        objective = SpanObjective(X, labels * 2, scores=scores, weighting=weighting)
        assert objective.legend == legend
    model = SpanSVC(weighting="class", n_trials=1).fit(X, labels * 2, sample_weight=[1, 2, 3, 4])
    assert model.objective_.legend == legend


def test_imbalance_costs_by_hand():
    """Of six rows in classes of 1, 2 and 3, a row costs C (2, 1 or 2/3) to the power of balance."""
    data = as_dataset(np.arange(6.0)[:, None], ["c", "a", "b", "c", "b", "c"])
    shares = np.array([2 / 3, 2.0, 1.0, 2 / 3, 1.0, 2 / 3])
    for balance in (0.0, 0.5, 1.0, 1.5):
        costs = ImbalanceCost(3.0, balance).costs(data, {})
        np.testing.assert_allclose(costs, 3 * shares**balance)
    balanced = ImbalanceCost(1.0, 1.0).costs(data, {})
    totals = [balanced[data.codes == code].sum() for code in range(3)]
    np.testing.assert_allclose(totals, totals[0])


@pytest.mark.parametrize("balance", [0.0, 0.5, 1.0, 1.5])
def test_imbalance_costs_are_class_weights(balance):
    """The fit is that of class costs with the same values, and "balanced" of scikit-learn at 1."""
    generator = np.random.default_rng(1)
    labels = np.array(["a"] * 30 + ["b"] * 8 + ["c"] * 4)
    rows = generator.normal(size=(42, 2)) + 1.5 * (labels[:, None] == ["a", "b"])
    weights = compute_class_weight("balanced", classes=np.unique(labels), y=labels) ** balance
    by_class = SpanObjective(rows, labels, weighting=ClassCosts((4 * weights).tolist()))
    ours = SpanObjective(rows, labels, weighting="imbalance")
    assert set(ours.space) == {"gamma", "C", "balance"}
    found = ours.evaluate({"gamma": 0.5, "C": 4.0, "balance": balance}).loo.decision_values
    expected = by_class.evaluate({"gamma": 0.5}).loo.decision_values
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_search_of_imbalance_starts_with_equal_and_with_balanced_costs():
    """The defaults have the exponents 0 and 1 with every width, and no exponent that is fixed."""
    labels = [0, 1, 1, 1]
    defaults = SpanObjective(X, labels, weighting=ImbalanceCost()).defaults()
    assert {one["balance"] for one in defaults} == {0.0, 1.0}
    assert {one["C"] for one in defaults} == {1.0}
    fixed = SpanObjective(X, labels, weighting=ImbalanceCost(balance=0.5)).defaults()
    assert all(set(one) == {"C", "gamma"} for one in fixed)
    product = SpanObjective(
        X, labels, scores=np.linspace(0.1, 1, 4), weighting=ImbalanceCost() * SigmoidScore(C=1.0)
    )
    assert {one["balance"] for one in product.defaults()} == {0.0, 1.0}


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
        (ImbalanceCost(), {"C": 1.0, "balance": "1"}, "`balance` must be a finite number"),
        (ImbalanceCost(), {"C": -1.0, "balance": 1.0}, "`C` must be a finite number of at least 0"),
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


UNBALANCED = as_dataset(np.arange(9.0)[:, None], list("abbcccccc"))


@pytest.mark.parametrize("scale", [1e-5, 1.0, 1e5])
def test_gradients_are_those_of_central_differences(scale):
    """One cost, one for each of two or three classes, or an exponent for their sizes."""
    assert_gradient_is_right(UniformCost(), {"C": 3.0 * scale})
    assert_gradient_is_right(ClassCosts(), {"C_-1": 2.0 * scale, "C_1": 5.0 * scale})
    of_three = {"C_a": 2.0 * scale, "C_b": 5.0 * scale, "C_c": 0.1 * scale}
    assert_gradient_is_right(ClassCosts(), of_three, UNBALANCED)
    for balance in (0.0, 0.7, 1.5):
        params = {"C": 3.0 * scale, "balance": balance}
        assert_gradient_is_right(ImbalanceCost(), params, UNBALANCED)


def test_gradients_hold_only_what_is_searched():
    """Fixed costs have no derivative, and a cost of 0 still has one."""
    weights = np.array([1.0, 2.0, 3.0, 4.0])
    assert cost_gradient(UniformCost(2.0), DATA, {}, weights) == {}
    half = bind_to(ClassCosts({-1: 2.0, 1: Float(0, 9)}), DATA)
    assert cost_gradient(half, DATA, {"C_1": 0.0}, weights) == {"C_1": 6.0}
    of_exponent = ImbalanceCost(C=3.0)
    assert list(cost_gradient(of_exponent, DATA, {"balance": 0.5}, weights)) == ["balance"]
    assert_gradient_is_right(of_exponent, {"balance": 0.5}, UNBALANCED)
    assert_gradient_is_right(ImbalanceCost(balance=0.5), {"C": 2.0}, UNBALANCED)
