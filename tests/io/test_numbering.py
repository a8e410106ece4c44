import numpy as np
import pytest
from scipy import sparse

from span_hpo.io.numbering import Numbering, is_dense, on_used_columns


def some_rows(rng, count, width):
    """Return sparse rows in which many columns are empty."""
    X = rng.normal(size=(count, width)) * (rng.random((count, width)) < 0.1)
    return X * (rng.random(width) < 0.5)


@pytest.mark.parametrize("seed", range(20))
def test_columns_that_are_left_out_come_back(seed):
    """Rows on the used columns, spread over all features, are the rows; products are the same."""
    rng = np.random.default_rng(seed)
    X, Z = some_rows(rng, 6, 30), some_rows(rng, 4, 30)
    (narrow, other), used = on_used_columns(sparse.csr_array(X), sparse.csr_array(Z))
    np.testing.assert_array_equal(used, np.flatnonzero(X.any(axis=0) | Z.any(axis=0)))
    np.testing.assert_array_equal(Numbering(used, 30).spread(narrow).toarray(), X)
    np.testing.assert_allclose((narrow @ other.T).toarray(), X @ Z.T, atol=1e-14)


def test_unused_columns_take_no_memory():
    """Rows with two billion columns are as small as their entries."""
    X = sparse.csr_array(([1.0, 2.0], ([0, 1], [5, 2**31 - 2])), shape=(2, 2**31 - 1))
    (narrow,), used = on_used_columns(X)
    assert (narrow.shape, used.tolist()) == ((2, 2), [5, 2**31 - 2])
    assert not is_dense(X)
    assert is_dense(narrow)
    (empty,), used = on_used_columns(sparse.csr_array((2, 2**31 - 1)))
    assert (empty.shape, used.tolist()) == ((2, 1), [0])
