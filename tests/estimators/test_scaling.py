import numpy as np
import pytest
from scipy import sparse

from span_hpo import RBF, SpanSVC, UniformCost
from tests.problems import two_moons

FIXED = {"kernel": RBF(gamma=0.5), "weighting": UniformCost(1.0)}


@pytest.mark.parametrize("scale", ["minmax", "standard", None])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_scaling_is_fitted_on_the_training_rows(scale, kind):
    """New rows are scaled as the training rows were; sparse features stay sparse."""
    X, y = two_moons(60)
    X = X * [100.0, 0.01] + (5.0 if kind == "dense" else 0.0)
    new = X[:5] * 1.5
    given = sparse.csr_matrix(X) if kind == "sparse" else X
    model = SpanSVC(**FIXED, scale=scale).fit(given, y)
    if scale is None:
        assert model.scaler_ is None
    elif kind == "sparse":
        assert sparse.issparse(model.objective_.data.X)
    elif scale == "minmax":
        scaled = model.objective_.data.X
        np.testing.assert_allclose([scaled.min(), scaled.max()], [0, 1], atol=1e-12)
    prediction = model.predict(sparse.csr_matrix(new) if kind == "sparse" else new)
    assert prediction.shape == (5,)
    with pytest.raises(ValueError, match="`scale` must be one of"):
        SpanSVC(scale="maximal").fit(X, y)
