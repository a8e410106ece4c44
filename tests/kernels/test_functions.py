import numpy as np
import pytest
from sklearn.metrics.pairwise import (
    euclidean_distances,
    laplacian_kernel,
    polynomial_kernel,
    rbf_kernel,
)

from span_hpo import RBF, Float, FunctionKernel, Laplacian, Linear, Polynomial, Precomputed
from span_hpo.kernels import as_kernel
from span_hpo.kernels.cache import KernelCache

X = np.random.default_rng(0).normal(size=(40, 5))


def scaled_dot(A, B, factor=2.0):
    return factor * A @ B.T


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (RBF(gamma=0.3), rbf_kernel(X, gamma=0.3)),
        (Laplacian(gamma=0.3), laplacian_kernel(X, gamma=0.3)),
        (Linear(), X @ X.T),
        (Polynomial(degree=2, gamma=0.5, coef0=1.5), polynomial_kernel(X, None, 2, 0.5, 1.5)),
        (FunctionKernel(scaled_dot), 2 * X @ X.T),
        (FunctionKernel(scaled_dot, {"factor": 3.0}), 3 * X @ X.T),
    ],
)
def test_kernel_matrices_equal_scikit_learn(kernel, expected):
    """Every kernel is the function that scikit-learn knows by its name."""
    K = KernelCache(kernel, X).matrix({}).values
    np.testing.assert_allclose(K, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(K, K.T)


def test_precomputed_kernel_is_the_given_matrix():
    """The matrix in place of the features is the kernel matrix."""
    np.testing.assert_array_equal(KernelCache(Precomputed(), X @ X.T).matrix({}).values, X @ X.T)


def test_default_width_range_follows_the_median_distance():
    """`RBF()` searches [0.01, 100] / median nonzero squared distance; `Laplacian()` alike."""
    doubled = np.vstack([X, X[:10]])  # zeros off the diagonal must not count
    squared = euclidean_distances(doubled, squared=True)
    typical = np.median(squared[squared > 1e-9])
    gamma = RBF().bind(doubled).space["gamma"]
    np.testing.assert_allclose([gamma.low, gamma.high], [0.01 / typical, 100 / typical])
    assert gamma.log
    cityblock = np.abs(X[:, None] - X).sum(axis=2)
    gamma = Laplacian().bind(X).space["gamma"]
    np.testing.assert_allclose(gamma.low, 0.01 / np.median(cityblock[cityblock > 0]))


def test_default_widths_of_data_that_all_coincide():
    """Constant features give a range, not a division by zero."""
    assert RBF().bind(np.ones((5, 2))).gamma == Float(0.01, 100, log=True)


def test_function_that_gives_the_wrong_shape():
    """A callable must give one row and column for each row."""
    with pytest.raises(ValueError, match=r"`kernel` must return one row and column for each of 40"):
        KernelCache(FunctionKernel(lambda A, B: np.eye(3)), X).matrix({})


def test_kernels_by_name():
    """Names, kernels and callables are understood; anything else lists the names."""
    assert as_kernel("rbf") == RBF()
    assert as_kernel("poly") == Polynomial()
    assert as_kernel(scaled_dot) == FunctionKernel(scaled_dot)
    for wrong in ("gauss", 3, RBF):
        with pytest.raises(
            ValueError, match=r"`kernel` must be one of \['ard', 'laplacian', 'linear'"
        ):
            as_kernel(wrong)


def test_precomputed_kernel_is_its_matrix():
    """A precomputed kernel gives back its matrix, and has no values for other rows."""
    X = np.random.default_rng(0).normal(size=(5, 2))
    np.testing.assert_array_equal(Precomputed()(X @ X.T), X @ X.T)
    with pytest.raises(ValueError, match="`Z` must be None for a precomputed kernel"):
        Precomputed()(X @ X.T, X @ X.T)
