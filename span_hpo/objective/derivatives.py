"""The derivatives of a leave-one-out loss by the hyperparameters."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from span_hpo.data import Dataset
from span_hpo.errors import SolverError
from span_hpo.gradients import (
    Derivatives,
    NoGradientError,
    continuous_derivatives,
    continuous_values,
    pulled_back,
)
from span_hpo.kernels import Kernel, KernelBlocks, KernelCache, first_equal_rows
from span_hpo.metrics import Metric, paired_standard_error
from span_hpo.objective.evaluation import Evaluation
from span_hpo.runtime import FloatArray, IndexArray, Printable, real, rows_of
from span_hpo.solver import DualSolution, PairwiseSolution
from span_hpo.space import Float, Params
from span_hpo.weighting import Weighting, cost_gradient

_NOT_CONVERGED = (
    "The fit has not converged, so that nothing is known about derivatives: raise `max_iter`, or "
    "lower the costs."
)


@dataclass(frozen=True, eq=False, repr=False)
class ValueAndGradient(Printable):
    """A leave-one-out loss, or a bound, and its derivatives by the hyperparameters.

    Attributes
    ----------
    loss
        The loss.
    gradient
        Derivative of the loss by each hyperparameter that is searched as a real number, by name; or
        None if there is no gradient. For a hyperparameter t on a logarithmic scale, the derivative
        by ``ln t`` is t times this number.
    evaluation
        The evaluation at this point, or None for a bound, which has none.
    reason
        Why there is no gradient, or an empty text if there is one.
    metric
        The metric of the loss, or None for a bound.

    Examples
    --------
    >>> from span_hpo import SpanObjective
    >>> X, y = [[0], [1], [3], [4]], [0, 0, 1, 1]
    >>> objective = SpanObjective(X, y, kernel="linear", metric="smooth_error")
    >>> objective.value_and_gradient({"C_0": 0.01, "C_1": 0.01}).reason
    'The fit has 0 in-bound support vectors, and derivatives of leave-one-out values need ...'
    """

    loss: float
    gradient: dict[str, float] | None
    evaluation: Evaluation | None
    reason: str = ""
    metric: Metric | None = None

    def paired_standard_error(self, other: "ValueAndGradient") -> float:
        """Return the standard error of the difference of two losses on the same rows.

        It is 0 for two bounds, which are no means over rows.
        """
        if self.metric is None or self.evaluation is None or other.evaluation is None:
            return 0.0
        loo, others = self.evaluation.loo, other.evaluation.loo.decision_values
        weight = self.evaluation.metric_weight
        return paired_standard_error(self.metric, loo.y, loo.decision_values, others, weight)

    def _summary(self) -> tuple[str, dict[str, str]]:
        if self.gradient is None:
            return f"Loss {self.loss:.6g} without a gradient", {"reason": self.reason}
        return f"Loss {self.loss:.6g} with a gradient", {
            name: f"{slope:.6g}" for name, slope in self.gradient.items()
        }


class Trial(NamedTuple):
    """An evaluation, its fit, and the rows that were used: indices, or None for all of them."""

    evaluation: Evaluation
    solution: DualSolution | PairwiseSolution
    K: KernelBlocks
    data: Dataset
    rows: IndexArray | None


def loss_and_gradient(
    trial: Trial,
    metric: Metric,
    kernels: KernelCache,
    weighting: Weighting,
    eta: float | None,
) -> ValueAndGradient:
    """Return the loss of a trial by one metric, and its derivatives by all hyperparameters.

    Parameters
    ----------
    trial
        The trial, whose values are those of the span-rule.
    metric
        Metric to differentiate.
    kernels, weighting
        Kernel and weighting of the objective.
    eta
        Strength of the penalty of continuous spans, or None for none.
    """
    evaluation, solution, K, data, _ = trial
    values, weight = evaluation.loo.decision_values, evaluation.metric_weight
    fits = _fits(solution)
    loss = math.nan
    try:
        if eta is not None:
            values = _continuous(values, fits, eta)
        is_known = eta is None and metric is evaluation.metric
        loss = evaluation.loss if is_known else metric.loss(data.y, values, weight)
        _check_fits(trial, kernels.kernel)
        found = _pulled_back(fits, K, metric.gradient(data.y, values, weight), eta)
        gradient = _by_hyperparameters(found, trial, kernels, weighting)
    except NoGradientError as error:
        if math.isnan(loss):  # without spans, they cannot be continuous
            loss = metric.loss(data.y, evaluation.loo.decision_values, weight)
        return ValueAndGradient(loss, None, evaluation, str(error), metric)
    return ValueAndGradient(loss, gradient, evaluation, metric=metric)


def _fits(solution: DualSolution | PairwiseSolution) -> list[tuple[DualSolution, IndexArray]]:
    """Return all fits of two classes with the indices of their rows."""
    if isinstance(solution, PairwiseSolution):
        return list(zip(solution.solutions, solution.rows, strict=True))
    return [(solution, np.arange(len(solution.problem)))]


def _continuous(
    values: FloatArray, fits: list[tuple[DualSolution, IndexArray]], eta: float
) -> FloatArray:
    """Return leave-one-out values with continuous spans."""
    values = values.copy()
    columns = values[:, None] if values.ndim == 1 else values  # a view
    for column, (fit, rows) in enumerate(fits):
        columns[rows, column] = continuous_values(fit, eta)
    return values


def _pulled_back(
    fits: list[tuple[DualSolution, IndexArray]],
    K: KernelBlocks,
    by_value: FloatArray,
    eta: float | None,
) -> list[Derivatives]:
    """Return the derivatives by kernel values and costs through each fit."""
    columns = by_value[:, None] if by_value.ndim == 1 else by_value
    found = []
    for column, (fit, rows) in enumerate(fits):
        try:
            if eta is None:
                found.append(pulled_back(fit, K, rows, columns[:, column]))
            else:
                found.append(continuous_derivatives(fit, K, rows, columns[:, column], eta))
        except SolverError as error:
            # Leave-one-out knows whether the kernel is to blame; here it is rounding.
            raise NoGradientError(f"Spans cannot be computed accurately: {error}") from error
    return found


def _by_hyperparameters(
    found: list[Derivatives], trial: Trial, kernels: KernelCache, weighting: Weighting
) -> dict[str, float]:
    """Return the sum of the derivatives by each hyperparameter."""
    params, kernel = trial.evaluation.params, kernels.kernel
    gradient: dict[str, float] = {}
    has_widths = any(isinstance(part, Float) for part in kernel.space.values())
    if has_widths and not all(one.keeps_rank for one in found):
        raise NoGradientError(
            "Some in-bound support vectors are combinations of others, which may change with the "
            "kernel."
        )
    for one in found:
        of_kernel = kernels.gradient(trial.K, params, one.blocks(), trial.rows)
        for name, slope in of_kernel.items():
            gradient[name] = gradient.get(name, 0.0) + slope
    by_cost: FloatArray = np.sum([one.by_cost for one in found], axis=0)
    if not np.isfinite(by_cost).all() or not all(map(math.isfinite, gradient.values())):
        raise NoGradientError("The derivatives overflow: scale the features or lower the costs.")
    gradient |= cost_gradient(weighting, trial.data, params, by_cost)
    return {name: gradient[name] for name in (*kernel.space, *weighting.space) if name in gradient}


def _check_fits(trial: Trial, kernel: Kernel) -> None:
    """Raise `NoGradientError` where the fits of a trial have no derivatives."""
    if not trial.evaluation.converged:
        raise NoGradientError(_NOT_CONVERGED)
    for fit, rows in _fits(trial.solution):
        support = rows_of(fit.alpha)
        reason = equal_by_zeros(
            kernel, trial.evaluation.params, trial.data.X, trial.K, rows[support]
        )
        if reason:
            raise NoGradientError(reason)


def equal_by_zeros(
    kernel: Kernel, params: Params, X: Any, K: KernelBlocks, support: IndexArray
) -> str:
    """Return why there is no derivative if rows are equal only because a hyperparameter is 0.

    Such rows, of which a feature with a width of 0 is left out, do not stay equal when it changes.

    Parameters
    ----------
    kernel, params
        Kernel and hyperparameters.
    X, K
        Features and kernel matrix of the same rows.
    support
        Indices of the support vectors.
    """
    zeros = [
        name for name, part in kernel.space.items() if params[name] == 0 and isinstance(part, Float)
    ]
    if not zeros or not len(support):
        return ""
    first = first_equal_rows(K, support, K.block(support, support))
    later = rows_of(first != np.arange(len(support)))
    difference = X[support[later]] - X[support[first[later]]]
    if not abs(difference).sum():
        return ""
    return (
        f"Some support vectors are equal only because {zeros[0]} is 0, and do not stay equal when "
        "it changes."
    )


def check_differentiable(metric: Metric, loo_method: str, eta: float | None = None) -> None:
    """Raise ``ValueError`` if a loss of leave-one-out values cannot be differentiated."""
    if metric.slopes is None:
        raise metric.without_derivative()
    if loo_method != "span":
        raise ValueError(f"`loo_method` must be 'span' for gradients, got {loo_method!r}.")
    if eta is not None:
        real("eta", eta, above=0)
