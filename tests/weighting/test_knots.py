import itertools

import numpy as np
import pytest

from span_hpo import ClassCosts, KnotScore, SpanObjective, UniformCost, minimize
from span_hpo.data import as_dataset
from span_hpo.weighting.products import cost_gradient
from tests.problems import two_moons
from tests.weighting.rows import DATA, Q, X, assert_gradient_is_right, costs

PARAMS = {"C": 3.0, "share_0": 0.2, "share_1": 0.5, "share_2": 0.9}


def test_costs_lie_on_lines_between_the_knots():
    """At the knots the costs are products of shares, and between them they are interpolated."""
    q = np.linspace(0, 1, 31)
    data = as_dataset(np.zeros((31, 1)), np.arange(31) % 2, scores=q)
    heights = 3.0 * np.array([0.2 * 0.5 * 0.9, 0.5 * 0.9, 0.9, 1.0])
    expected = np.interp(q, [0, 1 / 3, 2 / 3, 1], heights)
    np.testing.assert_allclose(costs(KnotScore(), PARAMS, data), expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_higher_score_never_costs_less(seed):
    """Whatever the shares are, the costs increase with the score."""
    rng = np.random.default_rng(seed)
    q = np.sort(rng.random(50))
    data = as_dataset(np.zeros((50, 1)), np.arange(50) % 2, scores=q)
    weighting = KnotScore(knots=6)
    params = {name: part.low * 10 ** rng.random() for name, part in weighting.space.items()}
    found = costs(weighting, params, data)
    assert (np.diff(found) >= -1e-15).all()
    assert found.min() > 0


def test_shares_of_one_are_one_cost():
    """With all shares 1, every row costs C; with two knots and a share of 0, C times the score."""
    assert costs(KnotScore(share=1.0), {"C": 2.0}).tolist() == [2.0] * 4
    np.testing.assert_allclose(costs(KnotScore(knots=2, share=0.0), {"C": 2.0}), 2 * Q)


@pytest.mark.parametrize("knots", [2, 3, 5])
def test_gradients_are_those_of_central_differences(knots):
    """The derivatives by C and by every share, also where a share is 0 or 1."""
    weighting = KnotScore(knots=knots)
    params = {"C": 3.0, **{f"share_{j}": 0.4 + 0.1 * j for j in range(knots - 1)}}
    assert_gradient_is_right(weighting, params)
    weights = np.random.default_rng(0).normal(size=4)
    name = f"share_{knots - 2}"
    ends = [{**params, name: end} for end in (0.0, 1.0)]
    low, high = (weights @ costs(weighting, there) for there in ends)
    for there in ends:  # the costs are linear in each share
        assert cost_gradient(weighting, DATA, there, weights)[name] == pytest.approx(high - low)


def test_it_is_searched_like_any_other():
    """It multiplies with class costs, begins at equal costs, and is followed by gradients."""
    data, y = two_moons(60)
    q = np.random.default_rng(0).random(60)
    weighting = ClassCosts() * KnotScore(C=1.0, knots=3)
    objective = SpanObjective(data, y, scores=q, weighting=weighting, metric="smooth_error")
    assert list(objective.space) == ["gamma", "C_-1", "C_1", "share_0", "share_1"]
    first = objective.defaults()[0]
    uniform = SpanObjective(data, y, weighting=UniformCost(), metric="smooth_error")
    same = uniform({"gamma": first["gamma"], "C": 1.0})
    assert objective({**first, "C_-1": 1.0, "C_1": 1.0}) == pytest.approx(same)
    found = minimize(objective, max_evaluations=20)
    assert found.loss <= min(step.loss for step in found.path[:5])


@pytest.mark.parametrize(
    ("arguments", "params", "message"),
    [
        ({"knots": 1}, {}, "`knots` must be a whole number of at least 2, got 1"),
        ({}, {**PARAMS, "share_1": 1.5}, "`share_1` must be a finite number of at least 0 and at"),
        ({}, {**PARAMS, "C": -1.0}, "`C` must be a finite number of at least 0, got -1.0"),
        ({"score": "trust"}, PARAMS, "`scores` must hold a score called 'trust'"),
    ],
)
def test_wrong_arguments_are_named(arguments, params, message):
    """The message names the argument, its range and what was received."""
    with pytest.raises(ValueError, match="must") as caught:
        costs(KnotScore(**arguments), params)
    assert message in str(caught.value)


def test_scores_outside_the_unit_interval():
    """The row is named whose score has no place between the knots."""
    data = as_dataset(X, [0, 1, 0, 1], scores=[0.5, 1.5, 0.1, 0.0])
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\] .* got 1.5 in row 1"):
        costs(KnotScore(), PARAMS, data)


def test_starts_are_inside_the_ranges():
    """A search can begin at every first guess."""
    for knots, start in itertools.product((2, 4, 9), (0, 1)):
        weighting = KnotScore(knots=knots)
        guess = weighting.starts(None)[start]
        assert set(guess) == set(weighting.space)
        assert all(part.low <= guess[name] <= part.high for name, part in weighting.space.items())
