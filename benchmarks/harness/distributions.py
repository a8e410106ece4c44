"""Problems that benchmarks draw themselves, so that the error on new rows is known well.

A problem is a distribution of two classes, a number of training rows and a share of labels that are
flipped, in training as well as in test rows. The number of a split is the seed of the draw.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.harness.small_sets import Draw
from span_hpo.runtime import BoolArray, FloatArray

_TEST_ROWS = 10_000

Sampled = tuple[FloatArray, BoolArray]  # features of some rows, and whether they are positive
Distribution = Callable[[np.random.Generator, int], Sampled]


@dataclass(frozen=True)
class Problem:
    """A distribution of rows, from which a training set of a fixed size is drawn.

    Attributes
    ----------
    draw
        Function from a generator and a number of rows to features and classes.
    rows
        Number of training rows.
    flipped
        Share of labels that are flipped.
    """

    draw: Distribution
    rows: int
    flipped: float = 0.0


def drawn_rows(name: str, split: int) -> Draw:
    """Return training rows and 10,000 test rows of a problem of `PROBLEMS`, labels -1 and +1."""
    problem = PROBLEMS[name]
    rng = np.random.default_rng([split, *name.encode()])
    count = problem.rows
    X, positive = problem.draw(rng, count + _TEST_ROWS)
    y = np.where(positive ^ (rng.random(len(X)) < problem.flipped), 1, -1)
    if len(np.unique(y[:count])) < 2:
        raise ValueError(f"{name} must have both classes in training, got one in split {split}.")
    return Draw(X[:count], y[:count], X[count:], y[count:])


def drawn_with_share(name: str, rows: int, split: int, share: float) -> Draw:
    """Return so many training rows and 10,000 test rows of a problem, labels -1 and +1.

    The share of the class +1 is the same in both, up to rounding. The size of the problem and its
    flipped labels do not count.
    """
    rng = np.random.default_rng([split, rows, *name.encode()])
    parts = [_with_share(PROBLEMS[name].draw, rng, count, share) for count in (rows, _TEST_ROWS)]
    return Draw(*parts[0], *parts[1])


def _with_share(
    draw: Distribution, rng: np.random.Generator, count: int, share: float
) -> tuple[FloatArray, FloatArray]:
    """Return rows and labels in random order, with an exact share of the class +1."""
    wanted = round(share * count)
    found: list[list[FloatArray]] = [[], []]
    while any(
        sum(map(len, own)) < number
        for own, number in zip(found, (count - wanted, wanted), strict=True)
    ):
        X, positive = draw(rng, count)
        found[0].append(X[~positive])
        found[1].append(X[positive])
    negative, rare = np.vstack(found[0])[: count - wanted], np.vstack(found[1])[:wanted]
    order = rng.permutation(count)
    y = np.repeat([-1.0, 1.0], [count - wanted, wanted])
    return np.vstack([negative, rare])[order], y[order]


def _gaussians(features: int, distance: float, share: float = 0.5) -> Distribution:
    """Return two normal distributions whose means are so far apart."""

    def draw(rng: np.random.Generator, count: int) -> Sampled:
        positive = rng.random(count) < share
        shift = distance / np.sqrt(features) * positive[:, None]
        return rng.normal(size=(count, features)) + shift, positive

    return draw


def _ringnorm(rng: np.random.Generator, count: int) -> Sampled:
    """Return a wide normal distribution with a narrow one inside, in 10 dimensions."""
    positive = rng.random(count) < 0.5
    X = rng.normal(size=(count, 10))
    return np.where(positive[:, None], X + 0.4, 1.5 * X), positive


def _moons(rng: np.random.Generator, count: int) -> Sampled:
    positive = rng.random(count) < 0.5
    angle = rng.uniform(0, np.pi, count)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    X[positive] = [1.0, 0.5] - X[positive]
    return X + 0.35 * rng.normal(size=(count, 2)), positive


def _circles(rng: np.random.Generator, count: int) -> Sampled:
    positive = rng.random(count) < 0.5
    angle, radius = rng.uniform(0, 2 * np.pi, count), np.where(positive, 1.0, 2.0)
    X = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + 0.45 * rng.normal(size=(count, 2)), positive


def _spirals(rng: np.random.Generator, count: int) -> Sampled:
    positive = rng.random(count) < 0.5
    turn = 2.5 * np.pi * np.sqrt(rng.random(count))
    X = np.column_stack([np.cos(turn), np.sin(turn)]) * np.where(positive, turn, -turn)[:, None]
    return X + 0.8 * rng.normal(size=(count, 2)), positive


def _checkerboard(fields: int) -> Distribution:
    """Return a board of so many times so many fields, with two features of noise."""

    def draw(rng: np.random.Generator, count: int) -> Sampled:
        X = rng.uniform(0, 1, (count, 4))
        return X, (fields * X[:, :2]).astype(int).sum(axis=1) % 2 == 1

    return draw


def _waveform(rng: np.random.Generator, count: int) -> Sampled:
    """Return mixtures of the triangular waves of Breiman et al. (1984)."""
    places = np.arange(1, 22)
    waves = [np.maximum(0, 6 - abs(places - centre)) for centre in (7, 15, 11)]
    positive, share = rng.random(count) < 0.5, rng.random((count, 1))
    second = np.where(positive[:, None], waves[1], waves[2])
    return share * waves[0] + (1 - share) * second + rng.normal(size=(count, 21)), positive


def _shells(rng: np.random.Generator, count: int) -> Sampled:
    """Return rows inside and outside of a sphere (Hastie et al., 2009)."""
    X = rng.normal(size=(count, 10))
    return X, (X**2).sum(axis=1) > 9.34


def _friedman(rng: np.random.Generator, count: int) -> Sampled:
    """Return whether Friedman's function (1991) exceeds its median."""
    X = rng.uniform(0, 1, (count, 10))
    value = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
    return X, value + 10 * X[:, 3] + 5 * X[:, 4] + rng.normal(size=count) > 14.3


