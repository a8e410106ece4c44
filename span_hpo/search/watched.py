"""The function that a search by gradients minimises, and the best point that it has found."""

import math
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

import click

from span_hpo.errors import SolverError
from span_hpo.objective import Evaluation, ValueAndGradient
from span_hpo.runtime import FloatArray, Printable, counted
from span_hpo.search.coordinates import Coordinates
from span_hpo.search.spread import Spread
from span_hpo.space import Params, Space

OUT_OF_TIME = "The time is up."
_MOST_SHOWN = 6  # hyperparameters that a printed result shows


class Differentiable(Protocol):
    """An objective whose loss has a gradient."""

    space: Space

    def value_and_gradient(self, params: Params, **options: Any) -> ValueAndGradient:
        """Return the loss and its derivatives by all hyperparameters that are real numbers."""


class Step(NamedTuple):
    """One evaluation of a search.

    Attributes
    ----------
    params
        The hyperparameters.
    loss
        The loss of the objective, or infinity if the fit has failed.
    value
        The loss with the penalty, which the search minimises.
    reason
        Why there is no gradient, or an empty text if there is one.
    """

    params: dict[str, Any]
    loss: float
    value: float
    reason: str


@dataclass(frozen=True, eq=False, repr=False)
class Minimum(Printable):
    """The best point of a search by gradients.

    Attributes
    ----------
    params
        Hyperparameters of the best point that was evaluated.
    loss
        Loss of the objective there. It is optimistic, because the search has chosen it.
    value
        Loss with the penalty, which decides what is best.
    path
        All evaluations in their order, each with `params`, `loss`, `value` and `reason`.
    reason
        Why the search has ended, as a sentence.
    evaluation
        Evaluation of the best point, or None for a bound, which has none.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from span_hpo import ARD, SpanObjective, minimize
    >>> objective = SpanObjective(*load_iris(return_X_y=True), kernel=ARD(), metric="smooth_error")
    >>> found = minimize(objective, max_evaluations=20)
    >>> found.n_evaluations, found.loss < found.path[0].loss
    (20, True)
    """

    params: dict[str, Any]
    loss: float
    value: float
    path: tuple[Step, ...]
    reason: str
    evaluation: Evaluation | None

    @property
    def n_evaluations(self) -> int:
        """Number of evaluations."""
        return len(self.path)

    def _summary(self) -> tuple[str, dict[str, str]]:
        names = list(self.params)
        lines = {"loss": f"{self.loss:.6g}", "with the penalty": f"{self.value:.6g}"}
        lines |= {name: _shown(self.params[name]) for name in names[:_MOST_SHOWN]}
        if len(names) > _MOST_SHOWN:
            lines["..."] = f"{len(names) - _MOST_SHOWN} more"
        lines["end"] = self.reason
        return f"Minimum after {counted(self.n_evaluations, 'evaluation')}", lines


class EndOfSearchError(Exception):
    """The search ends here; the message says why."""


class Watched:
    """The penalised loss as a function of coordinates, which keeps all that it has computed."""

    def __init__(
        self,
        objective: Differentiable,
        coordinates: Coordinates,
        spread: Spread,
        options: Mapping[str, Any],
        timeout: float | None,
    ) -> None:
        self.objective, self.coordinates, self.spread = objective, coordinates, spread
        self.options = options
        self.end = math.inf if timeout is None else time.monotonic() + timeout
        self.advance: Callable[[int], None] = lambda count: None
        self.path: list[Step] = []
        self.best: tuple[Step, Evaluation | None] | None = None

    def __call__(self, point: FloatArray) -> tuple[float, FloatArray | None]:
        """Return the value at a point and its gradient, or None if there is none."""
        if self.path and time.monotonic() > self.end:
            raise EndOfSearchError(OUT_OF_TIME)
        params = self.coordinates.params(point)
        try:
            found = self.objective.value_and_gradient(params, **self.options)
        except SolverError as error:
            if not self.path:
                raise
            self.path.append(Step(params, math.inf, math.inf, f"The fit has failed: {error}"))
            self.advance(1)
            return math.inf, None
        extra, slopes = self.spread.at(point)
        step = Step(params, found.loss, found.loss + extra, found.reason)
        self.path.append(step)
        if self.best is None or step.value < self.best[0].value:
            self.best = step, found.evaluation
        self.advance(1)
        if found.gradient is None:
            return step.value, None
        return step.value, self.coordinates.gradient(params, found.gradient) + slopes

    def minimum(self, reason: str) -> Minimum:
        """Return the best point."""
        assert self.best is not None  # the first evaluation either succeeds or raises
        step, evaluation = self.best
        return Minimum(step.params, step.loss, step.value, tuple(self.path), reason, evaluation)


def progress(total: int, is_shown: bool) -> AbstractContextManager[Callable[[int], None]]:
    """Return a context whose value counts evaluations, on a progress bar if that is wanted."""
    if not is_shown:
        return nullcontext(lambda count: None)
    return _Bar(total)


class _Bar(AbstractContextManager[Callable[[int], None]]):
    def __init__(self, total: int) -> None:
        self.bar: Any = click.progressbar(length=total, label="minimize", file=sys.stderr)

    def __enter__(self) -> Callable[[int], None]:
        self.bar.__enter__()
        return cast("Callable[[int], None]", self.bar.update)

    def __exit__(self, *error: Any) -> None:
        self.bar.__exit__(*error)


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
