"""The arguments `threshold` and `miss_cost` of the estimators."""

import numpy as np
import pytest
from sklearn.base import clone

from span_hpo import RBF, ClassCosts, Predictor, SpanSVC, UniformCost
from span_hpo.estimators.thresholds import threshold_rule
from tests.problems import two_moons

FIXED = {"kernel": RBF(gamma=0.5), "weighting": UniformCost(1.0)}


def rare_rows(count=300, seed=0):
    """Return features of overlapping classes and labels, a tenth of which are "bad"."""
    rng = np.random.default_rng(seed)
    labels = np.where(np.arange(count) % 10 == 0, "bad", "good")
    return rng.normal(size=(count, 2)) + 1.5 * (labels == "bad")[:, None], labels


def test_balanced_error_is_cut_at_the_share_of_the_class():
    """Predictions follow the calibrated probability; other results are those of the plain model."""
    X, labels = rare_rows()
    weight = np.random.default_rng(1).uniform(0.5, 2, len(labels))
    settings = {**FIXED, "metric": "balanced_error"}
    plain = SpanSVC(**settings).fit(X, labels, sample_weight=weight)
    model = SpanSVC(**settings, threshold="loo").fit(X, labels, sample_weight=weight)
    new = rare_rows(2000, seed=1)[0]
    np.testing.assert_array_equal(plain.decision_function(new), model.decision_function(new))
    np.testing.assert_array_equal(plain.predict_proba(new), model.predict_proba(new))
    assert (plain.threshold_, hasattr(plain, "threshold_loss_")) == (0.0, False)
    # The classes are bad and good, so that the second one is the common one.
    share = weight[labels == "good"].sum() / weight.sum()
    proba = model.predict_proba(new)[:, 1]
    away = np.abs(proba - 0.5) > 1e-6  # not where calibration contradicts the sign
    expected = np.where(proba >= share, "good", "bad")
    np.testing.assert_array_equal(model.predict(new)[away], expected[away])
    assert model.threshold_loss_ < plain.best_loss_ - 0.1
    assert model.loo_error_ == plain.loo_error_


@pytest.mark.parametrize("threshold", [0.02, 0.3, 0.45, 0.5, 0.55, 0.8, 0.97])
@pytest.mark.parametrize("costs", [(1.0, 1.0), (10.0, 1.0), (1.0, 10.0)])
def test_a_number_is_a_probability(threshold, costs):
    """The second class is predicted where `predict_proba` reaches the number."""
    X, labels = rare_rows()
    weighting = ClassCosts({"bad": costs[0], "good": costs[1]})
    model = SpanSVC(RBF(gamma=0.5), weighting, threshold=threshold).fit(X, labels)
    new = rare_rows(2000, seed=1)[0]
    proba = model.predict_proba(new)[:, 1]
    expected = np.where(proba >= threshold, "good", "bad")
    np.testing.assert_array_equal(model.predict(new), expected)
    if threshold == 0.5:
        assert model.threshold_ == 0


def test_costs_of_misses_in_every_form():
    """A mapping, a ratio and a matrix of the same costs give the same model, as numbers do."""
    X, labels = rare_rows()
    forms = [
        {"good": 2.0, "bad": 20},
        0.1,
        [[0, 20], [2, 0]],
        np.array([[0, 1.0], [0.1, 0]]),
    ]
    models = [SpanSVC(**FIXED, miss_cost=form).fit(X, labels) for form in forms]
    assert len({model.threshold_ for model in models}) == 1
    first = models[0]
    values, truth = first.loo_.decision_values - first.threshold_, labels == "good"
    costs = np.where(truth, 2.0, 20.0) * (truth != (values > 0))
    assert first.threshold_loss_ == pytest.approx(costs.mean())
    with_word = SpanSVC(**FIXED, miss_cost=forms[0], threshold="loo").fit(X, labels)
    assert with_word.threshold_ == first.threshold_
    assert (first.predict(X) == "bad").sum() > (
        SpanSVC(**FIXED).fit(X, labels).predict(X) == "bad"
    ).sum()


@pytest.mark.parametrize("miss_cost", [0.7, 1.0, 1.5, 4.0])
@pytest.mark.parametrize("costs", [(1.0, 1.0), (10.0, 1.0), (1.0, 10.0)])
def test_costs_of_misses_are_weighed_by_the_sigmoid(miss_cost, costs):
    """The cheaper class is predicted, also where `predict_proba` gives one half."""
    X, labels = rare_rows()
    weighting = ClassCosts({"bad": costs[0], "good": costs[1]})
    model = SpanSVC(RBF(gamma=0.5), weighting, miss_cost=miss_cost).fit(X, labels)
    new = rare_rows(2000, seed=1)[0]
    (sigmoid,) = model.as_predictor().sigmoids
    second = sigmoid.probability(model.decision_function(new))
    expected = np.where(miss_cost * second >= 1 - second, "good", "bad")
    np.testing.assert_array_equal(model.predict(new), expected)


