import mpmath
import numpy as np
import pytest

from span_hpo import RBF
from span_hpo.errors import SolverError
from span_hpo.kernels.blocks import KernelMatrix
from span_hpo.kernels.cache import KernelCache
from span_hpo.solver.centred_gram import check_definite, factored_gram
from tests.problems import rbf, two_moons


def bordered(K):
    """Return M = [[K, 1], [1', 0]]."""
    n = len(K)
    return np.block([[K, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])


@pytest.fixture(params=["rbf", "linear", "offset"])
def rows(request):
    """Return in-bound and other rows with kernels that are regular, of low rank, and far off."""
    rng = np.random.default_rng(3)
    X, Z = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
    if request.param == "rbf":
        both = np.vstack([X, Z])
        K = np.exp(-((both[:, None] - both) ** 2).sum(axis=2))
    else:
        # Four rows in three dimensions: K_II is singular, the bordered matrix is not.
        both = np.vstack([X, Z]) + (50.0 if request.param == "offset" else 0.0)
        K = both @ both.T
    return K[:4, :4], K[:4, 4:], K[4:, 4:].diagonal()


def test_solve_is_the_bordered_system(rows):
    """(x, b) solves K x + b = rhs with the given sum."""
    K_II = rows[0]
    rhs = np.array([1.0, -1.0, 1.0, 0.5])
    x, b = factored_gram(K_II).solve(rhs, 0.7)
    np.testing.assert_allclose(K_II @ x + b, rhs, atol=1e-9)
    assert x.sum() == pytest.approx(0.7, abs=1e-12)


def test_distances_are_the_schur_complements(rows):
    """Distances to the hull equal K_pp - v' M^-1 v, and 1 / (M^-1)_pp for its own rows."""
    K_II, K_Ip, K_pp = rows
    gram = factored_gram(K_II)
    M = bordered(K_II)
    v = np.vstack([K_Ip, np.ones(K_Ip.shape[1])])
    expected = K_pp - np.einsum("ij,ij->j", v, np.linalg.solve(M, v))
    np.testing.assert_allclose(gram.squared_distances(K_Ip, K_pp), expected, atol=1e-8)
    own = 1 / np.linalg.inv(M).diagonal()[:4]
    np.testing.assert_allclose(gram.own_squared_distances(), own, rtol=1e-6)


def test_one_row_is_a_point():
    """The hull of one row is that row: distances are |x_p - x|^2."""
    gram = factored_gram(np.array([[4.0]]))  # x = 2 on the line
    assert gram.squared_distances(np.array([[6.0]]), np.array([9.0])) == pytest.approx(1.0)


@pytest.mark.parametrize("K", [np.ones((5, 5)), np.zeros((3, 3)), 1e8 * np.ones((4, 4))])
def test_rows_that_all_coincide_have_no_distance(K):
    """A constant kernel matrix is factored, and its rows are in the hull of each other."""
    gram = factored_gram(K)
    own = gram.own_squared_distances()
    assert (own >= 0).all()
    assert (own <= 1e-12 * max(1.0, K.max())).all()
    outside = gram.squared_distances(K[:, :1], K[:1, 0])
    np.testing.assert_allclose(outside, 0.0, atol=1e-7 * K.max())


def test_duplicates_get_distance_zero_and_leave_the_others_alone():
    """Two equal rows replace each other; the spans of the rest do not notice."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 8))
    twice = np.vstack([X, X[:1]])
    K = np.exp(-0.1 * ((twice[:, None] - twice) ** 2).sum(axis=2))
    doubled = factored_gram(K).own_squared_distances()
    single = factored_gram(K[:6, :6]).own_squared_distances()
    assert doubled[0] < 1e-12
    assert doubled[6] < 1e-12
    np.testing.assert_allclose(doubled[1:6], single[1:], rtol=1e-6)


@pytest.mark.parametrize("spread", [0.0, 1e-9, 1e-8, 1e-6])
def test_jittered_distances_are_those_of_the_jittered_matrix(spread):
    """Where jitter is added, spans are 1 / (M^-1)_pp with that jitter on the diagonal of K."""
    x = spread * np.array([0.0, 1.0, 2.5])
    K = np.exp(-((x[:, None] - x) ** 2))
    gram = factored_gram(K)
    M = bordered(K + gram.jitter * np.eye(3))
    if spread < 1e-7:
        assert gram.jitter > 0
        own = 1 / np.linalg.inv(M).diagonal()[:3]
        np.testing.assert_allclose(gram.own_squared_distances(), own, rtol=0.5)
    assert (gram.own_squared_distances() >= 0).all()
    assert (gram.own_squared_distances() <= 1e-10).all()


@pytest.mark.parametrize(("least", "refused"), [(-5e-9, False), (-2e-8, True)])
def test_threshold_of_indefiniteness(least, refused):
    """Eigenvalues down to -1e-8 of the mean diagonal are rounding, below they are not."""
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    basis[:, 0] = 0.5  # the centroid direction, which does not matter
    basis = np.linalg.qr(basis)[0]
    K = basis @ np.diag([1.0, 1.0, 2.0, least]) @ basis.T
    if refused:
        with pytest.raises(SolverError, match="its least eigenvalue is below -1e-08"):
            factored_gram(K)
    else:
        assert factored_gram(K).jitter > 0


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_indefinite_matrix_is_refused(size):
    """A matrix with a clearly negative eigenvalue has no spans, whatever its scale."""
    K = size * np.array([[1.0, 2.0, 0.0], [2.0, 1.0, 0.5], [0.0, 0.5, 1.0]])
    with pytest.raises(SolverError, match="not positive semi-definite"):
        factored_gram(K)


def test_indefinite_row_outside_is_refused():
    """A negative squared distance to the hull is recognised too."""
    gram = factored_gram(np.eye(2))
    with pytest.raises(SolverError, match="a squared distance is -"):
        gram.squared_distances(np.array([[3.0], [-3.0]]), np.array([1.0]))


def least_over_sums_of_zero(K, digits=60):
    """Return the least ``x'K x / x'x`` over all x with sum 0, in many digits."""
    n = len(K)
    with mpmath.workdps(digits):
        centre = mpmath.eye(n) - mpmath.ones(n) / n
        # The direction of ones is moved out of the way.
        centred = (
            centre * mpmath.matrix(K.tolist()) * centre + mpmath.ones(n) * mpmath.mpf(10) ** 30
        )
        return min(mpmath.eigsy(centred, eigvals_only=True))


@pytest.mark.parametrize("width", [10.0, 1.0, 1e-1, 1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("seed", range(2))
def test_least_eigenvalue_is_a_lower_bound(seed, width):
    """The bound is below the exact eigenvalue, however close to singular the matrix is."""
    X = np.random.default_rng(seed).normal(size=(6, 3))
    K = rbf(X, width)
    found, exact = factored_gram(K).least_eigenvalue, least_over_sums_of_zero(K)
    assert 0 <= found <= exact
    if exact > 1e-9:
        assert found >= 0.9 * exact / len(K)


@pytest.mark.parametrize("seed", range(3))
def test_least_eigenvalue_of_different_norms(seed):
    """With rows of norms from 1e-3 to 1e3 the bound is below the exact eigenvalue, or 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4, 5)) * 10.0 ** rng.uniform(-3, 3, size=(4, 1))
    K = X @ X.T
    K = (K + K.T) / 2
    assert 0 <= factored_gram(K).least_eigenvalue <= max(least_over_sums_of_zero(K), 0)


