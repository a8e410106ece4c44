"""The objective that a search by gradients minimises in place of one without derivatives."""

import copy
from dataclasses import replace

import numpy as np

from span_hpo.metrics import SMOOTH_ERROR
from span_hpo.objective.row_losses import KeptRows
from span_hpo.objective.span_objective import SpanObjective
from span_hpo.runtime import FloatArray, read_only

BALANCED = "balanced_smooth_error"


def with_derivatives(objective: SpanObjective) -> SpanObjective:
    """Return an objective with the same rows, kernel and weighting whose loss has derivatives.

    A first metric that has derivatives is kept. Otherwise, the loss is "smooth_error"; for metrics
    in which classes count, such as "balanced_error", "auc" and "f1", every class has the same
    weight in it, and it is called "balanced_smooth_error". The method is the span-rule. Kernel
    matrices are shared with the given objective.
    """
    found, metric = copy.copy(objective), objective.metrics[0]
    found.loo_method, found.kept_rows = "span", KeptRows()
    if metric.slopes is None:
        metric = SMOOTH_ERROR
        if not objective.metrics[0].own and objective.metrics[0].name != "error":
            metric = replace(SMOOTH_ERROR, name=BALANCED)
            found.metric_weight = _of_equal_classes(objective)
    found.metrics = (metric,)
    found._needs_values = metric.needs_values
    return found


def _of_equal_classes(objective: SpanObjective) -> FloatArray:
    """Return weights of the rows whose sum is the same in every class."""
    codes, weight = objective.data.codes, objective.metric_weight
    sums = np.bincount(codes, weight)
    shares = np.divide(sums.sum() / len(sums), sums, out=np.zeros_like(sums), where=sums > 0)
    return read_only(weight * shares[codes])
