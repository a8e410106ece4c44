import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC

from span_hpo import RBF, Predictor, SpanObjective, SpanSVC, UniformCost
from span_hpo.estimators.scaling import as_scale, fitted_scaler, scale_name, scaled
from tests.problems import two_moons

FIXED = {"kernel": RBF(gamma=0.5), "weighting": UniformCost(1.0)}
DENSE, SPARSE = np.eye(3), sparse.csr_array(np.eye(3))


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
        scaled_rows = model.objective_.data.X
        np.testing.assert_allclose([scaled_rows.min(), scaled_rows.max()], [0, 1], atol=1e-12)
    prediction = model.predict(sparse.csr_matrix(new) if kind == "sparse" else new)
    assert prediction.shape == (5,)
    with pytest.raises(ValueError, match="`scale` must be one of"):
        SpanSVC(scale="maximal").fit(X, y)


def test_sparse_features_are_not_scaled_by_default():
    """The default is "minmax" for dense features, and no scaling for sparse ones."""
    X, y = two_moons(60)
    dense, thin = (SpanSVC(**FIXED).fit(rows, y) for rows in (X, sparse.csr_array(X)))
    assert type(dense.scaler_) is MinMaxScaler
    assert dense.objective_.description()["scaling"] == "minmax"
    assert thin.scaler_ is None
    assert thin.objective_.description()["scaling"] is None
    plain = SpanSVC(**FIXED, scale=None).fit(X, y)
    np.testing.assert_allclose(thin.decision_function(X), plain.decision_function(X), atol=1e-6)


def test_scalings_by_hand():
    """Ranges become [0, 1], or means 0 and deviations 1; sparse zeros stay zeros."""
    X = np.array([[1.0, -4.0], [3.0, 0.0], [5.0, 4.0]])
    deviation = np.sqrt([8 / 3, 32 / 3])
    by_hand = {
        "auto": [[0, 0], [0.5, 0.5], [1, 1]],
        "minmax": [[0, 0], [0.5, 0.5], [1, 1]],
        "standard": (X - [3, 0]) / deviation,
    }
    for scale, expected in by_hand.items():
        np.testing.assert_allclose(scaled(fitted_scaler(scale, X), X), expected)
    by_hand = {"minmax": X / [5, 4], "standard": X / deviation}
    for scale, expected in by_hand.items():
        found = scaled(fitted_scaler(scale, sparse.csr_array(X)), sparse.csr_array(X))
        assert sparse.issparse(found)
        np.testing.assert_allclose(found.toarray(), expected)
    assert fitted_scaler(None, X) is fitted_scaler("auto", sparse.csr_array(X)) is None
    assert scaled(None, X) is X


def test_names_of_scalings():
    """Names are known, "auto" depends on the features, and "none" is None."""
    given = ("auto", "minmax", "standard", "none", None)
    dense = [as_scale(scale, DENSE) for scale in given]
    assert dense == ["minmax", "minmax", "standard", None, None]
    thin = [as_scale(scale, SPARSE) for scale in given]
    assert thin == [None, "minmax", "standard", None, None]
    scaler = RobustScaler()
    assert as_scale(scaler, SPARSE) is scaler
    assert SpanSVC(**FIXED, scale="none").fit(*two_moons(20)).scaler_ is None


@pytest.mark.parametrize("wrong", ["MinMax", 1, False, ["minmax"], np.zeros(2)])
def test_other_scalings_are_refused(wrong):
    """The message lists what is possible."""
    with pytest.raises(ValueError, match="`scale` must be one of") as caught:
        as_scale(wrong, DENSE)
    assert str(caught.value) == (
        "`scale` must be one of ['auto', 'minmax', 'standard', 'none'], None or a transformer of "
        f"scikit-learn such as RobustScaler(), got {wrong!r}."
    )


def test_the_class_of_a_transformer_is_refused():
    """A class cannot be cloned; the message shows the call that is missing."""
    with pytest.raises(
        TypeError, match="`scale` must be a transformer and not its class"
    ) as caught:
        SpanSVC(scale=RobustScaler).fit(*two_moons(30))
    assert str(caught.value).endswith("got RobustScaler. Use RobustScaler().")


