import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from span_hpo import Predictor, Scaling
from span_hpo.io.scaling import scaling_of
from tests.io.models import signed_values


@pytest.mark.parametrize(
    "scaler",
    [
        MinMaxScaler((-1, 1)),
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
    ],
)
def test_scaling_travels_with_the_model(scaler, tmp_path):
    """A model that knows its scaling takes raw features."""
    X, labels = load_iris(return_X_y=True)
    model = SVC(C=2.0, gamma=0.5).fit(scaler.fit_transform(X), labels)
    Predictor.from_svc(model, scaler=scaler).save(tmp_path / "m.json")
    loaded = Predictor.load(tmp_path / "m.json")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(scaler.transform(X)))
    np.testing.assert_allclose(
        loaded.decision_function(X), signed_values(model, scaler.transform(X)), atol=1e-9
    )
    for wrong in (X[:, :1], X[0]):
        with pytest.raises(ValueError, match=r"`X` must have shape \(rows, 4\)"):
            loaded.predict(wrong)


def test_scalers_that_cannot_be_kept():
    """Another object, one that clips, or one of other features is refused."""
    X, labels = load_iris(return_X_y=True)
    model = SVC(C=2.0, gamma=0.5).fit(X, labels)
    for scaler, kind, message in (
        (object(), TypeError, "must be a fitted MinMaxScaler, MaxAbsScaler or Stand"),
        (MinMaxScaler(clip=True).fit(X), ValueError, "must not clip"),
        (StandardScaler().fit(X[:, :2]), ValueError, "must scale the 4 features"),
    ):
        with pytest.raises(kind, match=message):
            Predictor.from_svc(model, scaler=scaler)


@pytest.mark.parametrize(
    "scaler",
    [
        MinMaxScaler(),
        MinMaxScaler((-3, 7)),
        MaxAbsScaler(),
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
        StandardScaler(with_mean=False, with_std=False),
    ],
)
def test_scaling_is_that_of_the_scaler(scaler):
    """(x - shift) * factor is what scikit-learn does, also to constant features."""
    X = np.random.default_rng(0).normal(5.0, [1e-3, 1.0, 1e3, 0.0], size=(30, 4))
    new = np.random.default_rng(1).normal(size=(5, 4))
    scaling = scaling_of(scaler.fit(X), 4)
    np.testing.assert_allclose((new - scaling.shift) * scaling.factor, scaler.transform(new))


def test_some_of_many_features_are_scaled():
    """Features without a factor stay as they are, in sparse and in dense rows alike."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 9)) * (rng.random((6, 9)) < 0.5)
    scaling = Scaling(np.zeros(3), np.array([2.0, 3.0, 0.5]), np.array([1, 4, 8]))
    expected = X * [1, 2, 1, 1, 3, 1, 1, 1, 0.5]
    np.testing.assert_array_equal(scaling.scaled(X), expected)
    found = scaling.scaled(sparse.csr_array(X))
    assert found.nnz == np.count_nonzero(X)
    np.testing.assert_array_equal(found.toarray(), expected)


def test_shifts_make_sparse_rows_dense():
    """Only a scaling without shifts keeps zeros; all others give the same numbers as an array."""
    X = np.array([[0.0, 2.0], [1.0, 0.0]])
    scaling = Scaling(np.array([0.0, 1.0]), np.array([3.0, 2.0]))
    assert not scaling.keeps_zeros
    np.testing.assert_array_equal(scaling.scaled(sparse.csr_array(X)), scaling.scaled(X))


def test_factors_after_a_scaling():
    """Scaled features are multiplied, and the scaling that they had before stays as it is."""
    X = np.random.default_rng(0).normal(5.0, 2.0, size=(30, 3))
    scaling = scaling_of(StandardScaler().fit(X), 3)
    factors = np.array([2.0, 0.0, 1e-3])
    found = scaling.times(factors).scaled(X)
    np.testing.assert_allclose(found, StandardScaler().fit_transform(X) * factors, atol=1e-12)
    np.testing.assert_allclose(scaling.scaled(X), StandardScaler().fit_transform(X), atol=1e-12)
