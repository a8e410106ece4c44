"""Search hyperparameters by the gradient of a leave-one-out loss, or of a bound."""

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import optimize

from span_hpo.runtime import FloatArray, counted, real, whole
from span_hpo.search.adam import Descent
from span_hpo.search.bfgs import projected_bfgs
from span_hpo.search.coordinates import Coordinates
from span_hpo.search.exploration import (
    Exploration,
    walk_over_scales,
    walk_with_aligned_widths,
)
from span_hpo.search.spread import spread_of
from span_hpo.search.watched import (
    Differentiable,
    EndOfSearchError,
    Minimum,
    Watched,
    progress,
)
from span_hpo.space import Params, checked_params

METHODS = ("adam", "l-bfgs", "bfgs-projected")
# Shares of a descent after which the worse of several starts are given up, and how many go on.
_ROUNDS = ((0.25, None), (0.4, 2), (1.0, 1))
_WIDER = 1.0  # standard deviation of random starts around the first one, in each coordinate
DEFAULT_PENALTY = 0.3
_DONE = "All evaluations have been used."
_NO_GRADIENT = "There is no gradient at the start: "
_INTERRUPTED = "The search was interrupted."


def minimize(
    objective: Differentiable,
    start: Params | None = None,
    *,
    method: str = "adam",
    penalty: float = DEFAULT_PENALTY,
    n_starts: int = 1,
    max_evaluations: int = 60,
    metric: Any = None,
    rows: int | None = None,
    timeout: float | None = None,
    seed: int = 0,
    progress_bar: bool = False,
) -> Minimum:
    """Search hyperparameters by the gradient of a leave-one-out loss, or of a bound.

    The derivatives by all hyperparameters together take about as long as the loss itself, so that
    dozens of them, such as one width per feature, take as many evaluations as two. The search moves
    logarithms where the scale of a hyperparameter is logarithmic. Whole numbers, options and
    numbers with a step have no derivative, and keep their value at the start. The result is the
    same in every run.

    Parameters
    ----------
    objective
        `SpanObjective` whose metric has derivatives, such as "smooth_error"; or `RadiusMargin`.
    start
        Hyperparameters to begin with. By default, a walk over factors of four finds the scales of
        costs and widths. It is made with equal widths, and with those at which rows of one class
        are most similar to each other.
    method
        "adam" (recommended for leave-one-out losses, which jump a little where a support vector
        changes its kind), or "l-bfgs" or "bfgs-projected", which suit bounds and other values
        without jumps. The last one goes around points without a gradient, where "l-bfgs" ends.
    penalty
        Strength of the penalty on widths that differ from feature to feature; 0 for none. It keeps
        a search from fitting the noise of the loss. With 1, a width that is ten times as large as
        the others costs as much as 1.8 rows that are classified wrongly. With a penalty and
        without `start`, the result has widths that differ only if they lower the penalised loss by
        more than three standard errors; see `Minimum.comparison`.
    n_starts
        Number of starts. The first ones are `start`, or the best points of the walks with equal
        and with aligned widths; the others are drawn around the best of them. All are followed for
        a quarter of their evaluations, the best two a little longer, and the best to its end. More
        than one is for "adam" only.
    max_evaluations
        Number of evaluations, of which up to 27 % are those of the walk; if there are several
        starts, each has as many as the only one would have.
    metric
        Metric to differentiate, by default the first metric of the objective.
    rows
        Number of rows to use instead of all; see `SpanObjective.evaluate`.
    timeout
        End the search after this many seconds; the first evaluation is always finished.
    seed
        Random seed of the starts that are drawn.
    progress_bar
        Show a progress bar on standard error.

    Returns
    -------
    The best point that was evaluated, the path to it, and why the search has ended. A point without
    a gradient, as with fewer than two in-bound support vectors, is stepped over: the search goes
    back half of the way. If the first point has none, the result says so. Ctrl-C ends the search
    with a warning.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, no hyperparameter is searched as a real number, the
        start lies outside the ranges, or the metric, the kernel or the weighting has no derivative.
    SolverError
        If the first fit fails.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from span_hpo import SpanObjective, minimize
    >>> X, y = make_moons(60, noise=0.2, random_state=0)
    >>> objective = SpanObjective(X, y, weighting="uniform", metric="smooth_error")
    >>> found = minimize(objective, {"C": 1.0, "gamma": 1.0}, max_evaluations=30)
    >>> sorted(found.params), found.loss < objective({"C": 1.0, "gamma": 1.0})
    (['C', 'gamma'], True)
    """
    method = _known_method(method)
    penalty = real("penalty", penalty, at_least=0)
    n_starts = whole("n_starts", n_starts, at_least=1)
    max_evaluations = whole("max_evaluations", max_evaluations, at_least=1)
    seed = whole("seed", seed, at_least=0)
    if timeout is not None:
        timeout = real("timeout", timeout, above=0)
    if n_starts > 1 and method != "adam":
        raise ValueError(f"`n_starts` must be 1 with method={method!r}, got {n_starts}.")
    if not isinstance(start, Mapping | None):
        raise TypeError(
            "`start` must be a mapping of names to values, or None, got "
            f"{type(start).__name__}. The number of evaluations is `max_evaluations`."
        )
    first = centre_of(objective) if start is None else checked_params(objective.space, start)
    coordinates = Coordinates.of(objective.space, first)
    if not coordinates.names:
        raise ValueError(
            "`objective` must search at least one real number without a step, got the space "
            f"{dict(objective.space)}."
        )
    options = {"metric": metric, "rows": rows}
    spread = spread_of(objective, coordinates, penalty, rows)
    watched = Watched(
        objective,
        coordinates,
        spread,
        {name: value for name, value in options.items() if value is not None},
        timeout,
    )
    plan = Exploration.of(max_evaluations, has_widths=len(spread.places) > 1)
    if start is not None:
        plan = Exploration(0, 0)
    most = max_evaluations - plan.total
    with progress(plan.total + _most_evaluations(n_starts, most), progress_bar) as advance:
        watched.advance = advance
        try:
            found = _explored(watched, plan) if start is None else []
            points = _starts(coordinates, found or [coordinates.point(first)], n_starts, seed)
            steps = max_evaluations - len(watched.path)
            reason = _RUNS[method](watched, points, steps) if steps > 0 else _DONE
        except EndOfSearchError as end:
            reason = str(end)
        except KeyboardInterrupt:
            if watched.best is None:
                raise
            reason = _INTERRUPTED
    if reason == _INTERRUPTED:
        warnings.warn(
            f"The search was interrupted after {counted(len(watched.path), 'evaluation')}. The "
            "result is the best point so far.",
            stacklevel=2,
        )
    return watched.minimum(reason)


