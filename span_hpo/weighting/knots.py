"""A weighting whose cost grows with a score along straight lines between knots."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from span_hpo.data import Dataset
from span_hpo.runtime import FloatArray, real, whole
from span_hpo.space import Float, Hyperparameter, Params, Space, searched, value_of
from span_hpo.weighting.class_costs import COST_RANGE
from span_hpo.weighting.products import ComposableWeighting
from span_hpo.weighting.scores import unit_score

SHARE_RANGE = Float(0.01, 1.0)


@dataclass(frozen=True)
class KnotScore(ComposableWeighting):
    """A monotone, piecewise linear function of a score q in [0, 1].

    The knots lie at ``q_j = j / (k - 1)`` for j from 0 to k - 1. A row with score 1 costs C, the
    cost at each other knot is a share of that at the next one,

        ``c_(k-1) = C,    c_j = share_j c_(j+1)``

    and costs of scores between two knots lie on the straight line between them. So a higher score
    never costs less. With all shares equal to 1, every row has the same cost.

    Parameters
    ----------
    score
        Name of the score; it may be None if there is only one score.
    knots
        Number of knots k, at least 2.
    C
        Cost of a row with score 1.
    share
        One number or dimension for all shares, each between 0 and 1. Their names are ``share_0`` to
        ``share_(k-2)``.

    Examples
    --------
    >>> from span_hpo import KnotScore, SpanObjective
    >>> data = SpanObjective([[0.0], [1.0], [2.0]], [-1, 1, 1], scores=[0.0, 0.25, 1.0]).data
    >>> weighting = KnotScore(knots=3, C=4.0)
    >>> list(weighting.space)
    ['share_0', 'share_1']
    >>> weighting.costs(data, {"share_0": 0.5, "share_1": 0.5}).tolist()
    [1.0, 1.5, 4.0]
    """

    score: str | None = None
    knots: int = 4
    C: Hyperparameter = COST_RANGE
    share: Hyperparameter = SHARE_RANGE

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("knots", self.knots, at_least=2)

    @property
    def space(self) -> Space:
        """The parameters that are searched."""
        return searched({"C": self.C, **dict.fromkeys(self._names(), self.share)})

    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return for each row the cost on the lines between the knots."""
        C = real("C", value_of(self.C, "C", params), at_least=0)
        costs: FloatArray = C * (self._positions(data) @ _heights(self._shares(params)))
        return costs

    def gradient(self, data: Dataset, params: Params, weights: FloatArray) -> dict[str, float]:
        """Return the derivatives by C and by the shares, as far as they are searched."""
        C, shares = value_of(self.C, "C", params), self._shares(params)
        of_knots = self._positions(data).T @ weights
        found = {"C": float(of_knots @ _heights(shares))}
        for place, name in enumerate(self._names()):
            # The heights of all knots up to this one are multiples of the share.
            others = shares.copy()
            others[place] = 1.0
            slopes = _heights(others)[: place + 1]
            found[name] = float(C * (of_knots[: place + 1] @ slopes))
        return {name: found[name] for name in self.space}

    def starts(self, data: Dataset) -> list[dict[str, Any]]:
        """Return equal costs, and costs that grow with the score in equal steps."""
        equal = {"C": 1.0, **dict.fromkeys(self._names(), 1.0)}
        steps = {name: (j + 1) / (j + 2) for j, name in enumerate(self._names())}
        return [equal, {"C": 1.0, **steps}]

    def _names(self) -> list[str]:
        return [f"share_{place}" for place in range(self.knots - 1)]

    def _shares(self, params: Params) -> FloatArray:
        return np.array(
            [
                real(name, value_of(self.share, name, params), at_least=0, at_most=1)
                for name in self._names()
            ]
        )

    def _positions(self, data: Dataset) -> FloatArray:
        """Return the weights of the knots at the score of each row, shape (l, k)."""
        place = unit_score(data, self.score)[:, None] * (self.knots - 1)
        positions: FloatArray = np.maximum(0.0, 1 - np.abs(place - np.arange(self.knots)))
        return positions


def _heights(shares: FloatArray) -> FloatArray:
    """Return the cost at each knot as a share of that at the last one, shape (k,)."""
    return np.append(np.cumprod(shares[::-1])[::-1], 1.0)
