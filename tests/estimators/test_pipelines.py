"""The parts of an estimator that is searched."""

import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, NuSVC

from span_hpo.estimators.pipelines import check_searched, checked_arguments, configured, parts_of


def test_parts_of_a_pipeline_and_of_an_svm():
    """All steps before the SVM are its transformers, and its parameters have its prefix."""
    svm = SVC(C=3.0)
    alone = parts_of(svm)
    assert (alone.transformers, alone.svm, alone.prefix) == (None, svm, "")
    parts = parts_of(Pipeline([("scale", StandardScaler()), ("keep", "passthrough"), ("a", svm)]))
    assert list(parts.transformers.named_steps) == ["scale", "keep"]
    assert parts.prefix == "a__"
    assert parts.arguments.C == 3.0
    assert parts_of(Pipeline([("svc", svm)])).transformers is None


class Resampling(StandardScaler):
    def fit_resample(self, X, y):
        return X, y


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (LinearSVC(), "got LinearSVC. Use GridSearchCV for other estimators"),
        (SVR(), "got SVR. Use GridSearchCV"),
        (NuSVC(), "got NuSVC. Use GridSearchCV"),
        (CalibratedClassifierCV(SVC()), "got CalibratedClassifierCV. Use GridSearchCV"),
        (
            make_pipeline(StandardScaler(), LogisticRegression()),
            "got a Pipeline that ends in LogisticRegression. Use GridSearchCV",
        ),
        (
            Pipeline([("scale", StandardScaler()), ("rest", make_pipeline(SVC()))]),
            "whose last step 'rest' is a Pipeline. Put all steps into one of them",
        ),
        (SVC, r"must be an estimator and not its class, got SVC. Use SVC\(\)"),
        (None, "got NoneType. Use GridSearchCV"),
        (
            Pipeline([("more", Resampling()), ("svc", SVC())]),
            r"keep all rows, which the step 'more' \(Resampling\) does not. Use GridSearchCV",
        ),
    ],
)
def test_other_estimators_are_refused(estimator, message):
    """One sentence names what the estimator is, and the class to use."""
    with pytest.raises(TypeError, match=message):
        parts_of(estimator)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kernel": "sigmoid"}, "'sigmoid' is not. Use GridSearchCV to search it"),
        ({"probability": True}, r"must be False, got True. Give LooSVC\(\) as the estimator"),
        ({"C": -1}, "`C` must be a finite number above 0, got -1"),
        ({"kernel": "rfb"}, "`kernel` must be one of .*, got 'rfb'"),
    ],
)
def test_svms_without_leave_one_out_values_are_refused(given, message):
    """What no leave-one-out fit can do is refused by name."""
    with pytest.raises(ValueError, match=message):
        checked_arguments(SVC(**given).get_params())


def test_what_changes_no_prediction_is_not_searched():
    """Probabilities and methods of leave-one-out are no hyperparameters."""
    with pytest.raises(ValueError, match=r"not search `svc__probability`.*Give LooSVC\(\)"):
        check_searched({"svc__C", "svc__probability"}, "svc__")
    with pytest.raises(ValueError, match=r"not search `loo_method`.*argument `loo_method`"):
        check_searched({"loo_method"}, "")
    with pytest.raises(ValueError, match=r"not search `a__threshold`.*Give it to the LooSVC\(\)"):
        check_searched({"a__threshold"}, "a__")
    check_searched({"probability"}, "svc__")  # that of another step


def test_candidates_are_clones():
    """Neither the estimator nor an estimator among the parameters is changed by a fit."""
    given, pipeline = StandardScaler(), make_pipeline(StandardScaler(), SVC())
    found = configured(pipeline, {"standardscaler": given, "svc__C": 7.0})
    found.fit([[0.0], [1.0]], [0, 1])
    assert found[-1].C == 7.0
    assert pipeline[-1].C == 1.0
    assert found[0] is not given
    assert not hasattr(given, "mean_")
