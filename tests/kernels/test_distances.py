import numpy as np
import pytest

from span_hpo import RBF, Linear, Polynomial
from span_hpo.errors import SolverError
from span_hpo.kernels.cache import KernelCache

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 5))


@pytest.mark.parametrize("at_once", [1000, 5])
def test_squared_distances_of_close_rows_keep_their_digits(monkeypatch, at_once):
    """Equal rows are at distance 0 and close ones right, far from the origin and over blocks."""
    monkeypatch.setattr("span_hpo.kernels.distances._ROWS_AT_ONCE", at_once)
    base = RNG.normal(size=(6, 50)) + 1e6
    rows = np.vstack([base, base, base + 1e-3])
    squared = RBF().statistic(rows)
    expected = ((rows[:, None] - rows) ** 2).sum(axis=2)
    assert (squared[:6, 6:12].diagonal() == 0).all()
    np.testing.assert_allclose(squared, expected, rtol=1e-9)
    np.testing.assert_array_equal(squared, squared.T)


def test_overflow_is_a_solver_error():
    """A kernel matrix that overflows stops the trial instead of feeding LIBSVM infinities."""
    with pytest.raises(SolverError, match=r"The kernel values with {'degree': 9.* overflow"):
        KernelCache(Polynomial(degree=9, gamma=1e200), X).matrix({})
    with pytest.raises(SolverError, match="squared distances overflow: scale the features"):
        RBF().bind(X * 1e200)
    with pytest.raises(SolverError, match="inner products of the rows overflow"):
        KernelCache(Linear(), X * 1e200).matrix({})
