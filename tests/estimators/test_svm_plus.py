import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.svm import SVC

from span_hpo import (
    RBF,
    SpanObjective,
    SVMPlus,
    UniformCost,
    costs_from_svm_plus,
    solve,
)
from span_hpo.solver import Problem
from tests.problems import rbf


def levels(count=80, seed=0, noise=0.5):
    """Return features, labels, and how far each label is from the other one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 2))
    level = X[:, 0] + noise * rng.normal(size=count)
    return X, np.where(level > 0, "up", "down"), np.abs(level)[:, None]


def test_it_predicts_without_privileged_features():
    """Decision values of new rows follow from the multipliers, and labels from their signs."""
    X, y, privileged = levels()
    new = levels(30, seed=1)[0]
    model = SVMPlus(C=2.0, kernel=RBF(gamma=0.5)).fit(X, y, privileged)
    alpha = model.solution_.alpha * np.where(y == "up", 1, -1)
    expected = rbf(np.vstack([new, X]), 0.5)[:30, 30:] @ alpha + model.solution_.b
    np.testing.assert_allclose(model.decision_function(new), expected, atol=1e-6)
    assert model.predict(new).tolist() == np.where(expected > 0, "up", "down").tolist()
    assert model.score(X, y) > 0.7
    assert set(model.classes_) == {"down", "up"}


def test_privileged_features_help():
    """Where they are the slacks of the true model, test errors are lower than those of an SVM."""
    errors = []
    for seed in range(12):
        X, y, _ = levels(40, seed, noise=1.0)
        new, truth, _ = levels(1000, 100 + seed, noise=0.0)
        slacks = np.maximum(0, 1 - 3 * np.where(y == "up", 1, -1) * X[:, 0])[:, None]
        plus = SVMPlus(C=10.0, kernel="linear", privileged_kernel="linear").fit(X, y, slacks)
        plain = SVC(C=10.0, kernel="linear").fit(X, y)
        errors.append([1 - model.score(new, truth) for model in (plus, plain)])
    of_plus, of_plain = np.mean(errors, axis=0)
    assert of_plus < 0.6 * of_plain


def test_costs_for_a_weighted_svm():
    """The objective of a weighted SVM with these costs has the same model."""
    X, y, privileged = levels()
    model = SVMPlus(C=5.0, kernel=RBF(gamma=0.5)).fit(X, y, privileged)
    costs = costs_from_svm_plus(model)
    assert costs.shape == (80,)
    weighted = solve(Problem(rbf(X, 0.5), model.solution_.y, costs))
    np.testing.assert_allclose(
        weighted.decision_values - weighted.b,
        model.solution_.decision_values - model.solution_.b,
        atol=1e-5,
    )

    class Given:
        space = UniformCost().space

        def costs(self, data, params):
            return params["C"] * costs

    objective = SpanObjective(X, y, kernel=RBF(gamma=0.5), weighting=Given())
    assert 0 <= objective({"C": 1.0}) <= 0.5


def test_data_frames_sparse_rows_copies():
    """Tables and sparse rows give the same model, and so do clones and pickles."""
    X, y, privileged = levels(40)
    model = SVMPlus().fit(X, y, privileged)
    frame = pd.DataFrame(X, columns=["a", "b"])
    by_name = SVMPlus().fit(frame, y, pd.DataFrame(privileged, columns=["level"]))
    np.testing.assert_allclose(by_name.decision_function(frame), model.decision_function(X))
    as_sparse = SVMPlus().fit(sparse.csr_array(X), y, sparse.csr_array(privileged))
    np.testing.assert_allclose(
        as_sparse.decision_function(X), model.decision_function(X), atol=1e-6
    )
    copied = pickle.loads(pickle.dumps(model))
    assert copied.predict(X).tolist() == model.predict(X).tolist()
    again = clone(model).fit(X, y, X_star=privileged)
    assert again.intercept_ == model.intercept_


@pytest.mark.parametrize(
    ("arguments", "change", "message"),
    [
        ({}, {"X_star": None}, "`X_star` must hold privileged features of the training rows, got"),
        ({}, {"X_star": np.ones((3, 1))}, "`X_star` must have the 40 rows of `X`, got 3"),
        ({}, {"y": np.arange(40) % 3}, "`y` must hold two classes for SVM+, got 3"),
        ({"C": 0.0}, {}, "`C` must be a finite number above 0, got 0"),
        ({"gamma_star": 0.0}, {}, "`gamma_star` must be a finite number above 0, got 0"),
        ({"kernel": "poly"}, {}, "`kernel` must be 'rbf', 'linear', a kernel with fixed"),
        ({"privileged_kernel": RBF()}, {}, "`kernel` must have fixed hyperparameters"),
    ],
)
def test_wrong_arguments_are_named(arguments, change, message):
    """The message names the argument, and says what to do."""
    X, y, privileged = levels(40)
    given = {"X": X, "y": y, "X_star": privileged, **change}
    with pytest.raises(ValueError, match="must") as caught:
        SVMPlus(**arguments).fit(**given)
    assert message in str(caught.value)
    with pytest.raises(TypeError, match="`model` must be a fitted SVMPlus, got dict"):
        costs_from_svm_plus({})
