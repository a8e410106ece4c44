"""Rows, labels, weights and groups of a search."""

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from span_hpo import LooSVC, SpanSearchCV
from span_hpo.estimators.pipelines import parts_of
from span_hpo.estimators.search_rows import rows_of_search
from tests.problems import two_moons

X, y = two_moons(20)
WEIGHT = np.linspace(0, 2, 20)


def rows_for(estimator, X=X, y=y, sample_weight=None, groups=None):
    search = SpanSearchCV(estimator, {})
    return rows_of_search(search, parts_of(estimator), X, y, sample_weight, groups)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"groups": y}, "`groups` must be None.*Use GridSearchCV with cv=GroupKFold"),
        ({"y": None}, "requires y to be passed, but the target y is None"),
        ({"y": np.ones(20)}, "at least two classes, got only one class, 1.0"),
        ({"X": X[:0], "y": y[:0]}, "at least two classes, got no rows"),
        ({"y": y[:5]}, "inconsistent numbers of samples"),
        ({"y": np.full(20, np.nan)}, "Input y contains NaN"),
        ({"y": np.linspace(0, 1, 20)}, "Unknown label type"),
        ({"sample_weight": -WEIGHT}, "[Nn]egative"),
        ({"sample_weight": WEIGHT * (y > 0)}, "positive in some row of each class.*class -1.0"),
    ],
)
def test_bad_rows_are_refused(given, message):
    """Groups, labels and weights are checked before anything is fitted."""
    with pytest.raises(ValueError, match=message):
        rows_for(SVC(), **given)


def test_weights_reach_the_svm_of_a_pipeline():
    """Without metadata routing the SVM gets the weights, and transformers get none."""
    rows, arguments = rows_for(make_pipeline(StandardScaler(), SVC()), sample_weight=WEIGHT)
    assert list(arguments) == ["svc__sample_weight"]
    np.testing.assert_array_equal(arguments["svc__sample_weight"], WEIGHT)
    assert rows.weights_costs
    assert rows.fit_params == {}
    np.testing.assert_array_equal(rows.kept, np.arange(1, 20))
    _, arguments = rows_for(SVC(), sample_weight=WEIGHT)
    assert list(arguments) == ["sample_weight"]
    assert rows_for(SVC())[1] == {}


def test_a_kernel_matrix_keeps_its_rows():
    """A row with weight 0 gets a negligible one, because ``SVC`` would drop it."""
    _, arguments = rows_for(SVC(kernel="precomputed"), sample_weight=WEIGHT)
    assert 0 < arguments["sample_weight"][0] < 1e-11
    _, arguments = rows_for(LooSVC(kernel="precomputed"), sample_weight=WEIGHT)
    np.testing.assert_array_equal(arguments["sample_weight"], WEIGHT)  # which keeps the columns


def test_metadata_routing_decides_who_gets_weights():
    """Steps that request weights get them, and a step that says nothing is an error."""
    with sklearn.config_context(enable_metadata_routing=True):
        silent = make_pipeline(StandardScaler(), SVC())
        with pytest.raises(UnsetMetadataPassedError):
            rows_for(silent, sample_weight=WEIGHT)
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        pipeline = make_pipeline(scaler, SVC().set_fit_request(sample_weight=False))
        rows, arguments = rows_for(pipeline, sample_weight=WEIGHT)
        assert not rows.weights_costs
        assert len(rows.kept) == 20
        assert list(rows.fit_params) == list(arguments) == ["sample_weight"]
        pipeline[-1].set_fit_request(sample_weight=True)
        scaler.set_fit_request(sample_weight=False)
        rows, arguments = rows_for(pipeline, sample_weight=WEIGHT)
        assert rows.weights_costs
        assert rows.fit_params == {}
        assert list(arguments) == ["sample_weight"]
