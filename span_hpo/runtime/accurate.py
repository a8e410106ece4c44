"""Sums of products beyond double precision, for residuals that a proof depends on."""

import math
from collections.abc import Sequence

import numpy as np

from span_hpo.runtime.arrays import FloatArray
from span_hpo.runtime.compilation import compiled

ROUNDING_UNIT = 2.0**-53  # largest relative error of one operation in double precision
_TINY = 2.0**-400  # numbers below this may have products whose errors underflow
_SPLITTER = 2.0**27 + 1  # splits a double into two halves whose products are exact


def exact_products(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rounded products of two arrays and their rounding errors.

    The sum of both is the exact product, unless it overflows or its error underflows (T. J. Dekker,
    "A floating-point technique for extending the available precision", 1971).
    """
    product = a * b
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    error: FloatArray = a_high * b_high - product + a_high * b_low + a_low * b_high + a_low * b_low
    return product, error


def _halves(a: FloatArray) -> tuple[FloatArray, FloatArray]:
    spread = _SPLITTER * a
    high: FloatArray = spread - (spread - a)
    return high, a - high


def are_short(numbers: FloatArray) -> bool:
    """Return whether the last eight bits of all numbers are 0.

    Numbers that were rounded have arbitrary last bits, so that short numbers are most likely exact.
    Numbers so small that errors of their products may underflow do not count as short.
    """
    bits = np.ascontiguousarray(numbers).view(np.int64)
    sizes = np.abs(numbers)
    return not ((bits & 0xFF) != 0).any() and not ((sizes > 0) & (sizes < _TINY)).any()


@compiled
def accurate_dots(A: FloatArray, x: FloatArray) -> FloatArray:
    """Return ``A @ x`` as if it were computed with twice the digits and rounded once.

    With ``u = ROUNDING_UNIT``, the error of a sum of n products is at most ``u`` times its value,
    plus ``4 n^2 u^2`` times the sum of the absolute products (T. Ogita, S. M. Rump and S. Oishi,
    "Accurate sum and dot product", 2005).

    Parameters
    ----------
    A, x
        Matrix of shape (m, n) and vector of shape (n,).
    """
    terms, errors = exact_products(A, x)
    total_error = errors.sum(axis=1)
    while terms.shape[1] > 1:
        half = terms.shape[1] // 2
        first, second, odd = terms[:, :half], terms[:, half : 2 * half], terms[:, 2 * half :]
        sums = first + second
        virtual = sums - first
        total_error += ((first - (sums - virtual)) + (second - virtual)).sum(axis=1)
        terms = np.concatenate([sums, odd], axis=1)
    result: FloatArray = terms[:, 0] + total_error if terms.shape[1] else total_error
    return result


def exact_dots(A: FloatArray, parts: Sequence[FloatArray], plus: FloatArray) -> FloatArray:
    """Return ``plus + A @ sum(parts)``, exact but for one rounding of each result.

    Parameters
    ----------
    A
        Matrix of shape (m, n).
    parts
        Vectors of shape (n,), whose exact sum is the vector of the product.
    plus
        Numbers to add, shape (m,).
    """
    terms = [plus[:, None]]
    for part in parts:
        terms.extend(exact_products(A, part))
    table = np.concatenate(terms, axis=1)
    return np.array([math.fsum(row) for row in table.tolist()])
