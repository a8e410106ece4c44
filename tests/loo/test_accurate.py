from fractions import Fraction

import numpy as np
import pytest

from benchmarks.robustness.referee import exact_value
from span_hpo import Problem, solve
from span_hpo.loo.accurate import AccurateValue, accurate_value
from span_hpo.loo.proofs import ACCURATE
from tests.problems import mixed_norms_problem, random_problem, symmetric_problem
from tests.truth import removable


def margin_of(problem, p):
    """Return ``y_p f^p(x_p)`` in rational numbers."""
    K = problem.K.values.tolist()
    value = exact_value(K, problem.y, problem.without(p).costs, p, rational=True)
    return value * int(problem.y[p])


def check(problem, p, found):
    """Assert that what is said about row p is true."""
    truth = margin_of(problem, p)
    if found.accuracy < np.inf:
        assert abs(Fraction(found.margin) - truth) <= Fraction(found.accuracy)
    if found.is_proven:
        assert (found.margin > 0) == (truth > 0)


@pytest.mark.parametrize("seed", range(40))
def test_values_of_different_norms_are_proven(seed):
    """Where double precision has no digit left, every class is proven and every bound holds."""
    problem = mixed_norms_problem(seed)
    for p in np.flatnonzero(removable(problem)):
        found = accurate_value(problem, p, solve(problem.without(p)).alpha)
        check(problem, p, found)
        if margin_of(problem, p) != 0:
            assert found.is_proven


@pytest.mark.parametrize("seed", range(30))
def test_values_of_random_problems_are_proven(seed):
    """From a refit, the value is as accurate as it is asked for, with ordinary rows too."""
    problem = random_problem(seed, largest=10)
    for p in np.flatnonzero(removable(problem)):
        found = accurate_value(problem, p, solve(problem.without(p)).alpha, wanted=1e-6)
        check(problem, p, found)
        assert found.accuracy <= ACCURATE  # the allowance for rounded kernel values included


@pytest.mark.parametrize("seed", range(40))
def test_bounds_hold_where_rows_tie(seed):
    """On problems full of ties, what is claimed is true."""
    problem = symmetric_problem(seed)
    alpha = solve(problem).alpha
    for p in np.flatnonzero(removable(problem)):
        check(problem, p, accurate_value(problem, p, alpha))


@pytest.mark.parametrize("seed", range(20))
def test_bounds_hold_from_any_start(seed):
    """However far from the solution steps begin, even outside the balance, no claim is wrong."""
    problem = mixed_norms_problem(seed)
    rng = np.random.default_rng(seed)
    starts = [np.zeros(len(problem)), problem.costs * rng.random(len(problem)), problem.costs * 1.0]
    for p in np.flatnonzero(removable(problem))[:3]:
        for start in starts:
            check(problem, p, accurate_value(problem, p, start))


def test_the_start_is_left_alone():
    """The dual variables that are given do not change, row p among them."""
    problem = mixed_norms_problem(0)
    alpha = solve(problem).alpha
    before = alpha.copy()
    accurate_value(problem, 0, alpha)
    np.testing.assert_array_equal(alpha, before)


def test_three_rows_by_hand():
    """Without the row at 2, f(x) = 2/3 x - 1, and the margin there is 1/3."""
    x = np.array([0.0, 2.0, 3.0])
    problem = Problem(np.outer(x, x), [-1.0, 1.0, 1.0], np.ones(3))
    found = accurate_value(problem, 1, np.array([0.2, 0.0, 0.2]), wanted=1e-12)
    assert found.margin == pytest.approx(1 / 3, abs=1e-15)
    assert found.accuracy <= 1e-12
    assert found.is_proven


def test_a_tie_that_is_exact_is_proven():
    """A row in the middle of two others has the value 0, which is an error, with accuracy 0."""
    X = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    problem = Problem(X @ X.T, [-1.0, 1.0, 1.0], np.ones(3))
    found = accurate_value(problem, 2, np.array([0.5, 0.5, 0.0]))
    assert found == AccurateValue(margin=0.0, accuracy=0.0)
    assert found.is_proven


def test_a_tie_that_is_not_dyadic_stays_open():
    """If dual variables such as 1/9 are no sums of doubles, a value of 0 cannot be told from 0."""
    X = np.array([[-1.5, 0.0], [1.5, 0.0], [0.0, 1.0]])
    problem = Problem(X @ X.T, [-1.0, 1.0, 1.0], np.ones(3))
    found = accurate_value(problem, 2, np.array([2 / 9, 2 / 9, 0.0]))
    assert margin_of(problem, 2) == 0
    assert abs(found.margin) <= found.accuracy
    assert found.accuracy < 1e-12


def free_offset(bits):
    """Return bounded rows at -1 and 2 whose costs differ by some last bits, and a row at 3/4."""
    x = np.array([-1.0, 2.0, 0.75])
    costs = np.array([0.125, 0.125 * (1 + bits * 2.0**-52), 1.0])
    return Problem(np.outer(x, x), [-1.0, 1.0, 1.0], costs)


@pytest.mark.parametrize(
    ("bits", "margin"), [(0, 0.09375), (1, 0.53125), (-1, -0.34375)], ids=["equal", "more", "less"]
)
def test_one_bit_of_a_cost_moves_a_free_offset_to_its_end(bits, margin):
    """f(x) = 3/8 x + b: b is the middle of [-5/8, 1/4] for equal costs, and otherwise an end."""
    problem = free_offset(bits)
    truth = margin_of(problem, 2)
    found = accurate_value(problem, 2, np.append(problem.costs[:2], 0.0))
    check(problem, 2, found)
    assert found.is_proven
    assert found.margin == pytest.approx(float(truth), abs=1e-12)
    assert found.margin == pytest.approx(margin, abs=1e-12)


@pytest.mark.parametrize(
    ("margin", "accuracy", "proven"),
    [
        (1.0, 0.5, True),
        (0.5, 0.5, False),
        (-0.5, 0.5, True),
        (-0.4, 0.5, False),
        (0.0, 0.0, True),
        (0.0, np.inf, False),
    ],
)
def test_zero_counts_as_negative(margin, accuracy, proven):
    """A margin at most 0 is an error, so that a bound of 0 proves one but no success."""
    assert AccurateValue(margin, accuracy).is_proven is proven


@pytest.mark.parametrize("seed", range(10))
def test_no_steps_are_spent_beyond_the_digits_of_the_kernel(seed):
    """Where kernel values are rounded, a smaller goal does not give a better accuracy."""
    problem = random_problem(seed, largest=10)
    for p in np.flatnonzero(removable(problem)):
        start = solve(problem.without(p)).alpha
        rough, fine = (accurate_value(problem, p, start, wanted=goal) for goal in (1e-6, 1e-12))
        assert rough.accuracy == pytest.approx(fine.accuracy, rel=0.01, abs=1e-6)
        assert rough.margin == pytest.approx(fine.margin, abs=rough.accuracy + fine.accuracy)
        assert rough.is_proven == fine.is_proven
