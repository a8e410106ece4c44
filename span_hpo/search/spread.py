"""A penalty on hyperparameters that differ although they have one meaning, such as widths.

With one width for each feature, a search could fit the noise of the leave-one-out loss. The penalty

    P = strength / n sum_k log(1 + (z_k - mean z)^2),    z_k = ln gamma_k,    n rows

asks of each feature whose width differs from the others to be worth it. It grows slowly, so that a
few features may differ by orders of magnitude: with strength 1, a width that is ten times as large
as the others costs as much as 1.8 rows that are classified wrongly, and one that is a thousand
times as large as much as 3.9 rows. Up to a constant, P is minus the logarithm of Cauchy densities
of the z_k, divided by the number of rows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from span_hpo.runtime import FloatArray
from span_hpo.search.coordinates import Coordinates


@dataclass(frozen=True, eq=False)
class Spread:
    """The penalty on the spread of some coordinates.

    Attributes
    ----------
    places
        Positions of these coordinates; without any, the penalty is 0.
    factor
        Factor of the sum.

    Examples
    --------
    >>> import numpy as np
    >>> from span_hpo.search import Spread
    >>> value, gradient = Spread([0, 2], 0.5).at(np.array([1.0, 9.0, -1.0]))
    >>> round(value, 3), gradient.tolist()  # 0.5 (log 2 + log 2)
    (0.693, [0.5, 0.0, -0.5])
    """

    places: list[int]
    factor: float

    def at(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the penalty at a point, and its gradient, shape (d,)."""
        gradient = np.zeros_like(point)
        if not self.places or self.factor == 0:
            return 0.0, gradient
        z = point[self.places]
        distance = z - z.mean()
        slopes = 2 * distance / (1 + distance**2)
        gradient[self.places] = self.factor * (slopes - slopes.mean())
        return self.factor * float(np.log1p(distance**2).sum()), gradient


def spread_of(
    objective: Any, coordinates: Coordinates, penalty: float, rows: int | None = None
) -> Spread:
    """Return the penalty on those hyperparameters of an objective that are meant to be alike.

    Parameters
    ----------
    objective
        Objective, with the names of these hyperparameters in `alike`, and what one row may add to
        the loss in `share_of_row`. One without them has no penalty.
    coordinates
        Coordinates of the search.
    penalty
        Strength of the penalty, in rows.
    rows
        Number of rows of an evaluation, by default all.
    """
    logarithmic = {
        n for n, is_log in zip(coordinates.names, coordinates.is_log, strict=True) if is_log
    }
    names = [name for name in getattr(objective, "alike", ()) if name in logarithmic]
    share = objective.share_of_row(rows) if names else 0.0
    return Spread(coordinates.places(names), penalty * share)
