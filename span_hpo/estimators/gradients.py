"""Search the hyperparameters of an estimator by gradients, alone or after another search."""

import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from span_hpo.metrics import loss_name
from span_hpo.objective import Evaluation, SpanObjective, with_derivatives
from span_hpo.runtime import ArgumentError, Printable, counted, whole
from span_hpo.search import Comparison, Minimum, Step, minimize
from span_hpo.selection import MOST_CANDIDATES
from span_hpo.space import Params

REFINING_EVALUATIONS = 30  # number of evaluations for `refine=True`
_LEAST_TIME = 1e-3  # seconds, in which only the first evaluation is made


@dataclass(frozen=True, eq=False, repr=False)
class GradientSearch(Printable):
    """What gradient steps have done for an estimator.

    Attributes
    ----------
    metric
        Name of the metric whose gradient was followed: that of the estimator if it has derivatives;
        otherwise "smooth_error", or "balanced_smooth_error" with the same weight for every class.
    loss_before, loss_after
        Loss by the metric and the leave-one-out method of the estimator, where the steps began and
        at the point that they have found, whether it is kept or not.
    is_kept
        Whether the model has the best point of the steps, or else that from which they began.
    minimum
        Result of `minimize`, with all evaluations in its `path`.
    loss_name
        Name of what `loss_before` and `loss_after` are.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from span_hpo import SpanSVC
    >>> model = SpanSVC("ard", n_trials=20).fit(*load_iris(return_X_y=True))
    >>> found = model.gradient_search_
    >>> found.metric, found.loss_name, found.n_evaluations
    ('smooth_error', 'error', 20)
    """

    metric: str
    loss_before: float
    loss_after: float
    is_kept: bool
    minimum: Minimum
    loss_name: str

    @property
    def n_evaluations(self) -> int:
        """Number of evaluations."""
        return self.minimum.n_evaluations

    def figures(self) -> dict[str, Any]:
        """Return what happened in a form for JSON."""
        compared = self.minimum.comparison
        return {
            "metric": self.metric,
            "evaluations": self.n_evaluations,
            "loss_before": self.loss_before,
            "loss_after": self.loss_after,
            "is_kept": self.is_kept,
            "end": self.minimum.reason,
            "differing_widths": None
            if compared is None
            else {
                "gain": compared.gain,
                "standard_error": compared.standard_error,
                "is_worth_it": compared.is_worth_it,
            },
        }

    def _summary(self) -> tuple[str, dict[str, str]]:
        return f"Gradient search in {counted(self.n_evaluations, 'evaluation')}", {
            "gradient of": self.metric,
            f"{self.loss_name} before": f"{self.loss_before:.6g}",
            f"{self.loss_name} after": f"{self.loss_after:.6g}",
            "chosen": self._choice(),
            "end": self.minimum.reason,
        }

    def _choice(self) -> str:
        if self.is_kept:
            return "the result of the steps"
        compared = self.minimum.comparison
        if compared is not None and not compared.is_worth_it:
            gain, error = f"{compared.gain:.4f}", f"{compared.standard_error:.4f}"
            return f"the point before the steps: widths that differ gain {gain}, error {error}"
        return "the point before the steps, which is at least as good"


def as_refine(refine: Any) -> int:
    """Return the number of evaluations for an argument `refine`, which is 0 for none."""
    if refine is None or isinstance(refine, bool | np.bool_):
        return REFINING_EVALUATIONS if refine else 0
    if isinstance(refine, int | np.integer):
        return whole("refine", refine, at_least=1)
    raise ArgumentError(
        "refine", f"must be True, False or a number of evaluations, got {refine!r}."
    )


def searched_by_gradients(
    objective: SpanObjective, n_trials: int | None, **options: Any
) -> tuple[list[dict[str, Any]], GradientSearch]:
    """Return the best points of a search by gradients, the best one first, and what it has done.

    Parameters
    ----------
    objective
        Objective of the estimator.
    n_trials
        Number of evaluations, or None for the default of `minimize`.
    **options
        Other arguments of `minimize`.
    """
    smooth: Any = with_derivatives(objective)
    steps: Any = {} if n_trials is None else {"max_evaluations": n_trials}
    found = minimize(smooth, **steps, **options)
    if all(step.reason for step in found.path):
        warnings.warn(f"The search by gradients has ended: {found.reason}", stacklevel=3)
    before = objective.evaluate(found.path[0].params)
    after = objective.evaluate(found.params)
    return _candidates(found), _result(smooth, objective, before, after, found, is_kept=True)


def check_refinable(objective: SpanObjective) -> None:
    """Raise before a search if its best point could not be refined.

    Raises
    ------
    ValueError
        If no hyperparameter is searched as a real number, or the kernel or the weighting has no
        derivative.
    """
    smooth: Any = with_derivatives(objective)
    minimize(smooth, max_evaluations=1)


def refined(
    objective: SpanObjective, start: Params, evaluations: int, end: float | None
) -> tuple[dict[str, Any], GradientSearch]:
    """Return the better one of a point and the best that gradient steps from it have found.

    If the widths of features are equal at the point, others must lower the loss that the steps
    follow by more than three standard errors, as in `minimize` without a start.

    Parameters
    ----------
    objective
        Objective of the estimator, whose loss decides. Of equal losses, that with the lower smooth
        error is better, as everywhere.
    start
        Point to begin with.
    evaluations
        Number of evaluations.
    end
        Time on the clock `time.monotonic` after which no evaluation begins, or None.
    """
    smooth: Any = with_derivatives(objective)
    left = None if end is None else max(end - time.monotonic(), _LEAST_TIME)
    found = minimize(smooth, start, max_evaluations=evaluations, timeout=left)
    found = replace(found, comparison=_comparison(smooth, start, found))
    before, after = objective.evaluate(start), objective.evaluate(found.params)
    is_worth_it = found.comparison is None or found.comparison.is_worth_it
    is_better = after.rank < before.rank and is_worth_it
    result = _result(smooth, objective, before, after, found, is_kept=is_better)
    return found.params if is_better else dict(start), result


def _comparison(smooth: SpanObjective, start: Params, found: Minimum) -> Comparison | None:
    """Return what it gains that widths differ, if they are equal at the start."""
    widths = [
        {params[name] for name in smooth.alike if name in params}
        for params in (start, found.params)
    ]
    if found.evaluation is None or [len(values) > 1 for values in widths] != [False, True]:
        return None
    apart = Step(found.params, found.loss, found.value, "")
    error = smooth.evaluate(start).paired_standard_error(found.evaluation)
    return Comparison.of(found.path[0], apart, error, smooth.share_of_row())


def _result(
    smooth: SpanObjective,
    objective: SpanObjective,
    before: Evaluation,
    after: Evaluation,
    found: Minimum,
    *,
    is_kept: bool,
) -> GradientSearch:
    return GradientSearch(
        metric=smooth.metrics[0].name,
        loss_before=before.loss,
        loss_after=after.loss,
        is_kept=is_kept,
        minimum=found,
        loss_name=loss_name(objective.metrics[0].name),
    )


def _candidates(found: Minimum) -> list[dict[str, Any]]:
    """Return the result, and the next best points of the path by the penalised loss."""
    path = sorted(found.path, key=lambda step: step.value)
    points = [found.params]
    for step in path:
        if np.isfinite(step.value) and step.params not in points:
            points.append(step.params)
    return points[:MOST_CANDIDATES]
