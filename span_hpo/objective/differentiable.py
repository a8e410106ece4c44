"""The objective that a search by gradients minimises in place of one without derivatives."""

import copy
from dataclasses import replace

import numpy as np

from span_hpo.metrics import SMOOTH_ERROR, Metric
from span_hpo.objective.row_losses import KeptRows
from span_hpo.objective.span_objective import SpanObjective
from span_hpo.runtime import FloatArray, read_only

BALANCED = "balanced_smooth_error"


def followed_metric(metric: Metric) -> Metric | None:
    """Return the metric whose gradient lowers the loss of a metric, or None if none surely does.

    It is the metric itself if it has derivatives. The "error", which is constant almost everywhere,
    falls with the "smooth_error".
    """
    if metric.slopes is not None:
        return metric
    return SMOOTH_ERROR if metric.name == "error" and not metric.own else None


def with_derivatives(objective: SpanObjective) -> SpanObjective:
    """Return an objective with the same rows, kernel and weighting whose loss has derivatives.

    A first metric that has derivatives is kept. Otherwise, the loss is "smooth_error"; for metrics
    in which classes count, such as "balanced_error", "auc" and "f1", every class has the same
    weight in it, and it is called "balanced_smooth_error". The method is the span-rule. Kernel
    matrices are shared with the given objective.
    """
    found, metric = copy.copy(objective), objective.metrics[0]
    found.loo_method, found.kept_rows = "span", KeptRows()
    followed = followed_metric(metric)
    if followed is None and metric.own:
        followed = SMOOTH_ERROR
    elif followed is None:
        followed = replace(SMOOTH_ERROR, name=BALANCED)
        found.metric_weight = _of_equal_classes(objective)
    found.metrics = (followed,)
    found._needs_values = followed.needs_values
    return found


def _of_equal_classes(objective: SpanObjective) -> FloatArray:
    """Return weights of the rows whose sum is the same in every class."""
    codes, weight = objective.data.codes, objective.metric_weight
    sums = np.bincount(codes, weight)  # positive, or the metrics of the objective refuse them
    shares = sums.sum() / len(sums) / sums
    return read_only(weight * shares[codes])
