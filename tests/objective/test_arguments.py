import numpy as np
import pytest

from span_hpo import SpanObjective
from span_hpo.objective.arguments import as_loo_method, as_weight, chosen_rows
from tests.problems import two_moons


def test_loo_method():
    """Only names of methods are accepted."""
    assert as_loo_method("exact") == "exact"
    with pytest.raises(ValueError, match=r"`loo_method` must be one of .*, got 3\."):
        as_loo_method(3)


def test_weight():
    """Weights are 1 by default, and must not be negative."""
    np.testing.assert_array_equal(as_weight(None, 2), [1.0, 1.0])
    with pytest.raises(ValueError, match="`metric_weight`"):
        as_weight([1.0, -1.0], 2)


def test_chosen_rows():
    """All rows are None, and smaller numbers give increasing indices of both classes."""
    X, y = two_moons(30)
    data = SpanObjective(X, y).data
    assert chosen_rows(data, None) is None
    assert chosen_rows(data, 30) is None
    rows = chosen_rows(data, 10)
    assert (np.diff(rows) > 0).all()
    assert set(y[rows]) == {-1.0, 1.0}
    with pytest.raises(ValueError, match="`rows`"):
        chosen_rows(data, 31)
