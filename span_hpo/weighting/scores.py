"""Weightings that compute the cost of a row from its score."""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from span_hpo.data import Dataset
from span_hpo.runtime import FloatArray, real
from span_hpo.space import Float, Hyperparameter, Params, Space, searched, value_of
from span_hpo.weighting.class_costs import COST_RANGE
from span_hpo.weighting.products import ComposableWeighting

STEEPNESS_RANGE = Float(1, 10)
MIDPOINT_RANGE = Float(0, 0.9)
EXPONENT_RANGE = Float(0, 4)


@dataclass(frozen=True)
class SigmoidScore(ComposableWeighting):
    """A sigmoid of a score q in [0, 1], ``C_i = max(C / (1 + exp(-A (q_i - B))), floor)``.

    Parameters
    ----------
    score
        Name of the score; it may be None if there is only one score.
    A, B, C
        Steepness, midpoint and largest cost of the sigmoid.
    floor
        Least cost of a row.

    References
    ----------
    Sarafis, Diou and Delopoulos, "Span error bound for weighted SVM with applications in
    hyperparameter selection", eq. 39.

    Examples
    --------
    >>> from span_hpo import SigmoidScore, SpanObjective
    >>> data = SpanObjective([[0.0], [1.0], [2.0]], [-1, 1, 1], scores=[0.0, 0.5, 1.0]).data
    >>> SigmoidScore(A=4.0, B=0.5, C=2.0).costs(data, {}).round(3).tolist()
    [0.238, 1.0, 1.762]
    """

    score: str | None = None
    A: Hyperparameter = STEEPNESS_RANGE
    B: Hyperparameter = MIDPOINT_RANGE
    C: Hyperparameter = COST_RANGE
    floor: float = 0.01

    @property
    def space(self) -> Space:
        """The parameters that are searched."""
        return searched({"A": self.A, "B": self.B, "C": self.C})

    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return for each row the sigmoid of its score."""
        q = unit_score(data, self.score)
        A = real("A", value_of(self.A, "A", params))
        B = real("B", value_of(self.B, "B", params))
        C = real("C", value_of(self.C, "C", params), at_least=0)
        costs: FloatArray = C * expit(A * (q - B))
        return np.maximum(costs, real("floor", self.floor, at_least=0))

    def gradient(self, data: Dataset, params: Params, weights: FloatArray) -> dict[str, float]:
        """Return the derivatives by A, B and C, as far as they are searched; none at the floor."""
        q = unit_score(data, self.score)
        A, B, C = (value_of(getattr(self, name), name, params) for name in ("A", "B", "C"))
        sigmoid = expit(A * (q - B))
        weights = np.where(C * sigmoid > self.floor, weights, 0.0)
        slopes = C * sigmoid * (1 - sigmoid) * weights
        found = {"A": slopes @ (q - B), "B": -A * slopes.sum(), "C": weights @ sigmoid}
        return {name: float(found[name]) for name in self.space}


@dataclass(frozen=True)
class PowerScore(ComposableWeighting):
    """A power of a score q in [0, 1], ``C_i = C q_i^tau``.

    All rows have the same cost if the exponent is 0.

    Parameters
    ----------
    score
        Name of the score; it may be None if there is only one score.
    C
        Cost of a row with score 1.
    tau
        Exponent, at least 0.

    References
    ----------
    Lapin, Hein and Schiele, "Learning using privileged information: SVM+ and weighted SVM",
    eqs. 13, 14 and 22.

    Examples
    --------
    >>> from span_hpo import PowerScore, SpanObjective
    >>> data = SpanObjective([[0.0], [1.0], [2.0]], [-1, 1, 1], scores=[0.25, 0.5, 1.0]).data
    >>> PowerScore(C=4.0, tau=2.0).costs(data, {}).tolist()
    [0.25, 1.0, 4.0]
    """

    score: str | None = None
    C: Hyperparameter = COST_RANGE
    tau: Hyperparameter = EXPONENT_RANGE

    @property
    def space(self) -> Space:
        """The parameters that are searched."""
        return searched({"C": self.C, "tau": self.tau})

    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return for each row the power of its score."""
        q = unit_score(data, self.score)
        C = real("C", value_of(self.C, "C", params), at_least=0)
        tau = real("tau", value_of(self.tau, "tau", params), at_least=0)
        costs: FloatArray = C * q**tau
        return costs

    def gradient(self, data: Dataset, params: Params, weights: FloatArray) -> dict[str, float]:
        """Return the derivatives by C and tau, as far as they are searched."""
        q = unit_score(data, self.score)
        C, tau = value_of(self.C, "C", params), value_of(self.tau, "tau", params)
        powers = q**tau * weights
        # The cost of a row with score 0 is 0 for every positive exponent.
        logarithms = np.log(np.where(q > 0, q, 1.0))
        found = {"C": powers.sum(), "tau": C * powers @ logarithms}
        return {name: float(found[name]) for name in self.space}


def unit_score(data: Dataset, name: str | None) -> FloatArray:
    """Return the scores of a name after checking that they lie in [0, 1]."""
    q = data.score(name)
    outside = (q < 0) | (q > 1)
    if outside.any():
        row = int(outside.argmax())
        raise ValueError(
            f"`scores` must lie in [0, 1] for this weighting, got {q[row]} in row {row}."
        )
    return q
