"""Losses of single rows, whose means are the losses of models.

Many losses L are a mean over strata s of the weighted means of row losses r_is over the rows of s:

    L = 1/S sum_s m_s,    m_s = sum_{i in s} w_i r_is / W_s,    W_s = sum_{i in s} w_i

The error of a sample has one stratum with all rows, balanced error has one stratum for each class,
and a loss of several classes that is averaged over the pairs has one for each pair. What can be
said of means, such as standard errors, can therefore be said of all these losses.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.special import expit

from span_hpo.calibration import platt_sigmoid
from span_hpo.runtime import Array, BoolArray, FloatArray, IndexArray, weighted_mean
from span_hpo.solver import is_wrong

_LARGEST_HALF = float(np.finfo(np.float16).max)
_AT_MARGIN = 1e-5  # accuracy of a fit, with features far from the origin, at the margin
SMOOTHNESS = 4.0  # slope of the sigmoid that replaces the step function of the error

Rows: TypeAlias = IndexArray | slice  # of a stratum; a slice stands for all rows


def wrong(y: FloatArray, f: FloatArray, w: FloatArray) -> BoolArray:
    """Return whether each row is an error, ``y f <= 0``."""
    return is_wrong(y, f)


def smoothly_wrong(y: FloatArray, f: FloatArray, w: FloatArray) -> FloatArray:
    """Return ``sigma(-4 y f)``, a smooth form of the errors."""
    values: FloatArray = expit(-SMOOTHNESS * y * f)
    return values


def shortfalls(y: FloatArray, f: FloatArray, w: FloatArray) -> FloatArray:
    """Return by how much each row misses the margin, ``max(0, 1 - y f)``."""
    values: FloatArray = np.maximum(0.0, 1 - y * f)
    return values


def of_support(y: FloatArray, f: FloatArray) -> BoolArray:
    """Return a mask of the support vectors, which are the rows with ``y f^p <= 1``.

    The value of a support vector is ``y f - alpha S^2`` with ``y f <= 1``, and that of any other
    row is ``y f >= 1``. Those that lie exactly on the margin cannot be told from support vectors
    with a span of 0 and count as such, and so do rows of cost 0 whose value is at most 1.
    """
    mask: BoolArray = y * f <= 1 + _AT_MARGIN
    return mask


def span_losses(y: FloatArray, f: FloatArray, w: FloatArray) -> FloatArray:
    """Return ``alpha S^2 - y f`` for support vectors, which is ``-y f^p``, and 0 for other rows."""
    values: FloatArray = np.where(of_support(y, f), -y * f, 0.0)
    return values


def cross_entropies(y: FloatArray, f: FloatArray, w: FloatArray) -> FloatArray:
    """Return the cross-entropies of Platt's sigmoid fitted to the values."""
    values: FloatArray = np.logaddexp(0.0, -y * platt_sigmoid(y, f, w).log_odds(f))
    return values


def squared_errors(y: FloatArray, f: FloatArray, w: FloatArray) -> FloatArray:
    """Return the squared errors of Platt's sigmoid fitted to the values."""
    values: FloatArray = (platt_sigmoid(y, f, w).probability(f) - (y > 0)) ** 2
    return values


RowFunction: TypeAlias = Callable[[FloatArray, FloatArray, FloatArray], Array]

OF_ROWS: dict[str, RowFunction] = {
    "error": wrong,
    "balanced_error": wrong,
    "smooth_error": smoothly_wrong,
    "hinge": shortfalls,
    "span_functional": span_losses,
    "log_loss": cross_entropies,
    "brier": squared_errors,
}


@dataclass(frozen=True, eq=False)
class RowLosses:
    """The losses of single rows, and the strata whose means are averaged.

    Attributes
    ----------
    values
        Losses of the rows of each stratum; booleans if they are errors.
    strata
        Rows of each stratum. A row may be in several of them.
    """

    values: tuple[Array, ...]
    strata: tuple[Rows, ...]

    def mean(self, weight: FloatArray) -> float:
        """Return the mean over the strata of the weighted means of their rows."""
        pairs = zip(self.values, self.strata, strict=True)
        return float(np.mean([weighted_mean(values, weight[rows]) for values, rows in pairs]))

    def influences(self, weight: FloatArray) -> FloatArray:
        """Return what each row adds to the sampling error of the mean, shape (l,).

        They are ``z_i = sum_s 1/S sqrt(n_s / (n_s - 1)) w_i (r_is - m_s) / W_s``. Here n_s is the
        number of rows of a stratum that have a weight, and the root is 1 if there is only one. The
        standard error of the mean is ``sqrt(sum_i z_i^2)``, which for equal weights and one stratum
        is the standard deviation of the row losses over the root of their number.
        """
        influences = np.zeros(len(weight))
        for values, rows in zip(self.values, self.strata, strict=True):
            own = weight[rows]
            count = np.count_nonzero(own)
            correction = np.sqrt(count / (count - 1)) if count > 1 else 1.0
            share = correction / (len(self.strata) * own.sum())
            influences[rows] += share * own * (values - weighted_mean(values, own))
        return influences

    def compact(self) -> tuple[Array, ...]:
        """Return the values of each stratum in little memory; see `unpacked`.

        An error takes one bit, and other losses take a float16, which keeps three digits, or a
        float32 where they exceed its range.
        """
        return tuple(map(_compact, self.values))


def _compact(values: Array) -> Array:
    if values.dtype == bool:
        return np.packbits(values)
    is_small = np.abs(values).max(initial=0.0) <= _LARGEST_HALF
    return values.astype(np.float16 if is_small else np.float32)


def unpacked(compact: Array, count: int) -> Array:
    """Return the first row losses, so many of them, from their compact form."""
    if compact.dtype == np.uint8:
        return np.unpackbits(compact, count=count)
    return compact[:count]