def test_the_best_cut_of_another_metric():
    """F1 at the threshold is at least as good as at 0, and is that of the shifted values."""
    X, labels = rare_rows(150)
    y = (labels == "bad").astype(int)
    model = SpanSVC(**FIXED, metric="f1", threshold="loo").fit(X, y)
    f = model.loo_.decision_values - model.threshold_
    hits, wrong = np.sum((f > 0) & (y == 1)), np.sum((f > 0) != (y == 1))
    assert model.threshold_loss_ == pytest.approx(1 - 2 * hits / (2 * hits + wrong))
    assert model.threshold_loss_ <= model.best_loss_
    own = SpanSVC(**FIXED, metric=lambda y, f: 1.0, threshold="loo").fit(X, y)
    assert (own.threshold_, own.threshold_loss_) == (0.0, 1.0)


def test_files_hold_the_threshold(tmp_path):
    """A model in JSON and one in LIBSVM's format predict as the estimator does."""
    X, labels = rare_rows()
    model = SpanSVC(**FIXED, miss_cost=0.05).fit(X, labels)
    new = rare_rows(500, seed=1)[0]
    predictor = model.as_predictor()
    predictor.save(tmp_path / "model.json")
    predictor.save_libsvm(tmp_path / "model.libsvm")
    loaded = Predictor.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict(new), model.predict(new))
    np.testing.assert_allclose(loaded.predict_proba(new), model.predict_proba(new))
    text = Predictor.load_libsvm(tmp_path / "model.libsvm")
    coded = np.array(["bad", "good"])[text.predict(predictor.features(new))]
    np.testing.assert_array_equal(coded, model.predict(new))
    assert (model.predict(new) != SpanSVC(**FIXED).fit(X, labels).predict(new)).any()


WRONG = [
    ({"threshold": "auto"}, r"^`threshold` must be None, 'loo' or a probability .*, got 'auto'"),
    ({"threshold": 1.0}, "above 0 and below 1, got 1.0"),
    ({"threshold": 0}, "above 0 and below 1, got 0"),
    ({"threshold": True}, "above 0 and below 1, got True"),
    ({"threshold": float("nan")}, "above 0 and below 1, got nan"),
    ({"threshold": 0.2, "miss_cost": 3}, "`threshold` must be None or 'loo' if `miss_cost` is"),
    ({"threshold": "loo", "metric": "auc"}, "which no threshold changes, got 'loo'"),
    ({"miss_cost": {"good": 1}}, "each of the labels .* once, got"),
    ({"miss_cost": {"good": 1, "evil": 3}}, r"got \['good', 'evil'\]"),
    ({"miss_cost": {"good": 1, "bad": 0}}, "`miss_cost` must be a finite number above 0, got 0"),
    ({"miss_cost": -2}, "`miss_cost` must be a finite number above 0, got -2"),
    ({"miss_cost": [[0, 1], [1, 2]]}, "2 x 2 matrix with zeros on its diagonal"),
    ({"miss_cost": [1, 2]}, "2 x 2 matrix with zeros on its diagonal"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_arguments(arguments, message):
    """One sentence names what is wrong, before anything is fitted."""
    X, labels = rare_rows(40)
    model = SpanSVC(**{**FIXED, **arguments})
    with pytest.raises(ValueError, match=message):
        model.fit(X, labels)
    assert not hasattr(model, "objective_")
    assert clone(model).get_params(deep=False).keys() == model.get_params(deep=False).keys()


@pytest.mark.parametrize("arguments", [{"threshold": 0.3}, {"miss_cost": 2.0}])
def test_several_classes_have_no_threshold(arguments):
    """With three classes the message says how many there are."""
    (name,) = arguments
    with pytest.raises(
        ValueError, match=f"`{name}` must not be given for more than two classes, .* 3"
    ):
        SpanSVC(**FIXED, **arguments).fit(two_moons(30)[0], np.arange(30) % 3)


def test_no_rule_without_arguments():
    """Nothing is asked for, so that nothing is checked."""
    assert threshold_rule(None, None, "auc", np.arange(5)) is None
