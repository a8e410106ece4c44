"""Arguments of an objective, checked at the border."""

from typing import Any

import numpy as np

from span_hpo.data import Dataset, not_negative
from span_hpo.kernels import Kernel, Precomputed
from span_hpo.loo import METHODS
from span_hpo.runtime import FloatArray, IndexArray, read_only, whole
from span_hpo.space import Space
from span_hpo.weighting import Weighting, sample_costs, uses_features


def as_loo_method(loo_method: Any) -> str:
    """Return the name of a leave-one-out method, or raise if there is no such method."""
    if not isinstance(loo_method, str) or loo_method not in METHODS:
        raise ValueError(f"`loo_method` must be one of {list(METHODS)}, got {loo_method!r}.")
    return loo_method


def as_weight(metric_weight: Any, count: int) -> FloatArray:
    """Return the weight of each row in a metric, by default 1, after checking it."""
    if metric_weight is None:
        return read_only(np.ones(count))
    return read_only(not_negative(metric_weight, "metric_weight", count))


def chosen_rows(data: Dataset, rows: int | None) -> IndexArray | None:
    """Return the indices of a number of rows, or None for all of them, after checking it."""
    if rows is None:
        return None
    total = len(data)
    rows = whole("rows", rows, at_least=2, at_most=total)
    if rows == total:
        return None
    least = data.least_rows
    if rows < least:
        raise ValueError(f"`rows` must be at least {least} to hold all classes, got {rows}.")
    return np.sort(data.nested_order[:rows])


def check_middle(data: Dataset, space: Space, kernel: Kernel, weighting: Weighting) -> None:
    """Raise what every evaluation would raise, such as errors of fixed values or scores."""
    if isinstance(kernel, Precomputed) and uses_features(weighting):
        raise ValueError(
            "`weighting` must not ask for distances of features with a precomputed kernel, which "
            "has none: LabelConfidence needs source='probability' there."
        )
    middle = {name: part.grid(1)[0] for name, part in space.items()}
    kernel.values(middle)
    sample_costs(weighting, data, middle)
