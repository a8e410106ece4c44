"""The walk over scales with which a search by gradients begins."""

import math
from typing import ClassVar

import numpy as np
import pytest

from span_hpo import ARD, RBF, ClassCosts, Float, Linear, SpanObjective, UniformCost
from span_hpo.search import (
    Coordinates,
    Exploration,
    Visit,
    spread_of,
    walk_over_scales,
    walk_with_aligned_widths,
)
from tests.problems import two_moons

STEP = math.log(4)


class Bowl:
    """A function of the sums of logarithms of costs and of widths, with its path."""

    def __init__(self, objective, costs, widths, has_gradient=lambda point: True):
        self.coordinates = Coordinates.of(objective.space, objective.centres()[0])
        self.places = [self.coordinates.places(names) for names in objective.scales]
        self.goal, self.has_gradient, self.path = (costs, widths), has_gradient, []

    def __call__(self, point):
        self.path.append(point.copy())
        value = sum(
            (point[places].mean() - goal) ** 2
            for places, goal in zip(self.places, self.goal, strict=True)
            if places
        )
        return value, np.zeros_like(point) if self.has_gradient(point) else None


def objective_of(kernel, weighting=None, count=40):
    X, y = two_moons(count)
    X = np.column_stack([X, np.random.default_rng(0).normal(size=(count, 2))])
    return SpanObjective(X, y, kernel=kernel, weighting=weighting, metric="smooth_error")


@pytest.mark.parametrize("kernel", [ARD(), RBF(), Linear()])
@pytest.mark.parametrize("weighting", [UniformCost(), ClassCosts()])
def test_it_finds_the_scale_of_costs_and_widths(kernel, weighting):
    """A walk finds the best scale of costs and widths, and sorts its points by their values."""
    objective = objective_of(kernel, weighting)
    centre = Coordinates.of(objective.space, objective.centres()[0]).point(objective.centres()[0])
    bowl = Bowl(objective, 0, 0)
    bowl.goal = tuple(
        centre[places].mean() + up * STEP if places else 0.0
        for places, up in zip(bowl.places, (2.5, -2.0), strict=True)
    )
    visits = walk_over_scales(bowl, objective, bowl.coordinates, 40)
    assert visits[0].value == pytest.approx(0, abs=1e-12)
    assert [visit.value for visit in visits] == sorted(visit.value for visit in visits)
    assert len(visits) == len(bowl.path) < 40  # it ends where all neighbours are known


@pytest.mark.parametrize("most", [1, 2, 5, 9])
def test_it_makes_at_most_so_many_evaluations_and_none_twice(most):
    """A walk makes no more evaluations than it is allowed, and returns to no point."""
    objective = objective_of(ARD())
    bowl = Bowl(objective, 5.0, -3.0)
    visits = walk_over_scales(bowl, objective, bowl.coordinates, most)
    assert len(visits) == len(bowl.path) == most
    assert len({point.tobytes() for point in bowl.path}) == most


def test_it_begins_at_twice_the_default_costs():
    """A walk begins at the centre of the objective, but with twice the default costs."""
    objective = objective_of(ARD(), UniformCost())
    bowl = Bowl(objective, 5.0, -3.0)
    walk_over_scales(bowl, objective, bowl.coordinates, 1)
    first = bowl.coordinates.params(bowl.path[0])
    assert first == pytest.approx({**objective.centres()[0], "C": 2.0})


def test_widths_stay_equal():
    """All widths are equal at every point of a walk over scales."""
    objective = objective_of(ARD())
    bowl = Bowl(objective, 5.0, -3.0)
    walk_over_scales(bowl, objective, bowl.coordinates, 9)
    _, widths = bowl.places
    assert all(np.ptp(point[widths]) < 1e-12 for point in bowl.path)


