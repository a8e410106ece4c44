import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel, rbf_kernel

from span_hpo import ARD, RBF, Float, FunctionKernel, Int, Laplacian, Linear, Polynomial
from span_hpo.kernels import Kernel
from span_hpo.kernels.cache import KernelCache

X = np.random.default_rng(0).normal(size=(40, 5))


def test_a_kernel_does_not_change_when_it_is_used():
    """Its pickled form is the same before and after its space is asked for."""
    kernel = RBF()
    before = pickle.dumps(kernel)
    assert list(kernel.space) == []
    assert pickle.dumps(kernel) == before
    assert copy.copy(kernel) == kernel == pickle.loads(before)
    bound = ARD().bind(X)
    before = pickle.dumps(bound)
    bound.widths(dict.fromkeys(bound.space, 1.0))
    assert pickle.dumps(bound) == before


@pytest.mark.parametrize(
    ("kernel", "params", "message"),
    [
        (RBF(gamma=-1.0), {}, "`gamma` must be a finite number above 0, got -1.0"),
        (RBF(gamma=Float(0, 1)), {"gamma": 0}, "`gamma` must be a finite number above 0, got 0"),
        (RBF(gamma=Float(0, 1)), {"gamma": np.nan}, "`gamma` must be a finite number above 0"),
        (RBF(gamma="wide"), {}, "`gamma` must be a finite number above 0, got 'wide'"),
        (Polynomial(degree=2.5, gamma=1), {}, "`degree` must be a whole number from 1 to 1000"),
        (Polynomial(degree=Int(1, 3), gamma=1), {"degree": 0}, "`degree` must be a whole number"),
        (Polynomial(gamma=1, coef0=-1), {}, "`coef0` must be a finite number of at least 0"),
    ],
)
def test_wrong_kernel_parameters_are_named(kernel, params, message):
    """A kernel parameter that makes no sense is an error, not a kernel matrix."""
    with pytest.raises(ValueError, match="must be") as caught:
        KernelCache(kernel, X).matrix(params)
    assert message in str(caught.value)


CALLABLE = [
    (RBF(gamma=0.7), lambda X, Z: rbf_kernel(X, Z, gamma=0.7)),
    (Laplacian(gamma=0.7), lambda X, Z: laplacian_kernel(X, Z, gamma=0.7)),
    (Linear(), linear_kernel),
    (Polynomial(2, 0.5, 1.5), lambda X, Z: polynomial_kernel(X, Z, 2, 0.5, 1.5)),
    (FunctionKernel(lambda X, Z, s: s * X @ Z.T, {"s": 2.0}), lambda X, Z: 2 * linear_kernel(X, Z)),
]


@pytest.mark.parametrize(("kernel", "wanted"), CALLABLE)
def test_kernels_can_be_called(kernel, wanted):
    """A call gives the kernel values of all pairs of rows, as scikit-learn computes them."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(7, 3)), rng.normal(size=(4, 3))
    np.testing.assert_allclose(kernel(X), wanted(X, X), atol=1e-12)
    np.testing.assert_allclose(kernel(X, Z), wanted(X, Z), atol=1e-12)
    np.testing.assert_allclose(kernel(X[:1], Z), wanted(X[:1], Z), atol=1e-12)
    np.testing.assert_array_equal(kernel(X), KernelCache(kernel, X).matrix({}).values)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: RBF()(X), "`gamma` must be set before RBF can be called, because its default"),
        (lambda X: RBF(Float(0.1, 1))(X), "`gamma` must be a fixed value before RBF can be called"),
        (lambda X: RBF(-1.0)(X), "`gamma` must be a finite number above 0"),
        (lambda X: RBF(1.0)(X[0]), "`X` must have two dimensions"),
        (lambda X: RBF(1.0)(X, X[:, :1]), "`Z` must have the 2 features of `X`, got 1"),
        (lambda X: RBF(1.0)(X, X + np.inf), "`Z` must be finite"),
        (
            lambda X: FunctionKernel(lambda A, B: A @ B.T * np.nan)(X, X),
            "must return finite numbers",
        ),
        (lambda X: FunctionKernel(lambda A, B: A)(X, X[:1]), r"must return shape \(3, 1\)"),
    ],
)
def test_wrong_calls(call, message):
    """A call that has no answer names the argument and what is wanted."""
    with pytest.raises(ValueError, match=message):
        call(np.ones((3, 2)))


@pytest.mark.parametrize("kernel", [RBF(gamma=0.7), Linear(), Polynomial(2, 0.5, 1.5)])
def test_calls_with_sparse_features(kernel):
    """Sparse and dense features may be mixed, and give the same kernel values."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(7, 3)), rng.normal(size=(4, 3))
    Z[0] = X[0]  # a distance of exactly 0
    for first in (X, sparse.csr_array(X)):
        np.testing.assert_allclose(kernel(first), kernel(X), atol=1e-12)
        for second in (Z, sparse.csr_array(Z)):
            np.testing.assert_allclose(kernel(first, second), kernel(X, Z), atol=1e-12)


