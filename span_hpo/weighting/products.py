"""The interface of weightings, which give each row its cost ``C_i``, and their products.

A weighting is any object with an attribute `space`, which maps names to `Float`, `Int` or `Choice`,
and a method ``costs(data, params)``, which returns one cost of at least 0 for each row, shape (l,).
A weighting holds no rows. If its parameters depend on the labels, it also has a method
``bind(data)``, which returns the weighting for these data. For searches by gradients it has a
method ``gradient(data, params, weights)``.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, Protocol, runtime_checkable

from span_hpo.data import Dataset, as_numbers
from span_hpo.errors import NoDerivativeError
from span_hpo.runtime import FloatArray, make_plain, real
from span_hpo.space import Float, Params, Space, as_dimension, merged_space


class Weighting(Protocol):
    """The interface of a weighting, which users can implement themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from span_hpo import Float, SpanObjective
    >>> class TrustedCosts:
    ...     space = {"C": Float(0.1, 10.0, log=True)}
    ...
    ...     def costs(self, data, params):
    ...         return params["C"] * np.where(data.groups == "trusted", 2.0, 1.0)
    >>> X, y, groups = [[0.0], [1.0], [2.0]], [-1, 1, 1], ["trusted", "new", "trusted"]
    >>> objective = SpanObjective(X, y, groups=groups, weighting=TrustedCosts())
    >>> objective.weighting.costs(objective.data, {"C": 3.0}).tolist()
    [6.0, 3.0, 6.0]
    """

    @property
    def space(self) -> Space:
        """The parameters that are searched."""

    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return the cost of every row of the data."""


@runtime_checkable
class Bindable(Protocol):
    """Optional method of a weighting whose parameters depend on the data."""

    def bind(self, data: Dataset) -> Weighting:
        """Return the weighting for these data."""


@runtime_checkable
class Differentiable(Protocol):
    """Optional method of a weighting that searches by gradients need."""

    def gradient(self, data: Dataset, params: Params, weights: FloatArray) -> Mapping[str, float]:
        """Return ``sum_i weights_i dC_i / dt`` for each searched real parameter t."""


@runtime_checkable
class Starting(Protocol):
    """Optional method of a weighting that suggests where a search should begin."""

    def starts(self, data: Dataset) -> list[dict[str, Any]]:
        """Return good first guesses of some parameters for these data."""


@runtime_checkable
class Explained(Protocol):
    """Optional method of a weighting whose parameters have names that need an explanation."""

    def legend(self, data: Dataset) -> dict[str, str]:
        """Return what such names stand for."""


