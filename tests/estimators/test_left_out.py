import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.metrics import get_scorer
from sklearn.svm import SVC

from span_hpo import RBF, ClassCosts, LooSVC, SpanObjective
from span_hpo.calibration import loo_sigmoids
from span_hpo.estimators.left_out import LeftOutClassifier
from tests.problems import two_moons


def left_out(classes=2, rows=None):
    """Return a classifier of 30 rows, with what it was made of."""
    X, y = two_moons(30)
    codes = (y > 0).astype(int)
    codes[:8] = classes - 1
    labels = np.array(["bad", "good", "odd"])[codes]
    objective = SpanObjective(
        X, labels, kernel=RBF(gamma=1.0), weighting=ClassCosts(2.0), loo_method="refit"
    )
    loo = objective.evaluate({}).loo
    rows = np.arange(30) if rows is None else rows
    found = LeftOutClassifier(loo, objective.data, np.ones(30), rows, int(rows.max()) + 1)
    return found, X, labels


@pytest.mark.parametrize("classes", [2, 3])
def test_predictions_are_those_of_refits(classes):
    """Each row is predicted as scikit-learn's SVC predicts it after a fit without the row."""
    found, X, labels = left_out(classes)
    expected = []
    for row in range(30):
        others = np.delete(np.arange(30), row)
        model = SVC(C=2.0, gamma=1.0, tol=1e-8).fit(X[others], labels[others])
        expected.append(model.predict(X[[row]])[0])
    assert found.predict(np.arange(30)).tolist() == expected
    assert found.predict(np.array([7, 3])).tolist() == [expected[7], expected[3]]
    probabilities = found.predict_proba(np.arange(30))
    assert found.classes_[probabilities.argmax(axis=1)].tolist() == expected


def test_values_of_two_classes():
    """Two classes have decision values, and probabilities that are their sigmoids."""
    found, _, _ = left_out()
    rows = np.array([4, 2, 9])
    values = found.loo.decision_values[rows]
    np.testing.assert_array_equal(found.decision_function(rows), values)
    (sigmoid,) = loo_sigmoids(found.loo, found.weight)
    expected = sigmoid.probability(values)
    agreeing = (expected > 0.5) == (values > 0)
    np.testing.assert_allclose(found.predict_proba(rows)[agreeing, 1], expected[agreeing])
    assert not hasattr(left_out(3)[0], "decision_function")


def test_rows_that_took_no_part():
    """Rows of the user that are not in the fit have no values, and others keep theirs."""
    all_rows, _, _ = left_out()
    found, _, _ = left_out(rows=2 * np.arange(30) + 1)
    assert found.decision_values_.shape == (60,)
    assert np.isnan(found.decision_values_[::2]).all()
    np.testing.assert_array_equal(found.decision_values_[1::2], all_rows.decision_values_)
    np.testing.assert_array_equal(found.predict(np.array([1, 3])), all_rows.predict(np.arange(2)))
    assert np.isnan(found.predict_proba(np.arange(60))[::2]).all()


def test_a_value_of_zero_is_an_error():
    """As in every error of this package, a row on the boundary is on the wrong side."""
    objective = SpanObjective([[0.0], [1.0], [2.0]], ["a", "b", "b"], kernel="linear")
    loo = objective.evaluate({"C_a": 1.0, "C_b": 1.0}, loo_method="refit").loo
    loo.decision_values.flags.writeable = True
    loo.decision_values[:] = 0.0
    found = LeftOutClassifier(loo, objective.data, np.ones(3), np.arange(3), 3)
    assert found.predict(np.arange(3)).tolist() == ["b", "a", "a"]


@pytest.mark.parametrize("name", ["accuracy", "roc_auc_ovr", "neg_log_loss", "f1_macro"])
def test_scorers_of_scikit_learn(name):
    """It is a classifier to scikit-learn, whose scorers compute what they are called."""
    X, y = two_moons(40)
    model = LooSVC().fit(X, y)
    found = model.left_out()
    assert is_classifier(found)
    score = get_scorer(name)(found, np.arange(40), y)
    assert np.isfinite(score)
    if name == "accuracy":
        assert score == pytest.approx(1 - model.loo_error_)
