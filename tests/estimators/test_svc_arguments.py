import numpy as np
import pytest
from scipy.sparse import coo_matrix, csc_matrix, csr_array
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.svm import SVC

from span_hpo import ARD, RBF, Float, Precomputed, SpanObjective
from span_hpo.estimators.svc_arguments import SVC_DEFAULTS, SVCArguments
from tests.problems import rbf, two_moons

TIGHT = {"tol": 1e-10}


def problem(classes=2):
    """Return rows with different means and labels of two or three classes of different size."""
    X, y = two_moons(60)
    codes = (y > 0).astype(int)
    codes[:20] = classes - 1
    return 3 * X + 1, np.array(["bad", "good", "odd"])[codes]


def fitted_values(arguments, X, y):
    """Return the decision values of our fit of the translated arguments."""
    given = SVCArguments.of(arguments)
    objective = SpanObjective(
        X, y, kernel=given.kernel_of(X), weighting=given.weighting_of(y), tol=given.tol
    )
    return objective.solution({}).decision_values


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"kernel": "rbf", "gamma": "auto", "C": 3.0},
        {"kernel": "rbf", "gamma": 0.7, "class_weight": "balanced"},
        {"kernel": "linear", "C": 0.1, "class_weight": {"bad": 3.0}},
        {"kernel": "poly", "degree": 2, "C": 0.2},
        {"kernel": "poly", "degree": 3, "coef0": 1.5, "gamma": 0.1, "C": 0.01},
        {"kernel": laplacian_kernel, "C": 2.0},
        {"kernel": RBF(gamma=0.3), "class_weight": {"bad": 0.5, "good": 2}},
    ],
)
def test_fits_equal_those_of_scikit_learn(arguments):
    """Every argument means what it means in scikit-learn's SVC."""
    X, y = problem()
    expected = SVC(**arguments, **TIGHT).fit(X, y).decision_function(X)
    np.testing.assert_allclose(fitted_values(arguments | TIGHT, X, y), expected, atol=1e-6)


@pytest.mark.parametrize("class_weight", [None, "balanced", {"odd": 0.2}])
def test_several_classes(class_weight):
    """The costs of three classes are those of scikit-learn's pairs."""
    X, y = problem(3)
    arguments = {"class_weight": class_weight, "C": 2.0, **TIGHT}
    model = SVC(**arguments, decision_function_shape="ovo").fit(X, y)
    # scikit-learn's values are positive for the first class of a pair.
    values = fitted_values(arguments, X, y)
    np.testing.assert_allclose(values, -model.decision_function(X), atol=1e-6)
    weights = SVCArguments.of(arguments).class_costs(y)
    assert list(weights) == ["bad", "good", "odd"]
    np.testing.assert_allclose(list(weights.values()), 2 * model.class_weight_)


@pytest.mark.parametrize("kind", [np.asarray, csr_array, csc_matrix, coo_matrix])
def test_words_for_gamma(kind):
    """The words for gamma give the numbers that scikit-learn computes, also from sparse rows."""
    X = np.round(problem()[0] * (np.arange(2) == 0), 1)
    auto, scale = (SVCArguments.of({"gamma": word}).gamma_of(kind(X)) for word in ("auto", "scale"))
    assert auto == 0.5
    assert scale == pytest.approx(1 / (2 * X.var()))
    assert SVCArguments.of({}).gamma_of(kind(np.full((5, 2), 3.0))) == 1.0


def test_precomputed_kernel():
    """Kernel matrices need no gamma."""
    X, y = problem()
    K = rbf(X, 0.4)
    given = SVCArguments.of({"kernel": "precomputed", "gamma": "scale"})
    assert given.is_precomputed
    objective = SpanObjective(K, y, kernel=given.kernel_of(K), weighting=given.weighting_of(y))
    expected = SVC(gamma=0.4, **TIGHT).fit(X, y).decision_function(X)
    np.testing.assert_allclose(objective.solution({}).decision_values, expected, atol=1e-6)


