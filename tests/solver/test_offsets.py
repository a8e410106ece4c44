import numpy as np

from span_hpo.solver.offsets import offset_limits


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
