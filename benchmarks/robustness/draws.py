"""Random parts of which the problems of the sweep are made: sizes, labels, costs, rows."""

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Generator = np.random.Generator
_LARGE = 0.02  # share of problems of 60 to 150 rows, where they are asked for


def size(rng: Generator, low: int = 4, high: int = 40, *, large: bool = False) -> int:
    """Return a number of rows between low and high or, if asked for, now and then a large one."""
    if large and rng.random() < _LARGE:
        return int(rng.integers(60, 151))
    return int(rng.integers(low, high + 1))


def with_both_classes(y: FloatArray) -> FloatArray:
    """Return the labels, with the first one turned around if there is one class only."""
    if (y == y[0]).all():
        y[0] = -y[0]
    return y


def labels_of(rng: Generator, scores: FloatArray, noise: float) -> FloatArray:
    """Return the signs of scores about their median, to which noise is added."""
    spread = scores.std() or 1.0
    noisy: FloatArray = (scores - np.median(scores)) / spread + noise * rng.normal(size=len(scores))
    return with_both_classes(np.where(noisy > 0, 1.0, -1.0))


def random_labels(rng: Generator, count: int) -> FloatArray:
    """Return labels at random."""
    return with_both_classes(rng.choice([-1.0, 1.0], size=count))


def costs_of(rng: Generator, y: FloatArray, low: float = -3, high: float = 3) -> FloatArray:
    """Return costs that are equal, equal by class, or different in every row."""
    count = len(y)
    kind = rng.choice(["equal", "round", "class", "row"])
    if kind == "equal":
        return np.full(count, 10.0 ** rng.uniform(low, high))
    if kind == "round":
        return np.full(count, 10.0 ** int(rng.integers(int(low), int(high) + 1)))
    costs: FloatArray = 10.0 ** rng.uniform(low, high, size=count)
    if kind == "class":
        costs = np.where(y > 0, costs[0], costs[1])
    return costs


def blob_rows(rng: Generator, count: int) -> tuple[FloatArray, FloatArray]:
    """Return features and labels of two normal clouds that overlap more or less."""
    d = int(rng.integers(1, 6))
    y = random_labels(rng, count)
    return rng.normal(size=(count, d)) + 0.5 * rng.uniform(0, 3) * y[:, None], y
