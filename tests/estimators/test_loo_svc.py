"""Scikit-learn's SVC that knows its leave-one-out error."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array, csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import f1_score
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from span_hpo import RBF, AllRows, LeakWarning, LooSVC, Predictor, SpanSVC, UniformCost, loo_scorer
from tests.problems import two_moons

TWO_EQUAL_ROWS = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "the words for gamma and class weights do not know the weights of rows, as in SVC",
)
LEARNED = ("support_", "n_support_", "intercept_", "class_weight_", "n_iter_", "fit_status_")
IRIS = load_iris(return_X_y=True)


def problem(classes=2, count=60):
    """Return rows that are not scaled, with text as labels of classes of different size."""
    X, y = two_moons(count)
    codes = (y > 0).astype(int)
    codes[: count // 3] = classes - 1
    return 3 * X + 1, np.array(["bad", "good", "odd"])[codes]


@pytest.mark.filterwarnings("ignore::span_hpo.LeakWarning")  # the checks score training rows
@parametrize_with_checks(
    [LooSVC(), LooSVC(kernel="linear", loo_method="exact", class_weight="balanced")],
    expected_failed_checks=lambda one: TWO_EQUAL_ROWS,
)
def test_estimator_checks(estimator, check):
    """It is a classifier by scikit-learn's rules."""
    check(estimator)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"gamma": "auto", "C": 5.0},
        {"gamma": 0.7, "class_weight": "balanced"},
        {"kernel": "linear", "class_weight": {"bad": 3.0}},
        {"kernel": "poly", "degree": 2, "C": 0.2},
        {"kernel": "poly", "coef0": 1.0, "gamma": 0.1, "C": 0.1, "decision_function_shape": "ovo"},
        {"kernel": laplacian_kernel},
        {"kernel": RBF(gamma=0.4), "C": 2.0},
        {"break_ties": True, "shrinking": False, "random_state": 3},
    ],
)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_predicts_as_scikit_learn(arguments, classes, weighted):
    """Predictions, decision values and attributes are those of SVC with the same arguments."""
    X, y = problem(classes)
    weight = np.random.default_rng(0).uniform(0.1, 3, len(y)) if weighted else None
    for tol in (1e-3, 1e-9):
        model = LooSVC(**arguments, tol=tol).fit(X, y, weight)
        expected = SVC(**arguments, tol=tol).fit(X, y, weight)
        np.testing.assert_array_equal(model.predict(X), expected.predict(X))
        values = expected.decision_function(X)
        np.testing.assert_allclose(model.decision_function(X), values, atol=1e-6)
    for name in LEARNED:
        np.testing.assert_allclose(getattr(model, name), getattr(expected, name), rtol=1e-6)
    # The solution of which the leave-one-out values are read is the same one.
    solved = model.objective_.solution({}).decision_values
    pairs = SVC(**arguments | {"decision_function_shape": "ovo", "break_ties": False}, tol=1e-9)
    values = pairs.fit(X, y, weight).decision_function(X)
    np.testing.assert_allclose(solved, values if classes == 2 else -values, rtol=1e-4, atol=1e-5)


def test_linear_weights_are_there_for_the_linear_kernel_only():
    """The attribute `coef_` is that of SVC, and otherwise missing."""
    X, y = problem()
    expected = SVC(kernel="linear").fit(X, y).coef_
    np.testing.assert_array_equal(LooSVC(kernel="linear").fit(X, y).coef_, expected)
    assert not hasattr(LooSVC().fit(X, y), "coef_")


@pytest.mark.parametrize("kind", [csr_array, csr_matrix])
def test_sparse_rows(kind):
    """Sparse rows give what the same dense rows give, and SVC the same values."""
    X, y = problem()
    X = np.where(X > 2, X, 0)
    model, dense = LooSVC(tol=1e-9).fit(kind(X), y), LooSVC(tol=1e-9).fit(X, y)
    values = SVC(tol=1e-9).fit(csr_matrix(X), y).decision_function(csr_matrix(X))
    np.testing.assert_allclose(model.decision_function(kind(X)), values, atol=1e-6)
    np.testing.assert_allclose(model.loo_decision_values_, dense.loo_decision_values_, atol=1e-6)


