"""Distances and inner products of rows, from which kernels are computed."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from span_hpo.errors import SolverError
from span_hpo.runtime import BoolArray, FloatArray, IndexArray, rows_of

_CANCELLED = 1e-6  # squared distances below this share of the norms are formed from differences
_PAIRS_AT_ONCE = 100_000  # pairs of rows whose differences are held in memory together
_ROWS_AT_ONCE = 1000  # rows whose products with all rows are formed together
_CACHED_ENTRIES = 50_000  # distances that stay in the processor's cache while they are computed
_PRODUCT_ENTRIES = 8_000_000  # entries of a product with features that are formed at once
_MEDIAN_ROWS = 2000  # largest number of rows from which a median distance is computed


class WeightedPairs(NamedTuple):
    """Pairs of rows with a weight each.

    Attributes
    ----------
    rows, columns
        Indices of l rows and of m others.
    weights
        Weights of all pairs, shape (l, m).
    close
        Positions in `weights` of the pairs of close rows; see `close_pairs`.
    """

    rows: IndexArray
    columns: IndexArray
    weights: FloatArray
    close: tuple[IndexArray, IndexArray]


def check_overflow(matrix: FloatArray, what: str, remedy: str) -> None:
    """Raise a `SolverError` that states the remedy if a number is not finite."""
    if not np.isfinite(matrix).all():
        raise SolverError(f"The {what} overflow: {remedy}.")


def products(X: Any, Z: Any) -> FloatArray:
    """Return ``X Z'`` after checking that it is finite."""
    with np.errstate(over="ignore", invalid="ignore"):
        products = _gram(X, Z)
    check_overflow(products, "inner products of the rows", "scale the features")
    return products


def _gram(X: Any, Z: Any) -> FloatArray:
    """Return ``X Z'`` as an array, which is formed block by block from sparse rows."""
    if not issparse(X):
        gram: FloatArray = X @ Z.T
        return gram
    gram = np.empty((X.shape[0], Z.shape[0]))
    for start in range(0, len(gram), _ROWS_AT_ONCE):
        block = slice(start, start + _ROWS_AT_ONCE)
        part = X[block] @ Z.T
        gram[block] = part.toarray() if issparse(part) else part
    return gram


def about_mean(X: Any) -> Any:
    """Return the features minus their mean, or sparse features unchanged."""
    return X if issparse(X) else X - X.mean(axis=0)


def cross_squared_distances(X: Any, Z: Any) -> FloatArray:
    """Return ``|x_i - z_j|^2``, which is accurate for close rows, as in `squared_distances`."""
    squared: FloatArray = np.add.outer(squared_norms(X), squared_norms(Z))
    cancelled = _CANCELLED * squared
    squared -= 2 * products(X, Z)
    for i, j, exact in _from_differences(X, Z, squared <= cancelled):
        squared[i, j] = exact
    return squared


def _from_differences(
    X: Any, Z: Any, close: BoolArray
) -> Iterator[tuple[IndexArray, IndexArray, FloatArray]]:
    """Yield pairs of close rows with their squared distances, many pairs at a time."""
    first, second = _positions(close)
    for start in range(0, len(first), _PAIRS_AT_ONCE):
        i, j = first[start : start + _PAIRS_AT_ONCE], second[start : start + _PAIRS_AT_ONCE]
        yield i, j, squared_norms(X[i] - Z[j])


def squared_norms(X: Any) -> FloatArray:
    """Return ``|x|^2`` of every row."""
    with np.errstate(over="ignore"):
        if issparse(X):
            norms: FloatArray = np.asarray(X.multiply(X).sum(axis=1)).ravel()
        else:
            norms = np.einsum("ij,ij->i", X, X)
    return norms


