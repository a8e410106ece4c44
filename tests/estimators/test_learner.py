import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from span_hpo.estimators.learner import (
    LEARNER_SPACE,
    LEARNER_START,
    RelativeRBF,
    learner,
    loo_loss,
)
from tests.problems import rbf, two_moons


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_width_is_relative_to_the_median_distance(scale):
    """In any unit of the features the same width gives the same kernel matrix."""
    X, _ = two_moons(31)
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    gamma = 0.7 / np.median(squared[squared > 0])
    kernel = RelativeRBF(width=0.7).bind(scale * X)
    assert kernel.gamma == pytest.approx(gamma / scale**2)
    np.testing.assert_allclose(kernel(scale * X), rbf(X, gamma), atol=1e-12)


def test_learner_is_one_weighted_fit():
    """It predicts as scikit-learn's SVC with the same width and class weights, without a search."""
    X, y = two_moons(80)
    X, y = X[20:], np.where(y[20:] > 0, 1, 0)
    y[:10] = 0
    model = learner(C=2.0, width=0.5, balance=1.0).fit(X, y)
    assert model.study_ is None
    assert model.best_params_ == {}
    scaled = MinMaxScaler().fit_transform(X)
    squared = ((scaled[:, None] - scaled) ** 2).sum(axis=2)
    svc = SVC(
        C=2.0, gamma=0.5 / np.median(squared[squared > 0]), class_weight="balanced", tol=1e-6
    ).fit(scaled, y)
    np.testing.assert_allclose(model.decision_function(X), svc.decision_function(scaled), atol=1e-3)


def test_loo_loss_of_the_values():
    """Losses are those of the leave-one-out values, also of several classes by their vote."""
    X, y = two_moons(60)
    model = learner().fit(X, y)
    margins = model.loo_.y * model.loo_.decision_values
    assert loo_loss(model, "error") == np.mean(margins <= 0)
    assert loo_loss(model, "hinge") == pytest.approx(np.mean(np.maximum(0, 1 - margins)))
    assert loo_loss(model, "log_loss") < log_loss(y, np.full(60, 0.5))
    several = learner().fit(*load_iris(return_X_y=True))
    assert loo_loss(several, "error") == several.loo_.error


def test_the_space_holds_its_start():
    """Every number has a range, and the search starts inside of it."""
    assert set(LEARNER_SPACE) == set(LEARNER_START)
    for name, part in LEARNER_SPACE.items():
        assert part.low <= LEARNER_START[name] <= part.high
