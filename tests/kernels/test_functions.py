import pickle
import threading

import numpy as np
import pytest
from sklearn.metrics.pairwise import (
    euclidean_distances,
    laplacian_kernel,
    linear_kernel,
    polynomial_kernel,
    rbf_kernel,
)

from span_hpo import (
    RBF,
    Choice,
    Float,
    FunctionKernel,
    Int,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
)
from span_hpo.errors import SolverError
from span_hpo.kernels.blocks import KernelMatrix, as_kernel_blocks, kernel_times
from span_hpo.kernels.cache import KernelCache
from span_hpo.kernels.functions import as_kernel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 5))


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


def test_statistic_is_computed_once_and_the_matrix_kept(monkeypatch):
    """Trials that change only costs build nothing; a new width computes no distance."""
    calls = []
    original = RBF.statistic
    monkeypatch.setattr(RBF, "statistic", lambda self, X: calls.append(1) or original(self, X))
    cache = KernelCache(RBF(gamma=Float(0.1, 10)), X)
    first = cache.matrix({"gamma": 1.0})
    assert cache.matrix({"gamma": 1.0}) is first
    assert cache.matrix({"gamma": 2.0}) is not first
    assert len(calls) == 1


@pytest.mark.parametrize("kernel", [RBF(gamma=1.0), RBF(gamma=Float(0.1, 10)), Linear()])
def test_some_rows_give_the_block_of_the_whole(kernel):
    """The matrix of a subset is the block of the full one, whether that is kept or not."""
    rows = np.array([7, 3, 30])
    params = {"gamma": 1.0} if kernel.space else {}
    cache = KernelCache(kernel, X)
    before = cache.matrix(params, rows).values
    full = cache.matrix(params).values
    after = cache.matrix(params, rows).values
    np.testing.assert_array_equal(before, full[np.ix_(rows, rows)])
    np.testing.assert_array_equal(after, before)


def test_cache_is_shared_by_threads(monkeypatch):
    """Threads that ask for one matrix at once wait for the one that builds it."""
    entered, release, built = threading.Event(), threading.Event(), []
    original = RBF.matrix

    def slow(self, statistic, **values):
        built.append(values["gamma"])
        entered.set()
        assert release.wait(10)
        return original(self, statistic, **values)

    monkeypatch.setattr(RBF, "matrix", slow)
    cache = KernelCache(RBF(gamma=1.0), X)
    found = []
    threads = [threading.Thread(target=lambda: found.append(cache.matrix({}))) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert entered.wait(10)
    release.set()
    for thread in threads:
        thread.join(10)
    assert built == [1.0]
    assert all(K is found[0] for K in found)
    assert len(found) == 4


def test_cache_tells_equal_values_apart():
    """1 and True, arrays, and a list before and after a change are different parameters."""
    option = [1.0]

    def kernel(A, B, w):
        return (2.0 if w is True else float(np.sum(w))) * A @ B.T

    cache = KernelCache(FunctionKernel(kernel, {"w": Choice([1, True])}), X)
    for w, factor in ((1, 1.0), (True, 2.0), (np.array([1.0, 2.0]), 3.0), (option, 1.0)):
        np.testing.assert_allclose(cache.matrix({"w": w}).values, factor * X @ X.T, atol=1e-12)
    option.append(4.0)
    np.testing.assert_allclose(cache.matrix({"w": option}).values, 5 * X @ X.T, atol=1e-12)


def test_options_that_cannot_be_pickled():
    """Functions as options, fixed or searched, give their own matrices."""

    def kernel(A, B, shape):
        return shape(A @ B.T)

    double, triple = (lambda K: 2 * K), (lambda K: 3 * K)
    fixed = KernelCache(FunctionKernel(kernel, {"shape": double}), X)
    np.testing.assert_allclose(fixed.matrix({}).values, 2 * X @ X.T)
    assert fixed.matrix({}) is fixed.matrix({})
    searched = KernelCache(FunctionKernel(kernel, {"shape": Choice([double, triple])}), X)
    for shape, factor in ((double, 2), (triple, 3), (double, 2)):
        np.testing.assert_allclose(
            searched.matrix({"shape": shape}).values, factor * X @ X.T, atol=1e-12
        )


def test_failed_matrix_is_tried_again():
    """An error reaches its caller and does not stay in the cache."""
    fails = [True]

    def kernel(A, B):
        if fails.pop() if fails else False:
            raise OSError("disk")
        return A @ B.T

    cache = KernelCache(FunctionKernel(kernel), X)
    with pytest.raises(OSError, match="disk"):
        cache.matrix({})
    np.testing.assert_allclose(cache.matrix({}).values, X @ X.T)


def test_cache_is_not_pickled():
    """A pickle holds the features and the kernel, no matrix."""
    cache = KernelCache(RBF(gamma=1.0), X)
    empty = len(pickle.dumps(cache))
    K = cache.matrix({}).values
    assert len(pickle.dumps(cache)) == empty
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(cache)).matrix({}).values, K)


