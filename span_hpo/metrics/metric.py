"""Metrics: losses with a name, of two classes or of the pairs of several.

For k > 2 classes, metrics that need only classes look at the classes that the pairs elect. All
other metrics are averaged over the pairs, each on the rows of its two classes.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from span_hpo.errors import NoDerivativeError
from span_hpo.metrics.functions import (
    auc,
    average_precision,
    balanced_error,
    brier,
    error,
    f1,
    hinge,
    log_loss,
    mcc,
    smooth_error,
    span_functional,
)
from span_hpo.metrics.rows import OF_ROWS, RowFunction, RowLosses, Rows
from span_hpo.metrics.slopes import SLOPES
from span_hpo.runtime import Array, FloatArray, real, rows_of
from span_hpo.solver import rows_of_pairs

_WEIGHT_ARGUMENTS = ("weight", "sample_weight")

_NEED_ONLY_CLASSES = frozenset({"error", "balanced_error", "f1", "mcc"})

_NEED_BOTH_CLASSES = frozenset({"balanced_error", "auc", "average_precision", "f1", "mcc"})

_BY_CLASS = frozenset({"balanced_error"})  # means over the classes of means over their rows

_ONE_MINUS = frozenset({"auc", "average_precision", "f1", "mcc"})  # larger values are better

METRICS: dict[str, Callable[[FloatArray, FloatArray, FloatArray], float]] = {
    function.__name__: function
    for function in (
        error,
        balanced_error,
        smooth_error,
        hinge,
        span_functional,
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
    of_rows
        Function ``(y, decision_values, weight) -> losses of the rows``, if the loss is their mean.
    by_class
        Whether that mean is taken over the classes first.
    slopes
        Function ``(y, decision_values, weight) -> derivatives of the loss by the values``, or None
        if there is no derivative.
    """

    name: str
    function: Callable[[FloatArray, FloatArray, FloatArray], Any]
    needs_values: bool = True
    own: bool = True
    needs_both_classes: bool = False
    of_rows: RowFunction | None = None
    by_class: bool = False
    slopes: RowFunction | None = None

    @property
    def is_mean(self) -> bool:
        """Whether the loss is a mean of losses of the rows; see `row_losses`."""
        return self.of_rows is not None

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
        return self.judged(y, decision_values, weight)[0]

    def judged(
        self, y: FloatArray, decision_values: FloatArray, weight: FloatArray
    ) -> tuple[float, RowLosses | None]:
        """Return the `loss`, and the `row_losses` whose mean it is."""
        self.check_weight(y, weight)
        rows = self.row_losses(y, decision_values, weight)
        if rows is not None:
            loss = rows.mean(weight)
        elif decision_values.ndim == 2 and self.needs_values and not self.own:
            loss = _mean_over_pairs(self.function, y, decision_values, weight)
        else:
            loss = self.function(y, decision_values, weight)
        if np.ndim(loss) > 0:
            raise ValueError(
                f"`metric` {self.name} must return one number, got shape {np.shape(loss)}."
            )
        return real(f"{self.name}(y, decision_values)", loss), rows

    def row_losses(
        self, y: FloatArray, decision_values: FloatArray, weight: FloatArray
    ) -> RowLosses | None:
        """Return the losses of the rows whose mean is the loss, or None if it is not a mean.

        Losses of calibrated probabilities hold the sigmoid fixed that is fitted to all values.
        """
        if self.of_rows is None:
            return None
        strata = self.strata(y)
        if decision_values.ndim == 2 and self.needs_values:
            values = tuple(
                self.of_rows(signs, decision_values[rows, column], weight[rows])
                for column, (rows, signs) in enumerate(rows_of_pairs(y))
            )
        else:
            of_all = self.of_rows(y, decision_values, weight)
            values = tuple(of_all[rows] for rows in strata)
        return RowLosses(values, strata)

    def gradient(
        self, y: FloatArray, decision_values: FloatArray, weight: FloatArray
    ) -> FloatArray:
        """Return the derivative of the loss by each decision value, shaped as these.

        Raises
        ------
        NoDerivativeError
            If the loss has no derivative.
        ValueError
            If a user's derivative is not as described.
        """
        if self.slopes is None:
            raise self.without_derivative()
        if self.own or decision_values.ndim == 1:
            return self._checked_slopes(self.slopes(y, decision_values, weight), decision_values)
        gradient = np.zeros(decision_values.shape)
        for column, (rows, signs) in enumerate(rows_of_pairs(y)):
            own = self.slopes(signs, decision_values[rows, column], weight[rows])
            gradient[rows, column] = own / decision_values.shape[1]
        return gradient

    def _checked_slopes(self, slopes: Any, decision_values: FloatArray) -> FloatArray:
        """Return derivatives by the values after checking that they are finite, one for each."""
        wanted = f"finite numbers of shape {decision_values.shape}"
        try:
            found = np.asarray(slopes, dtype=np.float64)
        except (TypeError, ValueError):
            found = None
        if found is None:
            received = repr(slopes)
        elif found.shape != decision_values.shape:
            received = f"shape {found.shape}"
        elif not np.isfinite(found).all():
            row = np.argwhere(~np.isfinite(found))[0, 0]
            received = f"{found[row]} in row {row}"
        else:
            return found
        raise ValueError(
            f"`gradient` of the metric {self.name} must return {wanted}, got {received}."
        )

    def without_derivative(self) -> NoDerivativeError:
        """Return the error that says that the loss has no derivative, and what to do."""
        return NoDerivativeError(
            f"`metric` must have a derivative, which {self.name} has not: use one of "
            f"{list(SLOPES)}, or a callable with a method `gradient(y, decision_values)`."
        )

    def strata(self, y: FloatArray) -> tuple[Rows, ...]:
        """Return the rows over which means are taken before these are averaged; see `RowLosses`."""
        if self.by_class:
            return tuple(rows_of(y == label) for label in np.unique(y))
        if self.needs_values and y.max() > 1:  # numbers of more than two classes
            return tuple(rows for rows, _ in rows_of_pairs(y))
        return (slice(None),)


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


