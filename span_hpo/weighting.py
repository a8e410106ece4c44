"""Weightings: rules that turn what is known about the rows into costs ``C_i``.

A weighting is anything with `space` (name -> `Float`, `Int` or `Choice`) and
``costs(data, params)`` (shape (l,), at least 0). It holds no rows. A rule whose parameters depend
on the labels also has ``bind(data)``, which returns the rule for these data.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.special import expit

from span_hpo.arrays import FloatArray
from span_hpo.checks import real
from span_hpo.data import Dataset, as_numbers
from span_hpo.space import (
    Float,
    Hyperparameter,
    Params,
    Space,
    merged_space,
    searched,
    value_of,
)

COST_RANGE = Float(2.0**-6, 2.0**10, log=True)
STEEPNESS_RANGE = Float(1, 10)
MIDPOINT_RANGE = Float(0, 0.9)
EXPONENT_RANGE = Float(0, 4)


class Weighting(Protocol):
    """What a rule must offer; users may write their own."""

    @property
    def space(self) -> Space:
        """The parameters that are searched."""

    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return the cost of every row of the data."""


class ComposableWeighting(ABC):
    """Base class that lets weightings multiply: ``ClassCosts() * SigmoidScore(C=1.0)``."""

    @property
    @abstractmethod
    def space(self) -> Space:
        """The parameters that are searched."""

    @abstractmethod
    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return the cost of every row of the data, shape (l,)."""

    def starts(self, data: Dataset) -> list[dict[str, Any]]:
        """Return good guesses of some parameters for these data."""
        return [{"C": 1.0}]

    def __mul__(self, other: Any) -> "ProductWeighting":
        return ProductWeighting(self, other) if is_weighting(other) else NotImplemented

    def __rmul__(self, other: Any) -> "ProductWeighting":
        return ProductWeighting(other, self) if is_weighting(other) else NotImplemented


@dataclass(frozen=True)
class UniformCost(ComposableWeighting):
    """One cost for all rows: ``C_i = C``.

    Parameters
    ----------
    C
        The cost; positive.
    """

    C: Hyperparameter = COST_RANGE

    @property
    def space(self) -> Space:
        """The parameters that are searched."""
        return searched({"C": self.C})

    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return ``C`` for every row."""
        return np.full(len(data), real("C", value_of(self.C, "C", params), at_least=0))


@dataclass(frozen=True)
class ClassCosts(ComposableWeighting):
    """One cost for each class.

    The parameters are called ``C_`` and the label: ``C_-1``, ``C_1`` for labels -1 and 1,
    ``C_bad``, ``C_good`` for strings. Characters outside ``[A-Za-z0-9_.+-]`` become ``_``; if two
    names then agree they are ``C_0``, ``C_1`` in sorted order of the labels.

    Parameters
    ----------
    per_class
        A number or dimension for all classes, or one for each class: a mapping from label, or a
        sequence in sorted order of the labels.
    names
        Other names of the parameters, in sorted order of the labels.
    """

    per_class: Any = COST_RANGE
    names: Sequence[str] | None = None

    def bind(self, data: Dataset) -> "ClassCosts":
        """Return the weighting for the labels of these data."""
        labels = data.classes.tolist()
        per_class = self.per_class
        if isinstance(per_class, Mapping):
            if set(per_class) != set(labels):
                raise ValueError(
                    f"`per_class` must name exactly the labels {labels}, got {list(per_class)}."
                )
            settings = tuple(per_class[label] for label in labels)
        elif isinstance(per_class, Sequence | np.ndarray) and not isinstance(per_class, str):
            settings = tuple(per_class)
        else:
            settings = (per_class,) * len(labels)
        if isinstance(self.names, str) or not isinstance(self.names, Sequence | None):
            raise TypeError(f"`names` must be a list of names, got {self.names!r}.")
        names = _class_names(labels) if self.names is None else tuple(self.names)
        for argument, values in (("per_class", settings), ("names", names)):
            if len(values) != len(labels):
                raise ValueError(
                    f"`{argument}` must have one entry for each of the labels {labels}, "
                    f"got {list(values)}."
                )
        if len(set(names)) < len(names):
            raise ValueError(f"`names` must differ from each other, got {list(names)}.")
        return replace(self, per_class=settings, names=names)

    @property
    def space(self) -> Space:
        """The parameters that are searched."""
        return searched(self._settings())

    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return the cost of each row's class."""
        per_class = [
            real(name, value_of(setting, name, params), at_least=0)
            for name, setting in self._settings().items()
        ]
        return np.array(per_class)[data.codes]

    def starts(self, data: Dataset) -> list[dict[str, Any]]:
        """Return equal costs, and costs that make all classes weigh the same."""
        counts = np.bincount(data.codes)
        balanced = (len(data) / (len(counts) * counts)).tolist()
        names = list(self._settings())
        return [dict.fromkeys(names, 1.0), dict(zip(names, balanced, strict=True))]

    def _settings(self) -> dict[str, Any]:
        if not isinstance(self.per_class, tuple) or self.names is None:
            raise ValueError(
                "`ClassCosts` must know the labels before it has parameters: "
                "use the `weighting` of a SpanObjective, or ClassCosts().bind(data)."
            )
        return dict(zip(self.names, self.per_class, strict=True))