class ComposableWeighting(ABC):
    """A weighting that can be multiplied, as in ``ClassCosts() * SigmoidScore(C=1.0)``."""

    def __post_init__(self) -> None:
        if is_dataclass(self):
            make_plain(self)

    @property
    @abstractmethod
    def space(self) -> Space:
        """The parameters that are searched."""

    @abstractmethod
    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return the cost of every row of the data, shape (l,)."""

    def gradient(self, data: Dataset, params: Params, weights: FloatArray) -> Mapping[str, float]:
        """Return ``sum_i weights_i dC_i / dt`` for each searched real parameter t.

        Parameters
        ----------
        data
            The rows.
        params
            A value for every name in `space`.
        weights
            Weights of the derivatives, shape (l,).

        Raises
        ------
        NoDerivativeError
            If the weighting has no derivative.
        """
        raise _without_derivative(self)

    def starts(self, data: Dataset) -> list[dict[str, Any]]:
        """Return good first guesses of some parameters for these data."""
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
        The two factors, which must not search parameters of the same name.
    """

    first: Weighting
    second: Weighting

    def bind(self, data: Dataset) -> "ProductWeighting":
        """Return the product of the bound factors."""
        return ProductWeighting(bind_to(self.first, data), bind_to(self.second, data))

    @property
    def space(self) -> Space:
        """The parameters that either factor searches."""
        return merged_space(
            {
                f"the first factor {type(self.first).__name__}": self.first.space,
                f"the second factor {type(self.second).__name__}": self.second.space,
            }
        )

    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return for each row the product of its two costs."""
        return sample_costs(self.first, data, params) * sample_costs(self.second, data, params)

    def gradient(self, data: Dataset, params: Params, weights: FloatArray) -> dict[str, float]:
        """Return ``sum_i weights_i dC_i / dt`` for each parameter t that either factor searches."""
        first, second = (sample_costs(part, data, params) for part in (self.first, self.second))
        return {
            **cost_gradient(self.first, data, params, weights * second),
            **cost_gradient(self.second, data, params, weights * first),
        }

    def legend(self, data: Dataset) -> dict[str, str]:
        """Return what names of either factor stand for."""
        return {**legend_of(self.first, data), **legend_of(self.second, data)}

    def starts(self, data: Dataset) -> list[dict[str, Any]]:
        """Return all combinations of the first guesses of the two factors."""
        return [
            {**first, **second}
            for first in starts_of(self.first, data)
            for second in starts_of(self.second, data)
        ]


def is_weighting(candidate: Any) -> bool:
    """Return whether an object has the interface of a weighting."""
    if isinstance(candidate, type):
        return False  # the parentheses after the name of a class were forgotten
    if isinstance(candidate, ComposableWeighting):
        return True  # its space may be known only after `bind`
    return hasattr(candidate, "space") and callable(getattr(candidate, "costs", None))


def bind_to(weighting: Weighting, data: Dataset) -> Weighting:
    """Return the weighting for these data; a weighting without `bind` suits any data."""
    return weighting.bind(data) if isinstance(weighting, Bindable) else weighting


def starts_of(weighting: Weighting, data: Dataset) -> list[dict[str, Any]]:
    """Return the first guesses of a weighting, or ``[{}]`` if it suggests none."""
    return weighting.starts(data) if isinstance(weighting, Starting) else [{}]


def legend_of(weighting: Weighting, data: Dataset) -> dict[str, str]:
    """Return what those names of a weighting stand for that need an explanation."""
    return weighting.legend(data) if isinstance(weighting, Explained) else {}


def uses_features(weighting: Any) -> bool:
    """Return whether costs depend on features, which a precomputed kernel does not have."""
    parts = (getattr(weighting, name, None) for name in ("first", "second", "weighting"))
    return bool(getattr(weighting, "uses_features", False)) or any(
        uses_features(part) for part in parts if part is not None
    )


def sample_costs(weighting: Weighting, data: Dataset, params: Params) -> FloatArray:
    """Return the cost of every row of the data.

    Raises
    ------
    ValueError
        If the weighting does not give one finite number for each row.
    """
    return as_numbers(weighting.costs(data, params), "costs", len(data))


def cost_gradient(
    weighting: Weighting, data: Dataset, params: Params, weights: FloatArray
) -> dict[str, float]:
    """Return ``sum_i weights_i dC_i / dt`` for each searched real parameter t of a weighting.

    Raises
    ------
    NoDerivativeError
        If the weighting has no derivative.
    ValueError
        If the weighting does not return a finite number for each parameter.
    """
    names = [
        name for name, part in weighting.space.items() if isinstance(as_dimension(part), Float)
    ]
    if not names:
        return {}
    if not isinstance(weighting, Differentiable):
        raise _without_derivative(weighting)
    found = weighting.gradient(data, params, weights)
    if not isinstance(found, Mapping) or not set(names) <= set(found):
        raise ValueError(
            f"`gradient` of the weighting must return a mapping with the names {names}, got "
            f"{found!r}."
        )
    return {name: real(f"derivative of the costs by {name}", found[name]) for name in names}


def _without_derivative(weighting: Any) -> NoDerivativeError:
    return NoDerivativeError(
        f"`weighting` must have a derivative, which {type(weighting).__name__} has not: give it a "
        "method `gradient(data, params, weights)`, or search by Optuna."
    )
