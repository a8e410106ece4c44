"""Provide an SVM with three numbers as hyperparameters, for tools that search these themselves."""

from dataclasses import dataclass
from typing import Any

from span_hpo.estimators.span_svc import SpanSVC
from span_hpo.kernels import RBF, RELATIVE_WIDTHS, median_squared_distance
from span_hpo.metrics import as_metrics
from span_hpo.space import Float
from span_hpo.weighting import BALANCE_RANGE, COST_RANGE, ImbalanceCost

LEARNER_SPACE: dict[str, Float] = {
    "C": COST_RANGE,
    "width": RELATIVE_WIDTHS,
    "balance": BALANCE_RANGE,
}
LEARNER_START = {"C": 1.0, "width": 1.0, "balance": 0.0}


def learner(C: float = 1.0, width: float = 1.0, balance: float = 0.0) -> SpanSVC:
    """Return an estimator without a search: its `fit` is a single fit.

    Parameters
    ----------
    C
        Cost of a row if all classes have the same number of rows.
    width
        Product of ``gamma`` of the RBF kernel and the median squared distance of the rows.
    balance
        Exponent of the class weights: a row of class c costs ``C (l / (k l_c))^balance``, where l_c
        of the l rows are in class c, and k is the number of classes.

    Returns
    -------
    The estimator, which is not fitted yet.
    """
    return SpanSVC(RelativeRBF(width=width), ImbalanceCost(C, balance), loo_method="span")


def loo_loss(model: SpanSVC, metric: str) -> float:
    """Return the leave-one-out loss of a fitted estimator.

    Parameters
    ----------
    model
        Fitted estimator.
    metric
        Name of the metric.
    """
    (chosen,) = as_metrics(metric, weighted=False)
    objective = model.objective_
    return chosen.loss(objective.data.y, model.loo_.decision_values, objective.metric_weight)


@dataclass(frozen=True)
class RelativeRBF(RBF):
    """An RBF kernel whose width is relative to the median squared distance of the rows."""

    width: float = 1.0

    def bind(self, X: Any) -> RBF:
        """Return the RBF kernel with the gamma that the width has for these rows."""
        return RBF(gamma=self.width / median_squared_distance(X))
