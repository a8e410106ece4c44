"""The results of evaluating one set of hyperparameters, and the order of models."""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from span_hpo.loo import LeaveOneOut
from span_hpo.metrics import SMOOTH_ERROR, loss_name
from span_hpo.runtime import FloatArray, Printable, counted


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

    @functools.cached_property
    def smooth_error(self) -> float:
        """The loss "smooth_error" of the leave-one-out values, which decides ties."""
        return SMOOTH_ERROR.loss(self.loo.y, self.loo.decision_values, self.metric_weight)

    @property
    def rank(self) -> tuple[float, float, float]:
        """The key by which models are sorted, the best first; see `model_rank`."""
        return model_rank(self.loss, self.figures())

    def figures(self) -> dict[str, Any]:
        """Return the figures to store with a trial, as plain numbers and names by name."""
        return {
            "loo_error": float(self.loo.error),
            "loo_error_bounds": [float(bound) for bound in self.loo.error_bounds],
            "smooth_error": float(self.smooth_error),
            "n_rows": int(self.n_rows),
            "n_support": int(self.n_support),
            "n_in_bound": int(self.n_in_bound),
            "n_undefined": int(self.loo.n_undefined),
            "n_refit": int(self.loo.n_refit),
            "solver": self.solver,
            "seconds": float(self.seconds),
        }

    def _summary(self) -> tuple[str, dict[str, str]]:
        low, high = self.loo.error_bounds
        lines = _shown_losses(self.losses)
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
