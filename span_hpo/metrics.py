"""Losses of leave-one-out decision values, all of which are minimised.

Every function takes labels ``y`` (-1 or +1), decision values ``f`` and weights ``w``, each of
shape (l,), and returns one number. Means are weighted means, and a decision value of exactly 0 is
an error for either class.

For k > 2 classes, ``y`` holds class numbers and ``f`` has one column for each pair. Metrics that
need only classes look at the classes that the pairs elect. All other metrics are averaged over the
pairs, each on the rows of its two classes.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.metrics import average_precision_score, f1_score, matthews_corrcoef, roc_auc_score

from span_hpo.calibration import platt_sigmoid
from span_hpo.runtime import Array, FloatArray, real, weighted_mean
from span_hpo.solver import is_wrong, rows_of_pairs, voted

_SMOOTHNESS = 4.0  # slope of the sigmoid that replaces the step function of the error


def error(y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return the error, ``mean(y f <= 0)``."""
    return weighted_mean(is_wrong(y, f), w)


def balanced_error(y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return the mean of the error rates of the classes."""
    wrong = is_wrong(y, f)
    return float(
        np.mean([weighted_mean(wrong[y == label], w[y == label]) for label in np.unique(y)])
    )


def smooth_error(y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return ``mean(sigma(-4 y f))``, a smooth form of the error without plateaus."""
    return weighted_mean(expit(-_SMOOTHNESS * y * f), w)


def hinge(y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return the hinge loss, ``mean(max(0, 1 - y f))``."""
    return weighted_mean(np.maximum(0.0, 1 - y * f), w)


def log_loss(y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return the cross-entropy of Platt's sigmoid fitted to the values."""
    return weighted_mean(np.logaddexp(0.0, -y * platt_sigmoid(y, f, w).log_odds(f)), w)


def brier(y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return the mean squared error of Platt's sigmoid fitted to the values."""
    probability = platt_sigmoid(y, f, w).probability(f)
    return weighted_mean((probability - (y > 0)) ** 2, w)


def auc(y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return 1 minus the area under the ROC curve."""
    return 1 - float(roc_auc_score(y > 0, f, sample_weight=w))


def average_precision(y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return 1 minus the average precision of the positive class."""
    return 1 - float(average_precision_score(y > 0, f, sample_weight=w))


def f1(y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return 1 minus F1 of the positive class, or 1 minus the mean F1 of several classes."""
    if f.ndim == 2:
        elected = voted(y.astype(int), f)
        return 1 - float(f1_score(y, elected, average="macro", sample_weight=w, zero_division=0.0))
    hit, missed, false_alarm, _ = _confusion(y, f, w)
    return 1 - 2 * hit / (2 * hit + missed + false_alarm)


def mcc(y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return 1 minus Matthews' correlation, which is 0 if one class is never predicted."""
    if f.ndim == 2:
        return 1 - float(matthews_corrcoef(y, voted(y.astype(int), f), sample_weight=w))
    hit, missed, false_alarm, right = _confusion(y, f, w)
    actual = (hit + missed) * (false_alarm + right)
    predicted = (hit + false_alarm) * (missed + right)
    if predicted == 0:
        return 1.0
    return 1 - float((hit * right - missed * false_alarm) / np.sqrt(actual) / np.sqrt(predicted))


_WEIGHT_ARGUMENTS = ("weight", "sample_weight")

_NEED_ONLY_CLASSES = frozenset({"error", "balanced_error", "f1", "mcc"})

_NEED_BOTH_CLASSES = frozenset({"balanced_error", "auc", "average_precision", "f1", "mcc"})

_ONE_MINUS = frozenset({"auc", "average_precision", "f1", "mcc"})  # larger values are better

METRICS: dict[str, Callable[[FloatArray, FloatArray, FloatArray], float]] = {
    function.__name__: function
    for function in (
        error,
        balanced_error,
        smooth_error,
        hinge,
        log_loss,
        brier,
        auc,
        average_precision,
        f1,
        mcc,
    )
}


def loss_name(metric: str) -> str:
    """Return the name of what is minimised, which is one minus the value of some metrics."""
    return f"1 - {metric}" if metric in _ONE_MINUS else metric


@dataclass(frozen=True)
class Metric:
    """A named loss of leave-one-out values.

    Attributes
    ----------
    name
        Name of the metric.
    function
        Function ``(y, decision_values, weight) -> loss``.
    needs_values
        Whether the loss depends on more than the signs of the decision values.
    own
        Whether the function is the user's own; it gets the values of several classes as they are.
    needs_both_classes
        Whether the loss is undefined if a class has no weight.
    """

    name: str
    function: Callable[[FloatArray, FloatArray, FloatArray], Any]
    needs_values: bool = True
    own: bool = True
    needs_both_classes: bool = False

    def check_weight(self, y: FloatArray, weight: FloatArray, classes: Array | None = None) -> None:
        """Raise if the weights leave the metric without rows, or without a class that it needs.

        If the labels of all classes are given in order, the message names a class by its label.
        """
        if weight.all():
            return
        labels = np.unique(y)
        needs_all = self.needs_both_classes or (len(labels) > 2 and not self.own)
        for label in labels:
            if needs_all and not weight @ (y == label):
                if classes is not None:
                    shown = repr(classes.tolist()[max(0, int(label))])
                else:
                    shown = f"{label:+.0f}" if len(labels) == 2 else f"{label:.0f}"
                raise ValueError(
                    f"`metric_weight` must be positive in some row of each class for {self.name}, "
                    f"got only zeros for the rows of class {shown}."
                )
        if not weight.any():
            raise ValueError("`metric_weight` must be positive in some row, got only zeros.")

    def loss(self, y: FloatArray, decision_values: FloatArray, weight: FloatArray) -> float:
        """Return the loss, which must be one finite number.

        Raises
        ------
        ValueError
            If `check_weight` rejects the weights, or the function does not return one finite
            number.
        """
        self.check_weight(y, weight)
        if decision_values.ndim == 2 and self.needs_values and not self.own:
            loss = _mean_over_pairs(self.function, y, decision_values, weight)
        else:
            loss = self.function(y, decision_values, weight)
        if np.ndim(loss) > 0:
            raise ValueError(
                f"`metric` {self.name} must return one number, got shape {np.shape(loss)}."
            )
        return real(f"{self.name}(y, decision_values)", loss)


def as_metrics(metric: Any, *, weighted: bool) -> tuple[Metric, ...]:
    """Return the metrics that a user names or passes as callables.

    Parameters
    ----------
    metric
        Name in `METRICS`, a callable ``(y, decision_values) -> loss``, or a tuple of several.
    weighted
        Whether rows have weights. A callable must then take an argument `weight` or
        `sample_weight`.
    """
    given = metric if isinstance(metric, tuple | list) else (metric,)
    if not given:
        raise ValueError("`metric` must name at least one metric, got none.")
    names = [one for one in given if isinstance(one, str)]
    if len(set(names)) < len(names):
        raise ValueError(f"`metric` must not name a metric twice, got {names}.")
    metrics: dict[str, Metric] = {}
    for one in (_as_metric(one, weighted) for one in given):
        # Callables may share a name: two lambdas are called <lambda> and <lambda>_2.
        name, number = one.name, 1
        while name in metrics:
            number += 1
            name = f"{one.name}_{number}"
        metrics[name] = replace(one, name=name)
    return tuple(metrics.values())


def _as_metric(metric: Any, weighted: bool) -> Metric:
    if isinstance(metric, str) and metric in METRICS:
        return Metric(
            metric,
            METRICS[metric],
            needs_values=metric not in _NEED_ONLY_CLASSES,
            own=False,
            needs_both_classes=metric in _NEED_BOTH_CLASSES,
        )
    if not callable(metric):
        raise ValueError(
            f"`metric` must be one of {sorted(METRICS)}, a callable (y, decision_values) -> loss "
            f"or a tuple of these, got {metric!r}."
        )
    name = getattr(metric, "__name__", type(metric).__name__)
    try:
        accepted = set(inspect.signature(metric).parameters)
    except ValueError:
        accepted = set()  # some functions written in C do not reveal their arguments
    argument = next((known for known in _WEIGHT_ARGUMENTS if known in accepted), None)
    if weighted and argument is None:
        raise ValueError(
            f"`metric` {name} must take an argument `weight` or `sample_weight` when "
            "`metric_weight` is given."
        )
    return Metric(name, _UserMetric(metric, argument if weighted else None))


@dataclass(frozen=True)
class _UserMetric:
    """A user's function as a metric. It is a class, because closures cannot be pickled."""

    function: Callable[..., Any]
    weight_argument: str | None

    def __call__(self, y: FloatArray, f: FloatArray, w: FloatArray) -> Any:
        weights = {} if self.weight_argument is None else {self.weight_argument: w}
        return self.function(y, f, **weights)


def _mean_over_pairs(
    function: Callable[[FloatArray, FloatArray, FloatArray], Any],
    y: FloatArray,
    f: FloatArray,
    w: FloatArray,
) -> float:
    """Return the mean of a two-class loss over all pairs of classes."""
    losses = []
    for column, (rows, signs) in enumerate(rows_of_pairs(y)):
        losses.append(function(signs, f[rows, column], w[rows]))
    return float(np.mean(losses))


def _confusion(y: FloatArray, f: FloatArray, w: FloatArray) -> tuple[float, float, float, float]:
    """Return the weights of hits, misses, false alarms and correct rejections."""
    right, positive = y * f > 0, y > 0
    cells = (right & positive, ~right & positive, ~right & ~positive, right & ~positive)
    hit, missed, false_alarm, rejected = (float(w[cell].sum()) for cell in cells)
    return hit, missed, false_alarm, rejected


# The metric that decides between models of equal loss.
SMOOTH_ERROR = _as_metric("smooth_error", weighted=False)
