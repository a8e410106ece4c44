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
from span_hpo.kernels.row_pairs import RowPairs
from tests.differences import assert_gradients_agree, central_differences

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


DIFFERENTIABLE = [
    (RBF(), {"gamma": 0.3}),
    (Laplacian(), {"gamma": 0.2}),
    (Polynomial(1, coef0=Float(0, 2)), {"gamma": 0.4, "coef0": 0.7}),
    (Polynomial(4, coef0=Float(0, 2)), {"gamma": 0.4, "coef0": 0.0}),
    (Polynomial(3, gamma=0.5, coef0=Float(0, 2)), {"gamma": 0.5, "coef0": 1.5}),
]


@pytest.mark.parametrize(("kernel", "params"), DIFFERENTIABLE)
def test_gradients_are_those_of_central_differences(kernel, params):
    """The derivative of a weighted sum of kernel values, among rows and between two sets."""
    rng = np.random.default_rng(1)
    bound = kernel.bind(X)
    doubled, Z = np.vstack([X, X[:5]]), rng.normal(size=(7, 5))
    for statistic in (bound.statistic(doubled), bound.cross_statistic(doubled, Z)):
        weights = rng.normal(size=statistic.shape)

        def total(there, statistic=statistic, weights=weights):
            return float(np.vdot(weights, bound.matrix(statistic, **bound.values(params) | there)))

        values = bound.values(params)
        found = bound.gradient(statistic, bound.matrix(statistic, **values), weights, **values)
        real = {name: value for name, value in params.items() if value > 0}
        wanted = {name: found[name] for name in real}
        assert_gradients_agree(wanted, central_differences(total, real), 1e-9)


def test_slope_of_a_polynomial_at_the_end_of_the_range():
    """The derivative by an offset of 0 is a number also for degree 1."""
    kernel = Polynomial(1, gamma=0.5, coef0=Float(0, 2))
    statistic, weights = kernel.statistic(X), np.ones((40, 40))
    K = kernel.matrix(statistic, degree=1, gamma=0.5, coef0=0.0)
    assert kernel.gradient(statistic, K, weights, degree=1, gamma=0.5, coef0=0.0)["coef0"] == 1600


def wide_product(A, B, width, offset):
    return np.exp(-width * ((A[:, None] - B[None]) ** 2).sum(axis=2)) + offset


def slopes_of_wide_product(A, B, weights, width, offset):
    squared = ((A[:, None] - B[None]) ** 2).sum(axis=2)
    return {
        "width": -(weights * squared * np.exp(-width * squared)).sum(),
        "offset": weights.sum(),
    }


def test_derivatives_of_a_function():
    """The user's derivative gets rows and weights, and only searched real numbers count."""
    space = {"width": Float(0.1, 1), "offset": 0.5}
    kernel = FunctionKernel(wide_product, space, slopes_of_wide_product)
    cache, params = KernelCache(kernel, X), {"width": 0.3}
    rng = np.random.default_rng(0)
    blocks = [
        (np.array([1, 5, 2]), np.arange(8), rng.normal(size=(3, 8))),
        (np.arange(4), np.array([30, 10]), rng.normal(size=(4, 2))),
    ]

    def total(there):
        K = cache.matrix(there)
        return sum(np.vdot(weights, K.block(rows, columns)) for rows, columns, weights in blocks)

    found = cache.gradient(cache.matrix(params), params, blocks)
    assert_gradients_agree(found, central_differences(total, params), 1e-9)


@pytest.mark.parametrize(
    ("derivative", "message"),
    [
        (None, "`kernel` must have a derivative for gradients: pass FunctionKernel(function, hype"),
        (lambda A, B, weights, **_: {"offset": 0.0}, "return a mapping with the names ['width']"),
        (lambda A, B, weights, **_: 0.0, "must return a mapping with the names ['width'], got 0.0"),
        (lambda A, B, weights, **_: {"width": np.nan}, "`derivative by width` must be a finite"),
        (lambda A, B, weights, **_: {"width": "up"}, "`derivative by width` must be a finite"),
    ],
)
def test_derivatives_of_a_function_that_are_missing_or_wrong(derivative, message):
    """An error says what is wanted and what was received."""
    kernel = FunctionKernel(wide_product, {"width": Float(0.1, 1), "offset": 0.5}, derivative)
    pairs, ones = RowPairs(X, X), np.ones((40, 40))
    with pytest.raises(ValueError, match="must") as caught:
        kernel.gradient(pairs, ones, ones, width=0.3, offset=0.5)
    assert message in str(caught.value)
