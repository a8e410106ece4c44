"""A weighting by how far the label of a row agrees with those of its neighbours."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from span_hpo.data import Dataset
from span_hpo.kernels import cross_squared_distances, median_squared_distance
from span_hpo.runtime import FloatArray, real, whole
from span_hpo.space import Float, Hyperparameter, Int, Params, Space, searched, value_of
from span_hpo.weighting.class_costs import COST_RANGE
from span_hpo.weighting.products import ComposableWeighting
from span_hpo.weighting.scores import EXPONENT_RANGE, unit_score

BANDWIDTH_RANGE = Float(0.05, 1.0, log=True)
NEIGHBOURS_RANGE = Int(3, 50, log=True)
SOURCES = ("kernel", "neighbours", "probability")
_DISTANCES_AT_ONCE = 1_000_000  # distances that are in memory together


@dataclass(frozen=True)
class LabelConfidence(ComposableWeighting):
    """A power of the confidence in each label, ``C_i = C w_i^tau``.

    The confidence ``w_i`` is an estimate of the probability ``P(y_i | x_i)`` of the label that the
    row has. A row whose neighbours have other labels costs less, and with a large exponent hardly
    counts. All rows have the same cost if the exponent is 0. The row itself never takes part in its
    confidence, because it would vouch for itself.

    Parameters
    ----------
    source
        Where the confidence comes from. With "kernel", it is the share of the rows with the same
        label among all others, which count ``exp(-d^2 / (2 h^2))`` at the distance d (Nadaraya and
        Watson). With "neighbours", it is this share among the nearest rows. With "probability", the
        score of a row is the probability of the second class in sorted order, which another model
        must have predicted without the row.
    C
        Cost of a row whose label is certain.
    tau
        Exponent, at least 0.
    bandwidth
        The distance h as a share of the median distance of the rows, for "kernel".
    neighbours
        Number of nearest rows, for "neighbours".
    score
        Name of the score, for "probability"; it may be None if there is only one score.
    floor
        Least confidence, so that no cost is 0.
    median
        Median squared distance of the rows, for "kernel". An objective takes it from its data.

    Notes
    -----
    With a precomputed kernel there are no features, so that only "probability" is possible.

    Where confidences are computed from the rows, the label of a row is part of the confidences of
    its neighbours. When leave-one-out leaves the row out, their costs stay as they are, so that a
    little of it stays in.

    References
    ----------
    Lapin, Hein and Schiele, "Learning using privileged information: SVM+ and weighted SVM", eqs.
    13, 14 and 22: the confidence is ``(1 + y_i eta(x_i)) / 2`` with ``eta = 2 P(1 | x) - 1``.

    Examples
    --------
    The second row contradicts its neighbours:

    >>> from span_hpo import LabelConfidence, SpanObjective
    >>> X, y = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]], [0, 1, 0, 1, 1, 1]
    >>> weighting = LabelConfidence("neighbours", C=4.0, tau=1.0, neighbours=2)
    >>> data = SpanObjective(X, y, kernel="linear", weighting=weighting).data
    >>> weighting.costs(data, {}).tolist()
    [2.0, 0.04, 2.0, 4.0, 4.0, 4.0]
    """

    source: str = "kernel"
    C: Hyperparameter = COST_RANGE
    tau: Hyperparameter = EXPONENT_RANGE
    bandwidth: Hyperparameter = BANDWIDTH_RANGE
    neighbours: Hyperparameter = NEIGHBOURS_RANGE
    score: str | None = None
    floor: float = 0.01
    median: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source not in SOURCES:
            raise ValueError(f"`source` must be one of {list(SOURCES)}, got {self.source!r}.")
        real("floor", self.floor, at_least=0, at_most=1)

    def bind(self, data: Dataset) -> "LabelConfidence":
        """Return this weighting with the median squared distance of these rows."""
        if self.source == "probability":
            if len(data.classes) > 2:
                raise ValueError(
                    "`source` must be 'kernel' or 'neighbours' for more than two classes, got "
                    "'probability'."
                )
            unit_score(data, self.score)
        if self.source != "kernel" or self.median is not None:
            return self
        return replace(self, median=median_squared_distance(data.X))

    @property
    def uses_features(self) -> bool:
        """Whether the costs depend on distances of the features."""
        return self.source != "probability"

    @property
    def space(self) -> Space:
        """The parameters that are searched."""
        return searched(self._settings())

    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return for each row the power of its confidence."""
        C = real("C", value_of(self.C, "C", params), at_least=0)
        tau = real("tau", value_of(self.tau, "tau", params), at_least=0)
        costs: FloatArray = C * self.confidence(data, params) ** tau
        return costs

    def confidence(self, data: Dataset, params: Params) -> FloatArray:
        """Return the confidence in the label of each row, shape (l,), which is at least the floor.

        Parameters
        ----------
        data
            The rows.
        params
            A value for every name in `space`.
        """
        return np.maximum(self._confidence(data, params)[0], self.floor)

    def gradient(self, data: Dataset, params: Params, weights: FloatArray) -> dict[str, float]:
        """Return the derivatives by C, the exponent and the bandwidth that are searched."""
        C, tau = value_of(self.C, "C", params), value_of(self.tau, "tau", params)
        w, slopes = self._confidence(data, params)
        slopes = np.where(w > self.floor, slopes, 0.0)
        w = np.maximum(w, self.floor)
        powers = w**tau * weights
        positive = np.where(w > 0, w, 1.0)  # the cost of a confidence of 0 does not change
        found = {
            "C": float(powers.sum()),
            "tau": float(C * powers @ np.log(positive)),
            "bandwidth": float(C * tau * (powers / positive) @ slopes),
        }
        return {name: found[name] for name, part in self.space.items() if isinstance(part, Float)}

    def starts(self, data: Dataset) -> list[dict[str, Any]]:
        """Return equal costs, and costs in proportion to the confidence."""
        return [{"C": 1.0, "tau": 0.0}, {"C": 1.0, "tau": 1.0}]

    def _settings(self) -> dict[str, Hyperparameter]:
        settings: dict[str, Hyperparameter] = {"C": self.C, "tau": self.tau}
        if self.source == "kernel":
            settings["bandwidth"] = self.bandwidth
        elif self.source == "neighbours":
            settings["neighbours"] = self.neighbours
        return settings

    def _confidence(self, data: Dataset, params: Params) -> tuple[FloatArray, FloatArray]:
        """Return the confidence in the label of each row, and its derivative by the bandwidth."""
        if self.source == "probability":
            p = unit_score(data, self.score)
            return np.where(data.codes == 1, p, 1 - p), np.zeros(len(data))
        if self.source == "neighbours":
            count = whole("neighbours", value_of(self.neighbours, "neighbours", params), at_least=1)
            return _of_neighbours(data, count), np.zeros(len(data))
        bandwidth = real("bandwidth", value_of(self.bandwidth, "bandwidth", params), above=0)
        if self.median is None:
            raise ValueError(
                "`LabelConfidence` must know the distances of the rows: use the `weighting` of a "
                "SpanObjective, or LabelConfidence().bind(data)."
            )
        return _of_kernel(data, bandwidth, self.median)


