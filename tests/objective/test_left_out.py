import numpy as np
import pytest

from span_hpo import RBF, ClassCosts, SpanObjective, leave_one_out
from span_hpo.objective import left_out_rows, with_values
from tests.problems import two_moons

POINT = {"C_-1": 2.0, "C_1": 0.7}


@pytest.mark.parametrize("memory_limit", [None, 0.0])
def test_unchanged_features_give_the_refits_of_leave_one_out(memory_limit):
    """If no row has a part in the features, the values are those of method "refit"."""
    X, y = two_moons(40)
    objective = SpanObjective(
        X, y, kernel=RBF(gamma=1.0), weighting=ClassCosts(), memory_limit=memory_limit
    )
    rows = np.array([0, 7, 39])
    found = left_out_rows(objective, POINT, rows, lambda row: X)
    expected = leave_one_out(objective.solution(POINT), method="refit").decision_values[rows]
    np.testing.assert_allclose(found.decision_values, expected, atol=1e-6)
    assert left_out_rows(objective, POINT, rows[:0], lambda row: X) is None


@pytest.mark.parametrize("method", ["span", "exact"])
def test_losses_follow_the_values(method):
    """All losses are computed from the new values, and nothing changes without any."""
    X, y = two_moons(40)
    objective = SpanObjective(
        X, y, kernel=RBF(gamma=1.0), metric=("hinge", "error"), loo_method=method
    )
    before = objective.evaluate(POINT, complete=True)
    assert with_values(objective, before, None) is before
    rows = np.array([3, 4])
    found = left_out_rows(objective, POINT, rows, lambda row: X * [1.0, 30.0])
    after = with_values(objective, before, found)
    values = before.loo.decision_values.copy()
    values[rows] = found.decision_values
    np.testing.assert_array_equal(after.loo.decision_values, values)
    assert after.loss == after.losses["hinge"]
    assert after.losses["hinge"] == pytest.approx(np.maximum(1 - y * values, 0).mean())
    assert after.losses["error"] == np.mean(y * values <= 0) == after.loo.error
    low, high = after.loo.error_bounds
    exact = objective.evaluate(POINT, loo_method="refit").loo.decision_values.copy()
    exact[rows] = found.decision_values
    assert low <= np.mean(y * exact <= 0) <= high
    assert after.seconds >= before.seconds
