import numpy as np
import pytest
from scipy import sparse

from span_hpo.kernels.row_pairs import RowPairs

X, Z = np.arange(12.0).reshape(4, 3), -np.arange(6.0).reshape(2, 3)


def as_array(rows):
    return rows.toarray() if sparse.issparse(rows) else rows


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_pairs_of_some_rows_with_others(form):
    """Rows are taken in the given order from each side."""
    pairs = RowPairs(form(X), form(Z)).between(np.array([2, 0]), np.array([1]))
    first, second = map(as_array, pairs.sides)
    np.testing.assert_array_equal(first, X[[2, 0]])
    np.testing.assert_array_equal(second, Z[[1]])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_pairs_of_one_set_of_rows(form):
    """Both sides are the same rows until different ones are asked for."""
    pairs = RowPairs(form(X))
    assert pairs.sides[0] is pairs.sides[1]
    some = pairs.among(np.array([3, 1]))
    assert some.second is None
    np.testing.assert_array_equal(as_array(some.first), X[[3, 1]])
    first, second = map(as_array, pairs.between(np.array([3]), np.array([0, 2])).sides)
    np.testing.assert_array_equal(first, X[[3]])
    np.testing.assert_array_equal(second, X[[0, 2]])
