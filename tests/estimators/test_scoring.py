"""Scores of leave-one-out predictions, and of new rows."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import fbeta_score, get_scorer, make_scorer, r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from span_hpo.calibration import platt_sigmoid
from span_hpo.estimators.scoring import ScorerLoss, check_scores, pair_values, read_scoring
from span_hpo.metrics import METRICS, as_metrics
from span_hpo.solver import pairs_of
from tests.problems import labels_and_values, two_moons

EQUAL = ("accuracy", "balanced_accuracy", "matthews_corrcoef", "f1", "average_precision")
VALUES = ("roc_auc", "neg_log_loss", "neg_brier_score")
OTHERS = ("precision", "recall", "f1_macro", "f1_weighted", "jaccard", "d2_log_loss_score")
MORE = ("accuracy", "balanced_accuracy", "f1_macro", "matthews_corrcoef", "roc_auc_ovr", "f1_micro")


def several(count=90, k=3, seed=0):
    """Return class numbers and values of all pairs that tend to agree with them."""
    rng = np.random.default_rng(seed)
    codes = np.arange(count) % k
    signs = [(codes == b) * 1.0 - (codes == a) for a, b in pairs_of(k)]
    return codes, np.column_stack(signs) + rng.normal(size=(count, len(signs)))


class Predicting(ClassifierMixin, BaseEstimator):
    """A classifier whose predictions are given."""

    def __init__(self, classes=None, labels=None, values=None, probabilities=None):
        self.classes_ = classes
        self.labels, self.values, self.probabilities = labels, values, probabilities

    def predict(self, X):
        return self.labels

    def decision_function(self, X):
        return self.values

    def predict_proba(self, X):
        return self.probabilities


def score_of(name, y, values, classes, weight=None):
    """Return the score of leave-one-out values as the search computes it."""
    score = read_scoring(name, classes, weighted=weight is not None)["score"]
    (metric,) = as_metrics(score.metric, weighted=weight is not None)
    return score.of(metric.loss(y, values, np.ones(len(y)) if weight is None else weight)), score


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", [*EQUAL, *VALUES, *OTHERS])
def test_scores_of_two_classes_are_those_of_scikit_learn(name, weighted):
    """Whether one of our metrics or their scorer computes it, the number is scikit-learn's."""
    y, values, weight = labels_and_values()
    weight = weight if weighted else None
    ones = np.ones(len(y)) if weight is None else weight
    calibrated = platt_sigmoid(y, values, ones).probability(values)
    model = Predicting(
        np.array([0, 1]),
        (values > 0).astype(int),
        values,
        np.column_stack([1 - calibrated, calibrated]),
    )
    labels = (y > 0).astype(int)
    expected = get_scorer(name)(model, np.zeros((len(y), 1)), labels, sample_weight=weight)
    # Coupling moves probabilities that contradict the sign of the value; our losses do not.
    tolerance = 0.05 if name == "d2_log_loss_score" else 1e-9
    found, _ = score_of(name, y, values, np.array([0, 1]), weight)
    assert found == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("name", MORE)
def test_scores_of_several_classes_are_those_of_scikit_learn(name):
    """Labels are those that the pairs elect, and probabilities are coupled."""
    codes, values = several()
    votes = np.zeros((len(codes), 3))
    for column, (a, b) in enumerate(pairs_of(3)):
        votes[:, b] += values[:, column] > 0
        votes[:, a] += values[:, column] <= 0
    labels = np.array(["a", "b", "c"])
    found, score = score_of(name, codes.astype(float), values, labels)
    if name == "roc_auc_ovr":
        assert isinstance(score.metric, ScorerLoss)
        assert 0.7 < found < 1
        return
    model = Predicting(labels, labels[votes.argmax(axis=1)])
    assert found == pytest.approx(get_scorer(name)(model, np.zeros((90, 1)), labels[codes]))


