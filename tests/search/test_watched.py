"""The function that a search by gradients minimises."""

import math

import numpy as np
import pytest

from span_hpo import ARD, Float, SpanObjective, ValueAndGradient, minimize
from span_hpo.errors import SolverError
from span_hpo.search import Coordinates, Spread
from span_hpo.search.watched import EndOfSearchError, Watched
from tests.problems import two_moons

SPACE = {"a": Float(1e-3, 1e3, log=True), "b": Float(-10.0, 10.0)}


class Smooth:
    """``ln(a)^2 + b^2``, which fails or has no gradient where it is told to."""

    space = SPACE

    def __init__(self, fails=lambda params: False, is_kink=lambda params: False):
        self.fails, self.is_kink = fails, is_kink
        self.count = 0

    def value_and_gradient(self, params):
        self.count += 1
        if self.fails(params):
            raise SolverError("no end of steps")
        value = math.log(params["a"]) ** 2 + params["b"] ** 2
        if self.is_kink(params):
            return ValueAndGradient(value, None, None, "a kink")
        gradient = {"a": 2 * math.log(params["a"]) / params["a"], "b": 2 * params["b"]}
        return ValueAndGradient(value, gradient, None)


def watched_of(objective, spread=None, timeout=None):
    coordinates = Coordinates.of(SPACE, {"a": 1.0, "b": 0.0})
    return Watched(objective, coordinates, spread or Spread([], 0.0), {}, timeout)


def test_value_and_gradient_are_those_by_the_coordinates():
    """The value and its gradient by the coordinates have the penalty added, unlike the loss."""
    watched = watched_of(Smooth(), Spread([0, 1], 0.7))
    point = np.array([0.8, -1.5])
    value, gradient = watched(point)
    penalty, slopes = Spread([0, 1], 0.7).at(point)
    assert value == pytest.approx(0.8**2 + 1.5**2 + penalty)
    np.testing.assert_allclose(gradient, 2 * point + slopes)
    (step,) = watched.path
    assert (step.loss, step.value) == (pytest.approx(0.8**2 + 1.5**2), value)


def test_the_best_point_is_the_one_with_the_least_value():
    """The best point is the one with the least value, even where it has no gradient."""
    watched = watched_of(Smooth(is_kink=lambda params: params["b"] == 0.5))
    for b in (2.0, 0.5, -1.0):
        watched(np.array([0.0, b]))
    found = watched.minimum("The end.")
    assert (found.params["b"], found.loss, found.reason) == (0.5, 0.25, "The end.")
    assert [step.reason for step in found.path] == ["", "a kink", ""]
    assert found.n_evaluations == 3


def test_a_remembered_point_is_evaluated_once_and_then_again():
    """A remembered point is reused once without an evaluation, and evaluated anew after that."""
    objective = Smooth()
    watched, point = watched_of(objective), np.array([0.1, 0.2])
    first = watched.remembered(point)
    second = watched(point)
    assert objective.count == len(watched.path) == 1
    assert first[0] == second[0]
    np.testing.assert_array_equal(first[1], second[1])
    watched(point)
    assert objective.count == 2


def test_a_remembered_point_keeps_its_reason():
    """A remembered point without a gradient still says why when it is asked for again."""
    watched = watched_of(Smooth(is_kink=lambda params: params["b"] == 1.0))
    watched.remembered(np.array([0.0, 1.0]))
    watched(np.array([0.0, 2.0]))
    assert watched.reason == ""
    assert watched(np.array([0.0, 1.0]))[1] is None
    assert watched.reason == "a kink"


def test_a_fit_that_fails_later_is_stepped_over():
    """A later fit that fails counts as an infinite value, and the path keeps its error."""
    watched = watched_of(Smooth(fails=lambda params: params["b"] > 1))
    watched(np.array([0.0, 0.5]))
    assert watched(np.array([0.0, 2.0])) == (math.inf, None)
    assert watched.path[1].reason == "The fit has failed: no end of steps"
    assert watched.minimum("").params["b"] == 0.5


def test_a_fit_that_fails_first_is_an_error():
    """If the first fit fails, the error of the solver is raised."""
    with pytest.raises(SolverError, match="no end"):
        watched_of(Smooth(fails=lambda params: True))(np.zeros(2))


def test_the_first_evaluation_is_made_however_short_the_time():
    """However short the time is, the first evaluation is made, and only the second is refused."""
    watched = watched_of(Smooth(), timeout=1e-9)
    watched(np.zeros(2))
    with pytest.raises(EndOfSearchError, match="time is up"):
        watched(np.ones(2))


def noisy(count=80, noise=6, seed=0):
    X, y = two_moons(count, seed=seed)
    rng = np.random.default_rng(seed)
    return np.column_stack([X, rng.normal(size=(count, noise))]), y


def test_widths_differ_where_that_is_worth_it():
    """Differing widths are kept where they gain more than three standard errors."""
    objective = SpanObjective(*noisy(200), kernel=ARD(), metric="smooth_error")
    found = minimize(objective)
    compared = found.comparison
    assert compared.is_worth_it
    assert found.params == compared.apart.params
    assert compared.gain == pytest.approx(compared.alike.value - compared.apart.value)
    assert compared.gain > 3 * compared.standard_error > 0
    assert len({found.params[f"gamma_{k}"] for k in range(8)}) == 8
    assert "kept" in repr(found)


def test_widths_are_equal_where_differing_ones_gain_too_little():
    """Labels that no feature tells apart cannot make the difference."""
    rng = np.random.default_rng(3)
    objective = SpanObjective(
        rng.normal(size=(60, 4)), rng.integers(2, size=60), kernel=ARD(), metric="smooth_error"
    )
    found = minimize(objective, penalty=1.0)
    compared = found.comparison
    assert not compared.is_worth_it
    assert found.params == compared.alike.params
    assert found.loss == compared.alike.loss
    assert len({found.params[f"gamma_{k}"] for k in range(4)}) == 1
    assert "not kept" in repr(found)


def test_standard_error_is_that_of_the_differences_of_row_losses():
    """The standard error of a gain is that of the mean difference of the losses of rows."""
    objective = SpanObjective(*noisy(), kernel=ARD(), metric="smooth_error")
    compared = minimize(objective, max_evaluations=20).comparison
    losses = [
        1 / (1 + np.exp(4 * objective.data.y * objective.evaluate(step.params).loo.decision_values))
        for step in (compared.alike, compared.apart)
    ]
    difference = losses[0] - losses[1]
    expected = difference.std(ddof=1) / math.sqrt(len(difference))
    assert compared.standard_error == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("options", [{"penalty": 0.0}, {"start": "given"}, {"max_evaluations": 1}])
def test_nothing_is_compared_without_a_penalty_or_with_a_start(options):
    """Without a penalty, or with a start, widths are not compared and the least value counts."""
    objective = SpanObjective(*noisy(40, 1), kernel=ARD(), metric="smooth_error")
    if "start" in options:
        options = {"start": objective.defaults()[0]}
    found = minimize(objective, **{"max_evaluations": 8, **options})
    assert found.comparison is None
    assert found.value == min(step.value for step in found.path)


def test_printed_result_leaves_out_most_of_many_widths():
    """A printed result shows only a few of many widths, and says how many it leaves out."""
    X, y = noisy(40, 10)
    found = minimize(SpanObjective(X, y, kernel=ARD(), metric="smooth_error"), max_evaluations=3)
    text = repr(found)
    assert text.startswith("Minimum after 3 evaluations")
    assert "8 more" in text
    assert len(text.splitlines()) < 14
