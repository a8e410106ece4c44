import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.svm import SVC

from span_hpo import LooSVC
from span_hpo.estimators.learner import LEARNER_SPACE, LEARNER_START, learner_arguments
from tests.problems import two_moons


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_width_is_relative_to_the_median_distance(scale, kind):
    """In any unit of the features the same width gives the same kernel matrix."""
    X, y = two_moons(31)
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    gamma = 0.7 / np.median(squared[squared > 0])
    arguments = learner_arguments(kind(scale * X), y, width=0.7)
    assert arguments["gamma"] == pytest.approx(gamma / scale**2)


def test_arguments_are_those_of_one_weighted_fit():
    """It predicts as scikit-learn's SVC with the same width and balanced class weights."""
    X, y = two_moons(80)
    y = np.where(y > 0, "yes", "no")
    y[:25] = "no"
    model = LooSVC(**learner_arguments(X, y, C=2.0, width=0.5, balance=1.0), tol=1e-8).fit(X, y)
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    gamma = 0.5 / np.median(squared[squared > 0])
    svc = SVC(C=2.0, gamma=gamma, class_weight="balanced", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), svc.decision_function(X), atol=1e-6)
    equal = learner_arguments(X, y)
    assert equal["class_weight"] == {"no": 1.0, "yes": 1.0}


def test_the_space_holds_its_start():
    """Every number has a range, and the search starts inside of it."""
    assert set(LEARNER_SPACE) == set(LEARNER_START)
    for name, part in LEARNER_SPACE.items():
        assert part.low <= LEARNER_START[name] <= part.high