def test_the_positive_class_is_that_of_scikit_learn():
    """Class 1 is positive if there is one, also if it is the first; else the second class is."""
    y, values, _ = labels_and_values()
    of_second = score_of("f1", y, values, np.array([0, 1]))[0]
    assert score_of("f1", y, values, np.array(["no", "yes"]))[0] == of_second
    model = Predicting(np.array([1, 2]), np.where(values > 0, 2, 1))
    labels = np.where(y > 0, 2, 1)
    expected = get_scorer("f1")(model, np.zeros((len(y), 1)), labels)
    assert score_of("f1", y, values, np.array([1, 2]))[0] == pytest.approx(expected)
    assert expected != pytest.approx(of_second)


@pytest.mark.parametrize("name", sorted(METRICS))
def test_our_metrics_are_scores(name):
    """Losses are negative, and what is better when greater keeps its sign."""
    y, values, _ = labels_and_values()
    loss = METRICS[name](y, values, np.ones(len(y)))
    expected = 1 - loss if name in ("auc", "average_precision", "f1", "mcc") else -loss
    assert score_of(name, y, values, np.array([0, 1]))[0] == pytest.approx(expected)


def hinge_loss(y, decision_values):
    return float(np.maximum(0, 1 - y * decision_values).mean())


def three(estimator, X, y):
    return float(np.mean(estimator.predict(X) == y))


def test_functions_are_told_apart_by_their_arguments():
    """A function of labels and values is a loss, one of an estimator, rows and labels a score."""
    y, values, weight = labels_and_values()
    classes = np.array([0, 1])
    assert score_of(hinge_loss, y, values, classes)[0] == -hinge_loss(y, values)
    assert score_of(three, y, values, classes)[0] == np.mean(y * values > 0)
    scorer = make_scorer(fbeta_score, beta=2)
    expected = fbeta_score(y > 0, values > 0, beta=2, sample_weight=weight)
    assert score_of(scorer, y, values, classes, weight)[0] == pytest.approx(expected)


def test_several_scores_have_names():
    """A list names its scores, a dictionary gives names."""
    classes = np.array([0, 1])
    assert list(read_scoring(["accuracy", "auc"], classes, weighted=False)) == ["accuracy", "auc"]
    named = read_scoring({"mine": hinge_loss, "acc": "accuracy"}, classes, weighted=False)
    assert [score.name for score in named.values()] == ["mine", "acc"]
    assert list(read_scoring(None, classes, weighted=False)) == ["score"]


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        ("acuracy", "`scoring` must be one of .*, got 'acuracy'"),
        ([], "at least one score, got none"),
        (["auc", "auc"], r"a list of different names, got \['auc', 'auc'\]"),
        ([hinge_loss], "Use a dictionary to give names to functions"),
        (3, "must be a name, a function or a dictionary of these, got 3"),
        ({"a": 3}, "got 3 for 'a'"),
        (roc_auc_score, "`scoring` must be a scorer.*rather than a scorer.*make_scorer"),
        ({"a": r2_score}, "got r2_score of scikit-learn"),
    ],
)
def test_unknown_scores_are_refused(scoring, message):
    """One sentence says what a score may be."""
    with pytest.raises((ValueError, TypeError), match=message):
        read_scoring(scoring, np.array([0, 1]), weighted=False)


def test_weights_need_losses_that_take_them():
    """A user's loss without an argument for weights is refused if there are weights."""
    with pytest.raises(ValueError, match="`scoring` hinge_loss must take an argument `weight`"):
        read_scoring(hinge_loss, np.array([0, 1]), weighted=True)


def looks_at_features(estimator, X, y):
    return float(np.mean(X[:, 0]))


def predicts_some(estimator, X, y):
    return float(np.mean(estimator.predict(np.zeros((3, 2))) == y[:3]))


def gives_two(estimator, X, y):
    return {"a": 1.0, "b": 2.0}


