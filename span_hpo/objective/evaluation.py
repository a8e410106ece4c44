"""The results of evaluating one set of hyperparameters, and the order of models."""

import functools
import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from span_hpo.loo import LeaveOneOut
from span_hpo.metrics import (
    SMOOTH_ERROR,
    Metric,
    RowLosses,
    judged_by,
    loss_name,
    paired_standard_error,
    standard_error,
)
from span_hpo.runtime import FloatArray, Printable, counted
from span_hpo.solver import DualSolution, PairwiseSolution

_logger = logging.getLogger(__name__)


def model_rank(loss: float, figures: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return the key by which models are sorted, the best first.

    Ties of the loss, which are common with the metric "error", go to the lower smooth error, then
    to fewer support vectors.

    Parameters
    ----------
    loss
        Loss of the model.
    figures
        `Evaluation.figures` of the model, or attributes that hold them. A missing figure counts as
        infinity.
    """
    return loss, figures.get("smooth_error", math.inf), figures.get("n_support", math.inf)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Printable):
    """The result of evaluating one set of hyperparameters by leave-one-out.

    Attributes
    ----------
    loss
        Loss of the first metric, which a search minimises.
    losses
        Losses of all metrics, by name.
    loo
        Leave-one-out result for the rows that were used.
    params
        Hyperparameters that were evaluated, by name.
    n_rows
        Number of rows that were used.
    n_support, n_in_bound
        Numbers of support vectors and of in-bound support vectors.
    converged
        Whether the fit reached its tolerance.
    solver
        What computed the first fit: "libsvm" or "smo", or both for several classes; see `solve`.
    seconds
        Wall time of the evaluation.
    metric_weight
        Weight of each row in the losses, shape (n_rows,).
    metric
        The first metric.
    row_losses
        The losses of the rows whose mean is the loss; None if the first metric is not a mean.

    Examples
    --------
    >>> from span_hpo import SpanObjective
    >>> objective = SpanObjective([[0], [1], [3], [4]], [0, 0, 1, 1], kernel="linear")
    >>> evaluation = objective.evaluate({"C_0": 0.2, "C_1": 0.2})
    >>> evaluation.losses
    {'error': 0.0}
    >>> evaluation.n_support, evaluation.n_in_bound
    (4, 2)
    >>> [round(number, 3) for number in evaluation.rank]  # loss, smooth error, support vectors
    [0.0, 0.101, 4]
    >>> worse = objective.evaluate({"C_0": 0.1, "C_1": 0.2})
    >>> round(worse.standard_error, 3), round(worse.paired_standard_error(evaluation), 3)
    (0.289, 0.289)
    """

    loss: float
    losses: dict[str, float]
    loo: LeaveOneOut
    params: dict[str, Any]
    n_rows: int
    n_support: int
    n_in_bound: int
    converged: bool
    solver: str
    seconds: float
    metric_weight: FloatArray
    metric: Metric
    row_losses: RowLosses | None

    @classmethod
    def of(
        cls,
        params: dict[str, Any],
        solution: DualSolution | PairwiseSolution,
        loo: LeaveOneOut,
        metrics: Sequence[Metric],
        weight: FloatArray,
        start: float,
    ) -> "Evaluation":
        """Return the evaluation of a fit by the metrics of its leave-one-out values.

        Parameters
        ----------
        params
            Hyperparameters of the fit.
        solution, loo
            The fit, and its leave-one-out values.
        metrics, weight
            Metrics, and the weight of each row in them.
        start
            Time on the clock `time.perf_counter` when the evaluation began.
        """
        losses, row_losses = judged_by(metrics, loo.y, loo.decision_values, weight)
        return cls(
            loss=losses[metrics[0].name],
            losses=losses,
            loo=loo,
            params=params,
            n_rows=len(loo.y),
            n_support=solution.n_support,
            n_in_bound=solution.n_in_bound,
            converged=solution.converged,
            solver=solution.solver,
            seconds=time.perf_counter() - start,
            metric_weight=weight,
            metric=metrics[0],
            row_losses=row_losses,
        )

    @functools.cached_property
    def standard_error(self) -> float:
        """The standard error of the loss over samples of rows, for these leave-one-out values.

        It follows from the losses of the rows if the loss is a mean. For "log_loss" and "brier", it
        holds the sigmoid fixed that is fitted to all values. For other metrics, such as "auc", the
        metric is computed on 200 bootstrap samples of the rows, drawn within the classes, which may
        take longer than the evaluation.
        """
        if self.row_losses is not None:
            return float(np.linalg.norm(self.row_losses.influences(self.metric_weight)))
        y, values = self.loo.y, self.loo.decision_values
        return standard_error(self.metric, y, values, self.metric_weight)

    def paired_standard_error(self, other: "Evaluation") -> float:
        """Return the standard error of the difference of two losses on the same rows.

        It is smaller than the two standard errors suggest, because most rows have the same loss in
        both evaluations. For "log_loss" and "brier", the calibration of either model counts as
        given, as in `standard_error`.

        Parameters
        ----------
        other
            Evaluation of other hyperparameters on the same rows, by the same metric.

        Raises
        ------
        TypeError
            If the other one is no evaluation.
        ValueError
            If the rows, their weights or the metrics are not the same.
        """
        if not isinstance(other, Evaluation):
            raise TypeError(f"`other` must be an evaluation, got {type(other).__name__}.")
        if other.metric != self.metric:
            same_name = other.metric.name == self.metric.name
            raise ValueError(
                f"`other` must be an evaluation by the metric {self.metric.name}, got "
                f"{'another function called ' if same_name else ''}{other.metric.name}."
            )
        same = np.array_equal(self.loo.y, other.loo.y)
        if not same or not np.array_equal(self.metric_weight, other.metric_weight):
            raise ValueError(
                f"`other` must be an evaluation on the same {self.n_rows} rows with the same "
                f"weights, got {other.n_rows} rows with other labels or weights."
            )
        y, values = self.loo.y, self.loo.decision_values
        others = other.loo.decision_values
        return paired_standard_error(self.metric, y, values, others, self.metric_weight)

    @functools.cached_property
    def smooth_error(self) -> float:
        """The loss "smooth_error" of the leave-one-out values, which decides ties."""
        return self.smooth_losses.mean(self.metric_weight)

    @functools.cached_property
    def smooth_losses(self) -> RowLosses:
        """The losses of the rows whose mean is the smooth error."""
        loo, weight = self.loo, self.metric_weight
        rows = SMOOTH_ERROR.row_losses(loo.y, loo.decision_values, weight)
        assert rows is not None  # the smooth error is a mean
        return rows

    @property
    def rank(self) -> tuple[float, float, float]:
        """The key by which models are sorted, the best first; see `model_rank`."""
        figures = {"smooth_error": self.smooth_error, "n_support": self.n_support}
        return model_rank(self.loss, figures)

    def figures(self) -> dict[str, Any]:
        """Return the figures to store with a trial, as plain numbers and names by name.

        The standard error is one of them if the loss is a mean; for other metrics it would take too
        long to compute in every trial.
        """
        errors = {} if self.row_losses is None else {"loo_standard_error": self.standard_error}
        return {
            "loo_error": float(self.loo.error),
            "loo_error_bounds": [float(bound) for bound in self.loo.error_bounds],
            "smooth_error": float(self.smooth_error),
            **errors,
            "n_rows": int(self.n_rows),
            "n_support": int(self.n_support),
            "n_in_bound": int(self.n_in_bound),
            "n_undefined": int(self.loo.n_undefined),
            "n_refit": int(self.loo.n_refit),
            "solver": self.solver,
            "seconds": float(self.seconds),
        }

    def log(self) -> None:
        """Log the losses, and how many rows had to be refitted."""
        _logger.debug("%s -> %s in %.3g s", self.params, self.losses, self.seconds)
        count = self.loo.n_refit
        if count:
            message = "%d of %d rows had to be refitted at %s"
            _logger.info(message, count, self.n_rows, self.params)

    def _summary(self) -> tuple[str, dict[str, str]]:
        low, high = self.loo.error_bounds
        lines = _shown_losses(self.losses)
        if self.row_losses is not None:
            lines["standard error"] = f"{self.standard_error:.4f}"
        lines["exact error"] = (
            f"{low:.4f}, proven" if low == high else f"between {low:.4f} and {high:.4f}"
        )
        lines |= {name: _shown(value) for name, value in self.params.items()}
        lines["support vectors"] = f"{self.n_support:,}, {self.n_in_bound:,} of them in-bound"
        lines["converged"] = "yes" if self.converged else "no"
        size, method = counted(self.n_rows, "row"), self.loo.method
        return f"Evaluation on {size} by method {method!r} in {self.seconds:.3g} s", lines


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation(Printable):
    """The result of evaluating one set of hyperparameters by cross-validation.

    Attributes
    ----------
    loss
        Loss of the first metric, on the held-out decision values of all rows.
    losses
        Losses of all metrics, by name.
    decision_values
        Decision value of every row by the fit without its fold, shape (l,). For more than two
        classes there is one column for each pair.
    folds
        Number of folds, which is also the number of fits.
    seconds
        Wall time of the cross-validation.

    Examples
    --------
    >>> from span_hpo import SpanObjective
    >>> objective = SpanObjective([[0], [1], [3], [4]], [0, 0, 1, 1], kernel="linear")
    >>> found = objective.cross_validate({"C_0": 0.2, "C_1": 0.2}, folds=2)
    >>> found.folds, found.loss
    (2, 0.0)
    >>> (found.decision_values > 0).tolist()
    [False, False, True, True]
    """

    loss: float
    losses: dict[str, float]
    decision_values: FloatArray
    folds: int
    seconds: float

    def _summary(self) -> tuple[str, dict[str, str]]:
        lines = _shown_losses(self.losses)
        return f"{self.folds}-fold cross-validation in {self.seconds:.3g} s", lines


def _shown_losses(losses: Mapping[str, float]) -> dict[str, str]:
    return {loss_name(name): f"{loss:.6g}" for name, loss in losses.items()}


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
