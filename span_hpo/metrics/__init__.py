"""Losses of leave-one-out decision values, and their standard errors."""

from span_hpo.metrics.metric import METRICS, SMOOTH_ERROR, Metric, as_metrics, judged_by, loss_name
from span_hpo.metrics.rows import RowLosses, Rows, unpacked
from span_hpo.metrics.standard_errors import (
    paired_standard_error,
    spread_over_samples,
    standard_error,
)

__all__ = [
    "METRICS",
    "SMOOTH_ERROR",
    "Metric",
    "RowLosses",
    "Rows",
    "as_metrics",
    "judged_by",
    "loss_name",
    "paired_standard_error",
    "spread_over_samples",
    "standard_error",
    "unpacked",
]
