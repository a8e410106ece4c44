"""Weightings: rules that turn what is known about the rows into costs ``C_i``.

A weighting is anything with `space` (name -> `Float`, `Int` or `Choice`) and
``costs(data, params)`` (shape (l,), at least 0). It holds no rows. A rule whose parameters depend
on the labels also has ``bind(data)``, which returns the rule for these data.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

from span_hpo.data import Dataset, as_numbers
from span_hpo.runtime import FloatArray
from span_hpo.space import Params, Space, merged_space


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