@dataclass(frozen=True)
class SigmoidScore(ComposableWeighting):
    """``C_i = max(C / (1 + exp(-A (q_i - B))), floor)`` for a score q in [0, 1].

    Parameters
    ----------
    score
        Name of the score; None if there is only one.
    A, B, C
        Steepness, midpoint and largest cost of the sigmoid.
    floor
        Least cost of a row.

    References
    ----------
    Sarafis, Diou and Delopoulos, "Span error bound for weighted SVM with applications in
    hyperparameter selection", eq. 39.
    """

    score: str | None = None
    A: Hyperparameter = STEEPNESS_RANGE
    B: Hyperparameter = MIDPOINT_RANGE
    C: Hyperparameter = COST_RANGE
    floor: float = 0.01

    @property
    def space(self) -> Space:
        """The parameters that are searched."""
        return searched({"A": self.A, "B": self.B, "C": self.C})

    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return the sigmoid of every row's score."""
        q = _unit_score(data, self.score)
        A = real("A", value_of(self.A, "A", params))
        B = real("B", value_of(self.B, "B", params))
        C = real("C", value_of(self.C, "C", params), at_least=0)
        costs: FloatArray = C * expit(A * (q - B))
        return np.maximum(costs, real("floor", self.floor, at_least=0))


@dataclass(frozen=True)
class PowerScore(ComposableWeighting):
    """``C_i = C q_i^tau`` for a score q in [0, 1].

    Parameters
    ----------
    score
        Name of the score; None if there is only one.
    C
        Cost of a row with score 1.
    tau
        Exponent, at least 0; with 0 all rows cost the same.

    References
    ----------
    Lapin, Hein and Schiele, "Learning using privileged information: SVM+ and weighted SVM",
    eqs. 13, 14 and 22.
    """

    score: str | None = None
    C: Hyperparameter = COST_RANGE
    tau: Hyperparameter = EXPONENT_RANGE

    @property
    def space(self) -> Space:
        """The parameters that are searched."""
        return searched({"C": self.C, "tau": self.tau})

    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return the power of every row's score."""
        q = _unit_score(data, self.score)
        C = real("C", value_of(self.C, "C", params), at_least=0)
        tau = real("tau", value_of(self.tau, "tau", params), at_least=0)
        costs: FloatArray = C * q**tau
        return costs


@dataclass(frozen=True)
class ProductWeighting(ComposableWeighting):
    """The product of two weightings, row by row.

    Parameters
    ----------
    first, second
        The factors. A name that both search is an error.
    """

    first: Weighting
    second: Weighting

    def bind(self, data: Dataset) -> "ProductWeighting":
        """Return the product of the bound factors."""
        return ProductWeighting(bind_to(self.first, data), bind_to(self.second, data))

    @property
    def space(self) -> Space:
        """The parameters that are searched, by either factor."""
        return merged_space(
            {
                f"the first factor {type(self.first).__name__}": self.first.space,
                f"the second factor {type(self.second).__name__}": self.second.space,
            }
        )

    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return the product of the two costs of every row."""
        return sample_costs(self.first, data, params) * sample_costs(self.second, data, params)

    def starts(self, data: Dataset) -> list[dict[str, Any]]:
        """Return all pairs of the guesses of the factors."""
        return [
            {**first, **second}
            for first in starts_of(self.first, data)
            for second in starts_of(self.second, data)
        ]


def is_weighting(candidate: Any) -> bool:
    """Tell whether an object offers what a weighting must."""
    if isinstance(candidate, type):
        return False  # a class whose parentheses were forgotten
    if isinstance(candidate, ComposableWeighting):
        return True  # the space of some is known only after `bind`
    return hasattr(candidate, "space") and callable(getattr(candidate, "costs", None))


def bind_to(weighting: Weighting, data: Dataset) -> Weighting:
    """Return the weighting for these data; one without `bind` serves any data."""
    bind = getattr(weighting, "bind", None)
    return weighting if bind is None else bind(data)


def starts_of(weighting: Weighting, data: Dataset) -> list[dict[str, Any]]:
    """Return good guesses of a weighting's parameters; none are known of a user's own."""
    starts = getattr(weighting, "starts", None)
    return [{}] if starts is None else starts(data)


def sample_costs(weighting: Weighting, data: Dataset, params: Params) -> FloatArray:
    """Return the cost of every row of the data.

    Raises
    ------
    ValueError
        If the weighting does not give one finite number for each row.
    """
    return as_numbers(weighting.costs(data, params), "costs", len(data))


def _class_names(labels: list[Any]) -> tuple[str, ...]:
    def written(label: Any) -> str:
        whole = isinstance(label, float) and label.is_integer()
        return re.sub(r"[^A-Za-z0-9_.+-]", "_", str(int(label) if whole else label))

    names = tuple(f"C_{written(label)}" for label in labels)
    if len(set(names)) < len(names):
        return tuple(f"C_{index}" for index in range(len(labels)))
    return names


def _unit_score(data: Dataset, name: str | None) -> FloatArray:
    q = data.score(name)
    outside = (q < 0) | (q > 1)
    if outside.any():
        row = int(outside.argmax())
        raise ValueError(
            f"`scores` must lie in [0, 1] for this weighting, got {q[row]} in row {row}."
        )
    return q