def test_text_in_a_frame_has_names():
    """Names of columns are kept and compared, as scikit-learn does."""
    X, y = problem()
    frame = pd.DataFrame(X, columns=["left", "right"])
    model = LooSVC().fit(frame, pd.Series(y))
    assert model.feature_names_in_.tolist() == ["left", "right"]
    np.testing.assert_array_equal(model.predict(frame), LooSVC().fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["right", "left"]])


@pytest.mark.parametrize("classes", [2, 3])
def test_values_are_those_of_refits(classes):
    """Exact values are the decision values of SVC, fitted without the row by its numbers."""
    X, y = problem(classes, 30)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    model = LooSVC(C=3.0, class_weight="balanced", loo_method="exact", tol=1e-9).fit(X, y, weight)
    costs = dict(zip(model.classes_, model.class_weight_, strict=True))
    plain = SVC(C=3.0, gamma=1 / (2 * X.var()), class_weight=costs, tol=1e-9)
    plain.set_params(decision_function_shape="ovo")
    own, wrong = model.loo_decision_values_, []
    assert own.shape == ((30,) if classes == 2 else (30, 3))
    for row in range(30):
        others = np.delete(np.arange(30), row)
        refit = plain.fit(X[others], y[others], weight[others])
        value = refit.decision_function(X[[row]])[0]
        np.testing.assert_allclose(own[row], value if classes == 2 else -value, atol=1e-4)
        wrong.append(refit.predict(X[[row]])[0] != y[row])
    assert model.loo_error_ == np.mean(wrong) == model.loo_bounds_[0] == model.loo_bounds_[1]
    assert model.loo_standard_error_ == pytest.approx(np.std(wrong, ddof=1) / np.sqrt(30))


def test_probabilities_of_rows_that_are_left_out():
    """They add up to 1, agree with the leave-one-out classes, and are calibrated on them."""
    for classes in (2, 3):
        X, y = problem(classes, 90)
        model = LooSVC(C=10.0).fit(X, y)
        assert model.loo_proba_.shape == (90, classes)
        np.testing.assert_allclose(model.loo_proba_.sum(axis=1), 1)
        predicted = model.classes_[model.loo_proba_.argmax(axis=1)]
        assert np.mean(predicted != y) == model.loo_error_
        # The mean probability of each class is its share of the rows, as Platt's sigmoid makes it.
        shares = [np.mean(y == label) for label in model.classes_]
        np.testing.assert_allclose(model.loo_proba_.mean(axis=0), shares, atol=0.05)
    own = model.loo_proba_[np.arange(90), np.searchsorted(model.classes_, y)]
    inside = model.predict_proba(X)[np.arange(90), np.searchsorted(model.classes_, y)]
    assert np.log(own).mean() < np.log(inside).mean()


@pytest.mark.parametrize("precomputed", [False, True])
def test_rows_without_weight_are_not_there(precomputed):
    """Rows of weight 0 have no values, and others those that they have without these rows."""
    X, y = problem(3, 90)
    weight = np.ones(90)
    weight[::4] = 0
    weight[y == "odd"] = 0
    kept = np.flatnonzero(weight)
    settings = {"gamma": 1 / (2 * X.var()), "C": 2.0}
    few = LooSVC(**settings, class_weight={"bad": 90 / 3 / (y == "bad").sum(), "good": 1.0})
    few.set_params(class_weight={label: 30 / (y == label).sum() for label in ("bad", "good")})
    if precomputed:
        Z = rbf_kernel(X, gamma=settings["gamma"])
        model = LooSVC(kernel="precomputed", class_weight="balanced", C=2.0).fit(Z, y, weight)
        assert model.support_vectors_.shape[1] == 0
    else:
        Z = X
        model = LooSVC(C=2.0, class_weight="balanced").fit(X, y, weight)
        np.testing.assert_array_equal(X[model.support_], model.support_vectors_)
    few.fit(X[kept], y[kept])
    assert model.classes_.tolist() == ["bad", "good"]
    np.testing.assert_array_equal(model.support_, kept[few.support_])
    np.testing.assert_array_equal(np.isnan(model.loo_decision_values_), weight == 0)
    np.testing.assert_array_equal(np.isnan(model.loo_proba_[:, 0]), weight == 0)
    np.testing.assert_allclose(model.loo_decision_values_[kept], few.loo_decision_values_)
    np.testing.assert_allclose(model.decision_function(Z), few.decision_function(X), atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(Z), few.predict_proba(X), atol=1e-6)
    assert model.shape_fit_ == Z.shape
    with pytest.raises(ValueError, match="at least one non-zero"):
        model.fit(Z, y, np.zeros(90))


