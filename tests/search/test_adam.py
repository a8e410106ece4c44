"""Steps of Adam."""

import math

import numpy as np
import pytest

from span_hpo.search import Descent


def by_hand(point, gradients, steps, lower, upper, shared=()):
    """Return the points of Adam with the published update, in plain loops over coordinates."""
    mean, squares, path = [0.0] * len(point), [0.0] * len(point), []
    point = list(point)
    for k, gradient in enumerate(gradients):
        length = 0.2 * 0.5 * (1 + math.cos(math.pi * min(k / steps, 1.0))) + 1e-4
        steepest = max((gradient[i] ** 2 for i in shared), default=0.0)
        for i, slope in enumerate(gradient):
            unit = slope**2
            if i in shared:
                unit = 0.5 * unit + 0.5 * steepest
            mean[i] = 0.8 * mean[i] + 0.2 * slope
            squares[i] = 0.95 * squares[i] + 0.05 * unit
            along = mean[i] / (1 - 0.8 ** (k + 1))
            typical = math.sqrt(squares[i] / (1 - 0.95 ** (k + 1))) + 1e-6
            point[i] = min(max(point[i] - length * along / typical, lower[i]), upper[i])
        path.append(list(point))
    return path


@pytest.mark.parametrize("alike", [(), (0, 2), (1, 2, 3)])
@pytest.mark.parametrize("seed", range(5))
def test_steps_are_those_of_the_published_update(alike, seed):
    """Steps are those of Adam in plain loops, where coordinates that are alike share a scale."""
    rng = np.random.default_rng(seed)
    gradients = rng.normal(size=(12, 4)) * 10.0 ** rng.uniform(-3, 3, size=4)
    start, lower, upper = rng.normal(size=4), np.full(4, -1.5), np.full(4, 1.5)
    descent, path = Descent.at(start, alike), []
    for gradient in gradients:
        descent = descent.moved(gradient, 10, lower, upper)
        path.append(descent.point)
    expected = by_hand(start, gradients, 10, lower, upper, alike)
    np.testing.assert_allclose(path, expected, rtol=1e-12, atol=1e-12)
    assert descent.step == 12


def test_first_step_has_the_same_length_in_every_coordinate():
    """The first step goes downhill by the same length along every slope, however steep it is."""
    gradient = np.array([1e-3, -1e6, 5.0, 0.0])
    moved = Descent.at(np.zeros(4)).moved(gradient, 50, np.full(4, -9.0), np.full(4, 9.0))
    np.testing.assert_allclose(moved.point[:3], [-0.2001, 0.2001, -0.2001], rtol=2e-3)
    assert moved.point[3] == 0


def test_of_coordinates_that_are_alike_the_steepest_moves_most():
    """Of coordinates that are alike, the steepest makes a full step, and flatter ones less."""
    gradient = np.array([1.0, 0.01, 0.01])
    moved = Descent.at(np.zeros(3), [0, 1]).moved(gradient, 50, np.full(3, -9.0), np.full(3, 9.0))
    steepest, flat, alone = np.abs(moved.point)
    assert steepest == pytest.approx(alone, rel=1e-3)
    assert flat == pytest.approx(0.01 * math.sqrt(2) * steepest, rel=1e-3)


def test_no_step_leaves_the_box():
    """No step leaves the box, and coordinates that are pushed outwards end at its sides."""
    descent = Descent.at(np.array([0.95, -0.95]))
    lower, upper = np.full(2, -1.0), np.full(2, 1.0)
    for _ in range(20):
        descent = descent.moved(np.array([-1.0, 1.0]), 20, lower, upper)
        assert (np.abs(descent.point) <= 1).all()
    assert descent.point.tolist() == [1.0, -1.0]


def test_it_passes_over_jumps():
    """A value that jumps where a line search would stop is brought to its minimum."""
    descent, visited = Descent.at(np.array([2.0])), []
    for _ in range(60):
        visited.append(descent.point[0])
        gradient = 2 * descent.point  # of z^2 + jumps, whose derivative is 0 almost everywhere
        descent = descent.moved(gradient, 60, np.array([-5.0]), np.array([5.0]))
    assert min(np.abs(visited)) < 0.02


def test_another_point_keeps_the_means():
    """A descent that goes on from another point keeps its means and its number of steps."""
    descent = Descent.at(np.zeros(2), [0, 1])
    moved = descent.moved(np.ones(2), 5, np.full(2, -1.0), np.full(2, 1.0))
    other = moved.at_point(np.full(2, 0.5))
    assert other.point.tolist() == [0.5, 0.5]
    assert other.mean is moved.mean
    assert other.squares is moved.squares
    assert (other.step, other.alike) == (1, (0, 1))
