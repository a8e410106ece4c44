import numpy as np
import pytest

from span_hpo import ClassCosts, LooSVC, SigmoidScore, SpanObjective, SpanSVC
from span_hpo.estimators.row_weights import WEIGHT, checked_weights, row_weighted
from tests.problems import two_moons


def test_weights_multiply_costs_and_change_nothing_else():
    """The space, the starts and the legend are those of the weighting, which sees its own score."""
    X, y = two_moons(20)
    labels = np.where(y > 0, "a b", "a/b")
    scores, weight = np.linspace(0, 1, 20), np.linspace(0.5, 2, 20)
    inner = ClassCosts() * SigmoidScore(C=1.0)  # needs that there is one score only
    plain = SpanObjective(X, labels, scores={"trust": scores}, weighting=inner)
    weighted = SpanObjective(
        X, labels, scores={"trust": scores, WEIGHT: weight}, weighting=row_weighted(inner)
    )
    assert weighted.space == plain.space
    assert weighted.defaults() == plain.defaults()
    assert weighted.legend == plain.legend != {}
    params = plain.defaults()[1]
    np.testing.assert_allclose(
        weighted.weighting.costs(weighted.data, params),
        plain.weighting.costs(plain.data, params) * weight,
    )


def test_derivatives_are_those_of_the_weighted_costs():
    """Central differences of a sum of weighted costs agree with the derivatives."""
    X, y = two_moons(20)
    rng = np.random.default_rng(0)
    weight, factors = rng.uniform(0.1, 5, 20), rng.normal(size=20)
    inner = ClassCosts() * SigmoidScore(C=1.0)
    scores = {"trust": np.linspace(0, 1, 20), WEIGHT: weight}
    objective = SpanObjective(X, y, scores=scores, weighting=row_weighted(inner))
    weighting, data = objective.weighting, objective.data
    params = {"C_-1": 2.0, "C_1": 0.5, "A": 4.0, "B": 0.4}
    found = weighting.gradient(data, params, factors)
    assert set(found) == set(params)
    for name, value in params.items():
        step = 1e-6 * value
        ends = [
            factors @ weighting.costs(data, {**params, name: value + sign * step})
            for sign in (1, -1)
        ]
        assert found[name] == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-7)


def test_weights_are_checked():
    """Weights are numbers of at least 0, one for each row."""
    assert checked_weights([1, 0, 2], np.zeros(3)).tolist() == [1.0, 0.0, 2.0]
    for wrong in ([1, -1, 2], [1, 2], [1, np.nan, 2]):
        with pytest.raises(ValueError, match=r"[Nn]egative|shape|NaN"):
            checked_weights(wrong, np.zeros(3))


def test_classes_that_weights_leave_empty_are_named():
    """A fit needs two classes with weight, and a search all of them; the message says which."""
    X, y = two_moons(30)
    labels = np.array(["no", "yes", "so"])[np.arange(30) % 3]
    message = "`sample_weight` must be positive in some row of each class, got only zeros for class"
    for model in (SpanSVC(n_trials=2), LooSVC()):
        with pytest.raises(ValueError, match=f"{message} -1"):
            model.fit(X, y, sample_weight=(y > 0).astype(float))
    without = (labels != "so").astype(float)
    np.testing.assert_array_equal(checked_weights(without, labels), without)
    with pytest.raises(ValueError, match=f"{message} 'so'"):
        checked_weights(without, labels, in_each_class=True)