def judged_by(
    metrics: Sequence[Metric], y: FloatArray, decision_values: FloatArray, weight: FloatArray
) -> tuple[dict[str, float], RowLosses | None]:
    """Return the losses of all metrics by name, and the row losses of the first."""
    found = [metric.judged(y, decision_values, weight) for metric in metrics]
    losses = {metric.name: loss for metric, (loss, _) in zip(metrics, found, strict=True)}
    return losses, found[0][1]


def _as_metric(metric: Any, weighted: bool) -> Metric:
    if isinstance(metric, str) and metric in METRICS:
        return Metric(
            metric,
            METRICS[metric],
            needs_values=metric not in _NEED_ONLY_CLASSES,
            own=False,
            needs_both_classes=metric in _NEED_BOTH_CLASSES,
            of_rows=OF_ROWS.get(metric),
            by_class=metric in _BY_CLASS,
            slopes=SLOPES.get(metric),
        )
    if not callable(metric):
        raise ValueError(
            f"`metric` must be one of {sorted(METRICS)}, a callable (y, decision_values) -> loss "
            f"or a tuple of these, got {metric!r}."
        )
    name = getattr(metric, "__name__", type(metric).__name__)
    module = str(getattr(metric, "__module__", ""))
    if module.startswith("sklearn.metrics.") and name.endswith("_score"):
        raise ValueError(
            f"`metric` must be a loss, whose smaller values are better, got {name} of "
            "scikit-learn, which is a score. Use a name such as 'auc', or write a loss."
        )
    slopes = getattr(metric, "gradient", None)
    return Metric(
        name,
        _user_metric(metric, f"`metric` {name}", weighted),
        slopes=_user_metric(slopes, f"`gradient` of the metric {name}", weighted)
        if callable(slopes)
        else None,
    )


def _user_metric(function: Callable[..., Any], shown: str, weighted: bool) -> "_UserMetric":
    """Return a user's metric or its gradient after checking that it takes weights if needed."""
    try:
        accepted = set(inspect.signature(function).parameters)
    except ValueError:
        accepted = set()  # some functions written in C do not reveal their arguments
    argument = next((known for known in _WEIGHT_ARGUMENTS if known in accepted), None)
    if weighted and argument is None:
        raise ValueError(
            f"{shown} must take an argument `weight` or `sample_weight` when `metric_weight` is "
            "given."
        )
    return _UserMetric(function, argument if weighted else None)


@dataclass(frozen=True)
class _UserMetric:
    """A user's metric or its gradient. It is a class, because closures cannot be pickled."""

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


# The metric that decides between models of equal loss.
SMOOTH_ERROR = _as_metric("smooth_error", weighted=False)
