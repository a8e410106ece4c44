"""Models with a width for each feature, as models of the kernel "rbf" on rescaled features."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC

from span_hpo import ARD, ClassCosts, PowerScore, SpanObjective, UniformCost
from span_hpo.objective import pair_values, rescaled_svc
from tests.relevant import thinned, two_of_twelve

GAMMA = (10.0 ** np.linspace(-3, 1, 12)).tolist()
WEIGHTINGS = {
    "uniform": UniformCost(2.0),
    "class": ClassCosts(4.0),
    "row": PowerScore(C=3.0, tau=1.0),
}


def times(X, factors):
    """Return features times their factors, dense or sparse."""
    return X @ sparse.diags_array(factors) if sparse.issparse(X) else X * factors


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_decision_values_stay_the_same(is_sparse, classes, weighting):
    """On features times the factors, the model decides as on the features, for any costs."""
    X, y = two_of_twelve(60)
    y = y + (classes - 2) * (X[:, 0] > 0.3) * 2
    y = np.unique(y, return_inverse=True)[1]
    X = thinned(X) if is_sparse else X
    scores = np.linspace(0, 1, 60)  # the first row has cost 0 by "power"
    objective = SpanObjective(
        X, y, kernel=ARD(gamma=GAMMA), weighting=WEIGHTINGS[weighting], scores=scores
    )
    model = objective.fit_model({})
    before = pair_values(model, X)
    rescaled, factors = rescaled_svc(model, objective, {})
    new = times(X, factors)
    np.testing.assert_allclose(pair_values(rescaled, new), before, atol=1e-10)
    np.testing.assert_array_equal(rescaled.predict(new), model.predict(X))
    np.testing.assert_array_equal(pair_values(model, X), before)  # it stays as it was
    assert rescaled.get_params()["gamma"] == 1.0
    assert rescaled.support_vectors_.shape == (rescaled.n_support_.sum(), 12)


def test_a_fit_on_rescaled_features_agrees():
    """scikit-learn finds the same model on rescaled features, up to its tolerance."""
    X, y = two_of_twelve(80)
    objective = SpanObjective(X, y, kernel=ARD(gamma=GAMMA), weighting=UniformCost(2.0))
    rescaled, factors = rescaled_svc(objective.fit_model({}), objective, {})
    fitted = SVC(C=2.0, gamma=1.0, tol=1e-8).fit(X * np.sqrt(GAMMA), y)
    np.testing.assert_allclose(factors, np.sqrt(GAMMA))
    values = rescaled.decision_function(X * factors)
    np.testing.assert_allclose(values, fitted.decision_function(X * factors), atol=1e-4)


def test_other_kernels_stay_as_they_are():
    """A model that LIBSVM has is returned itself, without factors."""
    X, y = two_of_twelve(20)
    objective = SpanObjective(X, y, kernel="linear", weighting=UniformCost(1.0))
    model = objective.fit_model({})
    assert rescaled_svc(model, objective, {}) == (model, None)
