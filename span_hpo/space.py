"""Describe which hyperparameters are searched, independently of any framework.

Every hyperparameter is either a number, which is fixed, or a `Float`, `Int` or `Choice`, which is
searched. Adapters translate these three classes and nothing else. A distribution from Optuna is
accepted in place of the dimension that it describes.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from span_hpo.runtime import LARGEST_WHOLE, plain, real, whole

_STEP_ROUNDING = 1e-9  # relative rounding of a number of steps: 2.99... from 0.3 / 0.1 counts as 3
_GRID_DIGITS = 15  # significant digits of values on a linear grid: 3 * 0.1 becomes 0.3


@dataclass(frozen=True)
class Float:
    """A real number between `low` and `high`, both included.

    Parameters
    ----------
    low, high
        Ends of the range, which must be finite, with ``low <= high``.
    log
        Search the logarithm of the number; `low` must then be positive.
    step
        Search only ``low, low + step, ...``; this cannot be combined with `log`.

    Examples
    --------
    >>> from span_hpo import Float
    >>> Float(0.0, 1.0).grid(3)
    [0.0, 0.5, 1.0]
    >>> Float(0.25, 4.0, log=True).grid(3)
    [0.25, 1.0, 4.0]
    >>> Float(0.0, 1.0, step=0.1).nearest(0.33)
    0.3
    """

    low: float
    high: float
    log: bool = False
    step: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", real("low", self.low))
        object.__setattr__(self, "high", real("high", self.high))
        _check_range(self.low, self.high, self.log)
        if not math.isfinite(self.high - self.low):
            raise ValueError(
                "`low` and `high` must have a finite difference, got "
                f"{self.low!r} and {self.high!r}."
            )
        if self.step is not None:
            if self.log:
                raise ValueError(f"`step` must be None when `log` is True, got {self.step!r}.")
            least = (self.high - self.low) / LARGEST_WHOLE
            object.__setattr__(self, "step", real("step", self.step, above=least))

    def grid(self, points: int) -> list[float]:
        """Return `points` values from `low` to `high`, spaced evenly or, with `log`, geometrically.

        A single point is the middle of the range. With `step`, each value is moved to the nearest
        step, and equal values are returned once.
        """
        points = whole("points", points, at_least=1)
        if self.low == self.high:
            return [self.low]
        if self.log:
            exponents = _evenly(math.log2(self.low), math.log2(self.high), points)
            values = [2.0**exponent for exponent in exponents]
        else:
            values = [self._written(value) for value in _evenly(self.low, self.high, points)]
        if self.step is not None:
            return sorted({self.nearest(value) for value in values})
        if points > 1:
            values[0], values[-1] = self.low, self.high  # rounding must not move the ends
        return values

    def _written(self, value: float) -> float:
        """Return a value of the range without the last digits, which are rounding errors."""
        largest = max(abs(self.low), abs(self.high))
        written = round(value, _GRID_DIGITS - 1 - math.floor(math.log10(largest)))
        return min(max(written, self.low), self.high)

    def sample(self, rng: np.random.Generator) -> float:
        """Return one value that is drawn uniformly or, with `log`, log-uniformly."""
        if self.log:
            drawn = math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
            return min(max(drawn, self.low), self.high)
        if self.step is None:
            return float(rng.uniform(self.low, self.high))
        return self._at_step(int(rng.integers(0, self._last_step() + 1)))

    def nearest(self, value: float) -> float:
        """Return the value of the range that is closest to `value`."""
        inside = min(max(float(value), self.low), self.high)
        if self.step is None:
            return inside
        return self._at_step(min(round((inside - self.low) / self.step), self._last_step()))

    def steps(self) -> list[float]:
        """Return all values of a range that has a step."""
        return [self._at_step(k) for k in range(self._last_step() + 1)]

    def _last_step(self) -> int:
        assert self.step is not None
        return math.floor((self.high - self.low) / self.step * (1 + _STEP_ROUNDING))

    def _at_step(self, k: int) -> float:
        assert self.step is not None
        return self._written(self.low + k * self.step)


@dataclass(frozen=True)
class Int:
    """A whole number between `low` and `high`, both included.

    Parameters
    ----------
    low, high
        Ends of the range, with ``low <= high``.
    log, step
        Search the logarithm of the number, with `low` at least 1, or only ``low, low + step, ...``.
        The two cannot be combined.

    Examples
    --------
    >>> from span_hpo import Int
    >>> Int(1, 5).grid(3)
    [1, 3, 5]
    >>> Int(1, 16, log=True).grid(3)
    [1, 4, 16]
    >>> Int(0, 10, step=5).nearest(7)
    5
    """

    low: int
    high: int
    log: bool = False
    step: int = 1

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            number = whole(
                name, getattr(self, name), at_least=-LARGEST_WHOLE, at_most=LARGEST_WHOLE
            )
            object.__setattr__(self, name, number)
        _check_range(self.low, self.high, self.log)
        object.__setattr__(self, "step", whole("step", self.step, at_least=1))
        if self.log and self.step > 1:
            raise ValueError(f"`step` must be 1 when `log` is True, got {self.step!r}.")

    def grid(self, points: int) -> list[int]:
        """Return at most `points` different whole numbers, spaced as evenly as possible."""
        values = Float(self.low, self.high, log=self.log).grid(points)
        return sorted({self.nearest(value) for value in values})

    def nearest(self, value: float) -> int:
        """Return the value of the range that is closest to `value`."""
        steps = round((min(max(value, self.low), self.high) - self.low) / self.step)
        return self.low + min(steps, (self.high - self.low) // self.step) * self.step

    def steps(self) -> list[int]:
        """Return all values of the range."""
        return list(range(self.low, self.high + 1, self.step))

    def sample(self, rng: np.random.Generator) -> int:
        """Return one value that is drawn uniformly or, with `log`, log-uniformly."""
        if self.log:
            return round(Float(self.low, self.high, log=True).sample(rng))
        return int(self.low + self.step * rng.integers(0, (self.high - self.low) // self.step + 1))


@dataclass(frozen=True)
class Choice:
    """One of several given values.

    Parameters
    ----------
    options
        Values to choose from, at least one.

    Examples
    --------
    >>> from span_hpo import Choice
    >>> degree = Choice([1, 2, 5])
    >>> degree.grid(points=10)
    [1, 2, 5]
    >>> degree.nearest(5)
    5
    """

    options: Sequence[Any]

    def __post_init__(self) -> None:
        if isinstance(self.options, str) or not isinstance(self.options, Sequence):
            raise TypeError(f"`options` must be a list or tuple of values, got {self.options!r}.")
        if not self.options:
            raise ValueError("`options` must hold at least one value, got none.")
        object.__setattr__(self, "options", plain(tuple(self.options)))

    def grid(self, points: int) -> list[Any]:
        """Return all options, regardless of `points`."""
        return list(self.options)

    def sample(self, rng: np.random.Generator) -> Any:
        """Return one option; all options are equally likely."""
        return self.options[int(rng.integers(len(self.options)))]

    def nearest(self, value: Any) -> Any:
        """Return the value if it is an option, and the first option otherwise."""
        return value if value in self.options else self.options[0]


Dimension: TypeAlias = Float | Int | Choice

Space: TypeAlias = Mapping[str, Dimension]

Params: TypeAlias = Mapping[str, Any]

Hyperparameter: TypeAlias = float | Dimension


def as_dimension(setting: Any) -> Dimension | None:
    """Return the dimension in which a hyperparameter is searched, or None if it is fixed.

    Distributions from Optuna are recognised by the name of their module, without an import.
    """
    if isinstance(setting, Dimension):
        return setting
    if type(setting).__module__ != "optuna.distributions":
        return None
    if hasattr(setting, "choices"):
        return Choice(setting.choices)
    if isinstance(setting.low, int):
        return Int(setting.low, setting.high, log=setting.log, step=setting.step)
    return Float(setting.low, setting.high, log=setting.log, step=setting.step)


def is_logarithmic(part: Any) -> bool:
    """Return whether a dimension is that of real numbers on a logarithmic scale."""
    return isinstance(part, Float) and part.log


def searched(hyperparameters: Mapping[str, Any]) -> Space:
    """Return the dimensions of the hyperparameters that are searched, by name."""
    dimensions = {name: as_dimension(setting) for name, setting in hyperparameters.items()}
    return {name: part for name, part in dimensions.items() if part is not None}


def names_of(prefix: str, labels: Sequence[Any]) -> tuple[str, ...]:
    """Return names of hyperparameters that belong to classes, columns or the like.

    A name is the prefix followed by the label, in which integral floats are written as integers. In
    a label of ASCII characters only, those outside ``[A-Za-z0-9_.+-]`` are replaced by ``_``, and
    in others those that cannot be printed. If two names would then be equal, all are numbered.
    """

    def kept(text: str) -> str:
        if text.isascii():
            return re.sub(r"[^A-Za-z0-9_.+-]", "_", text)
        return "".join(character if character.isprintable() else "_" for character in text)

    names = tuple(prefix + kept(written(label)) for label in labels)
    if len(set(names)) < len(names):
        return tuple(f"{prefix}{index}" for index in range(len(labels)))
    return names


def written(label: Any) -> str:
    """Return a label as text; integral floats are written as integers."""
    is_whole = isinstance(label, float) and label.is_integer()
    return str(int(label) if is_whole else label)


def value_of(hyperparameter: Any, name: str, params: Params) -> Any:
    """Return the hyperparameter itself if it is fixed, and its value in `params` otherwise."""
    return hyperparameter if as_dimension(hyperparameter) is None else params[name]


def merged_space(parts: Mapping[str, Space]) -> Space:
    """Return the union of several spaces, each given under the name of its owner.

    Raises
    ------
    TypeError
        If a space is not a mapping from names to dimensions.
    ValueError
        If a name is searched twice.
    """
    owners: dict[str, str] = {}
    merged: dict[str, Dimension] = {}
    for owner, space in parts.items():
        if not isinstance(space, Mapping):
            raise TypeError(f"`space` of {owner} must be a mapping, got {space!r}.")
        for name, setting in space.items():
            dimension = as_dimension(setting)
            if dimension is None:
                raise TypeError(
                    f"`space` of {owner} must map names to Float, Int or Choice, "
                    f"got {setting!r} for `{name}`."
                )
            if name in owners:
                raise ValueError(
                    f"`{name}` must be searched once, got it from {owners[name]} and from {owner}. "
                    "Fix one of the two to a number."
                )
            owners[name], merged[name] = owner, dimension
    return merged


def checked_params(space: Space, params: Params) -> dict[str, Any]:
    """Return the parameters in the order of the space.

    Raises
    ------
    TypeError
        If `params` is not a mapping.
    ValueError
        If a name is missing or unknown. Values outside their range are allowed.
    """
    if not isinstance(params, Mapping):
        raise TypeError(
            f"`params` must be a mapping of names to values, got {type(params).__name__}."
        )
    missing = [name for name in space if name not in params]
    unknown = [name for name in params if name not in space]
    if missing or unknown:
        faults = [f"missing {missing}"] * bool(missing) + [f"unknown {unknown}"] * bool(unknown)
        raise ValueError(
            f"`params` must name exactly {list(space)}, got {list(params)}: {', '.join(faults)}."
        )
    return {name: plain(params[name]) for name in space}


def started(space: Space, starts: Sequence[Params]) -> list[dict[str, Any]]:
    """Return the different points at which a search starts.

    Parameters
    ----------
    space
        Dimensions by name.
    starts
        Points that may leave out some of the names. Such a name gets the middle of its range, and
        every value is moved to the nearest one in its range.
    """
    middle = {name: part.grid(1)[0] for name, part in space.items()}
    points = [
        {name: part.nearest(start.get(name, middle[name])) for name, part in space.items()}
        for start in starts
    ]
    return [point for index, point in enumerate(points) if point not in points[:index]]


def grid(space: Space, points: int | Mapping[str, int]) -> dict[str, list[Any]]:
    """Return a list of values for every name of the space.

    Parameters
    ----------
    space
        Dimensions by name.
    points
        Number of values: one number for all names, or a mapping from each name to a number. A
        `Choice` gives all its options in any case.
    """
    if not isinstance(points, Mapping):
        points = dict.fromkeys(space, points)
    else:
        needed = [name for name, part in space.items() if not isinstance(part, Choice)]
        missing = [name for name in needed if name not in points]
        unknown = [name for name in points if name not in space]
        if missing or unknown:
            raise ValueError(
                f"`points` must name {needed}, got {list(points)}: "
                f"missing {missing}, unknown {unknown}."
            )
    counts = {name: whole(f"points[{name!r}]", count, at_least=1) for name, count in points.items()}
    return {name: part.grid(counts.get(name, 1)) for name, part in space.items()}


def points_per_name(space: Space, at_most: int) -> int:
    """Return how many values each name may have in a grid of at most so many points."""
    names = max(1, len(space))
    points: int = max(1, round(at_most ** (1 / names)))  # rounding may miss the root by one
    return points - 1 if points > 1 and points**names > at_most else points


def _evenly(low: float, high: float, points: int) -> list[float]:
    if points == 1:
        return [(low + high) / 2]
    values: list[float] = np.linspace(low, high, points).tolist()
    return values


def _check_range(low: float, high: float, log: bool) -> None:
    if low > high:
        raise ValueError(f"`low` must be at most `high`, got {low!r} and {high!r}.")
    if log and low <= 0:
        raise ValueError(f"`low` must be positive when `log` is True, got {low!r}.")
