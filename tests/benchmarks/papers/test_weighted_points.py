"""The points of the grids of the weighted-SVM span paper."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.svm import SVC

from benchmarks.harness.data import load
from benchmarks.harness.runner import Options, read_rows
from benchmarks.papers import weighted_points
from tests.benchmarks.data_sets import with_data


@with_data
def test_a_point_is_what_scikit_learn_says(tmp_path):
    """Test error, folds, support vectors and refits of a point, without this package's fits."""
    weighted_points.run(Options(["breast_cancer"], quick=True, folder=tmp_path))
    (row,) = (
        row
        for row in read_rows(tmp_path / "class_costs.csv")
        if (row["C_-1"], row["C_1"]) == ("4.0", "4.0")
    )
    split = load("breast_cancer")
    order = np.random.default_rng(0).permutation(100)
    X, y = split.X_train[order], split.y_train[order]
    tested = np.random.default_rng(1).permutation(len(split.y_test))[:1000]
    svc = SVC(C=4.0, gamma=1 / 10, tol=1e-8)
    errors = svc.fit(X, y).predict(split.X_test[tested]) != split.y_test[tested]
    assert float(row["test_error"]) == pytest.approx(errors.mean(), abs=1e-8)
    assert int(row["n_support"]) == len(svc.support_)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    assert float(row["cv5_error"]) == np.mean(cross_val_predict(svc, X, y, cv=folds) != y)
    left_out = [
        svc.fit(np.delete(X, p, axis=0), np.delete(y, p)).predict(X[[p]])[0] != y[p]
        for p in range(len(y))
    ]
    assert float(row["exact_error"]) == pytest.approx(np.mean(left_out))


def test_the_grids_are_those_of_the_paper():
    """33 x 33 costs from 2^-6 to 2^10, and 10 x 10 x 17 mappings of scores."""
    costs = weighted_points.grid("class_costs")
    assert [len(values) for values in costs.values()] == [33, 33]
    assert list(costs["C_1"]) == [2.0 ** (k / 2 - 6) for k in range(33)]
    mappings = weighted_points.grid("scores")
    assert list(mappings["A"]) == pytest.approx(list(range(1, 11)))
    assert list(mappings["B"]) == pytest.approx([k / 10 for k in range(10)])
    assert list(mappings["C"]) == [2.0**k for k in range(-6, 11)]
