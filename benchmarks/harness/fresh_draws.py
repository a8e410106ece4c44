"""Problems of two classes that are drawn from known distributions, with as many rows as wanted.

Each function returns the features of so many rows of one class, 0 or 1, so that the share of a
class can be chosen. Test rows are drawn afresh from the same distribution.
"""

from collections.abc import Callable
from zlib import crc32

import numpy as np
from sklearn.datasets import make_circles, make_moons

from benchmarks.harness.small_sets import Draw
from span_hpo.runtime import Array, FloatArray

_Rows = Callable[[np.random.Generator, int, int], FloatArray]
N_TEST = 20_000


def _normals(rng: np.random.Generator, label: int, count: int) -> FloatArray:
    return rng.normal(size=(count, 5)) + label * 0.8


def _twonorm(rng: np.random.Generator, label: int, count: int) -> FloatArray:
    shift: float = (2 * label - 1) * 0.3
    return rng.normal(size=(count, 20)) + shift


def _ringnorm(rng: np.random.Generator, label: int, count: int) -> FloatArray:
    if label:
        return rng.normal(size=(count, 20)) + 20**-0.5
    return 1.4 * rng.normal(size=(count, 20))


def _moons(rng: np.random.Generator, label: int, count: int) -> FloatArray:
    X, y = make_moons(2 * count, noise=0.35, random_state=_seed(rng))
    rows: FloatArray = X[y == label]
    return rows


def _circles(rng: np.random.Generator, label: int, count: int) -> FloatArray:
    X, y = make_circles(2 * count, noise=0.25, factor=0.5, random_state=_seed(rng))
    rows: FloatArray = X[y == label]
    return rows


def _checkerboard(rng: np.random.Generator, label: int, count: int) -> FloatArray:
    squares = rng.integers(4, size=(count, 2))
    squares[:, 1] += (squares.sum(axis=1) + label) % 2
    rows: FloatArray = squares + rng.random((count, 2)) + 0.15 * rng.normal(size=(count, 2))
    return rows


def _xor(rng: np.random.Generator, label: int, count: int) -> FloatArray:
    signs = rng.choice([-1.0, 1.0], size=(count, 2))
    signs[:, 1] = signs[:, 0] * (2 * label - 1)
    return np.hstack([signs + 0.7 * rng.normal(size=(count, 2)), rng.normal(size=(count, 2))])


def _waveform(rng: np.random.Generator, label: int, count: int) -> FloatArray:
    place = np.arange(1, 22)
    waves = [np.maximum(6 - np.abs(place - middle), 0) for middle in (7, 15, 11)]
    first, second = (0, 1) if label else (0, 2)
    share = rng.random((count, 1))
    mixed = share * waves[first] + (1 - share) * waves[second]
    rows: FloatArray = mixed + rng.normal(size=(count, 21))
    return rows


def _clusters(rng: np.random.Generator, label: int, count: int) -> FloatArray:
    middles = np.random.default_rng(label).normal(size=(4, 6)) * 1.5  # the same for every draw
    rows: FloatArray = middles[rng.integers(4, size=count)] + rng.normal(size=(count, 6))
    return rows


def _few_of_many(rng: np.random.Generator, label: int, count: int) -> FloatArray:
    X = rng.normal(size=(count, 30))
    X[:, :3] += label * 1.1
    return X


def _counts(rng: np.random.Generator, label: int, count: int) -> FloatArray:
    rates = np.random.default_rng(7).gamma(1.0, size=40) * 0.8
    rates[: 20 : 2 if label else 1] *= 1.8 if label else 1.2
    return rng.poisson(rates, size=(count, 40)).astype(float)


def _heavy_tails(rng: np.random.Generator, label: int, count: int) -> FloatArray:
    rows = rng.standard_t(2.5, size=(count, 4))
    rows[:, :2] += label * np.array([1.2, 0.8])
    return rows


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**31))


DISTRIBUTIONS: dict[str, _Rows] = {
    "normals": _normals,
    "twonorm": _twonorm,
    "ringnorm": _ringnorm,
    "moons": _moons,
    "circles": _circles,
    "checkerboard": _checkerboard,
    "xor": _xor,
    "waveform": _waveform,
    "clusters": _clusters,
    "few of many": _few_of_many,
    "counts": _counts,
    "heavy tails": _heavy_tails,
}


def fresh_draw(name: str, rows: int, seed: int, *, share: float = 0.5) -> Draw:
    """Return training rows and 20,000 test rows of a distribution.

    Parameters
    ----------
    name
        Name in `DISTRIBUTIONS`.
    rows
        Number of training rows.
    seed
        Number of the draw.
    share
        Share of the class 1, in the training rows exactly, up to rounding.
    """
    rng = np.random.default_rng([crc32(name.encode()), rows, seed])
    X_train, y_train = _drawn(DISTRIBUTIONS[name], rng, rows, share)
    X_test, y_test = _drawn(DISTRIBUTIONS[name], rng, N_TEST, share)
    middle, spread = X_train.mean(axis=0), X_train.std(axis=0)
    spread[spread == 0] = 1.0
    return Draw((X_train - middle) / spread, y_train, (X_test - middle) / spread, y_test)


def _drawn(
    of_class: _Rows, rng: np.random.Generator, count: int, share: float
) -> tuple[FloatArray, Array]:
    second = round(share * count)
    X = np.vstack([of_class(rng, 0, count - second), of_class(rng, 1, second)])
    order = rng.permutation(count)
    return X[order], np.repeat([0, 1], [count - second, second])[order]
