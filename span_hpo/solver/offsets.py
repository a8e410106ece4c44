"""The limits that the rows of a fit put on its offset."""

from dataclasses import dataclass

import numpy as np

from span_hpo.runtime import FloatArray


@dataclass(frozen=True, eq=False)
class OffsetLimits:
    """The limits that each row puts on the offset ``b``.

    The KKT conditions are ``max(lower) <= b <= min(upper)``.

    Attributes
    ----------
    lower
        ``y_i - F_i`` for rows whose ``beta_i`` may grow, and minus infinity for others, shape (l,).
    upper
        ``y_i - F_i`` for rows whose ``beta_i`` may fall, and infinity for others, shape (l,).
    """

    lower: FloatArray
    upper: FloatArray

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the interval of offsets that all rows allow."""
        return float(self.lower.max()), float(self.upper.min())


def offset_limits(
    y: FloatArray, costs: FloatArray, alpha: FloatArray, F: FloatArray
) -> OffsetLimits:
    """Return the limits that the rows put on the offset, with ``F = K (y alpha)``."""
    return OffsetLimits(*offset_ends(y, costs, alpha, F))


def offset_ends(
    y: FloatArray, costs: FloatArray, alpha: FloatArray, F: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return `lower` and `upper` of the `OffsetLimits` as plain arrays, for compiled functions."""
    positive = y > 0
    can_grow, can_fall = alpha < costs, alpha > 0
    offset = y - F
    return (
        np.where(np.where(positive, can_grow, can_fall), offset, -np.inf),
        np.where(np.where(positive, can_fall, can_grow), offset, np.inf),
    )
