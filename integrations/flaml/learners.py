"""A learner and a metric for FLAML's ``AutoML``."""

import math
import time
from dataclasses import dataclass
from typing import Any

import flaml
import numpy as np
from flaml.automl.ml import sklearn_metric_loss_score
from flaml.automl.model import SKLearnEstimator

from span_hpo.data import Dataset
from span_hpo.estimators import SpanSVC
from span_hpo.kernels import RBF
from span_hpo.metrics import as_metrics
from span_hpo.runtime import FloatArray
from span_hpo.space import Float, Params, Space

# What FLAML calls these losses, with two classes and with more.
_THEIRS = {
    "error": ("accuracy", "accuracy"),
    "log_loss": ("log_loss", "log_loss"),
    "auc": ("roc_auc", "roc_auc_ovo"),
    "f1": ("f1", "macro_f1"),
}


class SpanLearner(SKLearnEstimator):  # type: ignore[misc]  # not typed
    """A weighted SVM as a learner: ``automl.add_learner("span", SpanLearner)``.

    A configuration is one fit of a `SpanSVC` with an RBF kernel. FLAML searches `C`, the `width`
    (gamma times the median squared distance of the rows) and the `balance` of the classes: a row's
    cost is ``C (l / (k l_c))^balance`` with l_c of the l rows in its class, one of k.
    """

    def __init__(self, task: Any = "binary", n_jobs: int | None = None, **config: Any) -> None:
        super().__init__(task, **config)
        self.estimator_class = SpanSVC

    @classmethod
    def search_space(cls, data_size: Any, task: Any, **params: Any) -> dict[str, Any]:
        """Return the domains of the hyperparameters, with values to begin with."""
        return {
            "C": {"domain": flaml.tune.loguniform(2**-6, 2**10), "init_value": 1.0},
            "width": {"domain": flaml.tune.loguniform(0.01, 100.0), "init_value": 1.0},
            "balance": {"domain": flaml.tune.uniform(0.0, 1.5), "init_value": 0.0},
        }

    def config2params(self, config: dict[str, Any]) -> dict[str, Any]:
        """Return the hyperparameters; what FLAML adds for other learners is left out."""
        return {name: config[name] for name in ("C", "width", "balance") if name in config}

    def fit(
        self,
        X_train: Any,
        y_train: Any,
        budget: float | None = None,
        free_mem_ratio: float = 0,
        **fit_arguments: Any,
    ) -> float:
        """Fit once, with `sample_weight` if there is one; return the seconds.

        Parameters
        ----------
        X_train, y_train
            Rows and labels.
        budget, free_mem_ratio
            Not used: one fit is short.
        **fit_arguments
            What was given to ``AutoML.fit`` for learners; only `sample_weight` is used.
        """
        start = time.perf_counter()
        model = SpanSVC(
            _RelativeRBF(width=self.params.get("width", 1.0)),
            _BalancedCost(self.params.get("C", 1.0), self.params.get("balance", 0.0)),
        )
        features = self._preprocess(X_train)
        self._model = model.fit(
            features, np.asarray(y_train), sample_weight=fit_arguments.get("sample_weight")
        )
        return time.perf_counter() - start


class LooMetric:
    """Leave-one-out loss of a `SpanLearner`, held-out loss of every other learner.

    Used as ``automl.fit(..., metric=LooMetric("error"), eval_method="holdout")``, so that a
    configuration of either is one fit on the same training rows.

    Parameters
    ----------
    metric
        "error", "log_loss", "auc" or "f1".

    Raises
    ------
    ValueError
        If it is another one.
    """

    def __init__(self, metric: str = "error") -> None:
        if metric not in _THEIRS:
            raise ValueError(f"`metric` must be one of {list(_THEIRS)}, got {metric!r}.")
        self.metric = metric

    def __call__(
        self,
        X_val: Any,
        y_val: Any,
        estimator: Any,
        labels: Any,
        X_train: Any,
        y_train: Any,
        weight_val: Any = None,
        weight_train: Any = None,
        config: Any = None,
        groups_val: Any = None,
        groups_train: Any = None,
    ) -> tuple[float, dict[str, float]]:
        """Return the loss, and what FLAML should log."""
        held_out = self._held_out(X_val, y_val, estimator, labels, weight_val)
        if not isinstance(estimator, SpanLearner):
            return held_out, {"held_out": held_out}
        model = estimator.model
        (metric,) = as_metrics(self.metric, weighted=False)
        weight = model.objective_.metric_weight
        loss = metric.loss(model.objective_.data.y, model.loo_.decision_values, weight)
        return loss, {"loo": loss, "held_out": held_out}

    def _held_out(self, X: Any, y: Any, estimator: Any, labels: Any, weight: Any) -> float:
        several = len(np.unique(y if labels is None else labels)) > 2
        name = _THEIRS[self.metric][several]
        predicted = (
            estimator.predict(X) if self.metric in ("error", "f1") else estimator.predict_proba(X)
        )
        if name == "roc_auc":
            predicted = predicted[:, 1]
        if name == "roc_auc_ovo":
            weight = None  # scikit-learn knows no weights there
        loss = sklearn_metric_loss_score(name, predicted, y, labels, weight)
        return float(loss)


@dataclass(frozen=True)
class _RelativeRBF(RBF):
    """An RBF kernel whose width is relative to the median squared distance of the rows."""

    width: float = 1.0

    def bind(self, X: Any) -> RBF:
        """Return the kernel with its gamma for these rows."""
        searched = super().bind(X).space["gamma"]
        assert isinstance(searched, Float)
        # Its range is symmetric, in logarithms, around one over the median.
        return RBF(gamma=self.width * math.sqrt(searched.low * searched.high))


@dataclass(frozen=True)
class _BalancedCost:
    """``C (l / (k l_c))^balance`` for a row of class c."""

    C: float
    balance: float

    @property
    def space(self) -> Space:
        """Nothing is searched here: FLAML does that."""
        return {}

    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return the cost of every row."""
        counts = np.bincount(data.codes)
        shares: FloatArray = len(data) / (len(counts) * counts)
        return self.C * shares[data.codes] ** self.balance
