import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_breast_cancer, load_iris

from span_hpo import RBF, ClassCosts, LooSVC, SpanObjective, SpanSVC

flaml = pytest.importorskip("flaml")
pytest.importorskip("flaml.automl.model")
from flaml import AutoML  # noqa: E402

from span_hpo.integrations.flaml import LooMetric, SpanLearner  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # of FLAML and what it uses


def search(X, y, learners, metric="error", **settings):
    automl = AutoML()
    automl.add_learner("span", SpanLearner)
    automl.fit(
        X,
        y,
        task="classification",
        estimator_list=learners,
        metric=LooMetric(metric),
        eval_method="holdout",
        verbose=0,
        n_jobs=1,
        seed=0,
        **{"max_iter": 15, "time_budget": 60, **settings},
    )
    return automl


def test_competes_with_other_learners():
    """One run has configurations of our learner and of FLAML's own; the best can predict."""
    X, y = load_breast_cancer(return_X_y=True)
    # By default FLAML chooses learners by the time that they take, which a test must not depend on.
    automl = search(
        X[:300],
        y[:300],
        ["span", "lgbm", "rf"],
        "log_loss",
        max_iter=20,
        learner_selector="roundrobin",
    )
    losses = automl.best_loss_per_estimator
    assert set(losses) == {"span", "lgbm", "rf"}
    assert all(np.isfinite(loss) for loss in losses.values())
    assert automl.best_loss == min(losses.values())
    assert np.mean(automl.predict(X[300:]) == y[300:]) > 0.9


@pytest.mark.parametrize("metric", ["error", "log_loss", "auc", "f1"])
@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_loss_is_that_of_leave_one_out(load, metric):
    """The metric of a learner is the loss of the objective with the same hyperparameters."""
    X, y = load(return_X_y=True)
    learner = SpanLearner(task="binary" if len(set(y)) == 2 else "multiclass", C=3.0, width=0.5)
    learner.fit(X[::2], y[::2])
    loss, logged = LooMetric(metric)(X[1::2], y[1::2], learner, None, X[::2], y[::2])
    model = learner.model
    gamma = model[-1].gamma
    features = model[0].transform(X[::2])
    objective = SpanObjective(
        features, y[::2], kernel=RBF(gamma), weighting=ClassCosts(3.0), metric=metric
    )
    assert loss == pytest.approx(objective({}), abs=1e-12)
    assert logged["loo"] == loss
    assert 0 <= logged["held_out"] <= 1
    squared = ((features[:, None] - features[None]) ** 2).sum(axis=2)
    assert gamma == pytest.approx(0.5 / np.median(squared[squared > 0]))


def test_balance_of_costs():
    """Balance 0 gives equal costs, 1 those that make all classes weigh the same."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:200], y[:200]
    for balance, ratio in ((0.0, 1.0), (1.0, (y == 1).sum() / (y == 0).sum())):
        learner = SpanLearner(C=2.0, balance=balance)
        learner.fit(X, y)
        gamma = learner.model[-1].gamma
        other = 2.0 * (200 / (2 * (y == 1).sum())) ** balance
        expected = SpanSVC(RBF(gamma), ClassCosts({0: other * ratio, 1: other})).fit(X, y)
        np.testing.assert_allclose(
            learner.model.decision_function(X), expected.decision_function(X), atol=1e-2
        )


def test_one_fit_for_each_configuration_with_weights(monkeypatch):
    """Every configuration is one fit, and sample weights reach it."""
    fits = []
    plain = LooSVC.fit

    def counted(self, X, y, sample_weight=None, **more):
        fits.append(None if sample_weight is None else np.array(sample_weight))
        return plain(self, X, y, sample_weight, **more)

    monkeypatch.setattr(LooSVC, "fit", counted)
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:200], y[:200]
    weight = np.where(y == 0, 3.0, 1.0)
    automl = search(X, y, ["span"], max_iter=8, sample_weight=weight)
    assert len(fits) == 8 + 1  # the last one is on all rows
    for given in fits:
        assert set(given) == {1.0, 3.0}
    assert len(fits[-1]) == 200
    assert automl.best_estimator == "span"


@pytest.mark.parametrize("kind", [csr_array, pd.DataFrame])
def test_sparse_rows_and_frames(kind):
    """Sparse rows are not scaled; frames keep their names; rows of weight 0 are not there."""
    X, y = load_iris(return_X_y=True)
    weight = np.ones(150)
    weight[::5] = 0
    learner = SpanLearner(task="multiclass", width=0.5)
    learner.fit(kind(X), y, sample_weight=weight)
    kept = X[weight > 0]
    few = SpanLearner(task="multiclass", width=0.5)
    few.fit(kind(kept), y[weight > 0])
    np.testing.assert_allclose(learner.predict_proba(kind(X)), few.predict_proba(kind(X)))
    features = kept if kind is csr_array else (kept - kept.min(0)) / np.ptp(kept, 0)
    squared = ((features[:, None] - features[None]) ** 2).sum(axis=2)
    assert learner.model[-1].gamma == pytest.approx(0.5 / np.median(squared[squared > 0]))


def test_unknown_metric_is_named():
    """Only metrics that both sides know can be compared."""
    with pytest.raises(ValueError, match=r"`metric` must be one of \['error', .*, got 'hinge'"):
        LooMetric("hinge")
