"""Find a point from which a descent is worth its steps.

A loss is flat where costs are far too small, and jumps where they are large, so that steps along
gradients do not cross several orders of magnitude. A walk over factors of four does: of all costs
together, and of all widths together. Where a model with small costs predicts little more than the
largest class, its loss is lower than those of the points around it, and a better one with large
costs lies far away. The walk therefore looks there first. It begins with equal widths, and a second
one with those at which rows of one class are similar.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from span_hpo.data import Dataset
from span_hpo.runtime import FloatArray
from span_hpo.search.alignment import Alignment, aligned_point
from span_hpo.search.coordinates import Coordinates
from span_hpo.search.spread import Spread
from span_hpo.space import Space

_FACTOR = math.log(4)  # length of a step of the walk, as a difference of logarithms
_FIRST_COSTS_UP = 0.5  # steps from the default costs to those at which a walk begins: a factor of 2
_ON_EQUAL_WIDTHS, _ON_ALIGNED_WIDTHS = 0.15, 0.12  # shares of the evaluations of a search
_LEAST = 4  # evaluations with equal widths, or half of all if these are fewer
_LEAP = 3  # steps from the first costs to those that are tried next: a factor of 64
# Steps of the walk: first of costs, then of widths, then of both in opposite directions.
_STEPS = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1))

Function = Callable[[FloatArray], tuple[float, FloatArray | None]]


class Explorable(Protocol):
    """An objective that knows where a search may begin."""

    space: Space
    data: Dataset
    kernel: Any

    @property
    def scales(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the costs and of the widths, on logarithmic scales."""

    def centres(self) -> list[dict[str, Any]]:
        """Return points in whose neighbourhood a search may begin."""


class Visit(NamedTuple):
    """A point of a walk; the better of two is the lesser one.

    Attributes
    ----------
    has_none
        Whether there is no gradient.
    value
        Value at the point.
    point
        The point, shape (d,).
    steps_up
        By how many steps the costs are higher than at the beginning of the walk.
    """

    has_none: bool
    value: float
    point: FloatArray
    steps_up: int

    @property
    def rank(self) -> tuple[bool, float]:
        """The key by which visits are sorted, the best first: a descent needs a gradient.

        Where costs are so small that all support vectors are bounded, there is none, and the value
        hardly changes. Of such points, the one with the highest costs comes first, and those whose
        fit has failed come last.
        """
        if self.has_none and math.isfinite(self.value):
            return True, -self.steps_up
        return self.has_none, self.value


@dataclass(frozen=True)
class Exploration:
    """How many evaluations are spent before a descent, of those of a whole search.

    Attributes
    ----------
    equal, aligned
        Numbers of evaluations with equal widths, and with those of the greatest alignment.

    Examples
    --------
    >>> from span_hpo.search import Exploration
    >>> Exploration.of(60, has_widths=True)
    Exploration(equal=9, aligned=7)
    """

    equal: int
    aligned: int

    @classmethod
    def of(cls, evaluations: int, *, has_widths: bool) -> "Exploration":
        """Return the numbers for a search with so many evaluations.

        Parameters
        ----------
        evaluations
            Number of evaluations of the whole search.
        has_widths
            Whether there are widths that can differ.
        """
        least = min(_LEAST, (evaluations + 1) // 2)
        equal = max(least, round(_ON_EQUAL_WIDTHS * evaluations))
        return cls(equal, round(_ON_ALIGNED_WIDTHS * evaluations) if has_widths else 0)

    @property
    def total(self) -> int:
        """The sum of the numbers."""
        return self.equal + self.aligned


def walk_over_scales(
    function: Function, objective: Explorable, coordinates: Coordinates, most: int
) -> list[Visit]:
    """Return the points of a walk with equal widths, the best first.

    Parameters
    ----------
    function
        Function from a point to its value and its gradient.
    objective, coordinates
        Objective, and the coordinates of the search.
    most
        Number of evaluations.
    """
    centres = [coordinates.point(params) for params in objective.centres()]
    return _walk(function, centres, objective, coordinates, most, leap=_LEAP)


def walk_with_aligned_widths(
    function: Function, objective: Explorable, coordinates: Coordinates, spread: Spread, most: int
) -> list[Visit]:
    """Return the points of a walk from the widths of the greatest alignment, the best first.

    Parameters
    ----------
    function, objective, coordinates, most
        See `walk_over_scales`.
    spread
        Penalty on the widths.
    """
    if most == 0:
        return []
    centres = [coordinates.point(params) for params in objective.centres()]
    alignment = Alignment.of(objective.kernel, objective.data.X, objective.data.codes)
    widths = aligned_point(alignment, coordinates, spread, centres[0])[spread.places]
    for centre in centres:
        centre[spread.places] = widths
    return _walk(function, centres, objective, coordinates, most)


def _walk(
    function: Function,
    centres: Sequence[FloatArray],
    objective: Explorable,
    coordinates: Coordinates,
    most: int,
    leap: int = 0,
) -> list[Visit]:
    """Walk from the best of some centres to better neighbours, while there are any.

    Costs that are higher by so many steps as `leap` are tried before the neighbours.
    """
    moves = np.zeros((2, len(coordinates.names)))  # of all costs, and of all widths
    for move, names in zip(moves, objective.scales, strict=True):
        move[coordinates.places(names)] = _FACTOR
    steps = [step for step in _STEPS if all(moves[axis].any() for axis in np.flatnonzero(step))]

    def inside(point: FloatArray) -> FloatArray:
        return np.clip(point, coordinates.lower, coordinates.upper)

    def visited(point: FloatArray, steps_up: int) -> Visit:
        value, gradient = function(point)
        return Visit(gradient is None, value, point, steps_up)

    raised = _FIRST_COSTS_UP * moves[0]
    visits = [visited(inside(centre + raised), 0) for centre in centres[:most]]
    best = min(range(len(visits)), key=lambda place: visits[place].rank)
    origin, at, here = centres[best] + raised, (0, 0), visits[best]
    seen = {at}
    far = [(leap, 0)] if leap and moves[0].any() else []
    while len(visits) < most:
        neighbours = [*far, *((at[0] + i, at[1] + j) for i, j in steps)]
        there = next((place for place in neighbours if place not in seen), None)
        if there is None:
            break
        seen.add(there)
        point = inside(origin + np.array(there) @ moves)
        if any(np.array_equal(point, visit.point) for visit in visits):
            continue  # at the ends of the ranges, several places are one point
        visit = visited(point, there[0])
        visits.append(visit)
        if visit.rank < here.rank:
            at, here = there, visit
    return sorted(visits, key=lambda visit: visit.rank)