def test_classes_without_rows_have_no_cost():
    """Rows of weight 0 count in "balanced", as in scikit-learn, but a class needs other rows."""
    X, y = problem(3)
    given = SVCArguments.of({"class_weight": "balanced"})
    kept = np.flatnonzero(y != "odd")
    data = SpanObjective(X[kept], y[kept], weighting=given.weighting_of(y, kept)).data
    costs = given.weighting_of(y, kept).bind(data).costs(data, {})
    expected = {label: 60 / (3 * (y == label).sum()) for label in ("bad", "good")}
    np.testing.assert_allclose(costs, [expected[label] for label in y[kept]])


def test_defaults_are_those_of_scikit_learn():
    """What is not given has the default of SVC, and its parameters are accepted as they are."""
    theirs = SVC().get_params()
    assert {name: theirs[name] for name in SVC_DEFAULTS} == SVC_DEFAULTS
    assert SVCArguments.of(theirs) == SVCArguments.of({})
    assert SVCArguments.of({"max_iter": 7}).max_iter == 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"C": 0}, "`C` must be a finite number above 0, got 0"),
        ({"C": "1"}, "`C` must be a finite number above 0, got '1'"),
        ({"gamma": 0.0}, "`gamma` must be a finite number above 0, got 0.0"),
        ({"gamma": "scaled"}, "`gamma` must be one of ['scale', 'auto'] or a number above 0"),
        ({"kernel": "sigmoid"}, "which 'sigmoid' is not: use 'rbf', 'poly' or 'linear'"),
        ({"kernel": "gauss"}, "`kernel` must be one of ['linear', 'poly', 'rbf', 'precomputed']"),
        ({"kernel": RBF}, "`kernel` must be one of"),
        ({"kernel": RBF()}, "`kernel` must have fixed hyperparameters for a single fit"),
        ({"kernel": "ard"}, "`kernel` must be ARD(gamma=[...]) with a number for each feature"),
        ({"kernel": ARD()}, "`kernel` must have fixed hyperparameters for a single fit"),
        ({"kernel": ARD(gamma=[1.0, Float(1, 2)])}, "`kernel` must have fixed hyperparameters"),
        ({"kernel": ARD(gamma={"gamma_0": Float(1, 2)})}, "`kernel` must have fixed"),
        ({"kernel": Precomputed()}, "`kernel` must be 'precomputed' for a kernel matrix"),
        ({"kernel": "poly", "degree": 0}, "`degree` must be a whole number of at least 1, got 0"),
        ({"degree": 2.5}, "`degree` must be a whole number of at least 0, got 2.5"),
        ({"kernel": "poly", "coef0": -1.0}, "`coef0` must be a finite number of at least 0"),
        ({"tol": 0}, "`tol` must be a finite number above 0, got 0"),
        ({"max_iter": 0}, "`max_iter` must be a whole number from 1 to"),
        ({"class_weight": "balance"}, "`class_weight` must be a dictionary from labels"),
        ({"class_weight": {"bad": -1}}, "`class_weight['bad']` must be a finite number above 0"),
        ({"probability": True}, "`probability` must be False, because `predict_proba` is always"),
        ({"decision_function_shape": "ova"}, "`decision_function_shape` must be one of"),
        ({"decision_function_shape": "ovo", "break_ties": True}, "`break_ties` must be False with"),
        ({"cache_size": 0}, "`cache_size` must be a finite number above 0, got 0"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    """What cannot be is refused in one sentence, before there are any data."""
    with pytest.raises(ValueError, match="must") as caught:
        SVCArguments.of(arguments)
    assert message in str(caught.value)


def test_unknown_labels_are_named():
    """Weights of labels that no row has are refused, and the labels are listed."""
    with pytest.raises(ValueError, match=r"which are \['bad', 'good'\], got \{'ugly': 2.0\}"):
        SVCArguments.of({"class_weight": {"ugly": 2.0}}).class_costs(problem()[1])


@pytest.mark.parametrize("gamma", [[0.3, 1.2], {"gamma_0": 0.3, "gamma_1": 1.2}])
def test_widths_of_features(gamma):
    """Fixed widths give the fit of scikit-learn on features times their roots."""
    X, y = problem()
    expected = SVC(gamma=1.0, **TIGHT).fit(X * np.sqrt([0.3, 1.2]), y)
    values = fitted_values({"kernel": ARD(gamma=gamma), **TIGHT}, X, y)
    np.testing.assert_allclose(
        values, expected.decision_function(X * np.sqrt([0.3, 1.2])), atol=1e-6
    )