def centre_of(objective: Any) -> dict[str, Any]:
    """Return the point in whose neighbourhood a search without a start begins."""
    if not hasattr(objective, "centres"):
        raise ValueError(
            "`start` must be given for an objective without a method `centres`, got None."
        )
    return cast("dict[str, Any]", objective.centres()[0])


def _explored(watched: Watched, plan: Exploration) -> list[FloatArray]:
    """Return the points from which to descend, the best first, after a walk over scales."""
    objective: Any = watched.objective
    coordinates, spread = watched.coordinates, watched.spread
    visits = walk_over_scales(watched.remembered, objective, coordinates, plan.equal)
    if len(spread.places) > 1:
        watched.end_of_equal_widths()
    visits = (
        visits[:1]
        + walk_with_aligned_widths(
            watched.remembered, objective, coordinates, spread, plan.aligned
        )[:1]
    )
    return [visit.point for visit in sorted(visits, key=lambda visit: visit.rank)]


@dataclass
class _Run:
    """A descent from one start, and the least value that it has found."""

    descent: Descent
    last: FloatArray | None = None  # the last point with a gradient
    best: float = math.inf


def _by_adam(watched: Watched, points: list[FloatArray], steps: int) -> str:
    alike = watched.spread.places
    runs = [_Run(Descent.at(point, alike)) for point in points]
    done = 0
    for share, kept in _ROUNDS if len(runs) > 1 else _ROUNDS[-1:]:
        runs = sorted(runs, key=lambda run: run.best)[:kept]
        until = math.ceil(share * steps)
        for run in runs:
            _descend(run, watched, until - done, steps)
        done = until
        runs = [run for run in runs if run.last is not None]
        if not runs:
            return _NO_GRADIENT + watched.reason
    return _DONE


