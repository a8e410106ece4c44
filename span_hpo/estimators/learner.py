"""A weighted SVM with three numbers, for tools that search the hyperparameters themselves."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from span_hpo.data import Dataset
from span_hpo.estimators.span_svc import SpanSVC
from span_hpo.kernels import RBF, RELATIVE_WIDTHS, median_squared_distance
from span_hpo.metrics import as_metrics
from span_hpo.runtime import FloatArray
from span_hpo.space import Float, Params, Space
from span_hpo.weighting import COST_RANGE

LEARNER_SPACE: dict[str, Float] = {
    "C": COST_RANGE,
    "width": RELATIVE_WIDTHS,
    "balance": Float(0.0, 1.5),
}
LEARNER_START = {"C": 1.0, "width": 1.0, "balance": 0.0}


def learner(C: float = 1.0, width: float = 1.0, balance: float = 0.0) -> SpanSVC:
    """Return an estimator whose `fit` is a single fit, because nothing is left to search.

    Parameters
    ----------
    C
        Cost of a row where the classes are balanced.
    width
        ``gamma`` of the RBF kernel times the median squared distance of the rows.
    balance
        Exponent of the class weights: a row of class c costs ``C (l / (k l_c))^balance``, where l_c
        of the l rows are in its class, one of k.
    """
    return SpanSVC(RelativeRBF(width=width), BalancedCost(C, balance))


def loo_loss(model: SpanSVC, metric: str) -> float:
    """Return a leave-one-out loss of a fitted estimator.

    Parameters
    ----------
    model
        The estimator.
    metric
        Name of the loss.
    """
    (chosen,) = as_metrics(metric, weighted=False)
    objective = model.objective_
    return chosen.loss(objective.data.y, model.loo_.decision_values, objective.metric_weight)


@dataclass(frozen=True)
class RelativeRBF(RBF):
    """An RBF kernel whose width is relative to the median squared distance of the rows."""

    width: float = 1.0

    def bind(self, X: Any) -> RBF:
        """Return the kernel with its gamma for these rows."""
        return RBF(gamma=self.width / median_squared_distance(X))


@dataclass(frozen=True)
class BalancedCost:
    """``C (l / (k l_c))^balance`` for a row of class c, one of k, which has l_c of the l rows."""

    C: float
    balance: float

    @property
    def space(self) -> Space:
        """Nothing is searched here: the tool that uses the learner does that."""
        return {}

    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return the cost of every row."""
        counts = np.bincount(data.codes)
        shares: FloatArray = len(data) / (len(counts) * counts)
        return self.C * shares[data.codes] ** self.balance