def some_rows(X: Any) -> Any:
    """Return rows that are spread evenly over the data, enough to estimate a median."""
    return X[:: -(-X.shape[0] // _MEDIAN_ROWS)]


def median_squared_distance(X: Any) -> float:
    """Return the median nonzero squared distance of the rows, estimated if there are many."""
    return typical_distance(squared_distances(some_rows(X)))


def typical_distance(distances: FloatArray) -> float:
    """Return the median nonzero distance, or 1 if all distances are zero."""
    nonzero = distances[distances > 0]
    # If all rows coincide, the kernel matrix does not depend on the width.
    return float(np.median(nonzero)) if len(nonzero) else 1.0


def squared_distances(X: Any) -> FloatArray:
    """Return ``|x_i - x_j|^2`` with a relative error of about 1e-10, even for close rows.

    The formula ``|x|^2 + |z|^2 - 2 x'z`` is fast, but digits cancel if the rows are close. The few
    pairs for which this matters, above all equal rows, are computed from their differences.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        X = about_mean(X)
        norms = squared_norms(X)
        squared = _gram(X, X)
        # Working in place on blocks of rows avoids a second matrix of this size.
        at_once = max(1, _CACHED_ENTRIES // len(squared))
        for start in range(0, len(squared), at_once):
            block = slice(start, start + at_once)
            part, sums = squared[block], norms[block, None] + norms
            part *= -2
            part += sums
            check_overflow(part, "squared distances", "scale the features")
            for i, j, exact in _from_differences(X[block], X, part <= _CANCELLED * sums):
                part[i, j] = exact
    np.fill_diagonal(squared, 0.0)
    return squared


def close_pairs(
    K: FloatArray, norms: FloatArray, other_norms: FloatArray
) -> tuple[IndexArray, IndexArray]:
    """Return which pairs of rows with Gaussian kernel values K are close relative to their norms.

    Parameters
    ----------
    K
        Kernel values ``exp(-|x_i - z_j|^2)``, shape (l, m).
    norms, other_norms
        ``|x_i|^2`` and ``|z_j|^2``, shapes (l,) and (m,).
    """
    farthest = _CANCELLED * (norms.max(initial=0.0) + other_norms.max(initial=0.0))
    first, second = _positions(np.exp(-farthest) <= K)
    limits = np.exp(-_CANCELLED * (norms[first] + other_norms[second]))
    # Rows whose kernel value is 0 are far apart, and their weight is 0 as well.
    close = (K[first, second] >= limits) & (K[first, second] > 0)
    return first[close], second[close]


def _positions(mask: BoolArray) -> tuple[IndexArray, IndexArray]:
    """Return rows and columns of the marked entries, which is fast if there are few."""
    rows, columns = np.divmod(np.flatnonzero(mask), mask.shape[1])
    return rows, columns


def weighted_squared_differences(X: Any, blocks: Iterable[WeightedPairs]) -> FloatArray:
    """Return ``sum_ij w_ij (x_ik - x_jk)^2`` for each column k, shape (d,).

    Squares are expanded, ``x^2 + z^2 - 2 x z``, except for close rows, whose digits would cancel.
    All squares of one row are counted at the end.

    Parameters
    ----------
    X
        Features, shape (l, d), dense with a mean of about 0, or sparse.
    blocks
        Pairs of rows with their weights, which are overwritten.
    """
    squares, total = np.zeros(X.shape[0]), np.zeros(X.shape[1])
    known, Z = np.empty(0, dtype=np.intp), X[:0]
    at_once = max(1, _PRODUCT_ENTRIES // X.shape[1])
    for rows, columns, weights, (first, second) in blocks:
        if not np.array_equal(columns, known[: len(columns)]):
            known, Z = columns, X[columns]
        of_close = weights[first, second]
        counting = rows_of(of_close)
        for start in range(0, len(counting), _PAIRS_AT_ONCE):
            some = counting[start : start + _PAIRS_AT_ONCE]
            differences = X[rows[first[some]]] - X[columns[second[some]]]
            total += _of_squares(differences, of_close[some])
        weights[first, second] = 0.0
        squares += np.bincount(rows, weights.sum(axis=1), len(squares))
        squares += np.bincount(columns, weights.sum(axis=0), len(squares))
        for start in range(0, len(rows), at_once):
            part = slice(start, start + at_once)
            total -= 2 * _of_products(X[rows[part]], weights[part] @ Z[: len(columns)])
    return total + _of_squares(X, squares)


def _of_products(X: Any, products: FloatArray) -> FloatArray:
    """Return ``sum_i x_ik p_ik`` for each column k."""
    if issparse(X):
        return np.asarray(X.multiply(products).sum(axis=0)).ravel()
    found: FloatArray = np.einsum("ij,ij->j", X, products)
    return found


def _of_squares(X: Any, weights: FloatArray) -> FloatArray:
    """Return ``sum_i w_i x_ik^2`` for each column k."""
    squares = X.multiply(X) if issparse(X) else X * X
    found: FloatArray = np.asarray(squares.T @ weights).ravel()
    return found
