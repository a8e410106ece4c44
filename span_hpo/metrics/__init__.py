"""Losses of leave-one-out decision values."""

from span_hpo.metrics.metric import METRICS, SMOOTH_ERROR, Metric, as_metrics, loss_name

__all__ = ["METRICS", "SMOOTH_ERROR", "Metric", "as_metrics", "loss_name"]
