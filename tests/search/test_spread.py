"""The penalty on widths that differ."""

import math

import numpy as np
import pytest

from span_hpo import ARD, Float, SpanObjective
from span_hpo.search import Coordinates, Spread, spread_of
from tests.problems import two_moons


@pytest.mark.parametrize("seed", range(8))
def test_gradient_agrees_with_central_differences(seed):
    """The gradient of the penalty agrees with central differences, and its parts add up to 0."""
    rng = np.random.default_rng(seed)
    spread = Spread([0, 2, 3, 5], float(rng.uniform(0.01, 2)))
    point, step = rng.normal(scale=10.0 ** rng.uniform(-3, 1), size=6), 1e-6
    _, gradient = spread.at(point)
    expected = [
        (spread.at(point + step * unit)[0] - spread.at(point - step * unit)[0]) / (2 * step)
        for unit in np.eye(6)
    ]
    np.testing.assert_allclose(gradient, expected, atol=1e-8)
    assert gradient.sum() == pytest.approx(0, abs=1e-14)  # only differences count


def test_equal_widths_cost_nothing():
    """The penalty on equal widths is 0, and so is its gradient."""
    value, gradient = Spread([0, 1, 2], 1.0).at(np.full(3, -4.0))
    assert value == 0
    assert not gradient.any()


@pytest.mark.parametrize("spread", [Spread([], 1.0), Spread([0, 1], 0.0)])
def test_without_places_or_strength_there_is_none(spread):
    """Without widths to compare, or without strength, the penalty and its gradient are 0."""
    value, gradient = spread.at(np.array([1.0, 5.0]))
    assert (value, gradient.tolist()) == (0.0, [0.0, 0.0])


def test_a_width_ten_times_as_large_costs_what_the_pages_say():
    """Among many widths, one ten times as large costs 1.8 rows, and 1,000 times as large 3.9."""
    for factor, rows in ((10, 1.8), (1000, 3.9)):
        z = np.zeros(10_000)
        z[0] = math.log(factor)
        assert Spread(list(range(len(z))), 1.0).at(z)[0] == pytest.approx(rows, abs=0.05)


def test_it_is_divided_by_the_rows_of_an_evaluation():
    """The strength of the penalty is divided by the number of rows of an evaluation."""
    X, y = two_moons(40)
    objective = SpanObjective(X, y, kernel=ARD(), metric="smooth_error")
    coordinates = Coordinates.of(objective.space, objective.defaults()[0])
    spread = spread_of(objective, coordinates, 2.0)
    assert [coordinates.names[place] for place in spread.places] == ["gamma_0", "gamma_1"]
    assert spread.factor == pytest.approx(2 / 40)
    assert spread_of(objective, coordinates, 2.0, rows=10).factor == pytest.approx(2 / 10)


def test_one_width_for_all_features_has_no_penalty():
    """A kernel with one width for all features has nothing to penalise."""
    X, y = two_moons(40)
    objective = SpanObjective(X, y, metric="smooth_error")
    coordinates = Coordinates.of(objective.space, objective.defaults()[0])
    assert spread_of(objective, coordinates, 2.0).places == []


def test_widths_on_a_linear_scale_have_no_penalty():
    """Only on a logarithmic scale is a difference a factor."""
    X, y = two_moons(40)
    objective = SpanObjective(X, y, kernel=ARD(gamma=Float(0.1, 2.0)), metric="smooth_error")
    coordinates = Coordinates.of(objective.space, objective.defaults()[0])
    assert spread_of(objective, coordinates, 1.0).places == []


def test_an_objective_of_ones_own_has_no_penalty():
    """An objective that does not say which hyperparameters are alike has no penalty."""
    coordinates = Coordinates.of({"C": Float(1.0, 2.0, log=True)}, {"C": 1.0})
    assert spread_of(object(), coordinates, 1.0).at(np.array([0.3]))[0] == 0
