import numpy as np
import pytest

from span_hpo import solve
from span_hpo.solver.offsets import offset_ends, offset_limits
from tests.problems import random_problem


def test_offset_limits_by_hand():
    """Rows that may move either way limit the offset on both sides, others on one.

    With F = 0: a positive row at 0 and a negative one at its cost want b >= y; a positive row at
    its cost and a negative one at 0 want b <= y; an in-bound row wants b = y.
    """
    y = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    costs, alpha = np.ones(5), np.array([0.0, 1.0, 1.0, 0.0, 0.5])
    limits = offset_limits(y, costs, alpha, np.zeros(5))
    inf = np.inf
    assert limits.lower.tolist() == [1, -1, -inf, -inf, 1]
    assert limits.upper.tolist() == [inf, inf, 1, -1, 1]
    assert limits.interval == (1.0, -1.0)


@pytest.mark.parametrize("seed", range(20))
def test_limits_by_definition(seed):
    """A row limits the offset from below where y alpha may grow, from above where it may fall."""
    rng = np.random.default_rng(seed)
    y, F = rng.choice([-1.0, 1.0], size=30), rng.normal(size=30)
    costs = rng.choice([0.0, 1.0, 3.0], size=30)
    alpha = costs * rng.choice([0.0, 0.5, 1.0], size=30)
    limits = offset_limits(y, costs, alpha, F)
    for i in range(30):
        beta, ends = y[i] * alpha[i], sorted([0.0, y[i] * costs[i]])
        assert limits.lower[i] == (y[i] - F[i] if beta < ends[1] else -np.inf)
        assert limits.upper[i] == (y[i] - F[i] if beta > ends[0] else np.inf)
    assert limits.interval == (max(limits.lower), min(limits.upper))
    for one, other in zip(
        offset_ends(y, costs, alpha, F), (limits.lower, limits.upper), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("seed", range(60))
def test_offsets_of_the_interval_minimise_the_hinge_loss(seed):
    """At a solution the offsets of the interval have the least weighted hinge loss."""
    solution = solve(random_problem(seed))
    y, costs = solution.problem.y, solution.problem.costs
    F = solution.decision_values - solution.b

    def loss(b):
        return costs @ np.maximum(0.0, 1 - y * (F + b))

    lower, upper = solution.offset_limits.interval
    rounding = 100 * solution.margin_noise
    assert lower - rounding <= solution.b <= upper + rounding
    # The loss bends only where a row is at its margin, so that its minimum is at one of these.
    least = min(map(loss, y - F))
    for b in (lower, solution.b, upper):
        assert loss(b) <= least + costs.sum() * rounding
    if solution.in_bound.any():
        assert loss(lower - 0.1) > least
        assert loss(upper + 0.1) > least
