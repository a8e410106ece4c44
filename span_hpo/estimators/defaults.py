"""Defaults of a search that depend on the metric and on the data."""

from collections.abc import Callable
from typing import Any

from span_hpo.loo import METHODS
from span_hpo.objective import Evaluation, SpanObjective
from span_hpo.weighting import Weighting, as_weighting

AUTO = "auto"
_FEW_ROWS = 60  # largest number of rows at which "exact" is always chosen
_MOST_ROWS = 1000  # largest number of rows at which it may be chosen
_RANKINGS = ("auc", "average_precision")
_MANY_UNDEFINED = 0.1  # share of undefined spans above which the span-rule is weak
# Metrics in which every row counts alike, so that a small class needs no costs of its own.
_MEANS_OVER_ROWS = ("error", "smooth_error", "hinge", "log_loss", "brier")


def weighting_for(weighting: Any, metric: Any) -> Weighting:
    """Return the weighting that is searched.

    By default all rows have one cost if every row counts alike in the metric. Otherwise, as with
    "balanced_error", an exponent that balances the classes is searched in addition. The benchmark
    `spaces` compares these spaces with others.

    Parameters
    ----------
    weighting
        A weighting, a word that stands for one, or None for the default.
    metric
        The metric of the search, as the user gives it.
    """
    return as_weighting(default_weighting(metric) if weighting is None else weighting)


def default_weighting(metric: Any) -> str:
    """Return the word for the weighting that is searched with a metric, if none is given."""
    return "uniform" if isinstance(metric, str) and metric in _MEANS_OVER_ROWS else "imbalance"


def as_loo_method(loo_method: Any) -> str:
    """Return the method of a search, which may be "auto", or raise if there is no such method."""
    if loo_method == AUTO or loo_method in METHODS:
        return str(loo_method)
    raise ValueError(f"`loo_method` must be one of {[AUTO, *METHODS]}, got {loo_method!r}.")


def chosen_loo_method(
    objective: SpanObjective, first: Callable[[], Evaluation] | None = None
) -> str:
    """Return the method that suits the data and the metric of an objective, "exact" or "span".

    The choice depends on nothing else, so that it is the same in all processes of a search. The
    benchmark `loo_methods` shows where either method selects better models, and at what cost.

    Parameters
    ----------
    objective
        Objective whose method is "span".
    first
        Function that returns an evaluation of the objective by the method "span", which is called
        if the choice depends on it; by default one at the first default point.
    """
    rows, n_classes = len(objective.data), len(objective.data.classes)
    if rows <= _FEW_ROWS:
        return "exact"
    if rows > _MOST_ROWS or n_classes > 2:
        return "span"
    if any(metric.name in _RANKINGS for metric in objective.metrics):
        return "exact"
    if first is None:
        evaluation = objective.evaluate(objective.defaults()[0] if objective.space else {})
    else:
        evaluation = first()
    return "exact" if evaluation.loo.n_undefined > _MANY_UNDEFINED * rows else "span"
