import numpy as np

from span_hpo import SpanObjective
from span_hpo.objective.folds import held_out_values
from tests.problems import two_moons


def test_rows_are_held_out_once():
    """Each row gets its value from the one fit in which its cost is 0."""
    X, y = two_moons(30)
    seen = []

    def decision_values(costs):
        seen.append(costs == 0)
        return np.full(len(costs), float(len(seen)))

    values = held_out_values(decision_values, SpanObjective(X, y).data, np.ones(30), 3, 0)
    assert np.sum(seen, axis=0).tolist() == [1] * 30
    for number, held_out in enumerate(seen):
        assert (values[held_out] == number + 1).all()
        assert np.count_nonzero(y[held_out] > 0) == 5