def test_costs_that_balance_the_classes_are_tried_as_well():
    """A walk tries both equal costs of the classes and costs that balance them."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [50, 10])
    X = rng.normal(size=(60, 2)) + y[:, None]
    objective = SpanObjective(X, y, weighting=ClassCosts(), metric="smooth_error")
    assert len(objective.centres()) == 2
    bowl = Bowl(objective, 0.0, 0.0)
    walk_over_scales(bowl, objective, bowl.coordinates, 2)
    ratios = [point[bowl.places[0]] @ [-1, 1] for point in bowl.path]
    assert sorted(ratios) == pytest.approx([0.0, math.log(5)])


def test_points_without_a_gradient_come_last():
    """A walk returns points without a gradient after all points that have one."""
    objective = objective_of(RBF(), UniformCost())
    bowl = Bowl(objective, 1.0, 1.0)
    edge = bowl.coordinates.point(objective.centres()[0])[bowl.places[0]][0] + STEP
    bowl.has_gradient = lambda point: point[bowl.places[0]][0] > edge
    visits = walk_over_scales(bowl, objective, bowl.coordinates, 9)
    flags = [visit.has_none for visit in visits]
    assert flags == sorted(flags)
    assert not flags[0]


def test_costs_are_raised_until_there_is_a_gradient():
    """A walk raises costs until there is a gradient, even where the value rises on the way."""
    objective = objective_of(RBF(), UniformCost())
    bowl = Bowl(objective, -9.0, 0.0)
    edge = math.log(2 * 4**4) - 0.1
    bowl.has_gradient = lambda point: point[bowl.places[0]][0] > edge
    visits = walk_over_scales(bowl, objective, bowl.coordinates, 9)
    assert not visits[0].has_none
    firsts = [point[bowl.places[0]][0] for point in bowl.path[:3]]
    np.testing.assert_allclose(firsts, math.log(2) + STEP * np.array([0, 3, 4]))


def test_points_whose_fit_has_failed_come_last():
    """A walk does not go on from a point without a value, however high its costs are."""
    failed, flat = Visit(True, math.inf, np.zeros(1), 3), Visit(True, 0.9, np.zeros(1), 0)
    assert sorted([failed, flat], key=lambda visit: visit.rank) == [flat, failed]


def test_a_lower_valley_at_large_costs_is_found():
    """A walk looks at costs 64 times as high before it follows its neighbours downhill."""
    objective = objective_of(ARD(), UniformCost())
    bowl = Bowl(objective, math.log(2) - STEP, 0.0)

    def with_valley(point):
        value, gradient = bowl(point)
        return min(value, 50 * abs(point[bowl.places[0]][0] - math.log(2 * 4**4)) - 80), gradient

    visits = walk_over_scales(with_valley, objective, bowl.coordinates, 9)
    best = visits[0].point[bowl.places[0]][0]
    assert best == pytest.approx(math.log(2 * 4**4))
    assert visits[0].value < -70


def test_it_stays_in_the_box():
    """A walk evaluates no point outside the box, even where lower values lie beyond it."""
    objective = objective_of(
        ARD(gamma=Float(0.5, 1.0, log=True)), UniformCost(Float(0.5, 3.0, log=True))
    )
    bowl = Bowl(objective, 50.0, -50.0)
    walk_over_scales(bowl, objective, bowl.coordinates, 20)
    assert len({point.tobytes() for point in bowl.path}) == len(bowl.path)
    for point in bowl.path:
        assert ((bowl.coordinates.lower <= point) & (point <= bowl.coordinates.upper)).all()


def test_aligned_widths_are_kept_up_to_a_factor():
    """Aligned widths keep their ratios on a walk, and features that matter have the largest."""
    objective = objective_of(ARD(), count=80)
    bowl = Bowl(objective, 5.0, -3.0)
    spread = spread_of(objective, bowl.coordinates, 0.3)
    visits = walk_with_aligned_widths(bowl, objective, bowl.coordinates, spread, 7)
    assert len(visits) == 7
    shapes = [point[spread.places] - point[spread.places].mean() for point in bowl.path]
    np.testing.assert_allclose(shapes, [shapes[0]] * 7, atol=1e-9)
    widths = bowl.path[0][spread.places]
    assert widths[:2].min() > widths[2:].max()  # the moons, and two features of noise


def test_without_evaluations_nothing_is_computed():
    """A walk that may make no evaluation returns no point and calls no function."""
    objective = objective_of(ARD())
    bowl = Bowl(objective, 0.0, 0.0)
    spread = spread_of(objective, bowl.coordinates, 0.3)
    assert walk_with_aligned_widths(bowl, objective, bowl.coordinates, spread, 0) == []
    assert bowl.path == []


@pytest.mark.parametrize("evaluations", [1, 2, 5, 10, 30, 60, 200])
def test_walks_take_a_limited_share_of_the_evaluations(evaluations):
    """Walks take a limited share of the evaluations, and no second walk is made without widths."""
    plan = Exploration.of(evaluations, has_widths=True)
    assert 1 <= plan.equal <= max(4, 0.16 * evaluations)
    assert plan.total <= 1 + 0.62 * evaluations
    assert Exploration.of(evaluations, has_widths=False).aligned == 0


@pytest.mark.parametrize("scale", [1e-6, 1e-2, 1.0, 1e4])
def test_weights_of_rows_do_not_move_the_first_costs(scale):
    """Costs are about 1 in the mean, whatever the weights of the rows add up to."""
    X, y = two_moons(30)
    weights = scale * np.random.default_rng(0).uniform(0.5, 2.0, 30)
    objective = SpanObjective(
        X, y, weighting=UniformCost(Float(1e-9, 1e9, log=True)) * Weights(), scores=weights
    )
    means = [objective.weighting.costs(objective.data, p).mean() for p in objective.centres()]
    assert all(0.1 <= mean <= 10.0 for mean in means)


class Weights:
    """A weighting that multiplies each cost by a score."""

    space: ClassVar = {}

    def costs(self, data, params):
        return data.score(None)
