"""The compiled steps of the reference."""

import importlib.util
import sys

import numpy as np
import pytest

from benchmarks.robustness.dual_steps import balance, bounded_value, finish, pair_steps
from tests.places import ROOT
from tests.processes import ended


def problem(seed, count=12):
    """Return a matrix, labels and the bounds of beta."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 2))
    y = np.where(np.arange(count) % 2 == 0, 1.0, -1.0)
    costs = 10.0 ** rng.uniform(-1, 2, size=count)
    return X @ X.T, y, np.minimum(0, y * costs), np.maximum(0, y * costs)


def violation(K, y, lower, upper, beta):
    """Return how far the offsets that the rows ask for contradict each other."""
    E = K @ beta - y
    return E[beta > lower].max() - E[beta < upper].min()


def test_balance_moves_rows_within_their_bounds():
    """The sum becomes 0, rows inside their bounds move first, and no bound is crossed."""
    beta = np.array([2.0, 0.5, 0.0, -1.0])
    balance(beta, np.array([0.0, 0.0, -3.0, -1.0]), np.array([2.0, 1.0, 0.0, 0.0]))
    assert beta.tolist() == [1.0, 0.0, 0.0, -1.0]


@pytest.mark.parametrize("seed", range(5))
def test_pair_steps_go_downhill(seed):
    """The objective falls, the sum stays 0 and the bounds hold."""
    K, y, lower, upper = problem(seed)
    values = []
    for most in (0, 5, 20, 500):
        beta = np.zeros(len(y))
        pair_steps(K, y, lower, upper, beta, most, 1e-9)
        values.append(beta @ K @ beta / 2 - y @ beta)
        assert abs(beta.sum()) <= 1e-12
        assert ((lower <= beta) & (beta <= upper)).all()
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("seed", range(20))
def test_the_finish_reaches_the_solution_from_any_point(seed):
    """From 0 as well as after some pairwise steps, the KKT conditions hold up to rounding."""
    K, y, lower, upper = problem(seed)
    ends = []
    for most in (0, 7):
        beta = np.zeros(len(y))
        pair_steps(K, y, lower, upper, beta, most, 1e-9)
        finish(K, y, lower, upper, beta, 200)
        assert violation(K, y, lower, upper, beta) <= 1e-9
        ends.append(beta @ K @ beta / 2 - y @ beta)
    assert ends[0] == pytest.approx(ends[1], rel=1e-9)


def test_a_point_that_is_no_solution_has_a_large_error():
    """The bound on the error of a value covers what is missing to the solution."""
    rng = np.random.default_rng(0)
    for seed in range(20):
        K, y, lower, upper = problem(seed)
        p = int(rng.integers(len(y)))
        lower[p] = upper[p] = 0.0
        best, rough = np.zeros((2, len(y)))
        finish(K, y, lower, upper, best, 200)
        pair_steps(K, y, lower, upper, rough, 15, 1e-9)
        truth, error = bounded_value(K, y, lower, upper, best, p)
        value, allowed = bounded_value(K, y, lower, upper, rough, p)
        assert error < 1e-4
        assert abs(value - truth) <= allowed + error


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="Numba is not installed")
def test_with_and_without_numba_the_answers_are_the_same():
    """The reference runs as plain Python and gives the same margins."""
    program = """
import sys
if {blocked}:
    sys.modules["numba"] = None
import numpy as np
from benchmarks.robustness.reference import leave_one_out_margins
X = np.random.default_rng(0).normal(size=(8, 2))
y = np.where(X[:, 0] > 0, 1.0, -1.0)
y[0] = -y[0]
print(*leave_one_out_margins(X @ X.T, y, np.full(8, 2.0)).margins)
"""
    plain, compiled = (
        ended([sys.executable, "-c", program.format(blocked=blocked)], ROOT).stdout.split()
        for blocked in (True, False)
    )
    assert len(plain) == 8
    np.testing.assert_allclose([*map(float, plain)], [*map(float, compiled)], atol=1e-12)
