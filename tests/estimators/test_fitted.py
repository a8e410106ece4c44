"""What fitted estimators predict, and what they know about their rows."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from span_hpo import RBF, Predictor, SpanSVC, UniformCost
from tests.problems import two_moons

FIXED = {"kernel": RBF(gamma=0.5), "weighting": UniformCost(1.0)}


def test_several_classes():
    """Digits: ten classes, their probabilities, and labels of any kind."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, np.array([f"d{digit}" for digit in y]), train_size=300, random_state=0, stratify=y
    )
    model = SpanSVC(n_trials=8, random_state=0).fit(X_train, y_train)
    assert model.score(X_test, y_test) > 0.93
    probabilities = model.predict_proba(X_test)
    assert probabilities.shape == (len(y_test), 10)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert (probabilities >= 0).all()
    elected = model.classes_[probabilities.argmax(axis=1)]
    assert np.mean(elected == model.predict(X_test)) > 0.97
    assert log_loss(y_test, probabilities, labels=model.classes_) < 0.4


def test_exact_method_calibrates_with_values():
    """With loo_method="exact" the values behind the probabilities are exact, not bounds."""
    X, y = two_moons(60)
    model = SpanSVC(**FIXED, loo_method="exact").fit(X, y)
    assert model.loo_.exact.all()
    assert model.loo_bounds_ == (model.loo_error_, model.loo_error_)


def test_suspects_are_probably_wrong():
    """Rows with a probability above one half are listed, and most of them were flipped."""
    X, y = two_moons(400, noise=0.15)
    flipped = np.random.default_rng(0).choice(400, 40, replace=False)
    y[flipped] *= -1
    model = SpanSVC(**FIXED).fit(X, y)
    p, suspects = model.label_error_probability_, model.suspects_
    assert p.shape == (400,)
    assert set(suspects) == set(np.flatnonzero(p > 0.5))
    assert (np.diff(p[suspects]) <= 0).all()
    right = np.isin(suspects, flipped)
    assert len(suspects) >= 25
    assert right.mean() > 0.85
    assert p[suspects].sum() == pytest.approx(right.sum(), rel=0.2)


def test_overlap_is_no_suspicion():
    """A quarter of the rows is misclassified, but no label is wrong, and hardly any is listed."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 200)
    X = rng.normal(size=(400, 2)) + y[:, None]
    model = SpanSVC(**FIXED).fit(X, y)
    assert model.loo_error_ > 0.2
    assert len(model.suspects_) <= 2


def test_suspects_of_a_kernel_matrix_and_of_another_fit():
    """A kernel matrix knows the distances; a new fit forgets the suspects of the previous one."""
    X, y = two_moons(300, noise=0.1)
    y[:40] *= -1
    settings = {"weighting": UniformCost(1.0), "scale": None}
    plain = SpanSVC("linear", **settings).fit(X, y)
    model = SpanSVC("precomputed", **settings).fit(X @ X.T, y)
    np.testing.assert_array_equal(model.suspects_, plain.suspects_)
    assert len(plain.suspects_)
    y[:40] *= -1
    assert not len(plain.fit(X, y).suspects_)


def test_suspects_need_a_fit():
    """Before `fit` there are no suspects."""
    with pytest.raises(NotFittedError, match="not fitted yet"):
        SpanSVC().suspects_  # noqa: B018  the access itself raises


@pytest.mark.parametrize("scale", ["minmax", "standard", None])
def test_model_can_be_kept_in_a_file(tmp_path, scale):
    """A predictor with the scaler gives the predictions of the classifier, from raw features."""
    X, y = load_iris(return_X_y=True)
    model = SpanSVC(n_trials=4, scale=scale, random_state=0).fit(X, y)
    predictor = Predictor.from_svc(
        model.estimator_, scaler=model.scaler_, parameters=model.best_params_
    )
    predictor.save(tmp_path / "model.json")
    loaded = Predictor.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_plain_objects_of_scikit_learn(n_classes):
    """The pipeline takes rows before scaling and names the same labels and probabilities."""
    X, y = make_blobs(120, centers=n_classes, cluster_std=4.0, random_state=0)
    model = SpanSVC(**FIXED).fit(X, y)
    plain = model.as_sklearn()
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    if n_classes == 2:
        np.testing.assert_allclose(plain.predict_proba(X), model.predict_proba(X), atol=1e-4)
    assert type(plain).__module__.startswith("sklearn.")
