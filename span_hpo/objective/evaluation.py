"""What one set of hyperparameters is worth."""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from span_hpo.loo import LeaveOneOut
from span_hpo.metrics import SMOOTH_ERROR
from span_hpo.runtime import FloatArray, Printable, counted


def model_rank(loss: float, figures: Mapping[str, Any]) -> tuple[float, float, float]:
    """Return what models are sorted by, the best first.

    Ties of the loss, which are common with the metric "error", go to the lower smooth error, then
    to fewer support vectors.

    Parameters
    ----------
    loss
        The loss of the model.
    figures
        `Evaluation.figures` of the model, or attributes that hold them; what is not there ranks
        last.
    """
    return loss, figures.get("smooth_error", math.inf), figures.get("n_support", math.inf)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Printable):
    """What one set of hyperparameters is worth.

    Attributes
    ----------
    loss
        The loss, or the first of several.
    losses
        All losses by the name of their metric.
    loo
        Leave-one-out values of the rows that were used.
    params
        The hyperparameters.
    n_rows
        Number of rows used.
    n_support, n_in_bound
        Number of support vectors, and of those that are in-bound.
    converged
        Whether the fit reached its tolerance.
    seconds
        Wall time of the evaluation.
    metric_weight
        Weight of the rows in the losses, shape (n_rows,).
    """

    loss: float
    losses: dict[str, float]
    loo: LeaveOneOut
    params: dict[str, Any]
    n_rows: int
    n_support: int
    n_in_bound: int
    converged: bool
    seconds: float
    metric_weight: FloatArray

    @functools.cached_property
    def smooth_error(self) -> float:
        """The loss "smooth_error" of the same leave-one-out values."""
        return SMOOTH_ERROR.loss(self.loo.y, self.loo.decision_values, self.metric_weight)

    @property
    def rank(self) -> tuple[float, float, float]:
        """What to sort by; see `model_rank`."""
        return model_rank(self.loss, self.figures())

    def figures(self) -> dict[str, Any]:
        """Return what a storage should know, as plain numbers by name."""
        return {
            "loo_error": float(self.loo.error),
            "loo_error_bounds": [float(bound) for bound in self.loo.error_bounds],
            "smooth_error": float(self.smooth_error),
            "n_rows": int(self.n_rows),
            "n_support": int(self.n_support),
            "n_in_bound": int(self.n_in_bound),
            "n_undefined": int(self.loo.n_undefined),
            "n_refit": int(self.loo.n_refit),
            "seconds": float(self.seconds),
        }

    def _summary(self) -> tuple[str, dict[str, str]]:
        low, high = self.loo.error_bounds
        lines = {name: f"{loss:.6g}" for name, loss in self.losses.items()}
        lines["exact error"] = (
            f"{low:.4f}, proven" if low == high else f"between {low:.4f} and {high:.4f}"
        )
        lines |= {name: _shown(value) for name, value in self.params.items()}
        lines["support vectors"] = f"{self.n_support:,}, {self.n_in_bound:,} of them in-bound"
        lines["converged"] = "yes" if self.converged else "no"
        size, method = counted(self.n_rows, "row"), self.loo.method
        return f"Evaluation on {size} by {method!r} in {self.seconds:.3g} s", lines


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation(Printable):
    """What one set of hyperparameters is worth by fits that leave a part of the rows out.

    Attributes
    ----------
    loss, losses
        As in `Evaluation`, of the values below.
    decision_values
        Of every row by the fit without its part, shape (l,) or one column for each pair of classes.
    folds
        Number of parts, and of fits.
    seconds
        Wall time.
    """

    loss: float
    losses: dict[str, float]
    decision_values: FloatArray
    folds: int
    seconds: float

    def _summary(self) -> tuple[str, dict[str, str]]:
        lines = {name: f"{loss:.6g}" for name, loss in self.losses.items()}
        return f"{self.folds}-fold cross-validation in {self.seconds:.3g} s", lines


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
