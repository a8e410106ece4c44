"""Multiply the costs of a weighting by the weights that rows have in `SpanSVC.fit`."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from span_hpo.data import Dataset
from span_hpo.runtime import FloatArray, IndexArray, rows_of
from span_hpo.space import Params, Space
from span_hpo.weighting import (
    ComposableWeighting,
    Weighting,
    bind_to,
    cost_gradient,
    legend_of,
    sample_costs,
    starts_of,
)

_LEAST_CLASSES = 2  # number of classes that a fit needs
WEIGHT = "weight of the row"  # name of an internal score, which no user is likely to choose


def checked_weights(sample_weight: Any, y: Any, *, in_each_class: bool = False) -> FloatArray:
    """Return the weights that a user gave, one for each label and at least 0.

    Raises
    ------
    ValueError
        If the weights are not as described, or leave fewer than two classes with a positive weight;
        with `in_each_class`, if they leave any class without.
    """
    weights: FloatArray = _check_sample_weight(
        sample_weight, y, dtype=np.float64, ensure_non_negative=True
    )
    labels = np.unique(y).tolist()
    empty = [label for label in labels if not weights[y == label].any()]
    if empty and (in_each_class or len(labels) - len(empty) < _LEAST_CLASSES):
        raise ValueError(
            "`sample_weight` must be positive in some row of each class, got only zeros for class "
            f"{empty[0]!r}."
        )
    return weights


def kept_rows(weight: FloatArray | None, count: int, *, is_kernel: bool) -> IndexArray:
    """Return the rows of the fit; a kernel matrix keeps all rows, some of them with cost 0."""
    return np.arange(count) if weight is None or is_kernel else rows_of(weight)


def row_weighted(weighting: Weighting) -> Weighting:
    """Return a weighting whose costs are multiplied by the score with the name `WEIGHT`."""
    return _RowWeighted(weighting)


@dataclass(frozen=True)
class _RowWeighted(ComposableWeighting):
    """A weighting whose costs are multiplied by the weights of the rows."""

    weighting: Weighting

    def bind(self, data: Dataset) -> "_RowWeighted":
        """Return this rule with its weighting bound to the data."""
        return _RowWeighted(bind_to(self.weighting, _without_weight(data)))

    @property
    def space(self) -> Space:
        """Hyperparameters that are searched."""
        return self.weighting.space

    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return the weighted cost of every row."""
        costs = sample_costs(self.weighting, _without_weight(data), params)
        return costs * data.score(WEIGHT)

    def gradient(self, data: Dataset, params: Params, weights: FloatArray) -> dict[str, float]:
        """Return the derivatives of the weighting, for weights that are multiplied as the costs."""
        weights = weights * data.score(WEIGHT)
        return cost_gradient(self.weighting, _without_weight(data), params, weights)

    def legend(self, data: Dataset) -> dict[str, str]:
        """Return what names of the weighting stand for."""
        return legend_of(self.weighting, _without_weight(data))

    def starts(self, data: Dataset) -> list[dict[str, Any]]:
        """Return the starting points of the weighting."""
        return starts_of(self.weighting, _without_weight(data))


def _without_weight(data: Dataset) -> Dataset:
    """Return the data without the internal score that holds the weights of the rows."""
    scores = {name: values for name, values in data.scores.items() if name != WEIGHT}
    return replace(data, scores=scores)
