import numpy as np
import pytest
from scipy import sparse

from span_hpo import RBF, SpanSVC, UniformCost
from span_hpo.estimators.scaling import as_scale, fitted_scaler
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


def test_scalings_by_hand():
    """Ranges become [0, 1], or means 0 and deviations 1; sparse zeros stay zeros."""
    X = np.array([[1.0, -4.0], [3.0, 0.0], [5.0, 4.0]])
    deviation = np.sqrt([8 / 3, 32 / 3])
    by_hand = {
        "minmax": [[0, 0], [0.5, 0.5], [1, 1]],
        "standard": (X - [3, 0]) / deviation,
    }
    for scale, expected in by_hand.items():
        np.testing.assert_allclose(fitted_scaler(scale, X).transform(X), expected)
    by_hand = {"minmax": X / [5, 4], "standard": X / deviation}
    for scale, expected in by_hand.items():
        found = fitted_scaler(scale, sparse.csr_array(X)).transform(sparse.csr_array(X))
        assert sparse.issparse(found)
        np.testing.assert_allclose(found.toarray(), expected)
    assert fitted_scaler(None, X) is None


def test_names_of_scalings():
    """The three names are taken as they are, and anything else lists them."""
    assert [as_scale(scale) for scale in ("minmax", "standard", None)] == [
        "minmax",
        "standard",
        None,
    ]
    for wrong in ("MinMax", 1, False):
        with pytest.raises(
            ValueError, match=r"`scale` must be one of \['minmax', 'standard', None\]"
        ):
            as_scale(wrong)
