import numpy as np
import pytest
from scipy import sparse

from span_hpo import RBF, Linear, Polynomial
from span_hpo.errors import SolverError
from span_hpo.kernels.cache import KernelCache
from span_hpo.kernels.distances import (
    about_mean,
    check_overflow,
    close_pairs,
    cross_squared_distances,
    median_squared_distance,
    products,
    some_rows,
    squared_distances,
    squared_norms,
    typical_distance,
    weighted_squared_differences,
)

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


def rows(kind, count=30, seed=0):
    """Return rows in which a good part of the entries is 0, dense or sparse, and as an array."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(count, 6)) * (rng.random((count, 6)) < 0.5)
    return (sparse.csr_array(values) if kind == "sparse" else values), values


@pytest.mark.parametrize("at_once", [1000, 4])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_distances_and_products_are_those_of_plain_loops(monkeypatch, kind, at_once):
    """Dense and sparse rows, in one block or many, agree with sums over the features."""
    monkeypatch.setattr("span_hpo.kernels.distances._ROWS_AT_ONCE", at_once)
    monkeypatch.setattr("span_hpo.kernels.distances._PAIRS_AT_ONCE", at_once)
    (X, x), (Z, z) = rows(kind), rows(kind, 11, seed=1)
    between = [[sum((a - b) ** 2) for b in z] for a in x]
    np.testing.assert_allclose(cross_squared_distances(X, Z), between, atol=1e-12)
    among = [[sum((a - b) ** 2) for b in x] for a in x]
    np.testing.assert_allclose(squared_distances(X), among, atol=1e-12)
    np.testing.assert_allclose(products(X, Z), [[sum(a * b) for b in z] for a in x], atol=1e-12)
    np.testing.assert_allclose(squared_norms(X), [sum(a * a) for a in x], atol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_equal_rows_of_two_sets_are_at_distance_zero(kind):
    """Large rows that agree, or differ in their last digits, lose nothing to the size of both."""
    X, x = rows(kind)
    far = 1e6 * X
    squared = cross_squared_distances(far, far)
    assert (squared.diagonal() == 0).all()
    moved = 1e6 * x + 1e-3
    exact = ((1e6 * x - moved) ** 2).sum(axis=1)
    found = cross_squared_distances(far, sparse.csr_array(moved) if kind == "sparse" else moved)
    np.testing.assert_allclose(found.diagonal(), exact, rtol=1e-12)


def test_centring_leaves_sparse_rows_alone():
    """Dense features get mean 0; sparse ones stay sparse."""
    X, x = rows("sparse")
    np.testing.assert_allclose(about_mean(x).mean(axis=0), 0, atol=1e-15)
    assert about_mean(X) is X


def test_median_distance_by_hand():
    """Rows 0, 0, 1 and 3: the nonzero distances are 1, 1, 4, 9 and 9, each twice."""
    x = np.array([[0.0], [0.0], [1.0], [3.0]])
    assert median_squared_distance(x) == 4.0
    assert typical_distance(np.zeros((3, 3))) == 1.0


def test_some_rows_are_spread_over_the_data(monkeypatch):
    """At most so many rows are taken, evenly from the first to the last part; few are all taken."""
    monkeypatch.setattr("span_hpo.kernels.distances._MEDIAN_ROWS", 10)
    for count in (3, 10, 11, 25, 99):
        taken = some_rows(np.arange(count)[:, None])[:, 0]
        assert len(taken) <= 10
        assert len(set(np.diff(taken))) <= 1
        assert taken[0] == 0
        assert taken[-1] + np.diff(taken)[0] >= count
        if count <= 10:
            assert len(taken) == count


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_numbers_that_overflow_are_named(wrong):
    """The message tells what has overflowed and what to do; finite numbers pass."""
    matrix = np.ones((2, 2))
    check_overflow(matrix, "sums", "use smaller ones")
    matrix[1, 0] = wrong
    with pytest.raises(SolverError, match="The sums overflow: use smaller ones"):
        check_overflow(matrix, "sums", "use smaller ones")


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("at_once", [100_000, 3])
def test_weighted_squares_are_those_of_plain_loops(monkeypatch, kind, at_once):
    """Sums over all pairs agree, far from the origin too, in one block or many."""
    monkeypatch.setattr("span_hpo.kernels.distances._PAIRS_AT_ONCE", at_once)
    monkeypatch.setattr("span_hpo.kernels.distances._PRODUCT_ENTRIES", at_once)
    (_, x), (_, z) = rows(kind), rows(kind, 11, seed=1)
    for shift in (0.0, 1e3):
        both = np.vstack([x, z]) + shift
        both[30:35] = both[:5] + 1e-6  # rows that nearly agree
        features = sparse.csr_array(both) if kind == "sparse" else about_mean(both)
        norms = squared_norms(features)
        weights = RNG.normal(size=(41, 41))
        every, blocks = np.arange(41), []
        for first, second in ((every[:30], every[30:]), (every[20:], every[:40])):
            K = np.exp(-cross_squared_distances(both[first], both[second]))
            close = close_pairs(K, norms[first], norms[second])
            blocks.append((first, second, weights[np.ix_(first, second)], close))
        exact = both.astype(np.longdouble)
        wanted = sum(
            (np.longdouble(1) * weight[:, :, None] * (exact[first][:, None] - exact[second]) ** 2)
            .sum(axis=(0, 1))
            .astype(float)
            for first, second, weight, _ in blocks
        )
        found = weighted_squared_differences(features, blocks)
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)


def test_close_pairs_are_those_whose_distance_loses_digits():
    """They are all pairs below a millionth of their norms, and no pair that is much farther."""
    x = RNG.normal(size=(20, 4)) + 1.0
    z = np.vstack([x[:10] + 1e-5, x[10:] + 0.1])
    squared = cross_squared_distances(x, z)
    first, second = close_pairs(np.exp(-squared), squared_norms(x), squared_norms(z))
    found = np.zeros((20, 20), dtype=bool)
    found[first, second] = True
    sums = squared_norms(x)[:, None] + squared_norms(z)
    np.testing.assert_array_equal(found, squared <= 1e-6 * sums)
    assert found[:10, :10].diagonal().all()
    vanished = close_pairs(np.zeros((2, 2)), np.full(2, 1e12), np.full(2, 1e12))
    assert not len(vanished[0])
