"""Kernel matrices that are kept over trials, or computed block by block beyond the memory limit."""

import pickle
import threading

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris

from span_hpo import (
    RBF,
    Choice,
    Float,
    FunctionKernel,
    Laplacian,
    Linear,
    Polynomial,
    SolverError,
    SpanObjective,
    UniformCost,
)
from span_hpo.kernels.cache import FeatureKernel, KernelCache, default_memory_limit
from tests.differences import assert_gradients_agree, central_differences
from tests.problems import two_moons

X = np.random.default_rng(0).normal(size=(40, 5))
KERNELS = [RBF(gamma=1.5), Linear(), Polynomial(gamma=0.5)]


def features(kind, count=120):
    X, y = two_moons(count)
    X = np.vstack([X[:-10], X[:10]])  # equal rows
    X = np.column_stack([X, X**2]) + 3.0
    y = np.concatenate([y[:-10], y[:10]])
    return (sparse.csr_array(X) if kind == "sparse" else X), y


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("method", ["span", "exact", "refit"])
def test_blocked_equals_cached(kernel, kind, method, monkeypatch):
    """Losses and values agree, and the whole matrix is never formed."""
    X, y = features(kind)
    largest = []

    def watched(self, rows, columns):
        found = block(self, rows, columns)
        largest.append(found.size)
        return found

    block = FeatureKernel.block
    monkeypatch.setattr(FeatureKernel, "block", watched)
    monkeypatch.setattr("span_hpo.kernels.blocks._BLOCK_ENTRIES", 2000)
    fixed = {"kernel": kernel, "metric": ("error", "hinge"), "loo_method": method}
    cached = SpanObjective(X, y, **fixed)
    blocked = SpanObjective(X, y, memory_limit=0, **fixed)
    params = dict(zip(cached.space, (2.0, 5.0), strict=True))
    one, other = cached.evaluate(params), blocked.evaluate(params)
    assert (one.n_support, one.n_in_bound) == (
        other.n_support,
        other.n_in_bound,
    ) or method != "span"
    if method != "span":  # with equal rows the span-rule depends on which alpha was found
        np.testing.assert_allclose(one.loo.decision_values, other.loo.decision_values, atol=1e-6)
    assert other.loo.error_bounds[0] <= one.loo.error_bounds[1]
    assert largest
    assert max(largest) < 120 * 120


def test_blocks_equal_the_matrix():
    """Any block, the diagonal and subsets are those of the matrix."""
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(120)[:30], rng.permutation(120)[:50]
    for kind in ("dense", "sparse"):
        X, _ = features(kind)
        for kernel in KERNELS:
            matrix = KernelCache(kernel, X).matrix({})
            blocks = KernelCache(kernel, X, memory_limit=0).matrix({})
            assert isinstance(blocks, FeatureKernel)
            scale = np.abs(matrix.values).max()
            np.testing.assert_allclose(
                blocks.block(rows, columns), matrix.block(rows, columns), atol=1e-12 * scale
            )
            np.testing.assert_allclose(blocks.diagonal(), matrix.diagonal(), atol=1e-12 * scale)
            np.testing.assert_allclose(
                blocks.take(rows).block(slice(None), slice(None)),
                matrix.block(rows, rows),
                atol=1e-12 * scale,
            )


def test_several_classes_block_by_block():
    """Pairs of classes are fitted on their features."""
    X, labels = load_iris(return_X_y=True)
    fixed = {"kernel": RBF(gamma=0.5), "weighting": UniformCost(C=2.0), "loo_method": "exact"}
    cached = SpanObjective(X, labels, **fixed).evaluate({})
    blocked = SpanObjective(X, labels, memory_limit=0, **fixed).evaluate({})
    assert cached.loss == blocked.loss


def test_rows_without_cost_block_by_block():
    """Rows that take no part are left out of the fit on features too."""
    X, y = features("dense")
    weight = np.where(np.arange(len(y)) % 7 == 0, 0.0, 1.0)

    class SomeRows:
        def __init__(self):
            self.space = {}

        def costs(self, data, params):
            return 3.0 * weight

    fixed = {"kernel": RBF(gamma=1.0), "weighting": SomeRows(), "metric": "hinge"}
    losses = [
        SpanObjective(X, y, memory_limit=limit, loo_method="exact", **fixed)({})
        for limit in (0, None)
    ]
    assert losses[0] == pytest.approx(losses[1], abs=1e-6)