def test_kernel_matrix_is_read_only_but_the_users_array_is_not():
    """Nobody can change a cached matrix by accident, and the user's own stays writable."""
    own = X @ X.T
    K = KernelMatrix(own)
    with pytest.raises(ValueError, match="read-only"):
        K.values[0, 0] = 1.0
    own[0, 0] = 2.0


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
def test_kernel_times_equals_the_plain_product(share):
    """Sparse and dense coefficients give K @ c, for matrices and for objects that give blocks."""

    class Blocks:
        def __len__(self):
            return 40

        def diagonal(self):
            return (X @ X.T).diagonal()

        def block(self, rows, columns):
            return (X @ X.T)[rows][:, columns]

    rows = np.flatnonzero(RNG.random(40) < share)
    coefficients = RNG.normal(size=len(rows))
    expected = (X @ X.T)[:, rows] @ coefficients
    for K in (KernelMatrix(X @ X.T), as_kernel_blocks(Blocks())):
        np.testing.assert_allclose(kernel_times(K, rows, coefficients), expected, atol=1e-12)


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


def test_overflow_is_a_solver_error():
    """A kernel matrix that overflows stops the trial instead of feeding LIBSVM infinities."""
    with pytest.raises(SolverError, match=r"The kernel values with {'degree': 9.* overflow"):
        KernelCache(Polynomial(degree=9, gamma=1e200), X).matrix({})
    with pytest.raises(SolverError, match="squared distances overflow: scale the features"):
        RBF().bind(X * 1e200)
    with pytest.raises(SolverError, match="inner products of the rows overflow"):
        KernelCache(Linear(), X * 1e200).matrix({})


@pytest.mark.parametrize(
    ("matrix", "kind", "message"),
    [
        (np.ones((3, 2)), ValueError, "`K` must be a square kernel matrix, got shape (3, 2)"),
        (np.array([[1.0, 2], [0, 1]]), ValueError, "`K` must be symmetric, got |K - K'| up to 2"),
        (np.array([[1.0, np.nan], [np.nan, 1]]), ValueError, "`K` must be finite"),
        (np.array([["a"]]), TypeError, "`K` must hold real numbers"),
    ],
)
def test_wrong_kernel_matrices_are_named(matrix, kind, message):
    """A matrix that is no kernel matrix is refused."""
    with pytest.raises(kind) as caught:
        as_kernel_blocks(matrix)
    assert message in str(caught.value)


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
        with pytest.raises(ValueError, match=r"`kernel` must be one of \['laplacian', 'linear'"):
            as_kernel(wrong)


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


def test_precomputed_kernel_is_its_matrix():
    """A precomputed kernel gives back its matrix, and has no values for other rows."""
    X = np.random.default_rng(0).normal(size=(5, 2))
    np.testing.assert_array_equal(Precomputed()(X @ X.T), X @ X.T)
    with pytest.raises(ValueError, match="`Z` must be None for a precomputed kernel"):
        Precomputed()(X @ X.T, X @ X.T)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X: RBF()(X), "`gamma` must be a number before RBF can be called, got its default"),
        (lambda X: RBF(Float(0.1, 1))(X), "`gamma` must be a number before RBF can be called"),
        (lambda X: RBF(-1.0)(X), "`gamma` must be a finite number above 0"),
        (lambda X: RBF(1.0)(X[0]), "`X` must have two dimensions"),
        (lambda X: RBF(1.0)(X, X[:, :1]), "`Z` must have the 2 features of `X`, got 1"),
        (lambda X: RBF(1.0)(X, X + np.inf), "`Z` must be finite"),
    ],
)
def test_wrong_calls(call, message):
    """A call that has no answer names the argument and what is wanted."""
    with pytest.raises(ValueError, match=message):
        call(np.ones((3, 2)))
