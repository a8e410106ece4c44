import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectFromModel, SelectKBest, VarianceThreshold, chi2
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    QuantileTransformer,
    StandardScaler,
    TargetEncoder,
)

from span_hpo import LeakWarning
from span_hpo.estimators.leaks import depends_on_labels, steps_that_depend_on_labels

X, Y = load_iris(return_X_y=True)
TEXTS = [f"one w{i % 7} x{i % 11}" for i in range(150)]


class Noise(TransformerMixin, BaseEstimator):
    """A transformer that adds numbers of NumPy's global generator."""

    def fit(self, X, y=None):
        self.noise_ = np.random.normal(size=X.shape)
        return self

    def transform(self, X):
        return X + self.noise_


class Means(TransformerMixin, BaseEstimator):
    """A transformer that a user may write, which hides that it looks at the labels."""

    def fit(self, X, y=None):
        self.mean_ = X[np.asarray(y) == y[0]].mean(axis=0)
        return self

    def transform(self, X):
        return X - self.mean_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags


@pytest.mark.parametrize(
    ("transformer", "rows"),
    [
        (StandardScaler(), X),
        (MinMaxScaler(), X),
        (MaxAbsScaler(), csr_array(X)),
        (QuantileTransformer(n_quantiles=20, subsample=100), X),
        (KBinsDiscretizer(), X),
        (PCA(2, svd_solver="randomized"), X),
        (TruncatedSVD(2), csr_array(X)),
        (Nystroem(n_components=20), X),
        (RBFSampler(random_state=np.random.RandomState(1)), X),
        (KMeans(3), X),
        (VarianceThreshold(0.2), X),
        (SelectKBest(k="all"), X),
        (OneHotEncoder(), np.round(X)),
        (TfidfVectorizer(), TEXTS),
        (FunctionTransformer(lambda rows: rows**2), X),
        (FrozenEstimator(SelectKBest(k=2).fit(X, Y)), X),
        (Noise(), X),
        (make_column_transformer((StandardScaler(), [0, 1]), (PCA(1), [2, 3])), X),
        (make_pipeline(StandardScaler(), PCA(2)), X),
    ],
    ids=lambda part: type(part).__name__,
)
def test_transformers_of_features_do_not(transformer, rows):
    """What looks at features only is recognised, also with random numbers and sparse rows."""
    assert not depends_on_labels(transformer, rows, Y)


@pytest.mark.parametrize(
    ("transformer", "rows"),
    [
        (SelectKBest(k=2), X),
        (SelectFromModel(ExtraTreesClassifier(5)), X),
        (LinearDiscriminantAnalysis(), X),
        (NeighborhoodComponentsAnalysis(max_iter=3), X),
        (TargetEncoder(cv=3), np.round(X)),
        (Means(), X),
        (FeatureUnion([("pca", PCA(1)), ("best", SelectKBest(k=1))]), X),
        (make_pipeline(CountVectorizer(), SelectKBest(chi2, k=5)), TEXTS),
        # One of two features is the better one in every second order of the labels.
        (make_column_transformer((StandardScaler(), [0, 1]), (SelectKBest(k=1), [2, 3])), X),
    ],
    ids=lambda part: type(part).__name__,
)
def test_transformers_that_look_at_labels_do(transformer, rows):
    """What looks at labels is found, also inside of others and behind a tag that denies it."""
    assert depends_on_labels(transformer, rows, Y)
    assert depends_on_labels(transformer, rows, np.array(["a", "b", "c"])[Y])


class OwnNoise(Noise):
    """A transformer that adds numbers of a generator that nobody can seed."""

    def fit(self, X, y=None):
        self.noise_ = np.random.default_rng().normal(size=X.shape)
        return self


def test_noise_that_has_no_seed_is_no_leak():
    """Fits with the same labels differ as well, so that a warning says that nothing is known."""
    steps = make_pipeline(StandardScaler(), OwnNoise(), SelectKBest(k=2), PCA(1)).steps
    with pytest.warns(LeakWarning, match="OwnNoise makes other features in every fit"):
        assert not depends_on_labels(OwnNoise(), X, Y)
    with pytest.warns(LeakWarning, match="OwnNoise makes other features in every fit"):
        assert steps_that_depend_on_labels(steps, X, Y) == ("selectkbest",)


def test_nothing_is_changed():
    """The transformer stays as it is, and so do the random numbers of the program."""
    transformer = Noise().fit(X)
    noise = transformer.noise_.copy()
    np.random.seed(3)
    expected = np.random.random()
    np.random.seed(3)
    depends_on_labels(transformer, X, Y)
    assert np.random.random() == expected
    np.testing.assert_array_equal(transformer.noise_, noise)


def test_steps_are_named():
    """The steps of a pipeline are judged one by one, each on what the steps before it make."""
    steps = make_pipeline(
        StandardScaler(),
        "passthrough",
        SelectKBest(k=3),
        None,
        PCA(2),
        LinearDiscriminantAnalysis(),
    ).steps
    assert steps_that_depend_on_labels(steps, X, Y) == ("selectkbest",)
    assert steps_that_depend_on_labels([*steps, ("last", None)], X, Y) == (
        "selectkbest",
        "lineardiscriminantanalysis",
    )
