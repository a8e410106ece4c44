"""The point of a search by gradients: hyperparameters as a vector within a box."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from span_hpo.runtime import BoolArray, FloatArray
from span_hpo.space import Float, Params, Space, checked_params


@dataclass(frozen=True, eq=False)
class Coordinates:
    """How hyperparameters become coordinates: logarithms where their scale is logarithmic.

    Only real numbers are coordinates. Whole numbers, options and numbers with a step have no
    derivative, and keep the value that they have at the start.

    Attributes
    ----------
    names
        Names of the hyperparameters that are coordinates, in the order of the space.
    is_log
        Whether each is searched on a logarithmic scale, shape (d,).
    lower, upper
        Ends of the ranges as coordinates, shape (d,).
    held
        Values of all other hyperparameters, by name.
    space
        The whole space.

    Examples
    --------
    >>> from span_hpo import Float
    >>> from span_hpo.search import Coordinates
    >>> space = {"C": Float(1.0, 100.0, log=True), "shift": Float(-1.0, 1.0)}
    >>> coordinates = Coordinates.of(space, {"C": 1.0, "shift": 0.5})
    >>> coordinates.point({"C": 1.0, "shift": 0.5}).tolist()
    [0.0, 0.5]
    """

    names: tuple[str, ...]
    is_log: BoolArray
    lower: FloatArray
    upper: FloatArray
    held: dict[str, Any]
    space: Space

    @classmethod
    def of(cls, space: Space, start: Params) -> "Coordinates":
        """Return the coordinates of a space, with the values of a start where they are held.

        Raises
        ------
        TypeError, ValueError
            If the start does not name the hyperparameters of the space, or a value of it lies
            outside its range.
        """
        start = checked_params(space, start)
        for name, part in space.items():
            _check_inside(name, part, start[name])
        moving = {
            name: part
            for name, part in space.items()
            if isinstance(part, Float) and part.step is None
        }
        ends = [
            (math.log(part.low), math.log(part.high)) if part.log else (part.low, part.high)
            for part in moving.values()
        ]
        sides = np.array(ends).reshape(-1, 2)
        return cls(
            names=tuple(moving),
            is_log=np.array([part.log for part in moving.values()], dtype=np.bool_),
            lower=sides[:, 0],
            upper=sides[:, 1],
            held={name: start[name] for name in space if name not in moving},
            space=space,
        )

    def point(self, params: Params) -> FloatArray:
        """Return the coordinates of hyperparameters, shape (d,)."""
        values = np.array([params[name] for name in self.names], dtype=float)
        return np.where(self.is_log, np.log(np.where(self.is_log, values, 1.0)), values)

    def params(self, point: FloatArray) -> dict[str, Any]:
        """Return the hyperparameters of a point, in the order of the space.

        Rounding does not move a value out of its range.
        """
        values = np.where(self.is_log, np.exp(np.where(self.is_log, point, 0.0)), point)
        moving = dict(zip(self.names, values.tolist(), strict=True))
        return {
            name: part.nearest(moving[name]) if name in moving else self.held[name]
            for name, part in self.space.items()
        }

    def gradient(self, params: Params, by_name: Mapping[str, float]) -> FloatArray:
        """Return the derivatives by the coordinates from those by the hyperparameters."""
        slopes = np.array([by_name[name] for name in self.names], dtype=float)
        values = np.array([params[name] for name in self.names], dtype=float)
        return np.where(self.is_log, slopes * values, slopes)

    def places(self, names: Sequence[str]) -> list[int]:
        """Return the positions of those of these names that are coordinates."""
        return [self.names.index(name) for name in names if name in self.names]


def _check_inside(name: str, part: Any, value: Any) -> None:
    """Raise if a value of a start is not one of its dimension."""
    try:
        inside = part.nearest(value) == value
    except (TypeError, ValueError):
        inside = False
    if not inside:
        raise ValueError(f"`start` must have a value within {part} for `{name}`, got {value!r}.")
