"""Bounds on the rounding errors of decision values, row by row, and the gaps that they leave.

The decision values ``f = K (y alpha) + b`` of a fit are the result of many updates. The plain
product with K, whose own rounding is bounded, shows how far they are off. Proofs multiply these
errors by costs. Where that matters, the errors of rows close to their margins are measured by a
product with twice the digits.
"""

import math
from typing import NamedTuple

import numpy as np

from span_hpo.kernels import KernelBlocks, KernelMatrix, kernel_times, largest_entry
from span_hpo.runtime import FloatArray, accurate_dots, compiled, rows_of
from span_hpo.solver.gaps import NEGLIGIBLE_GAP, plain_gaps, row_gaps
from span_hpo.solver.rounding import dot_rounding, kernel_rounding, margin_rounding

_NEAR_MARGIN = 1e3  # rows whose margin is closer to 1 than this, in units of its rounding, are near
_ACCURATE_ENTRIES = 100_000  # largest number of kernel values in one accurate product


class FitErrors(NamedTuple):
    """How far a fit may be from what its dual variables say, and from the optimum.

    Attributes
    ----------
    rounding
        Bounds on how far the decision values are from ``f`` of the dual variables and the offset,
        shape (l,). They hold in floating point, and allow for kernel values that are rounded
        themselves.
    imbalance
        The sum ``y'alpha``, as if it were summed exactly.
    gaps, gap
        How far the dual without each row, shape (l,), and with all rows, may be from its maximum,
        by `plain_gaps`.
    """

    rounding: FloatArray
    imbalance: float
    gaps: FloatArray
    gap: float


def fit_errors(
    K: KernelBlocks,
    y: FloatArray,
    costs: FloatArray,
    alpha: FloatArray,
    values: FloatArray,
    b: float,
) -> FitErrors:
    """Return bounds on the errors of a fit.

    Parameters
    ----------
    K
        Kernel matrix of l rows.
    y, costs, alpha
        Labels, costs and dual variables, shape (l,).
    values, b
        Decision values, shape (l,), and the offset.
    """
    if isinstance(K, KernelMatrix):
        return FitErrors(*errors_in_memory(K.values, y, costs, alpha, values, b, K.largest))
    return _errors_by_blocks(K, y, costs, alpha, values, b)


@compiled
def errors_in_memory(
    K: FloatArray,
    y: FloatArray,
    costs: FloatArray,
    alpha: FloatArray,
    values: FloatArray,
    b: float,
    largest: float,
) -> tuple[FloatArray, float, FloatArray, float]:
    """Return the bounds for a matrix in memory, in C order, with its largest ``|K_ii|``."""
    return _errors_by_blocks(KernelMatrix(K), y, costs, alpha, values, b)


def _errors_by_blocks(
    K: KernelBlocks,
    y: FloatArray,
    costs: FloatArray,
    alpha: FloatArray,
    values: FloatArray,
    b: float,
) -> FitErrors:
    """Return the bounds for any kind of matrix."""
    rounding, excess = _margin_errors(K, y, costs, alpha, values, b), y * values - 1
    gaps, gap = plain_gaps(excess, rounding, alpha, costs)
    return FitErrors(rounding, math.fsum((y * alpha).tolist()), gaps, gap)


def _margin_errors(
    K: KernelBlocks,
    y: FloatArray,
    costs: FloatArray,
    alpha: FloatArray,
    values: FloatArray,
    b: float,
) -> FloatArray:
    """Return bounds on the rounding errors of the decision values."""
    support, excess = rows_of(alpha), y * values - 1
    beta = (y * alpha)[support]
    roots = np.sqrt(np.abs(K.diagonal()))
    sizes = roots * (alpha @ roots)  # no smaller than sum_i alpha_i |K_ij|
    plain = dot_rounding(len(support), sizes)
    errors = np.abs(values - b - kernel_times(K, support, beta)) + plain
    errors += margin_rounding(values, b)
    gap = float(row_gaps(excess, errors, alpha, costs - alpha).sum())
    if gap * largest_entry(K) <= NEGLIGIBLE_GAP:
        return errors
    in_bound = (alpha > 0) & (alpha < costs)
    near = rows_of(in_bound | (np.abs(excess) <= _NEAR_MARGIN * plain))
    at_once = max(1, _ACCURATE_ENTRIES // max(1, len(support)))
    for start in range(0, len(near), at_once):
        rows = near[start : start + at_once]
        measured = np.abs(values[rows] - b - accurate_dots(K.block(rows, support), beta))
        measured += dot_rounding(4 * len(support), plain[rows]) + kernel_rounding(sizes[rows])
        errors[rows] = measured + margin_rounding(values[rows], b)
    return errors