def test_least_eigenvalue_by_hand():
    """Rows at -1 and 1 have ``x'K x = 4 x_1^2``; the bound is a bound, and not far off."""
    found = factored_gram(np.array([[1.0, -1.0], [-1.0, 1.0]])).least_eigenvalue
    assert 0.5 <= found <= 2.0


@pytest.mark.parametrize("K", [np.ones((5, 5)), np.zeros((3, 3)), np.array([[4.0]])])
def test_equal_rows_have_no_least_eigenvalue(K):
    """Where rows coincide nothing is proven, and a single row has no x to bound."""
    found = factored_gram(K).least_eigenvalue
    assert np.isfinite(found)
    if len(K) > 1:
        assert found == 0.0


def with_least(least, count=30, largest=1.0, seed=0):
    """Return a symmetric matrix with a given least eigenvalue."""
    basis = np.linalg.qr(np.random.default_rng(seed).normal(size=(count, count)))[0]
    eigenvalues = np.linspace(0.01, 1.0, count) * largest
    eigenvalues[0] = least * largest
    K = (basis * eigenvalues) @ basis.T
    return (K + K.T) / 2


@pytest.mark.parametrize("largest", [1e-8, 1.0, 1e10])
@pytest.mark.parametrize("least", [0.0, 1e-3, -1e-13, -1e-10])
def test_matrices_with_rounding_are_accepted(least, largest):
    """Eigenvalues down to -1e-10 of the largest are no reason for an error."""
    check_definite(KernelMatrix(with_least(least, largest=largest)))


@pytest.mark.parametrize("largest", [1e-8, 1.0, 1e10])
@pytest.mark.parametrize("least", [-1e-7, -1e-3, -1.0])
def test_clearly_indefinite_matrices_are_refused(least, largest):
    """A clearly negative eigenvalue is named, and what to do."""
    with pytest.raises(SolverError, match=r"least eigenvalue is below -.*method='refit'"):
        check_definite(KernelMatrix(with_least(least, largest=largest)))


def test_matrices_outside_of_memory_are_not_checked():
    """Computed distances are believed where only the features are at hand."""
    X, _ = two_moons(10)
    K = KernelCache(RBF(gamma=1.0), X, memory_limit=1e-9).matrix({})
    with pytest.raises(SolverError, match="a squared distance is negative"):
        check_definite(K)
