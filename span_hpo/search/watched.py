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
# Standard errors that differing widths must gain. They are the best of dozens of points, so that
# chance alone often exceeds 2.
_ERRORS_OF_A_GAIN = 3.0
_LEAST_GAIN = 0.5  # rows that differing widths must gain
_MOST_SHOWN = 6  # hyperparameters that a printed result shows


class Differentiable(Protocol):
    """An objective whose loss has a gradient."""

    space: Space

    def value_and_gradient(self, params: Params) -> ValueAndGradient:
        """Return the loss and its derivatives by all hyperparameters that are real numbers."""


class Comparison(NamedTuple):
    """What it gains that hyperparameters with one meaning, such as widths, differ.

    Attributes
    ----------
    alike
        The best evaluation at which they are equal.
    apart
        The best evaluation at which they may differ.
    gain
        How much less the value of the latter is.
    standard_error
        Standard error of the difference of the two losses over samples of rows; 0 for a bound.
    is_worth_it
        Whether the gain exceeds three standard errors, and half a row that is classified wrongly.
        Otherwise, the search returns `alike`.
    """

    alike: "Step"
    apart: "Step"
    gain: float
    standard_error: float
    is_worth_it: bool

    @classmethod
    def of(
        cls, alike: "Step", apart: "Step", standard_error: float, share_of_row: float
    ) -> "Comparison":
        """Return the comparison of two evaluations; one row adds its share to the loss at most."""
        gain = alike.value - apart.value
        least = max(_ERRORS_OF_A_GAIN * standard_error, _LEAST_GAIN * share_of_row)
        return cls(alike, apart, gain, standard_error, gain > least)


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
    comparison
        The best point with equal widths beside the best one with widths that differ, and which of
        them is returned. It is None if no point with differing widths is better, and in searches
        from a given start or without a penalty.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from span_hpo import ARD, SpanObjective, minimize
    >>> objective = SpanObjective(*load_iris(return_X_y=True), kernel=ARD(), metric="smooth_error")
    >>> found = minimize(objective, max_evaluations=20)
    >>> found.n_evaluations, found.comparison.is_worth_it  # the widths are equal
    (20, False)
    """

    params: dict[str, Any]
    loss: float
    value: float
    path: tuple[Step, ...]
    reason: str
    evaluation: Evaluation | None
    comparison: Comparison | None = None

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
        if self.comparison is not None:
            gain, error = self.comparison.gain, self.comparison.standard_error
            kept = "kept" if self.comparison.is_worth_it else "not kept"
            shown = "" if self.evaluation is None else f", standard error {error:.4f}"
            lines["differing widths"] = f"{kept}: they gain {gain:.4f}{shown}"
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
        self.objective: Any = objective  # may take options
        self.coordinates, self.spread = coordinates, spread
        self.options = options
        self.end = math.inf if timeout is None else time.monotonic() + timeout
        self.advance: Callable[[int], None] = lambda count: None
        self.path: list[Step] = []
        self.best: tuple[Step, ValueAndGradient] | None = None
        self._alike: tuple[Step, ValueAndGradient] | None = None
        self.reason = ""  # why the last point that was asked for has no gradient
        self._known: dict[bytes, tuple[float, FloatArray | None, str]] = {}

    def __call__(self, point: FloatArray) -> tuple[float, FloatArray | None]:
        """Return the value at a point and its gradient, or None if there is none."""
        if self.path and time.monotonic() > self.end:
            raise EndOfSearchError(OUT_OF_TIME)
        value, gradient, self.reason = self._evaluated(point)
        return value, gradient

    def remembered(self, point: FloatArray) -> tuple[float, FloatArray | None]:
        """Return the value and the gradient, and keep them for a descent that begins there."""
        found = self(point)
        self._known[point.tobytes()] = (*found, self.reason)
        return found

    def _evaluated(self, point: FloatArray) -> tuple[float, FloatArray | None, str]:
        known = self._known.pop(point.tobytes(), None)
        if known is not None:
            return known
        params = self.coordinates.params(point)
        try:
            found = self.objective.value_and_gradient(params, **self.options)
        except SolverError as error:
            if not self.path:
                raise
            self.path.append(Step(params, math.inf, math.inf, f"The fit has failed: {error}"))
            self.advance(1)
            return math.inf, None, self.path[-1].reason
        extra, slopes = self.spread.at(point)
        step = Step(params, found.loss, found.loss + extra, found.reason)
        self.path.append(step)
        if self.best is None or step.value < self.best[0].value:
            self.best = step, found
        self.advance(1)
        if found.gradient is None:
            return step.value, None, step.reason
        return step.value, self.coordinates.gradient(params, found.gradient) + slopes, ""

    def end_of_equal_widths(self) -> None:
        """Keep the best point so far as the one to which points with other widths are compared."""
        self._alike = self.best

    def minimum(self, reason: str) -> Minimum:
        """Return the best point, or the best one with equal widths if others gain too little."""
        assert self.best is not None  # the first evaluation either succeeds or raises
        chosen, comparison = self.best, self._comparison()
        if comparison is not None and not comparison.is_worth_it:
            assert self._alike is not None
            chosen = self._alike
        step, found = chosen
        path = tuple(self.path)
        return Minimum(
            step.params, step.loss, step.value, path, reason, found.evaluation, comparison
        )

    def _comparison(self) -> Comparison | None:
        """Return what it gains that widths differ, if some do, and a penalty asks for a gain."""
        if self._alike is None or self.best is None or self.spread.factor == 0:
            return None
        (alike, found), (apart, other) = self._alike, self.best
        if apart is alike:
            return None
        share = self.objective.share_of_row(self.options.get("rows"))
        return Comparison.of(alike, apart, found.paired_standard_error(other), share)


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
