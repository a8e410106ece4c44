"""What the other rows say about the class of a row: ratios of densities of several widths.

The decision values of an SVM are no substitute. They come to lie near -1 and +1 if the kernel is
local, so that they do not tell how far inside a class a row is, and they were selected.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from span_hpo.kernels import cross_squared_distances, median_squared_distance
from span_hpo.runtime import FloatArray, IndexArray

# Exponents at the median squared distance. `_neighbours` expects each to be 4 times the one before.
_WIDTHS = (0.5, 2.0, 8.0, 32.0, 128.0)
_ANYWHERE = 0.5  # rows that are added to every class everywhere, so that isolated rows have none
_MEDIAN_ROWS = 1000  # largest number of rows from which a median distance is computed
_ENTRIES_AT_ONCE = 4_000_000  # distances that are held in memory together


def density_scores(
    X: Any, codes: IndexArray, weight: FloatArray, *, is_kernel: bool = False
) -> FloatArray:
    """Return the log-ratio of the density of each class to that of all others at each row.

    The density of class c at row i is ``s + sum_j w_j exp(-t |x_i - x_j|^2 / m)`` over the other
    rows j of the class, with the median squared distance m, the width t and s of half a row.

    Parameters
    ----------
    X
        Features, shape (l, d), dense or sparse; or a kernel matrix, shape (l, l), whose distances
        are those in its feature space.
    codes
        Number of the class of each row, shape (l,).
    weight
        Weight of each row, shape (l,), with a mean of 1.
    is_kernel
        Whether `X` is a kernel matrix.

    Returns
    -------
    Scores, shape (widths, l, classes).
    """
    n_classes, rows = int(codes.max()) + 1, np.arange(len(codes))
    of_class = np.zeros((len(codes), n_classes))
    of_class[rows, codes] = weight
    median = _kernel_median(X) if is_kernel else median_squared_distance(X)
    scores = np.empty((len(_WIDTHS), len(codes), n_classes))
    at_once = max(1, _ENTRIES_AT_ONCE // len(codes))
    for first in range(0, len(codes), at_once):
        some = rows[first : first + at_once]
        distances = _kernel_distances(X, some) if is_kernel else cross_squared_distances(X[some], X)
        distances[np.arange(len(some)), some] = np.inf  # a row says nothing about itself
        for width, near in enumerate(_neighbours(distances / median)):
            rows_near = near @ of_class
            others = np.maximum(rows_near.sum(axis=1, keepdims=True) - rows_near, 0.0)
            scores[width, some] = np.log(_ANYWHERE + rows_near) - np.log(_ANYWHERE + others)
    return scores


def _neighbours(distances: FloatArray) -> Iterator[FloatArray]:
    """Yield how near all rows are to some rows, between 0 and 1, for each width."""
    near = np.exp(-_WIDTHS[0] * distances)
    yield near
    for _ in _WIDTHS[1:]:
        near *= near
        near *= near
        yield near


def _kernel_distances(K: FloatArray, rows: IndexArray) -> FloatArray:
    """Return squared distances of some rows from all rows in the feature space of a kernel."""
    diagonal = np.diagonal(K)
    distances: FloatArray = diagonal[rows, None] + diagonal - 2 * K[rows]
    return np.maximum(distances, 0.0)


def _kernel_median(K: FloatArray) -> float:
    """Return the median nonzero squared distance in the feature space of a kernel, or 1."""
    step = -(-len(K) // _MEDIAN_ROWS)
    distances = _kernel_distances(K, np.arange(0, len(K), step))
    nonzero = distances[distances > 0]
    return float(np.median(nonzero)) if len(nonzero) else 1.0