def _of_neighbours(data: Dataset, count: int) -> FloatArray:
    """Return the share of the nearest other rows that have the label of each row.

    Rows at the same distance share the places that are left among the nearest.
    """
    count = min(count, len(data) - 1)
    found = np.empty(len(data))
    for rows, distances in _distances(data):
        last = np.partition(distances, count - 1, axis=1)[:, count - 1, None]
        nearer, tied = distances < last, distances == last
        left = (count - nearer.sum(axis=1)) / tied.sum(axis=1)
        same = data.codes[rows, None] == data.codes
        found[rows] = ((nearer & same).sum(axis=1) + left * (tied & same).sum(axis=1)) / count
    return found


def _of_kernel(data: Dataset, bandwidth: float, median: float) -> tuple[FloatArray, FloatArray]:
    """Return the weighted share of equal labels, and its derivative by the bandwidth."""
    found, slopes = np.empty(len(data)), np.empty(len(data))
    for rows, distances in _distances(data):
        # Relative to the nearest row, so that far ones do not all count 0.
        exponents = (distances - distances.min(axis=1, keepdims=True)) / (2 * median)
        weights = np.exp(-exponents / bandwidth**2)
        weights[np.arange(len(rows)), rows] = 0.0
        by_bandwidth = weights * np.where(weights > 0, exponents, 0.0) * (2 / bandwidth**3)
        same = data.codes[rows, None] == data.codes
        total = weights.sum(axis=1)
        found[rows] = (weights * same).sum(axis=1) / total
        change = (by_bandwidth * same).sum(axis=1) - found[rows] * by_bandwidth.sum(axis=1)
        slopes[rows] = change / total
    return found, slopes


def _distances(data: Dataset) -> Iterator[tuple[Any, FloatArray]]:
    """Yield rows with their squared distances from all rows, infinite from themselves."""
    count = len(data)
    at_once = max(1, _DISTANCES_AT_ONCE // count)
    for start in range(0, count, at_once):
        rows = np.arange(start, min(start + at_once, count))
        distances = cross_squared_distances(data.X[rows], data.X)
        distances[np.arange(len(rows)), rows] = np.inf
        yield rows, distances
