"""Provide a learner and a metric for FLAML's ``AutoML``."""

import time
from typing import Any

import flaml
import numpy as np
from flaml.automl.ml import sklearn_metric_loss_score
from flaml.automl.model import SKLearnEstimator
from scipy.sparse import issparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler

from span_hpo.estimators import (
    LEARNER_SPACE,
    LEARNER_START,
    LooSVC,
    learner_arguments,
    loo_loss,
)
from span_hpo.space import Float

# FLAML's names of the losses, for two classes and for more.
_THEIRS = {
    "error": ("accuracy", "accuracy"),
    "log_loss": ("log_loss", "log_loss"),
    "auc": ("roc_auc", "roc_auc_ovo"),
    "f1": ("f1", "macro_f1"),
}


class SpanLearner(SKLearnEstimator):  # type: ignore[misc]  # FLAML has no types
    """Weighted SVM as a learner of FLAML, for ``automl.add_learner("span", SpanLearner)``.

    A configuration is one fit of a `LooSVC` with an RBF kernel, to features that are scaled to
    [0, 1] if they are dense. FLAML searches `C`, the `width` (gamma times the median squared
    distance of the rows) and the `balance` of the classes: a row of class c costs
    ``C (l / (k l_c))^balance``, where l_c of the l rows are in class c, and k is the number of
    classes.

    Examples
    --------
    >>> from flaml import AutoML
    >>> from sklearn.datasets import load_iris
    >>> from span_hpo.integrations.flaml import LooMetric, SpanLearner
    >>> sorted(SpanLearner.search_space(data_size=(150, 4), task="multiclass"))
    ['C', 'balance', 'width']
    >>> automl = AutoML()
    >>> automl.add_learner("span", SpanLearner)
    >>> X, y = load_iris(return_X_y=True)
    >>> automl.fit(  # doctest: +SKIP
    ...     X, y, estimator_list=["span", "lgbm"], metric=LooMetric(), eval_method="holdout"
    ... )
    """

    def __init__(self, task: Any = "binary", n_jobs: int | None = None, **config: Any) -> None:
        super().__init__(task, **config)
        self.estimator_class = LooSVC

    @classmethod
    def search_space(cls, data_size: Any, task: Any, **params: Any) -> dict[str, Any]:
        """Return the domains of the hyperparameters and their initial values."""
        return {
            name: {"domain": _domain(part), "init_value": LEARNER_START[name]}
            for name, part in LEARNER_SPACE.items()
        }

    def config2params(self, config: dict[str, Any]) -> dict[str, Any]:
        """Return the hyperparameters without those that FLAML adds for other learners."""
        return {name: config[name] for name in LEARNER_SPACE if name in config}

    def fit(
        self,
        X_train: Any,
        y_train: Any,
        budget: float | None = None,
        free_mem_ratio: float = 0,
        **fit_arguments: Any,
    ) -> float:
        """Fit once, with `sample_weight` if it is given.

        Parameters
        ----------
        X_train, y_train
            Features and labels of the training rows.
        budget, free_mem_ratio
            Limits of time and memory, which are not used because one fit is short.
        **fit_arguments
            Arguments of ``AutoML.fit`` for learners, of which only `sample_weight` is used.

        Returns
        -------
        Seconds that the fit has taken.
        """
        start = time.perf_counter()
        X, y = self._preprocess(X_train), np.asarray(y_train)
        weight = fit_arguments.get("sample_weight")
        if weight is not None:  # rows of weight 0 must not take part in the scaling either
            kept = np.flatnonzero(weight)
            X = X.iloc[kept] if hasattr(X, "iloc") else X[kept]
            y, weight = y[kept], np.asarray(weight)[kept]
        scaler = FunctionTransformer(accept_sparse=True) if issparse(X) else MinMaxScaler()
        given = {name: self.params.get(name, LEARNER_START[name]) for name in LEARNER_SPACE}
        arguments = learner_arguments(scaler.fit_transform(X), y, **given)
        model = make_pipeline(scaler, LooSVC(**arguments, loo_method="span"))
        self._model = model.fit(X, y, loosvc__sample_weight=weight)
        return time.perf_counter() - start


class LooMetric:
    """Leave-one-out loss of a `SpanLearner`, and held-out loss of every other learner.

    Use it as ``automl.fit(..., metric=LooMetric("error"), eval_method="holdout")``, so that every
    configuration takes one fit on the same training rows.

    Parameters
    ----------
    metric
        Name of the loss: "error", "log_loss", "auc" or "f1".

    Raises
    ------
    ValueError
        If the name is unknown.

    Examples
    --------
    >>> from span_hpo.integrations.flaml import LooMetric
    >>> LooMetric("error").metric
    'error'
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
        """Return the loss, and the values that FLAML logs with it."""
        held_out = self._held_out(X_val, y_val, estimator, labels, weight_val)
        if not isinstance(estimator, SpanLearner):
            return held_out, {"held_out": held_out}
        loss = loo_loss(estimator.model, self.metric)
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
            weight = None  # scikit-learn supports no weights for this metric
        loss = sklearn_metric_loss_score(name, predicted, y, labels, weight)
        return float(loss)


def _domain(part: Float) -> Any:
    """Return the domain that FLAML uses for a range."""
    kind = flaml.tune.loguniform if part.log else flaml.tune.uniform
    return kind(part.low, part.high)