def _few_of_many(rng: np.random.Generator, count: int) -> Sampled:
    """Return a logistic model of three features among 40."""
    X = rng.normal(size=(count, 40))
    odds = 2.5 * X[:, 0] - 2 * X[:, 1] + 1.5 * X[:, 2]
    return X, rng.random(count) < 1 / (1 + np.exp(-odds))


def _noise(rng: np.random.Generator, count: int) -> Sampled:
    """Return labels that no feature knows anything about."""
    return rng.normal(size=(count, 5)), rng.random(count) < 0.5


PROBLEMS = {
    "gaussians 60": Problem(_gaussians(2, 2.0), 60),
    "gaussians 200": Problem(_gaussians(10, 2.0), 200),
    "gaussians 400, flipped": Problem(_gaussians(10, 3.0), 400, 0.1),
    "twonorm 100": Problem(_gaussians(20, 4.0), 100),
    "rare 200": Problem(_gaussians(5, 2.5, 0.15), 200),
    "rare 400": Problem(_gaussians(5, 2.5, 0.1), 400),
    "ringnorm 80": Problem(_ringnorm, 80),
    "ringnorm 300": Problem(_ringnorm, 300),
    "moons 60": Problem(_moons, 60),
    "moons 150": Problem(_moons, 150),
    "moons 300, flipped": Problem(_moons, 300, 0.15),
    "circles 100": Problem(_circles, 100),
    "circles 400": Problem(_circles, 400),
    "spirals 150": Problem(_spirals, 150),
    "spirals 400, flipped": Problem(_spirals, 400, 0.1),
    "board of 4, 150": Problem(_checkerboard(2), 150),
    "board of 16, 400": Problem(_checkerboard(4), 400),
    "waveform 100": Problem(_waveform, 100),
    "waveform 300": Problem(_waveform, 300),
    "shells 100": Problem(_shells, 100),
    "shells 300": Problem(_shells, 300),
    "friedman 120": Problem(_friedman, 120),
    "friedman 300, flipped": Problem(_friedman, 300, 0.1),
    "few of many 100": Problem(_few_of_many, 100),
    "few of many 300": Problem(_few_of_many, 300),
    "noise 80": Problem(_noise, 80),
    "noise 200": Problem(_noise, 200),
}
