"""The arguments `threshold` and `miss_cost` of the estimators, and what follows from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from span_hpo.calibration import PlattSigmoid
from span_hpo.metrics import Metric
from span_hpo.runtime import ArgumentError, Array, FloatArray, plain, real
from span_hpo.selection import (
    UNMOVED,
    best_threshold,
    class_share,
    cost_loss,
    cost_probability,
    shifted,
    threshold_at,
)

LOO = "loo"
_BALANCED = "balanced_error"
_EVEN = 0.5  # probability at which the predicted class switches without a threshold


@dataclass(frozen=True)
class ThresholdRule:
    """Where the prediction of two classes switches, as a user has asked for it.

    Attributes
    ----------
    probability
        Probability of the second class from which on it is predicted, or None.
    costs
        Costs of missing a row of the first and of the second class, or None. They are weighed by
        the sigmoid itself: probabilities that are kept at one half, as `predict_proba` has them,
        would give higher costs on new rows. Without either, the threshold follows from the metric.
    """

    probability: float | None = None
    costs: tuple[float, float] | None = None

    def applied(
        self,
        y: FloatArray,
        f: FloatArray,
        weight: FloatArray,
        metric: Metric,
        *,
        sigmoid: PlattSigmoid,
    ) -> tuple[float, float]:
        """Return the decision value at which the prediction switches, and the loss there.

        Parameters
        ----------
        y
            Labels, shape (l,), -1 or +1.
        f
            Leave-one-out decision values, shape (l,).
        weight
            Weight of each row in the metric, shape (l,).
        metric
            Metric of the loss, unless costs are given.
        sigmoid
            Calibration of the decision values.
        """
        if self.costs is not None:
            value = threshold_at(sigmoid, cost_probability(*self.costs))
            return value, cost_loss(y, shifted(f, value), weight, *self.costs)
        if self.probability is not None:
            value = _agreeing(sigmoid, self.probability)
        elif metric.name == _BALANCED and not metric.own:
            value = threshold_at(sigmoid, class_share(y, weight))
        else:
            value = best_threshold(y, f, weight, metric)
        return value, metric.loss(y, shifted(f, value), weight)


def threshold_rule(
    threshold: Any, miss_cost: Any, metric: Any, labels: Array
) -> ThresholdRule | None:
    """Return the rule that a user asks for, or None if predictions follow the sign.

    Parameters
    ----------
    threshold
        None, "loo", or a probability between 0 and 1.
    miss_cost
        None; the cost of missing a row of each class, by its label; how many times as much it costs
        to miss the second class as the first; or a matrix of costs, with a row for each class and a
        column for each prediction.
    metric
        Name of the metric, a callable, or a tuple of several.
    labels
        Labels of the classes, in their order.

    Raises
    ------
    ArgumentError
        If an argument is not valid, the arguments contradict each other, or there are more than two
        classes.
    """
    if threshold is None and miss_cost is None:
        return None
    name, value = ("miss_cost", miss_cost) if threshold is None else ("threshold", threshold)
    if len(labels) > 2:
        raise ArgumentError(
            name, f"must not be given for more than two classes, got {value!r} for {len(labels)}."
        )
    probability = None if threshold is None or _is_loo(threshold) else _probability(threshold)
    if miss_cost is not None:
        if probability is not None:
            raise ArgumentError(
                "threshold",
                f"must be None or {LOO!r} if `miss_cost` is given, which decides it, got "
                f"{threshold!r}.",
            )
        return ThresholdRule(costs=_miss_costs(miss_cost, plain(labels.tolist())))
    first = metric[0] if isinstance(metric, tuple | list) and metric else metric
    if probability is None and isinstance(first, str) and first in UNMOVED:
        raise ArgumentError(
            "threshold",
            f"must be None or a number for the metric {first}, which no threshold changes, got "
            f"{LOO!r}; `miss_cost` gives a threshold for every metric.",
        )
    return ThresholdRule(probability=probability)


def _is_loo(threshold: Any) -> bool:
    return isinstance(threshold, str) and threshold == LOO


def _probability(threshold: Any) -> float:
    """Return a probability that is strictly between 0 and 1."""
    fault = f"must be None, {LOO!r} or a probability above 0 and below 1, got {threshold!r}."
    try:
        value = real("threshold", threshold, above=0)
    except ArgumentError:
        raise ArgumentError("threshold", fault) from None
    if value >= 1:
        raise ArgumentError("threshold", fault)
    return value


def _miss_costs(miss_cost: Any, labels: list[Any]) -> tuple[float, float]:
    """Return the costs of missing a row of the first and of the second class."""
    if isinstance(miss_cost, Mapping):
        costs = {plain(label): cost for label, cost in miss_cost.items()}
        if set(costs) != set(labels):
            raise ArgumentError(
                "miss_cost", f"must name each of the labels {labels} once, got {list(costs)}."
            )
        given = [costs[label] for label in labels]
    elif np.ndim(miss_cost) == 0:
        given = [1.0, miss_cost]
    elif np.shape(miss_cost) == (2, 2) and not np.diagonal(miss_cost).any():
        (_, first), (second, _) = miss_cost
        given = [first, second]
    else:
        raise ArgumentError(
            "miss_cost",
            "must be a cost for each label such as {'good': 1, 'bad': 10}, one number, or a 2 x 2 "
            f"matrix with zeros on its diagonal, got {miss_cost!r}.",
        )
    first, second = (real("miss_cost", cost, above=0) for cost in given)
    return first, second


def _agreeing(sigmoid: PlattSigmoid, probability: float) -> float:
    """Return the decision value at which `predict_proba` reaches a probability.

    Probabilities are kept at one half where calibration contradicts the sign, so that they jump
    over those between the probability of the value 0 and one half.
    """
    at_zero = float(sigmoid.probability(np.zeros(1))[0])
    if at_zero < probability <= _EVEN or _EVEN <= probability <= at_zero:
        return 0.0
    return threshold_at(sigmoid, probability)
