import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from span_hpo import Choice, Float, Int
from span_hpo.space import (
    checked_params,
    grid,
    merged_space,
    names_of,
    points_per_name,
    searched,
    value_of,
    written,
)


def test_cost_grid_of_the_paper():
    """33 points give C = 2^(k/2 - 6) and 17 points give C = 2^(k - 6), bit for bit."""
    cost = Float(2**-6, 2**10, log=True)
    assert cost.grid(33) == [2.0 ** (k / 2 - 6) for k in range(33)]
    assert cost.grid(17) == [2.0 ** (k - 6) for k in range(17)]


def test_sigmoid_grids_of_the_paper():
    """10 points give A = 1...10 and B = 0, 0.1 ... 0.9, as they are written."""
    assert Float(1, 10).grid(10) == [float(k) for k in range(1, 11)]
    assert Float(0, 0.9).grid(10) == [round(k / 10, 1) for k in range(10)]


@given(st.floats(1e-6, 1e6), st.floats(1.001, 1e6), st.integers(2, 50), st.booleans())
def test_grid_covers_its_range(low, ratio, points, log):
    """A grid rises strictly, keeps both ends and has the asked number of points."""
    values = Float(low, low * ratio, log=log).grid(points)
    assert len(values) == points
    assert (values[0], values[-1]) == (low, low * ratio)
    assert (np.diff(values) > 0).all()


def test_log_grid_keeps_the_ends_exactly():
    """Rounding of the logarithm does not move the ends of a range."""
    values = Float(0.1, 0.7, log=True).grid(4)
    assert (values[0], values[-1]) == (0.1, 0.7)
    np.testing.assert_allclose(np.diff(np.log(values)), np.log(7) / 3)


def test_one_point_is_the_middle():
    """A grid of one point takes the middle, geometric for a logarithmic range."""
    assert Float(0, 1).grid(1) == [0.5]
    assert Float(0.25, 4, log=True).grid(1) == [1.0]
    assert Float(3, 3).grid(5) == [3.0]


def test_step_grid_stays_on_steps():
    """With a step only its multiples appear, each once."""
    assert Float(0, 1, step=0.25).grid(3) == [0.0, 0.5, 1.0]
    assert Float(0, 1, step=0.4).grid(10) == [0.0, 0.4, 0.8]


def test_int_grid_has_whole_numbers_once():
    """More points than numbers give every number."""
    assert Int(2, 5).grid(10) == [2, 3, 4, 5]
    assert Int(1, 100, log=True).grid(3) == [1, 10, 100]
    assert all(isinstance(value, int) for value in Int(1, 9).grid(3))


def test_choice_gives_every_option():
    """The options are the grid, however many points are asked for."""
    assert Choice(["a", "b"]).grid(1) == ["a", "b"]


@pytest.mark.parametrize(
    "dimension",
    [
        Float(-1, 3),
        Float(1e-3, 1e3, log=True),
        Float(0, 1, step=0.1),
        Float(0, 0.3, step=0.1),
        Int(2, 7),
        Int(1, 1000, log=True),
        Choice([1, "x", None]),
    ],
)
def test_samples_lie_in_the_range(dimension):
    """Seeded samples repeat, stay in the range, and are not all the same."""
    draws = [dimension.sample(np.random.default_rng(seed)) for seed in range(50)]
    assert draws == [dimension.sample(np.random.default_rng(seed)) for seed in range(50)]
    assert len(set(draws)) > 1
    if isinstance(dimension, Choice):
        assert set(draws) <= set(dimension.options)
    else:
        assert all(dimension.low <= draw <= dimension.high for draw in draws)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Float(2, 1), "`low` must be at most `high`, got 2.0 and 1.0"),
        (lambda: Float(0, 1, log=True), "`low` must be positive when `log` is True, got 0.0"),
        (lambda: Float(math.nan, 1), "`low` must be a finite number, got nan"),
        (lambda: Float(0, math.inf), "`high` must be a finite number, got inf"),
        (lambda: Float("0", 1), "`low` must be a finite number, got '0'"),
        (lambda: Float(1, 2, log=True, step=0.1), "`step` must be None when `log` is True"),
        (lambda: Float(1, 2, step=0), "`step` must be a finite number above 1.11022e-16, got 0"),
        (lambda: Int(1.5, 2), "`low` must be a whole number"),
        (lambda: Int(True, 2), "`low` must be a whole number"),
        (lambda: Choice([]), "`options` must hold at least one value"),
    ],
)
def test_wrong_ranges_are_named(build, message):
    """A wrong dimension says which argument is wrong and what it was."""
    with pytest.raises(ValueError, match="must") as caught:
        build()
    assert message in str(caught.value)