def test_suspects_are_found():
    """Flipped labels far inside the other class are suspects."""
    rng, y = np.random.default_rng(0), np.where(np.arange(120) % 2, 1.0, -1.0)
    X = rng.normal(size=(120, 2)) + 3 * y[:, None]
    y[::10] *= -1
    model = LooSVC(C=5.0).fit(X, y)
    assert set(model.suspects_) == set(range(0, 120, 10))
    same = SpanSVC(RBF(gamma=1.0), UniformCost(1.0), scale=None).fit(X, y)
    np.testing.assert_allclose(model.label_error_probability_, same.label_error_probability_)


def test_takes_the_parameters_of_scikit_learn():
    """What SVC has for parameters are arguments, the deprecated one as well."""
    X, y = problem()
    theirs = SVC(C=2.0, class_weight="balanced").get_params()
    assert theirs.keys() < LooSVC().get_params().keys()
    model = LooSVC(**theirs).fit(X, y)
    assert type(model.estimator_) is SVC
    assert model.estimator_.get_params() == theirs | {"gamma": 1 / (2 * X.var())}
    np.testing.assert_array_equal(clone(model.estimator_).fit(X, y).predict(X), model.predict(X))


def test_the_plain_model_is_fitted_when_it_is_used(monkeypatch):
    """A fit with its leave-one-out values needs no LIBSVM; the first prediction fits once."""
    fits = []
    plain = SVC.fit
    monkeypatch.setattr(
        SVC, "fit", lambda self, X, y, **more: fits.append(1) or plain(self, X, y, **more)
    )
    X, y = problem()
    model = LooSVC().fit(X, y)
    assert 0 <= model.loo_error_ <= model.loo_proba_.max()
    assert not fits
    copied = pickle.loads(pickle.dumps(model))
    X[:] = 0  # the model has rows of its own
    new = problem()[0]
    np.testing.assert_array_equal(model.predict(new), copied.predict(new))
    model.decision_function(new)
    assert len(fits) == 2
    assert clone(model).get_params() == model.get_params()


def test_method_of_leave_one_out():
    """By default small data are proven, and larger ones judged by the span-rule."""
    assert LooSVC().fit(*problem(count=60)).loo_method_ == "exact"
    assert LooSVC().fit(*problem(count=80)).loo_method_ == "span"
    assert LooSVC().fit(*IRIS).loo_method_ == "span"
    model = LooSVC(loo_method="refit").fit(*problem())
    assert model.loo_method_ == model.loo_.method == model.objective_.loo_method == "refit"


def test_model_file():
    """The model can be kept in a file without pickle."""
    X, y = problem()
    model = LooSVC(C=2.0).fit(X, y)
    predictor = model.as_predictor()
    assert isinstance(predictor, Predictor)
    np.testing.assert_array_equal(predictor.predict(X), model.predict(X))


@pytest.mark.parametrize("threshold", [None, 0.3])
@pytest.mark.parametrize("kind", [object, "<U5", "float32", "int8", bool])
def test_labels_have_the_type_of_those_of_scikit_learn(kind, threshold):
    """Classes and predictions have the type that the labels of the fit had."""
    X, codes = problem()
    names = np.array(["no", "yes"]) if kind in (object, "<U5") else np.arange(2)
    labels = names.astype(kind)[(codes == codes[0]).astype(int)]
    model, plain = LooSVC(threshold=threshold).fit(X, labels), SVC().fit(X, labels)
    assert model.classes_.dtype == plain.classes_.dtype
    assert model.predict(X).dtype == plain.predict(X).dtype
    np.testing.assert_array_equal(model.classes_, plain.classes_)
    if threshold is None:
        np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    again = model.as_predictor().predict(X)
    np.testing.assert_array_equal(again, model.predict(X))
    np.testing.assert_array_equal(model.as_sklearn().predict(X), model.predict(X))
    assert model.predict_proba(X).shape == (len(X), 2)
    assert set(model.left_out().predict(np.arange(9)).tolist()) <= set(names.tolist())


