"""Results in the form of scikit-learn's `cv_results_`."""

import math

import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from span_hpo import SolverError
from span_hpo.estimators.outcomes import Outcome
from span_hpo.estimators.scoring import read_scoring
from span_hpo.estimators.search_results import best_index, check_failures, search_results
from tests.problems import two_moons

SCORES = read_scoring({"acc": "accuracy", "log": "neg_log_loss"}, np.array([0, 1]), weighted=False)
POSITIONS = {"acc": 0, "log": 1}


def outcome(params, loss, smooth=0.1, n_support=10.0, failure=None):
    figures = {"smooth_error": smooth, "n_support": n_support}
    return Outcome(params, (loss, 2 * loss), (0.01, math.nan), figures, 0.5, None, failure)


OUTCOMES = [
    outcome({"C": 1, "kernel": "rbf"}, 0.2, smooth=0.3),
    outcome({"C": 2, "kernel": "linear"}, 0.2, smooth=0.2, n_support=20),
    outcome({"C": 3, "class_weight": {0: 1}}, 0.2, smooth=0.2, n_support=15),
    outcome({"C": 4, "class_weight": None}, math.nan, failure="too hard"),
    outcome({"C": 5}, 0.1),
    outcome({"C": 6}, 0.1),
]


def test_columns_are_those_of_scikit_learn():
    """Every column of ``GridSearchCV`` is there, with the same types of numbers and masks."""
    X, y = two_moons(40)
    grid = [{"C": [1, 2], "gamma": ["scale", 0.5]}, {"kernel": ["linear"], "shrinking": [True]}]
    theirs = GridSearchCV(SVC(), grid, cv=2).fit(X, y).cv_results_
    outcomes = [outcome(params, 0.1) for params in theirs["params"]]
    score = read_scoring(None, np.array([0, 1]), weighted=False)
    ours = search_results(outcomes, score, {"score": 0})
    assert set(theirs) - {"split1_test_score"} <= set(ours)
    for name in theirs:
        if name.startswith("param"):
            np.testing.assert_array_equal(ours[name], theirs[name])
        if name.startswith("param_"):
            assert ours[name].dtype == theirs[name].dtype
            np.testing.assert_array_equal(ours[name].mask, theirs[name].mask)
        elif name in ours:
            assert type(ours[name]) is type(theirs[name])


def test_scores_have_their_signs_and_ranks():
    """Greater is better; equal losses are ranked by smooth error and support vectors."""
    found = search_results(OUTCOMES, SCORES, POSITIONS)
    np.testing.assert_allclose(found["mean_test_acc"][[0, 4]], [0.8, 0.9])
    np.testing.assert_allclose(found["split0_test_log"][[0, 4]], [-0.4, -0.2])
    assert found["rank_test_acc"].tolist() == [5, 4, 3, 6, 1, 1]
    assert math.isnan(found["mean_test_acc"][3])
    assert found["std_test_acc"][0] == 0.01
    assert found["n_support"].tolist() == [10, 20, 15, 10, 10, 10]
    assert found["mean_fit_time"].tolist() == [0.5] * 6


def test_the_first_of_the_best_is_chosen():
    """Ranks decide unless a function of the results does, whose answer is checked."""
    found = search_results(OUTCOMES, SCORES, POSITIONS)
    assert best_index(True, "acc", found) == 4
    assert best_index("acc", "acc", found) == 4
    fewest = best_index(lambda results: results["n_support"].argmin(), "acc", found)
    assert fewest == 0
    with pytest.raises(TypeError, match=r"must return the position of a candidate, got 0.5"):
        best_index(lambda results: 0.5, "acc", found)
    with pytest.raises(IndexError, match=r"from 0 to 5, one for each candidate, got 6"):
        best_index(lambda results: 6, "acc", found)


def test_failures_are_reported():
    """Some failures are a warning with the last one, and nothing but failures is an error."""
    with pytest.warns(FitFailedWarning, match=r"1 of 6 candidates could not.*'C': 4.*too hard"):
        check_failures(OUTCOMES)
    with pytest.raises(SolverError, match=r"No candidate could be fitted.*too hard"):
        check_failures([OUTCOMES[3]])
    check_failures(OUTCOMES[:2])
