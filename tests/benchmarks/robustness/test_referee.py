"""The referee: exact answers by hand, and agreement of its two arithmetics and its starts."""

from fractions import Fraction

import numpy as np
import pytest

from benchmarks.robustness.families import REPORTED, make
from benchmarks.robustness.referee import exact_value, is_positive_semidefinite
from benchmarks.robustness.reference import solve_dual


def products(*rows):
    """Return the linear kernel of rows of rational numbers."""
    return [[sum(a * b for a, b in zip(x, z, strict=True)) for z in rows] for x in rows]


def test_three_rows_by_hand():
    """Without the row at 2, f(x) = 2/3 x - 1; without the one at 3, f(x) = x - 1."""
    K = products([0], [2], [3])
    assert exact_value(K, [-1, 1, 1], [1, 0, 1], 1) == Fraction(1, 3)
    assert exact_value(K, [-1, 1, 1], [1, 1, 0], 2) == 2


def test_a_value_of_zero_is_zero():
    """A row in the middle of two others has the value 0, and no sign."""
    K = products([-1, 0], [1, 0], [0, 1])
    assert exact_value(K, [-1, 1, 1], [1, 1, 0], 2) == 0
    assert exact_value(K, [-1, 1, 1], [1, 1, 0], 2, rational=False) == 0


def test_the_free_offset_is_the_middle():
    """Two bounded rows at -1 and 2: f(x) = 3/10 x + b, and b is between -7/10 and 4/10."""
    K = products([-1], [2], [3])
    value = exact_value(K, [-1, 1, 1], [Fraction(1, 10), Fraction(1, 10), 0], 2)
    assert value == Fraction(9, 10) + (Fraction(-7, 10) + Fraction(4, 10)) / 2


def test_costs_are_the_doubles_that_they_are():
    """Three costs of 0.1 and one of 0.3 do not balance: one row is inside, and b is unique."""
    rows, y = [[1], [2], [3], [-2], [1]], [1, 1, 1, -1, 1]
    tenths = [0.1, 0.1, 0.1, 0.3, 0]
    exact = [Fraction(1, 10)] * 3 + [Fraction(3, 10), 0]
    low = [cost / 1000 for cost in exact]
    middle = exact_value(products(*rows), y, low, 4)
    end = exact_value(products(*rows), y, [Fraction(cost) / 1000 for cost in tenths], 4)
    assert abs(middle - end) > 0.5


@pytest.mark.parametrize(
    ("number", "row", "truth"), [(0, 0, 0.58), (1, 2, 1.0), (2, 3, -1.0)], ids=["0", "1", "2"]
)
def test_reported_problems_have_their_known_truth(number, row, truth):
    """Decision values that were once wrong: in rational numbers and in 120 digits."""
    instance = make("reported", number)
    assert len(instance.y) == len(REPORTED[number][1])
    costs = np.where(np.arange(len(instance.y)) == row, 0.0, instance.costs)
    for rational in (True, False):
        value = exact_value(instance.K.tolist(), instance.y, costs, row, rational=rational)
        assert float(value) == pytest.approx(truth, abs=1e-5)


@pytest.mark.parametrize("family", ["linear", "duplicates", "norms", "ties", "polynomial"])
def test_starts_and_arithmetics_agree(family):
    """From nothing and from a solution in doubles, rational or not, the value is the same."""
    for number in range(4):
        instance = make(family, 2_000 + number)
        if len(instance.y) > 16:
            continue
        costs = np.where(np.arange(len(instance.y)) == 0, 0.0, instance.costs)
        if len(np.unique(instance.y[costs > 0])) < 2:
            continue
        K = instance.K.tolist()
        start = solve_dual(instance.K, instance.y, costs, np.zeros(len(costs)))
        exact = exact_value(K, instance.y, costs, 0, start, rational=True)
        digits = exact_value(K, instance.y, costs, 0, rational=False)
        assert float(exact) == pytest.approx(float(digits), rel=1e-12)
        if is_positive_semidefinite(K):
            assert exact == exact_value(K, instance.y, costs, 0, rational=True)


def test_definiteness_is_exact():
    """A matrix of rank one is positive semi-definite until a last bit is taken away."""
    K = np.outer([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert is_positive_semidefinite(K.tolist())
    assert is_positive_semidefinite((K - 100.0).tolist())  # a constant does not matter
    K[1, 1] = np.nextafter(K[1, 1], 0)
    assert not is_positive_semidefinite(K.tolist())
    assert not is_positive_semidefinite(K.tolist(), rational=False)