def test_thresholds():
    """Predictions switch where the metric or the costs say, and other values stay as they are."""
    X, y = two_moons(80, noise=0.5)
    y[:30] = -1
    plain = LooSVC(C=2.0).fit(X, y)
    assert plain.threshold_ == 0
    model = LooSVC(C=2.0, threshold="loo", metric="f1").fit(X, y)
    found = plain.loo_decision_values_ >= model.threshold_
    assert model.threshold_loss_ == pytest.approx(1 - f1_score(y > 0, found))
    assert model.threshold_loss_ <= 1 - f1_score(y > 0, plain.loo_decision_values_ > 0)
    np.testing.assert_array_equal(
        model.predict(X) > 0, plain.decision_function(X) >= model.threshold_
    )
    costly = LooSVC(C=2.0, miss_cost={-1: 1, 1: 20}).fit(X, y)
    assert costly.threshold_ < 0
    assert costly.loo_error_ == model.loo_error_ == plain.loo_error_
    assert loo_scorer("f1")(model, X, y) == loo_scorer("f1")(plain, X, y)
    with pytest.raises(ValueError, match="`threshold` must not be given for more than two classes"):
        model.fit(*IRIS)


@pytest.mark.parametrize("weighted", [False, True])
def test_becomes_plain_objects(weighted):
    """The model can leave as objects of scikit-learn, with the same labels and probabilities."""
    X, y = problem()
    model = LooSVC(C=2.0).fit(X, y, np.linspace(0.2, 2, 60) if weighted else None)
    plain = model.as_sklearn()
    np.testing.assert_array_equal(plain.predict(X), model.predict(X))
    np.testing.assert_allclose(plain.predict_proba(X), model.predict_proba(X), atol=1e-4)


def test_a_limit_of_iterations():
    """A limit that is too low is reported as by SVC."""
    X, y = problem()
    model = LooSVC(max_iter=3)
    with pytest.warns(ConvergenceWarning):
        assert model.fit(X, y).fit_status_ == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert LooSVC(max_iter=100_000).fit(X, y).fit_status_ == 0


def test_nothing_before_the_fit():
    """What is learned is missing before the fit, and scikit-learn's error says so."""
    model = LooSVC()
    for name in ("estimator_", "loo_error_", "loo_proba_", "loo_standard_error_", "support_"):
        assert not hasattr(model, name)
    with pytest.raises(NotFittedError):
        model.left_out()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"probability": True}, "`probability` must be False, because `predict_proba` is always"),
        ({"kernel": "sigmoid"}, "`kernel` must be positive semi-definite for leave-one-out"),
        ({"loo_method": "folds"}, "`loo_method` must be one of ['auto', 'span', 'exact'"),
        ({"C": -1.0}, "`C` must be a finite number above 0, got -1.0"),
        ({"class_weight": {"ugly": 1.0}}, "`class_weight` must have labels of `y`"),
        ({"memory_limit": -1}, "`memory_limit` must be a finite number of at least 0, got -1"),
    ],
)
def test_wrong_arguments_are_named(settings, message):
    """What cannot be is refused in one sentence."""
    with pytest.raises(ValueError, match="must") as caught:
        LooSVC(**settings).fit(*problem())
    assert message in str(caught.value)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_a_score_of_the_training_rows_warns(form):
    """Without `loo_scorer` a search over all rows would choose by the accuracy of the fit."""
    X, y = two_moons(60)
    model = LooSVC(gamma=100.0).fit(form(X), y)
    with pytest.warns(LeakWarning, match=r"`score` has been given the training rows, .*loo_scorer"):
        assert model.score(form(X), y) == 1.0
    with pytest.warns(LeakWarning, match="training rows"):
        GridSearchCV(LooSVC(), {"C": [1.0]}, cv=AllRows()).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.score(form(X[:-1]), y[:-1])
        model.score(form(X), -y)
        model.score(form(X + 0.1), y)