def test_choice_of_a_string_is_a_mistake():
    """A string is not taken for a list of letters."""
    with pytest.raises(TypeError, match="`options` must be a list or tuple"):
        Choice("abc")


def test_searched_and_fixed_hyperparameters():
    """Only dimensions are searched; numbers keep their value."""
    assert searched({"a": 1.0, "b": Float(0, 1), "c": Choice([1, 2])}).keys() == {"b", "c"}
    assert value_of(2.5, "a", {}) == 2.5
    assert value_of(Float(0, 1), "b", {"b": 7.0}) == 7.0


def test_name_searched_twice_says_by_whom():
    """Two owners of one name are both in the message."""
    with pytest.raises(ValueError, match="`C` must be searched once, got it from x and from y"):
        merged_space({"x": {"C": Float(0, 1)}, "y": {"C": Float(0, 1)}})


def test_params_must_name_exactly_the_space():
    """Missing and unknown names are listed; values outside the range are allowed."""
    space = {"a": Float(0, 1), "b": Float(0, 1)}
    assert checked_params(space, {"b": 5.0, "a": -3.0}) == {"a": -3.0, "b": 5.0}
    with pytest.raises(ValueError, match=r": missing \['b'\], unknown \['c'\]"):
        checked_params(space, {"a": 0.5, "c": 1.0})
    with pytest.raises(TypeError, match="`params` must be a mapping of names to values, got list"):
        checked_params(space, [1, 2])


def test_grid_points_per_name():
    """Points are one number for all or a mapping that names every range."""
    space = {"a": Float(0, 1), "k": Choice(["x", "y"])}
    assert grid(space, 2) == {"a": [0.0, 1.0], "k": ["x", "y"]}
    assert grid(space, {"a": 3}) == {"a": [0.0, 0.5, 1.0], "k": ["x", "y"]}
    with pytest.raises(ValueError, match=r"missing \['a'\], unknown \['b'\]"):
        grid(space, {"b": 3})
    with pytest.raises(ValueError, match=r"`points\['a'\]` must be a whole number of at least 1"):
        grid(space, 0)


@pytest.mark.parametrize(
    ("names", "at_most", "points"), [(3, 64, 4), (3, 63, 3), (2, 1, 1), (0, 9, 9)]
)
def test_points_of_a_grid(names, at_most, points):
    """A grid has as many values for each name as its largest number of points allows."""
    space = {str(name): Float(0, 1) for name in range(names)}
    assert points_per_name(space, at_most) == points


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ([0, 1, 10], ["x_0", "x_1", "x_10"]),
        ([-1.0, 0.5, 2.0], ["x_-1", "x_0.5", "x_2"]),
        (["age", "net income", "a/b"], ["x_age", "x_net_income", "x_a_b"]),
        (["größe", "höhe\n"], ["x_größe", "x_höhe_"]),
        (["a b", "a_b", "c"], ["x_0", "x_1", "x_2"]),
        ([1, 1.0], ["x_0", "x_1"]),
        ([], []),
    ],
)
def test_names_hold_labels(labels, names):
    """Names are the labels in characters that files can hold, and numbers if two would be equal."""
    assert list(names_of("x_", labels)) == names


def test_labels_as_text():
    """Whole numbers have no point, and everything else is written as it is."""
    assert [written(label) for label in (3, 3.0, -1.0, 0.5, True, "3.0")] == [
        "3",
        "3",
        "-1",
        "0.5",
        "True",
        "3.0",
    ]