def _descend(run: _Run, watched: Watched, evaluations: int, steps: int) -> None:
    """Go on with a descent for some evaluations."""
    lower, upper = watched.coordinates.lower, watched.coordinates.upper
    last = len(watched.path) + evaluations
    while len(watched.path) < last:
        point = run.descent.point
        value, gradient = watched(point)
        run.best = min(run.best, value)
        if gradient is not None:
            run.last = point
            run.descent = run.descent.moved(gradient, steps, lower, upper)
        elif run.last is not None:
            run.descent = run.descent.at_point((point + run.last) / 2)
        else:
            return


def _by_lbfgs(watched: Watched, points: list[FloatArray], max_evaluations: int) -> str:
    last = len(watched.path) + max_evaluations

    def function(point: FloatArray) -> tuple[float, FloatArray]:
        if len(watched.path) >= last:
            raise EndOfSearchError(_DONE)
        value, gradient = watched(point)
        if gradient is None:
            if np.array_equal(point, points[0]):
                raise EndOfSearchError(_NO_GRADIENT + watched.reason)
            raise EndOfSearchError(
                f"There is no gradient at a point of the search: {watched.reason}"
            )
        return value, gradient

    sides = optimize.Bounds(watched.coordinates.lower, watched.coordinates.upper)
    optimize.minimize(function, points[0], jac=True, method="L-BFGS-B", bounds=sides)
    return "The value has converged, or no step lowers it further."


def _by_projected_bfgs(watched: Watched, points: list[FloatArray], max_evaluations: int) -> str:
    found = projected_bfgs(
        watched,
        points[0],
        watched.coordinates.lower,
        watched.coordinates.upper,
        max_evaluations=max_evaluations,
    )
    is_stuck = found.n_evaluations == 1 and bool(watched.reason)
    return _NO_GRADIENT + watched.reason if is_stuck else found.reason


_RUNS: dict[str, Callable[[Watched, list[FloatArray], int], str]] = dict(
    zip(METHODS, (_by_adam, _by_lbfgs, _by_projected_bfgs), strict=True)
)


def _known_method(method: Any) -> str:
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"`method` must be one of {list(METHODS)}, got {method!r}.")
    return method


def _most_evaluations(n_starts: int, steps: int) -> int:
    """Return the number of evaluations of a whole search by Adam."""
    if n_starts == 1:
        return steps
    total, done = 0, 0
    for share, kept in _ROUNDS:
        until = math.ceil(share * steps)
        total += min(n_starts, kept or n_starts) * (until - done)
        done = until
    return total


def _starts(
    coordinates: Coordinates, found: list[FloatArray], count: int, seed: int
) -> list[FloatArray]:
    """Return the first starts, and others that are drawn around the best of them."""
    rng = np.random.default_rng(seed)
    first = found[0]
    others = [
        np.clip(
            first + np.where(coordinates.is_log, _WIDER, _tenth(coordinates)) * drawn,
            coordinates.lower,
            coordinates.upper,
        )
        for drawn in rng.standard_normal((max(count - len(found), 0), len(first)))
    ]
    return [*found[:count], *others]


def _tenth(coordinates: Coordinates) -> FloatArray:
    """Return a tenth of each range."""
    return (coordinates.upper - coordinates.lower) / 10
