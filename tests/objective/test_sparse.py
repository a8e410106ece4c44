"""Sparse features give what dense ones give, and are never made dense."""

import numpy as np
import pytest
from scipy import sparse

from span_hpo import RBF, Laplacian, Linear, Polynomial, SpanObjective, UniformCost
from span_hpo.kernels.cache import KernelCache

KERNELS = [RBF(gamma=0.3), Linear(), Polynomial(gamma=0.2), RBF(), Polynomial()]


def sparse_data(count=60, features=40, seed=0):
    """Return sparse rows, equal ones among them, and labels."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((count, features), density=0.1, rng=rng, format="csr")
    X = sparse.vstack([X, X[:5]], format="csr")
    y = np.where(np.asarray(X[:, :20].sum(axis=1)).ravel() > 1.0, 1, 0)
    y[:2] = 0, 1
    return X, y


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_equals_dense(kernel, dtype):
    """Kernel matrices, default ranges, values and models agree to 1e-10."""
    X, y = sparse_data()
    X = X.astype(dtype)
    dense = X.toarray()
    # Exact values: with equal rows the span-rule depends on which alpha the solver found.
    fixed = {"weighting": UniformCost(C=2.0), "metric": "hinge", "loo_method": "exact"}
    objectives = [SpanObjective(one, y, kernel=kernel, **fixed) for one in (X, dense)]
    params = {}
    for name, part in objectives[1].space.items():
        own = objectives[0].space[name]
        assert (own.low, own.high) == pytest.approx((part.low, part.high), rel=1e-10)
        params[name] = part.grid(1)[0]
    evaluations = [objective.evaluate(params) for objective in objectives]
    matrices = [
        KernelCache(objective.kernel, objective.data.X).matrix(params).values
        for objective in objectives
    ]
    np.testing.assert_allclose(*matrices, atol=1e-10 * np.abs(matrices[1]).max())
    np.testing.assert_allclose(
        *(evaluation.loo.decision_values for evaluation in evaluations), atol=1e-8
    )
    models = [objective.fit_model(params) for objective in objectives]
    np.testing.assert_allclose(
        models[0].decision_function(X), models[1].decision_function(dense), atol=1e-4
    )


def test_text_of_a_hundred_thousand_columns():
    """Wide sparse rows are tuned without ever being dense."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((300, 100_000), density=2e-4, rng=rng, format="csr")
    marker = sparse.csr_array((np.ones(150), (np.arange(0, 300, 2), np.zeros(150, dtype=int))))
    marker.resize(X.shape)
    X = (X + 2 * marker).tocsr()
    y = np.arange(300) % 2 == 0

    def refuse(self, *args, **kwargs):
        if self.shape[1] > 1000:
            raise AssertionError("the features were made dense")
        return toarray(self, *args, **kwargs)

    toarray = sparse.csr_array.toarray
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse.csr_array, "toarray", refuse)
        objective = SpanObjective(X, y, kernel="linear", loo_method="exact")
        evaluation = objective.evaluate({"C_False": 1.0, "C_True": 1.0})
        model = objective.fit_model({"C_False": 1.0, "C_True": 1.0})
    assert evaluation.loss < 0.05
    assert model.score(objective.data.X, y) > 0.95
    assert objective.data.X.indices.dtype == np.int32  # all that LIBSVM takes


def test_kernels_that_need_dense_rows_say_so():
    """Laplacian and precomputed kernels refuse sparse matrices by name."""
    X, y = sparse_data()
    with pytest.raises(TypeError, match="must be dense for the laplacian kernel"):
        SpanObjective(X, y, kernel=Laplacian())
    with pytest.raises(TypeError, match="must be a dense kernel matrix"):
        SpanObjective(X @ X.T, y, kernel="precomputed")


def test_budgets_of_sparse_rows():
    """Nested subsets work on sparse rows."""
    X, y = sparse_data()
    objective = SpanObjective(X, y, kernel=RBF(gamma=0.5), weighting=UniformCost(C=1.0))
    dense = SpanObjective(X.toarray(), y, kernel=RBF(gamma=0.5), weighting=UniformCost(C=1.0))
    assert objective.evaluate({}, rows=30).loss == dense.evaluate({}, rows=30).loss


def test_several_classes_and_own_kernels_of_sparse_rows():
    """Pairs of classes and a user's kernel see the sparse rows."""
    X, y = sparse_data()
    labels = y + 2 * (np.arange(len(y)) % 3 == 0)

    def linear(A, B):
        assert sparse.issparse(A)
        return (A @ B.T).toarray()

    fixed = {"weighting": UniformCost(C=1.0)}
    own = SpanObjective(X, labels, kernel=linear, **fixed)({})
    assert own == SpanObjective(X.toarray(), labels, kernel="linear", **fixed)({})


def test_sparse_numbers_that_are_not_finite_are_found():
    """The row and column are named, also where repeated entries overflow together."""
    X, y = sparse_data()
    X.data[40] = np.nan
    row = int(np.searchsorted(X.indptr, 40, side="right")) - 1
    message = f"got nan in row {row}, column {X.indices[40]}"
    with pytest.raises(ValueError, match=message):
        SpanObjective(X, y)
    repeated = sparse.coo_array(([1e308, 1e308, 1.0], ([1, 1, 0], [2, 2, 0])), shape=(4, 3))
    with pytest.raises(ValueError, match="got inf in row 1, column 2"):
        SpanObjective(repeated, [0, 1, 0, 1])
