"""A problem of the sweep: doubles for the package, and exact numbers for the referee."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt

from benchmarks.robustness.referee import DIGITS

FloatArray = npt.NDArray[np.float64]
ExactMatrix = list[list[Any]]


@dataclass(frozen=True, eq=False)
class Instance:
    """A two-class problem, or one of several classes.

    Attributes
    ----------
    K
        Kernel matrix in doubles, shape (l, l), symmetric.
    y
        Labels, shape (l,): -1 and +1, or numbers of classes from 0 if there are more than two.
    costs
        Upper bounds of the dual variables, shape (l,).
    exact_kernel
        Function that returns the kernel matrix of the features without rounding (fractions) or
        with `DIGITS` digits; None where the matrix of doubles is all there is.
    """

    K: FloatArray
    y: FloatArray
    costs: FloatArray
    exact_kernel: Callable[[], ExactMatrix] | None = None

    @property
    def has_two_classes(self) -> bool:
        """Whether the labels are -1 and +1."""
        return bool((self.y < 0).any())


def linear(X: FloatArray, y: FloatArray, costs: FloatArray) -> Instance:
    """Return the problem with the kernel ``x'z``."""
    return Instance(_symmetric(X @ X.T), y, costs, lambda: _exact_products(X, 0.0, 1))


def polynomial(
    X: FloatArray, y: FloatArray, costs: FloatArray, *, degree: int, coef0: float = 1.0
) -> Instance:
    """Return the problem with the kernel ``(x'z + coef0)^degree``."""
    K = _symmetric((X @ X.T + coef0) ** degree)
    return Instance(K, y, costs, lambda: _exact_products(X, coef0, degree))


def rbf(X: FloatArray, y: FloatArray, costs: FloatArray, *, gamma: float) -> Instance:
    """Return the problem with the kernel ``exp(-gamma |x - z|^2)``."""
    squares = ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)
    K = np.exp(-gamma * squares)
    return Instance(K, y, costs, lambda: _exact_exponentials(X, gamma, lambda part: part * part))


def laplacian(X: FloatArray, y: FloatArray, costs: FloatArray, *, gamma: float) -> Instance:
    """Return the problem with the kernel ``exp(-gamma |x - z|_1)``."""
    K = np.exp(-gamma * np.abs(X[:, None, :] - X[None, :, :]).sum(axis=2))
    return Instance(K, y, costs, lambda: _exact_exponentials(X, gamma, abs))


def given(K: FloatArray, y: FloatArray, costs: FloatArray) -> Instance:
    """Return the problem of a kernel matrix that has no features."""
    return Instance(_symmetric(K), y, costs)


def _symmetric(K: FloatArray) -> FloatArray:
    return np.ascontiguousarray(np.tril(K) + np.tril(K, -1).T)


def _fractions(X: FloatArray) -> list[list[Fraction]]:
    return [[Fraction(value) for value in row] for row in X.tolist()]


def _mirrored(count: int, entry: Callable[[int, int], Any]) -> ExactMatrix:
    lower = [[entry(i, j) for j in range(i + 1)] for i in range(count)]
    return [[lower[max(i, j)][min(i, j)] for j in range(count)] for i in range(count)]


def _exact_products(X: FloatArray, coef0: float, degree: int) -> ExactMatrix:
    rows = _fractions(X)

    def entry(i: int, j: int) -> Fraction:
        products = (a * b for a, b in zip(rows[i], rows[j], strict=True))
        return (sum(products, Fraction(0)) + Fraction(coef0)) ** degree

    return _mirrored(len(rows), entry)


def _exact_exponentials(
    X: FloatArray, gamma: float, of_part: Callable[[Fraction], Fraction]
) -> ExactMatrix:
    rows = _fractions(X)

    def entry(i: int, j: int) -> Any:
        parts = (of_part(a - b) for a, b in zip(rows[i], rows[j], strict=True))
        power = -Fraction(gamma) * sum(parts, Fraction(0))
        return mpmath.exp(mpmath.mpf(power.numerator) / power.denominator)

    with mpmath.workdps(DIGITS):
        return _mirrored(len(rows), entry)