def test_a_budget_that_fits_is_held():
    """Few rows of many are a matrix again."""
    X, y = features("dense")
    limit = 8e-6 * 1.5 * 50**2 * 1.01
    objective = SpanObjective(
        X, y, kernel=RBF(gamma=1.0), weighting=UniformCost(C=1.0), memory_limit=limit
    )
    cache = KernelCache(objective.kernel, objective.data.X, limit)
    whole, part = cache.matrix({}), cache.matrix({}, np.arange(40))
    assert isinstance(whole, FeatureKernel)
    assert not isinstance(part, FeatureKernel)
    assert objective.evaluate({}, rows=40).n_rows == 40


def test_kernels_without_blocks_say_so():
    """A kernel that LIBSVM does not know needs its matrix."""
    X, y = features("dense")
    with pytest.raises(ValueError, match="`memory_limit` must allow for the whole kernel matrix"):
        SpanObjective(X, y, kernel=Laplacian(gamma=1.0), memory_limit=0)({"C_-1": 1.0, "C_1": 1.0})
    with pytest.raises(SolverError, match=r"overflow|cannot work on these features"):
        SpanObjective(1e30 * X, y, kernel=Polynomial(gamma=1.0, degree=20), memory_limit=0)(
            {"C_-1": 1.0, "C_1": 1.0}
        )
    with pytest.raises(ValueError, match="`memory_limit` must be a finite number of at least 0"):
        SpanObjective(X, y, memory_limit=-1)


def test_default_is_a_quarter_of_the_machine():
    """The default lies between 100 megabytes and any machine's memory."""
    assert 100 < default_memory_limit() < 1e8


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


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("chosen", [None, np.array([50, 3, 80, 7, 9])])
def test_gradients_add_up_over_blocks(kind, chosen):
    """Weights in several blocks, of all rows or of some, with the matrix or without it."""
    X, _ = features(kind)
    count = 120 if chosen is None else len(chosen)
    rng = np.random.default_rng(0)
    columns = rng.permutation(count)[: count // 2]
    blocks = [
        (rows, columns, rng.normal(size=(len(rows), len(columns))))
        for rows in np.array_split(rng.permutation(count), 3)
    ]
    params = {"gamma": 0.4}
    for limit in (None, 0):
        cache = KernelCache(RBF(gamma=Float(0.1, 10)), X, memory_limit=limit)

        def total(there, cache=cache):
            K = cache.matrix(there, chosen)
            return sum(np.vdot(weights, K.block(*pair)) for *pair, weights in blocks)

        K = cache.matrix(params, chosen)
        found = cache.gradient(K, params, ((i, j, w.copy()) for i, j, w in blocks), chosen)
        assert_gradients_agree(found, central_differences(total, params), 1e-9)


def test_gradients_of_some_rows_whose_matrix_fits():
    """A budget of rows whose matrix is held, while that of all rows is not."""
    X, _ = features("dense")
    kernel, params = RBF(gamma=Float(0.1, 10)), {"gamma": 0.4}
    chosen, every = np.arange(0, 120, 3), np.arange(40)
    weights = np.random.default_rng(0).normal(size=(40, 40))
    found = []
    for limit in (None, 8e-6 * 2.5 * 50**2):
        cache = KernelCache(kernel, X, memory_limit=limit)
        K = cache.matrix(params, chosen)
        assert not isinstance(K, FeatureKernel)
        found.append(cache.gradient(K, params, [(every, every, weights.copy())], chosen))
    assert_gradients_agree(*found, 1e-12)


def test_kernels_without_real_hyperparameters_have_no_gradient():
    """Nothing is computed for them: not even the blocks are asked for."""

    def never():
        raise AssertionError("not needed")
        yield

    for kernel in (Linear(), RBF(gamma=1.0), Polynomial(gamma=1.0, degree=Choice([2, 3]))):
        cache = KernelCache(kernel, X)
        params = {"degree": 2} if kernel.space else {}
        assert cache.gradient(cache.matrix(params), params, never()) == {}