@pytest.mark.parametrize(
    ("scoring", "k", "message"),
    [
        ("f1", 3, "'f1' does not .*average='binary'.*Use GridSearchCV"),
        ("f1_samples", 2, "'f1_samples' does not"),
        (looks_at_features, 2, "looks_at_features does not"),
        (predicts_some, 2, "predicts_some does not"),
        (gives_two, 2, "gives_two does not"),
        ("neg_mean_gamma_deviance", 2, "'neg_mean_gamma_deviance' does not"),
    ],
)
def test_scores_of_other_predictions_are_refused(scoring, k, message):
    """What leave-one-out predictions do not give is refused before anything is fitted."""
    codes, classes = np.arange(30) % k, np.arange(k)
    scores = read_scoring(scoring, classes, weighted=False)
    with pytest.raises(ValueError, match=f"`scoring` must give one number .*{message}"):
        check_scores([*scores.values()], codes, classes, np.ones(30))


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("other", ["text", 7, -1, 0.5, float("nan"), None])
def test_new_rows_with_other_labels_are_refused(k, other):
    """A label that the fit has not seen is named instead of being taken for one that it has."""
    X, y = two_moons(30)[0], np.arange(30) % k
    model = SVC().fit(X, y)
    score = read_scoring("error", np.arange(k), weighted=False)["score"]
    strange = y.astype(object)
    strange[4] = other
    with pytest.raises(ValueError, match=r"`y` must have no other labels than the fit, .* got \["):
        score.scorer(model, X, strange)
    assert score.scorer(model, X, y.astype(float)) == score.scorer(model, X, y)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.nan, "must be a finite number, got nan"),
        ("0.1", "must be a finite number, got '0.1'"),
        (np.array([1.0, 2.0]), r"must return one number, got shape \(2,\)"),
        (None, "ZeroDivisionError"),
    ],
    ids=["nan", "text", "array", "raises"],
)
def test_losses_that_are_no_numbers_are_refused(k, wrong, message):
    """A user's loss is tried before anything is fitted, and the message names the argument."""

    def mine(y, decision_values):
        return 1 / 0 if wrong is None else wrong

    codes, classes = np.arange(30) % k, np.arange(k)
    scores = [*read_scoring(mine, classes, weighted=False).values()]
    with pytest.raises(ValueError, match=rf"`scoring` must give one .*mine does not .*{message}"):
        check_scores(scores, codes, classes, np.ones(30))


def test_losses_are_tried_with_their_weights():
    """A loss that needs weights gets those of the rows."""

    def mine(y, decision_values, weight):
        return float(weight[0])

    scores = read_scoring(mine, np.arange(2), weighted=True)
    check_scores([*scores.values()], np.arange(30) % 2, np.arange(2), np.ones(30))


@pytest.mark.parametrize("k", [2, 3])
def test_new_rows_are_scored_by_our_metrics(k):
    """The scorer of a metric takes the decision values of a fitted estimator."""
    X, _ = two_moons(90)
    y = np.array(["a", "b", "c"])[(np.arange(90) + (X[:, 0] > 0.5)) % k]
    model = make_pipeline(StandardScaler(), SVC(gamma=5.0)).fit(X, y)
    values = pair_values(model, X)
    assert values.shape == ((90,) if k == 2 else (90, 3))
    scorer = read_scoring("error", np.unique(y), weighted=False)["score"].scorer
    assert -scorer(model, X, y) == pytest.approx(np.mean(model.predict(X) != y))
    weight = np.linspace(0.1, 2, 90)
    wrong = model.predict(X) != y
    assert -scorer(model, X, y, weight) == pytest.approx(weight[wrong].sum() / weight.sum())
    same = pair_values(SVC(gamma=5.0, decision_function_shape="ovo").fit(X, y), X)
    np.testing.assert_array_equal(same, pair_values(SVC(gamma=5.0).fit(X, y), X))
