import numpy as np

from span_hpo import RBF, SpanObjective
from span_hpo.objective.models import fitted_svc
from tests.problems import two_moons


def test_rows_with_cost_zero_are_left_out():
    """The model with costs 0 is that of the other rows alone."""
    X, y = two_moons(40)
    data = SpanObjective(X, y).data
    costs = np.where(np.arange(40) % 4 == 0, 0.0, 2.0)
    kept = costs > 0
    model = fitted_svc(data, RBF(), {"gamma": 1.0}, costs, 10_000)
    part = SpanObjective(X[kept], y[kept]).data
    alone = fitted_svc(part, RBF(), {"gamma": 1.0}, costs[kept], 10_000)
    np.testing.assert_array_equal(model.decision_function(X), alone.decision_function(X))
    np.testing.assert_array_equal(model.classes_, [-1.0, 1.0])
