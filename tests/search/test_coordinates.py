"""Hyperparameters as a vector within a box."""

import math

import numpy as np
import pytest

from span_hpo import Choice, Float, Int
from span_hpo.search import Coordinates

SPACE = {
    "C": Float(0.1, 1000.0, log=True),
    "degree": Int(1, 5),
    "shift": Float(-2.0, 3.0),
    "kind": Choice(["a", "b"]),
    "rate": Float(0.0, 1.0, step=0.25),
}
START = {"C": 7.0, "degree": 3, "shift": 0.5, "kind": "b", "rate": 0.5}


def test_real_numbers_move_and_all_others_are_held():
    """Real numbers are coordinates within their ranges, and all other values are held."""
    coordinates = Coordinates.of(SPACE, START)
    assert coordinates.names == ("C", "shift")
    assert coordinates.is_log.tolist() == [True, False]
    assert coordinates.held == {"degree": 3, "kind": "b", "rate": 0.5}
    np.testing.assert_allclose(coordinates.lower, [math.log(0.1), -2.0])
    np.testing.assert_allclose(coordinates.upper, [math.log(1000.0), 3.0])


def test_params_are_those_of_the_point_in_the_order_of_the_space():
    """A point gives back all hyperparameters, held ones too, in the order of the space."""
    coordinates = Coordinates.of(SPACE, START)
    params = coordinates.params(coordinates.point(START))
    assert list(params) == list(SPACE)
    assert params == {**START, "C": pytest.approx(7.0)}
    assert coordinates.params(np.array([0.0, -1.0])) == {**START, "C": 1.0, "shift": -1.0}


@pytest.mark.parametrize("ends", [(1e-9, 1e9), (0.1, 1000.0), (3e-300, 7e300), (1 / 3, 2 / 3)])
def test_rounding_does_not_leave_the_range(ends):
    """At the sides of the box, rounding does not move a hyperparameter out of its range."""
    coordinates = Coordinates.of({"C": Float(*ends, log=True)}, {"C": ends[0]})
    for side in (coordinates.lower, coordinates.upper):
        assert ends[0] <= coordinates.params(side)["C"] <= ends[1]


def test_gradient_is_that_by_the_logarithm():
    """The gradient by the coordinates, such as logarithms, agrees with central differences."""
    coordinates = Coordinates.of(SPACE, START)

    def function(params):
        return math.sin(params["C"]) + params["shift"] ** 2

    by_name = {"C": math.cos(START["C"]), "shift": 2 * START["shift"]}
    point, step = coordinates.point(START), 1e-6
    expected = [
        (
            function(coordinates.params(point + step * unit))
            - function(coordinates.params(point - step * unit))
        )
        / (2 * step)
        for unit in np.eye(2)
    ]
    np.testing.assert_allclose(coordinates.gradient(START, by_name), expected, rtol=1e-7)


def test_places_of_names():
    """Positions follow the order of the names, and names that are no coordinates are left out."""
    coordinates = Coordinates.of(SPACE, START)
    assert coordinates.places(["shift", "degree", "C", "unknown"]) == [1, 0]


@pytest.mark.parametrize(
    ("name", "value"),
    [("C", 0.05), ("C", 2000.0), ("shift", math.nan), ("degree", 6), ("kind", "c"), ("rate", 0.3)],
)
def test_a_start_outside_of_its_range_is_refused(name, value):
    """A value of a start outside its range is refused, and the error names the hyperparameter."""
    with pytest.raises((TypeError, ValueError), match=name):
        Coordinates.of(SPACE, {**START, name: value})


def test_a_start_that_is_no_number_is_refused():
    """A text in place of a real number is refused, and the error names the hyperparameter."""
    with pytest.raises((TypeError, ValueError), match="C"):
        Coordinates.of(SPACE, {**START, "C": "high"})


def test_a_start_with_other_names_is_refused():
    """A start with an unknown name, or without one of the names of the space, is refused."""
    with pytest.raises(ValueError, match="gamma"):
        Coordinates.of(SPACE, {**START, "gamma": 1.0})
    with pytest.raises(ValueError, match="shift"):
        Coordinates.of(SPACE, {name: START[name] for name in START if name != "shift"})


def test_a_space_without_real_numbers_has_no_coordinates():
    """A space without real numbers has no coordinates, and keeps the values of its start."""
    coordinates = Coordinates.of({"degree": Int(1, 5)}, {"degree": 2})
    assert coordinates.names == ()
    assert coordinates.params(coordinates.point({"degree": 2})) == {"degree": 2}
