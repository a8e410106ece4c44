"""The final model keeps its costs, also in copies."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from span_hpo import (
    RBF,
    ClassCosts,
    Linear,
    PowerScore,
    Precomputed,
    Predictor,
    SpanObjective,
    UniformCost,
)
from span_hpo.objective.models import RowCostSVC, fitted_svc, pair_values
from tests.problems import rbf, two_moons

LABELS = {
    "numbers": np.array([-1.0, 1.0]),
    "words": np.array(["no", "yes"]),
    "booleans": np.array([False, True]),
    "whole": np.array([3, 7]),
}


def labelled(count=60, kind="numbers", classes=2):
    """Return rows whose labels are of a kind, of two or more classes."""
    X, _ = two_moons(count)
    if classes > 2:
        return X, np.arange(count) % classes
    return X, LABELS[kind][(np.arange(count) % 3 == 0).astype(int)]


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("weighting", [UniformCost(0.37), ClassCosts([0.3, 12.7])])
def test_a_copy_of_a_model_with_costs_per_class_is_the_same_model(kind, weighting):
    """`clone(model).fit(X, y)` without weights has the decision values of the model."""
    X, y = labelled(kind=kind)
    model = SpanObjective(X, y, kernel=RBF(gamma=1.0), weighting=weighting).fit_model({})
    assert type(model) is SVC
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("kernel", [Linear(), RBF(gamma=0.7), Precomputed()])
def test_several_classes_keep_their_costs(kernel):
    """The costs of four classes are in the copy, for features, sparse features and matrices."""
    X, y = labelled(classes=4)
    costs = ClassCosts([1.0, 0.2, 3.0, 0.9])
    rows = [rbf(X, 1.0)] if isinstance(kernel, Precomputed) else [X, sparse.csr_matrix(X)]
    for features in rows:
        model = SpanObjective(features, y, kernel=kernel, weighting=costs).fit_model({})
        assert model.class_weight == {0: 1.0, 1: 0.2, 2: 3.0, 3: 0.9}
        again = clone(model).fit(features, y)
        np.testing.assert_array_equal(
            again.decision_function(features), model.decision_function(features)
        )


def test_the_parameters_of_a_model_show_the_costs():
    """One cost of all rows is `C`; costs of classes are `class_weight`; both are plain floats."""
    X, y = labelled(kind="words")
    uniform = SpanObjective(X, y, weighting=UniformCost(0.5), kernel=RBF(gamma=2.0)).fit_model({})
    assert (uniform.C, uniform.class_weight) == (0.5, None)
    classes = SpanObjective(X, y, weighting=ClassCosts([0.5, 4.0]), kernel="linear").fit_model({})
    assert repr(classes.class_weight) == "{'no': 0.5, 'yes': 4.0}"


def test_values_are_those_of_a_fit_with_weights_of_rows():
    """Costs of classes as parameters give the decision values of costs as sample weights."""
    X, y = labelled()
    costs = np.where(y > 0, 3.3, 0.7)
    model = SpanObjective(X, y, kernel=RBF(gamma=1.0), weighting=ClassCosts([0.7, 3.3])).fit_model(
        {}
    )
    weighted = SVC(gamma=1.0, tol=1e-5).fit(X, y, sample_weight=costs)
    np.testing.assert_array_equal(model.decision_function(X), weighted.decision_function(X))


@pytest.fixture
def row_cost_model():
    """Return rows, labels and a model whose costs differ within the classes; one of them is 0."""
    X, y = labelled(kind="words")
    scores = np.linspace(0, 1, len(y))
    weighting = PowerScore(C=2.0, tau=1.0)
    objective = SpanObjective(X, y, kernel=RBF(gamma=1.0), weighting=weighting, scores=scores)
    return X, y, objective.fit_model({})


def test_a_copy_without_the_costs_of_its_rows_cannot_be_fitted(row_cost_model):
    """Costs that differ within a class are asked for in one sentence, never forgotten."""
    X, y, model = row_cost_model
    assert isinstance(model, RowCostSVC)
    with pytest.raises(ValueError, match=r"^`sample_weight` must be the costs of the rows.*costs_"):
        clone(model).fit(X, y)
    with pytest.raises(ValueError, match="`sample_weight` must be the costs"):
        cross_val_score(model, X, y, error_score="raise")


def test_a_copy_with_the_costs_of_its_rows_is_the_same_model(row_cost_model):
    """`clone(model).fit(X, y, model.costs_)` has the decision values of the model."""
    X, y, model = row_cost_model
    for features in (X, sparse.csr_matrix(X)):
        again = clone(model).fit(features, y, model.costs_)
        np.testing.assert_allclose(
            again.decision_function(features), model.decision_function(X), atol=1e-4
        )


def test_a_model_with_costs_of_rows_is_kept_in_files(row_cost_model, tmp_path):
    """Pickles, JSON and LIBSVM's format hold a model whose costs differ within a class."""
    X, _, model = row_cost_model
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(loaded.costs_, model.costs_)
    predictor = Predictor.from_svc(model)
    predictor.save_libsvm(tmp_path / "model.libsvm")
    values = Predictor.load_libsvm(tmp_path / "model.libsvm").decision_function(X)
    np.testing.assert_allclose(values, model.decision_function(X), rtol=1e-9, atol=1e-9)
    assert model.get_params() == SVC(gamma=1.0, tol=1e-5, max_iter=model.max_iter).get_params()


def test_rows_with_cost_zero_are_left_out():
    """The model with costs 0 is that of the other rows alone."""
    X, y = two_moons(40)
    data = SpanObjective(X, y).data
    costs = np.where(np.arange(40) % 4 == 0, 0.0, 2.0)
    kept = costs > 0
    model = fitted_svc(data, RBF(), {"gamma": 1.0}, costs, 10_000)
    part = SpanObjective(X[kept], y[kept]).data
    alone = fitted_svc(part, RBF(), {"gamma": 1.0}, costs[kept], 10_000)
    np.testing.assert_array_equal(model.decision_function(X), alone.decision_function(X))
    np.testing.assert_array_equal(model.classes_, [-1.0, 1.0])
    np.testing.assert_array_equal(model.costs_, costs)


def test_values_of_pairs_are_positive_for_the_second_class():
    """Their votes elect what the model predicts, for two and for more classes."""
    for classes in (2, 4):
        X, _ = two_moons(80)
        y = np.arange(80) % classes
        svc = SVC(gamma=1.0, C=10.0).fit(X + 0.5 * y[:, None], y)
        values = pair_values(svc, X)
        if classes == 2:
            np.testing.assert_array_equal((values > 0).astype(int), svc.predict(X))
            continue
        votes = np.zeros((80, classes))
        pairs = [(a, b) for a in range(classes) for b in range(a + 1, classes)]
        for column, (first, second) in enumerate(pairs):
            is_second = values[:, column] > 0
            votes[is_second, second] += 1
            votes[~is_second, first] += 1
        np.testing.assert_array_equal(votes.argmax(axis=1), svc.predict(X))
        assert svc.decision_function_shape == "ovr"
