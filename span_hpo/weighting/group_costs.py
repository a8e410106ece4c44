"""A weighting with one cost for each group of rows, such as those of one annotator."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from span_hpo.data import Dataset
from span_hpo.runtime import FloatArray, IndexArray, plain, real
from span_hpo.space import (
    Float,
    Hyperparameter,
    Params,
    Space,
    names_of,
    searched,
    value_of,
    written,
)
from span_hpo.weighting.class_costs import COST_RANGE
from span_hpo.weighting.products import ComposableWeighting

RATIO_RANGE = Float(2.0**-4, 2.0**4, log=True)
SHRINKAGE_RANGE = Float(0.0, 1.0)
_PREFIX = "ratio_"


@dataclass(frozen=True)
class GroupCosts(ComposableWeighting):
    """One cost for each group of rows, shrunk towards the mean of all groups.

    A group is what rows have in common that says how far they can be trusted: an annotator, a
    source, a batch. A row of group g costs

        ``C (r_g / r)^(1 - shrinkage)``

    where r_g is the ratio of the group and r the geometric mean of all ratios. C is therefore the
    geometric mean of the costs of all groups. With ``shrinkage`` 1 all rows have the same cost, and
    with 0 each group has the cost that its ratio says. Between them, small differences that fit the
    noise of a few rows are made smaller.

    The name of a ratio is ``ratio_`` followed by the group, as for the labels of `ClassCosts`.

    Parameters
    ----------
    C
        Geometric mean of the costs of the groups.
    ratio
        One number or dimension for all ratios; or one for each group, as a mapping from groups.
    shrinkage
        How far costs are shrunk towards their mean, between 0 and 1.
    groups
        The groups in sorted order. An objective takes them from its data.

    Examples
    --------
    >>> from span_hpo import GroupCosts, SpanObjective
    >>> X, y, groups = [[0.0], [1.0], [2.0]], [-1, 1, 1], ["ann", "bob", "bob"]
    >>> weighting = GroupCosts(C=4.0, shrinkage=0.5)
    >>> objective = SpanObjective(X, y, kernel="linear", groups=groups, weighting=weighting)
    >>> list(objective.space)
    ['ratio_ann', 'ratio_bob']
    >>> objective.weighting.costs(objective.data, {"ratio_ann": 16.0, "ratio_bob": 1.0}).tolist()
    [8.0, 2.0, 2.0]
    """

    C: Hyperparameter = COST_RANGE
    ratio: Any = RATIO_RANGE
    shrinkage: Hyperparameter = SHRINKAGE_RANGE
    groups: tuple[Any, ...] | None = None

    def bind(self, data: Dataset) -> "GroupCosts":
        """Return this weighting with a ratio for each group of these data."""
        groups, _ = data.grouped
        if self.groups is not None and set(self.groups) != set(groups):
            raise ValueError(
                f"`groups` must be those of the weighting, {list(self.groups)}, got {list(groups)}."
            )
        ratio = self.ratio
        if isinstance(ratio, tuple) and self.groups is not None:
            return self
        if isinstance(ratio, Mapping):
            if set(ratio) != set(groups):
                raise ValueError(
                    f"`ratio` must name exactly the groups {list(groups)}, got {list(ratio)}."
                )
            ratio = tuple(ratio[group] for group in groups)
        elif isinstance(ratio, list | tuple | np.ndarray):
            raise TypeError(
                f"`ratio` must be one number or dimension, or a mapping from groups, got "
                f"{plain(list(ratio))}."
            )
        else:
            ratio = (ratio,) * len(groups)
        return replace(self, ratio=ratio, groups=groups)

    @property
    def space(self) -> Space:
        """The parameters that are searched."""
        return searched({"C": self.C, "shrinkage": self.shrinkage, **self._ratios()})

    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return for each row the cost of its group."""
        C = real("C", value_of(self.C, "C", params), at_least=0)
        kept, distances = self._distances(params)
        costs: FloatArray = C * np.exp(kept * distances)
        return costs[self._codes(data)]

    def gradient(self, data: Dataset, params: Params, weights: FloatArray) -> dict[str, float]:
        """Return the derivatives by C, the shrinkage and the ratios that are searched."""
        C = value_of(self.C, "C", params)
        kept, distances = self._distances(params)
        relative = np.exp(kept * distances)
        sums = np.bincount(self._codes(data), weights, len(distances)) * relative
        found = {"C": float(sums.sum()), "shrinkage": float(-C * sums @ distances)}
        for place, (name, setting) in enumerate(self._ratios().items()):
            ratio = value_of(setting, name, params)
            found[name] = float(C * kept * (sums[place] - sums.mean()) / ratio)
        return {name: found[name] for name in self.space}

    def legend(self, data: Dataset) -> dict[str, str]:
        """Return what those names stand for that do not hold their groups."""
        named = zip(self._ratios(), self._bound_groups(), strict=True)
        return {
            name: f"ratio of group {group!r}"
            for name, group in named
            if name != _PREFIX + written(group)
        }

    def starts(self, data: Dataset) -> list[dict[str, Any]]:
        """Return a mean cost of 1; ratios begin in the middle of their range, and so equal.

        A common factor of the ratios changes nothing, so that they are no costs to be raised.
        """
        return [{"C": 1.0, "shrinkage": 0.5}]

    def _distances(self, params: Params) -> tuple[float, FloatArray]:
        """Return what shrinkage leaves, and the logarithms of the ratios minus their mean."""
        ratios = [
            real(name, value_of(setting, name, params), above=0)
            for name, setting in self._ratios().items()
        ]
        shrinkage = value_of(self.shrinkage, "shrinkage", params)
        logarithms = np.log(ratios)
        kept = 1 - real("shrinkage", shrinkage, at_least=0, at_most=1)
        return kept, logarithms - logarithms.mean()

    def _codes(self, data: Dataset) -> IndexArray:
        """Return the position of the group of each row."""
        places = {group: place for place, group in enumerate(self._bound_groups())}
        found, own = data.grouped
        unknown = [group for group in found if group not in places]
        if unknown:
            raise ValueError(
                f"`groups` must be those of the weighting, {list(places)}, got {unknown[0]!r}."
            )
        return np.array([places[group] for group in found])[own]

    def _ratios(self) -> dict[str, Any]:
        names = names_of(_PREFIX, self._bound_groups())
        return dict(zip(names, self.ratio, strict=True))

    def _bound_groups(self) -> tuple[Any, ...]:
        if self.groups is None:
            raise ValueError(
                "`GroupCosts` must know the groups before it has parameters: use the `weighting` "
                "of a SpanObjective, or GroupCosts().bind(data)."
            )
        return self.groups