def test_a_transformer_is_cloned_and_used_for_new_rows():
    """The model is that of the transformed rows, and the argument itself is not fitted."""
    X, y = two_moons(60)
    X = X * [100.0, 0.01]
    scaler = RobustScaler(quantile_range=(10.0, 90.0))
    model = SpanSVC(**FIXED, scale=scaler).fit(X, y)
    assert not hasattr(scaler, "center_")
    features = clone(scaler).fit(X).transform(X)
    expected = SpanObjective(features, y, **FIXED)
    assert model.loo_error_ == expected({})
    svc = expected.fit_model({})
    new = X[:9] * 1.1
    transformed = clone(scaler).fit(X).transform(new)
    np.testing.assert_array_equal(model.decision_function(new), svc.decision_function(transformed))
    assert model.get_params()["scale__quantile_range"] == (10.0, 90.0)
    assert clone(model).scale.quantile_range == (10.0, 90.0)


def test_transformers_may_change_the_features():
    """Other numbers of features, labels, DataFrames and sparse features are all possible."""
    rng = np.random.default_rng(0)
    X, y = two_moons(60)
    X = np.column_stack([X, rng.normal(size=(60, 3))])
    for scale in (
        PCA(2),
        make_pipeline(StandardScaler(), SelectKBest(k=2)),
        StandardScaler().set_output(transform="pandas"),
        FunctionTransformer(sparse.csr_array),
    ):
        model = SpanSVC(**FIXED, scale=scale).fit(X, y)
        plain = make_pipeline(clone(scale), SVC(gamma=0.5, tol=1e-6)).fit(X, y)
        expected = plain.decision_function(X)
        np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-3)
        assert model.predict_proba(X[:3]).shape == (3, 2)


class Doubled(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.vstack([X, X])


def test_what_a_transformer_returns_is_checked():
    """One row of finite numbers is wanted for each row; the message names the transformer."""
    X, y = two_moons(30)
    with pytest.raises(ValueError, match="`scale` must give one row of features") as caught:
        SpanSVC(**FIXED, scale=Doubled()).fit(X, y)
    assert str(caught.value).endswith("for each of the 30 rows, got shape (60, 2) from Doubled().")
    with (
        np.errstate(invalid="ignore"),
        pytest.raises(ValueError, match="`scale` must give finite numbers, got nan from Func"),
    ):
        SpanSVC(**FIXED, scale=FunctionTransformer(np.sqrt)).fit(X, y)


def test_a_kernel_matrix_takes_no_transformer():
    """A kernel matrix is not scaled, so a transformer for it is an error."""
    X, y = two_moons(30)
    model = SpanSVC("precomputed", UniformCost(1.0), scale=RobustScaler())
    with pytest.raises(ValueError, match="`scale` must not be a transformer") as caught:
        model.fit(X @ X.T, y)
    assert str(caught.value).endswith("kernel, which is not scaled, got RobustScaler(). Use None.")


def test_names_are_the_same_in_every_process():
    """A study knows a transformer by its name, which holds no address."""
    assert scale_name(None) is None
    assert scale_name("minmax") == "minmax"
    assert scale_name(RobustScaler(with_centering=False)) == "RobustScaler(with_centering=False)"
    assert scale_name(FunctionTransformer(two_moons)) == (
        "FunctionTransformer(func=<function two_moons>)"
    )


@pytest.mark.parametrize("scale", [MinMaxScaler((-1, 1)), MaxAbsScaler(), StandardScaler()])
def test_scalers_in_files(scale, tmp_path):
    """A file holds the scalers that multiply and shift by numbers."""
    X, y = two_moons(60)
    model = SpanSVC(**FIXED, scale=scale).fit(X, y)
    model.as_predictor().save(tmp_path / "model.json")
    found = Predictor.load(tmp_path / "model.json").decision_function(X)
    np.testing.assert_allclose(found, model.decision_function(X), atol=1e-9)


def test_other_transformers_do_not_fit_in_a_file():
    """The refusal says what a file can hold, and how to keep the model."""
    model = SpanSVC(**FIXED, scale=RobustScaler()).fit(*two_moons(60))
    with pytest.raises(ValueError, match="`scale` must be 'auto'") as caught:
        model.as_predictor()
    assert str(caught.value) == (
        "`scale` must be 'auto', 'minmax', 'standard', None or a MinMaxScaler, MaxAbsScaler or "
        "StandardScaler for a model in a file, got RobustScaler(). Keep this model with joblib "
        "instead."
    )