def test_functions_may_take_none():
    """A fixed value of None is passed on to a function of the user's."""

    def product(A, B, power):
        return A @ B.T if power is None else (A @ B.T) ** power

    X = np.arange(6.0).reshape(3, 2)
    np.testing.assert_array_equal(FunctionKernel(product, {"power": None})(X, X), X @ X.T)


class WithoutDerivative(Kernel):
    """A user's kernel, a multiple of the inner product, that only searches without gradients."""

    def statistic(self, X):
        return X @ X.T

    def cross_statistic(self, X, Z):
        return X @ Z.T

    def matrix(self, statistic, **values):
        return values["scale"] * statistic

    def svc_arguments(self, **values):
        return {"kernel": "linear"}

    def _hyperparameters(self):
        return {"scale": Float(0.1, 10)}


class WithDerivative(WithoutDerivative):
    """The same kernel with a derivative."""

    def gradient(self, statistic, K, weights, **values):
        return {"scale": float(np.vdot(weights, statistic))}


def test_kernels_of_users_with_and_without_a_derivative():
    """A subclass supplies a method; without it, an error says what is missing."""
    weights = np.random.default_rng(0).normal(size=(40, 40))
    every, params = np.arange(40), {"scale": 2.0}
    cache = KernelCache(WithDerivative(), X)
    found = cache.gradient(cache.matrix(params), params, [(every, every, weights)])
    assert found == {"scale": pytest.approx(np.vdot(weights, X @ X.T))}
    cache = KernelCache(WithoutDerivative(), X)
    message = "`kernel` must have a derivative, which WithoutDerivative has not: give it a method"
    with pytest.raises(ValueError, match=message):
        cache.gradient(cache.matrix(params), params, [(every, every, weights)])


@pytest.mark.parametrize("wrong", [{}, {"Scale": 1.0}, 2.0])
def test_derivatives_of_a_kernel_that_are_missing(wrong):
    """A mapping must hold each searched real number."""

    class Wrong(WithDerivative):
        def gradient(self, statistic, K, weights, **values):
            return wrong

    cache, params, every = KernelCache(Wrong(), X), {"scale": 2.0}, np.arange(40)
    message = r"`gradient` of Wrong must return a mapping with the names \['scale'\], got "
    with pytest.raises(ValueError, match=message):
        cache.gradient(cache.matrix(params), params, [(every, every, np.ones((40, 40)))])


def test_parts_of_a_statistic():
    """They are those of the given rows and columns, in their order."""
    statistic = RBF().statistic(X)
    rows, columns = np.array([3, 1]), np.array([0, 1, 30])
    found = RBF().part(statistic, rows, columns)
    np.testing.assert_array_equal(found, statistic[rows][:, columns])


def test_only_kernels_with_many_widths_have_hyperparameters_alike():
    """One width has nothing to be compared with, and no name from a column."""
    kernel = RBF(gamma=Float(0.1, 1))
    assert kernel.alike == ()
    assert kernel.named(["a", "b"]) is kernel
