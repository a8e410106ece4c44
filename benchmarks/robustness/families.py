"""Families of problems for the sweep: each number of a family is one problem, made from a seed."""

import zlib
from collections.abc import Callable

import numpy as np

from benchmarks.robustness.borderline import (
    boundary,
    degenerate,
    edges,
    indefinite,
)
from benchmarks.robustness.draws import (
    Generator,
    blob_rows,
    costs_of,
    labels_of,
    random_labels,
    size,
    with_both_classes,
)
from benchmarks.robustness.exhaustive import exhaustive_instance
from benchmarks.robustness.instances import (
    Instance,
    given,
    laplacian,
    linear,
    polynomial,
    rbf,
)

EXHAUSTIVE = "exhaustive"  # the family that has every small problem, see `exhaustive`


def make(family: str, number: int) -> Instance:
    """Return the problem of this number; the same family and number give the same problem."""
    if family == EXHAUSTIVE:
        return exhaustive_instance(number)
    seed = [zlib.crc32(family.encode()), number]
    return FAMILIES[family](np.random.default_rng(seed), number)


def _blobs(rng: Generator, number: int) -> Instance:
    X, y = blob_rows(rng, size(rng, large=True))
    return rbf(X, y, costs_of(rng, y), gamma=10.0 ** rng.uniform(-2, 1))


def _banana(rng: Generator, number: int) -> Instance:
    count = size(rng, 8, 50, large=True)
    angle = rng.uniform(0, np.pi, count)
    y = random_labels(rng, count)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    X[y < 0] = [1.0, 0.5] - X[y < 0]
    X += rng.choice([0.05, 0.2, 0.4]) * rng.normal(size=X.shape)
    return rbf(X, y, costs_of(rng, y), gamma=10.0 ** rng.uniform(-1, 2))


def _linear(rng: Generator, number: int) -> Instance:
    X, y = blob_rows(rng, size(rng, large=True))
    return linear(X, y, costs_of(rng, y))


def _polynomial(rng: Generator, number: int) -> Instance:
    """Degree 2, 3 or 7, half of them with near-duplicates at 1e-7."""
    X, y = blob_rows(rng, size(rng, 4, 30))
    if rng.random() < 0.5:
        X = X[rng.integers(0, max(2, len(X) // 2), size=len(X))]
        X = X + 1e-7 * rng.normal(size=X.shape)
    degree = int(rng.choice([2, 3, 7]))
    return polynomial(X, y, costs_of(rng, y, -4, 2), degree=degree)


def _duplicates(rng: Generator, number: int) -> Instance:
    X, y = blob_rows(rng, size(rng))
    chosen = rng.integers(0, max(2, len(X) // 3), size=len(X))
    X = X[chosen]
    y = with_both_classes(y[chosen]) if rng.random() < 0.5 else y
    if rng.random() < 0.5:
        return linear(X, y, costs_of(rng, y))
    return rbf(X, y, costs_of(rng, y), gamma=10.0 ** rng.uniform(-2, 1))


def _near_duplicates(rng: Generator, number: int) -> Instance:
    X, y = blob_rows(rng, size(rng))
    X = X[rng.integers(0, max(2, len(X) // 3), size=len(X))]
    X = X + 10.0 ** rng.uniform(-12, -3) * rng.normal(size=X.shape)
    if rng.random() < 0.5:
        return linear(X, y, costs_of(rng, y))
    return rbf(X, y, costs_of(rng, y), gamma=10.0 ** rng.uniform(-2, 1))


def _integer_grid(rng: Generator, number: int) -> Instance:
    X = rng.integers(-1, 2, size=(size(rng, 4, 24), int(rng.integers(1, 5)))).astype(float)
    y = labels_of(rng, X.sum(axis=1), rng.choice([0.0, 1.0]))
    costs = np.full(len(y), 2.0 ** int(rng.integers(-6, 7)))
    if rng.random() < 0.3:
        costs = costs * 2.0 ** rng.integers(-2, 3, size=len(y))
    if rng.random() < 0.6:
        return linear(X, y, costs)
    return polynomial(X, y, costs, degree=2)


def _strings(rng: Generator, number: int) -> Instance:
    """Count common substrings of one to three letters (spectrum kernel)."""
    letters = "acgt"[: int(rng.integers(2, 5))]
    words = [
        "".join(rng.choice(list(letters), size=int(rng.integers(4, 15))))
        for _ in range(size(rng, 4, 30))
    ]
    length = int(rng.integers(1, 4))
    parts = sorted({w[i : i + length] for w in words for i in range(len(w) - length + 1)})
    counts = np.array([[float(_occurrences(w, part)) for part in parts] for w in words])
    y = labels_of(rng, counts[:, 0], rng.choice([0.3, 1.5]))
    if rng.random() < 0.5:
        norms = np.sqrt((counts**2).sum(axis=1))
        return given(counts @ counts.T / np.outer(norms, norms), y, costs_of(rng, y))
    return linear(counts, y, costs_of(rng, y, -4, 2))


def _occurrences(word: str, part: str) -> int:
    return sum(word.startswith(part, i) for i in range(len(word)))


def _graphs(rng: Generator, number: int) -> Instance:
    """Diffusion or random-walk kernel of the nodes of a graph."""
    count = size(rng, 4, 36)
    links = np.triu(rng.random((count, count)) < rng.uniform(0.1, 0.6), 1).astype(float)
    links += links.T
    laplace = np.diag(links.sum(axis=1)) - links
    values, vectors = np.linalg.eigh(laplace)
    t = 10.0 ** rng.uniform(-2, 1)
    weights = np.exp(-t * values) if rng.random() < 0.5 else 1 / (1 + t * np.abs(values))
    y = labels_of(rng, vectors[:, 1], rng.choice([0.2, 1.0]))
    return given((vectors * weights) @ vectors.T, y, costs_of(rng, y))


def _norms(rng: Generator, number: int) -> Instance:
    """Rows whose norms range from 1e-6 to 1e7."""
    count, d = size(rng, 3, 14), int(rng.integers(1, 4))
    X = rng.normal(size=(count, d)) * 10.0 ** rng.uniform(-6, 7, size=(count, 1))
    y = random_labels(rng, count)
    return linear(X, y, costs_of(rng, y, -2, 4))


def _norms_polynomial(rng: Generator, number: int) -> Instance:
    count, d = size(rng, 3, 14), int(rng.integers(1, 4))
    X = rng.normal(size=(count, d)) * 10.0 ** rng.uniform(-4, 3, size=(count, 1))
    y = random_labels(rng, count)
    degree = int(rng.choice([2, 3]))
    return polynomial(X, y, costs_of(rng, y, -2, 4), degree=degree, coef0=float(rng.integers(0, 2)))


def _huge_row(rng: Generator, number: int) -> Instance:
    """One row is much larger than all others, which are ordinary or tiny."""
    count, d = size(rng, 3, 16), int(rng.integers(1, 4))
    X = rng.normal(size=(count, d)) * rng.choice([1.0, 1e-2, 1e-5])
    X[0] = rng.integers(-3, 4, size=d) * 10.0 ** int(rng.integers(1, 8))
    y = random_labels(rng, count)
    return linear(X, y, costs_of(rng, y, -2, 4))


def _decades(rng: Generator, number: int) -> Instance:
    """One to three digits times a power of ten in every entry, in one or two dimensions."""
    count, d = size(rng, 3, 9), int(rng.integers(1, 3))
    X = rng.integers(-3, 4, size=(count, d)) * 10.0 ** rng.integers(-6, 8, size=(count, d))
    y = random_labels(rng, count)
    return linear(X, y, np.full(count, 10.0 ** int(rng.integers(0, 5))))


REPORTED_CLASSES = [[0, -1], [-1, 1], [0, 0], [-1, -1], [0, 1]], [0, 1, 0, 2, 1]
REPORTED: list[tuple[list[list[float]], list[float], float]] = [
    ([[200, 200], [1e-5, -1e-5], [-1e-6, -2e-5], [-1e-4, -2e-5]], [1, -1, 1, 1], 100),
    ([[-3], [-2e-4], [-2e6], [-200], [100], [-1e-5]], [1, -1, -1, 1, 1, -1], 10),
    ([[-2e7], [1], [1], [2]], [-1, -1, 1, -1], 1e4),
]


def _reported(rng: Generator, number: int) -> Instance:
    """Problems on which a proven class was once wrong, and others that are close to them."""
    rows, labels, cost = REPORTED[number % len(REPORTED)]
    X, y = np.array(rows, dtype=float), np.array(labels, dtype=float)
    costs = np.full(len(y), float(cost))
    if number >= len(REPORTED):
        X = X * (1 + 10.0 ** rng.uniform(-9, 0) * rng.normal(size=X.shape))
        costs = costs * 10.0 ** rng.uniform(-1, 1)
    return linear(X, y, costs)


def _wide_costs(rng: Generator, number: int) -> Instance:
    """Costs over 20 orders of magnitude."""
    X, y = blob_rows(rng, size(rng, 4, 30))
    costs = 10.0 ** rng.uniform(-10, 10, size=len(y))
    if rng.random() < 0.5:
        return linear(X, y, costs)
    return rbf(X, y, costs, gamma=10.0 ** rng.uniform(-2, 1))


def _tiny_costs(rng: Generator, number: int) -> Instance:
    """Balanced classes whose rows are all bounded, so that the offset is free."""
    half = size(rng, 2, 16)
    y = rng.permutation(np.repeat([1.0, -1.0], half))
    X = rng.normal(size=(2 * half, int(rng.integers(1, 5)))) + 0.7 * y[:, None]
    costs = np.full(2 * half, 10.0 ** rng.uniform(-8, -1))
    kind = rng.choice(["equal", "odd", "shares", "mirrored"], p=[0.4, 0.2, 0.2, 0.2])
    if kind == "odd":  # without one row of the larger class, the classes are balanced
        X, y, costs = X[1:], y[1:], costs[1:]
    elif kind == "shares":  # the sums of the classes are equal up to rounding
        costs = np.where(y > 0, costs, costs * half / (half - 1))
        y[np.argmax(y < 0)] = 1.0
    elif kind == "mirrored":  # different costs whose sums are equal without rounding
        drawn = rng.integers(1, 9, size=half) * 2.0 ** int(rng.integers(-30, -3))
        costs[y > 0], costs[y < 0] = drawn, rng.permutation(drawn)
    if rng.random() < 0.5:
        return linear(X, y, costs)
    return rbf(X, y, costs, gamma=10.0 ** rng.uniform(-2, 1))


def _low_rank(rng: Generator, number: int) -> Instance:
    """Make the kernel matrix singular: many rows in few dimensions, in general position."""
    count, rank = size(rng, 10, 40), int(rng.integers(1, 4))
    A = rng.normal(size=(count, rank))
    X = A @ rng.normal(size=(rank, rank + int(rng.integers(0, 4))))
    y = labels_of(rng, A[:, 0], rng.choice([0.0, 0.5, 2.0]))
    return linear(X, y, costs_of(rng, y, -2, 4))


def _nearly_constant(rng: Generator, number: int) -> Instance:
    X, y = blob_rows(rng, size(rng, 4, 30))
    if rng.random() < 0.5:
        return rbf(X, y, costs_of(rng, y, 0, 6), gamma=10.0 ** rng.uniform(-10, -4))
    return given(1 + 10.0 ** rng.uniform(-11, -7) * (X @ X.T), y, costs_of(rng, y, 2, 9))


def _nearly_diagonal(rng: Generator, number: int) -> Instance:
    X, y = blob_rows(rng, size(rng, 4, 24))
    return rbf(X, y, costs_of(rng, y, -2, 2), gamma=10.0 ** rng.uniform(0.7, 2.3))


def _tiny_class(rng: Generator, number: int) -> Instance:
    X, y = blob_rows(rng, size(rng))
    y = np.full(len(y), -1.0)
    y[rng.permutation(len(y))[: int(rng.integers(1, 3))]] = 1.0
    if rng.random() < 0.5:
        return linear(X, y, costs_of(rng, y))
    return rbf(X, y, costs_of(rng, y), gamma=10.0 ** rng.uniform(-2, 1))


def _all_bounded(rng: Generator, number: int) -> Instance:
    """Equal costs at which no row is in-bound, or only one class has bounded rows."""
    X, y = blob_rows(rng, size(rng, 4, 30))
    costs = np.full(len(y), 10.0 ** int(rng.integers(-6, -1)))
    return rbf(X, y, costs, gamma=10.0 ** rng.uniform(-1, 2))


def _shifted(rng: Generator, number: int) -> Instance:
    """Add a huge constant to the kernel, which changes nothing but the rounding."""
    X, y = blob_rows(rng, size(rng, 4, 30))
    K = X @ X.T if rng.random() < 0.5 else rbf(X, y, y, gamma=1.0).K
    return given(K + 10.0 ** int(rng.integers(4, 9)), y, costs_of(rng, y))


def _laplacian(rng: Generator, number: int) -> Instance:
    X, y = blob_rows(rng, size(rng))
    return laplacian(X, y, costs_of(rng, y), gamma=10.0 ** rng.uniform(-2, 1))


def _ties(rng: Generator, number: int) -> Instance:
    """Rows on a line, a grid, a simplex or all equal; equal or balanced costs."""
    count = size(rng, 4, 16)
    numbers = np.arange(count)
    layout = rng.choice(["line", "grid", "simplex", "equal", "circle"])
    angle = 2 * np.pi * numbers / count
    X = {
        "line": numbers[:, None] / 1.0,
        "grid": np.column_stack([numbers // 4, numbers % 4]).astype(float),
        "simplex": np.eye(count),
        "equal": np.ones((count, 2)),
        "circle": np.column_stack([np.cos(angle), np.sin(angle)]),
    }[str(layout)]
    y = np.where(numbers % 2 == 0, 1.0, -1.0)
    if rng.random() < 0.6:
        halved = np.where(numbers < count // 2, 1.0, -1.0)
        y = halved if rng.random() < 0.5 else random_labels(rng, count)
    costs = {
        "equal": np.ones(count),
        "balanced": np.where(y > 0, (y < 0).sum(), (y > 0).sum()).astype(float),
        "bits": 1 + 2.0**-52 * rng.integers(-5, 6, size=count),
    }[str(rng.choice(["equal", "balanced", "bits"]))]
    costs = costs * 10.0 ** int(rng.integers(-6, 4))
    if rng.random() < 0.6:
        return linear(X, y, costs)
    return rbf(X, y, costs, gamma=10.0 ** rng.uniform(-2, 1))


def _noise(rng: Generator, number: int) -> Instance:
    """Labels that the features do not explain."""
    count = size(rng, large=True)
    X = rng.normal(size=(count, int(rng.integers(1, 8))))
    y = random_labels(rng, count)
    return rbf(X, y, costs_of(rng, y), gamma=10.0 ** rng.uniform(-2, 1))


def _zero_costs(rng: Generator, number: int) -> Instance:
    """Leave a third of the rows out of the fit."""
    X, y = blob_rows(rng, size(rng, 8, 40))
    costs = costs_of(rng, y) * (rng.random(len(y)) > 1 / 3)
    for label in (-1.0, 1.0):
        if not costs[y == label].any():
            costs[np.argmax(y == label)] = 1.0
    return rbf(X, y, costs, gamma=10.0 ** rng.uniform(-2, 1))


def _scaled(rng: Generator, number: int) -> Instance:
    """Multiply the kernel by s and divide the costs by s, from 1e-8 to 1e8."""
    X, y = blob_rows(rng, size(rng, 4, 30))
    s = 10.0 ** rng.uniform(-8, 8)
    K = X @ X.T if rng.random() < 0.5 else rbf(X, y, y, gamma=1.0).K
    return given(s * K, y, costs_of(rng, y) / s)


def _hard_margin(rng: Generator, number: int) -> Instance:
    """Let classes that overlap meet huge costs, where fits converge slowly."""
    X, y = blob_rows(rng, size(rng, 6, 40))
    costs = costs_of(rng, y, 3, 8)
    if rng.random() < 0.6:
        return linear(X, y, costs)
    return polynomial(X, y, costs, degree=2)


def _extreme_scale(rng: Generator, number: int) -> Instance:
    """Multiply the kernel by s and divide the costs by s, from 1e-100 to 1e100."""
    X, y = blob_rows(rng, size(rng, 4, 16))
    s = 10.0 ** rng.uniform(-100, 100)
    K = X @ X.T if rng.random() < 0.5 else rbf(X, y, y, gamma=1.0).K
    return given(s * K, y, costs_of(rng, y) / s)


def _binary(rng: Generator, number: int) -> Instance:
    """Draw features that are 0 or 1, most of them 0, so that rows repeat and values tie."""
    X = (rng.random((size(rng, 6, 40), int(rng.integers(3, 12)))) < 0.25).astype(float)
    y = labels_of(rng, X @ rng.normal(size=X.shape[1]), rng.choice([0.2, 1.0]))
    if rng.random() < 0.5:
        return linear(X, y, costs_of(rng, y))
    return rbf(X, y, costs_of(rng, y), gamma=10.0 ** rng.uniform(-2, 1))


def _large(rng: Generator, number: int) -> Instance:
    """Draw 60 to 150 rows."""
    X, y = blob_rows(rng, size(rng, 60, 150))
    kind = rng.choice(["linear", "rbf", "polynomial"])
    if kind == "linear":
        return linear(X, y, costs_of(rng, y))
    if kind == "polynomial":
        return polynomial(X, y, costs_of(rng, y, -4, 2), degree=3)
    return rbf(X, y, costs_of(rng, y), gamma=10.0 ** rng.uniform(-2, 1))


def _classes(rng: Generator, number: int) -> Instance:
    """Three to five classes, half of them on small integers, where votes and values tie."""
    if number < 2:  # once, the order of these rows changed a proven error
        X = np.array(REPORTED_CLASSES[0], dtype=float)[:: 1 - 2 * number]
        codes = np.array(REPORTED_CLASSES[1], dtype=float)[:: 1 - 2 * number]
        return linear(X, codes, np.ones(len(codes)))
    k = int(rng.integers(3, 6))
    count = size(rng, 2 * k, 24)
    codes = rng.permutation(np.concatenate([np.arange(k), rng.integers(0, k, size=count - k)]))
    costs = np.full(count, 2.0 ** int(rng.integers(-4, 5)))
    if rng.random() < 0.5:
        X = rng.integers(-1, 2, size=(count, 2)).astype(float)
        return linear(X, codes.astype(float), costs)
    X = rng.normal(size=(count, 2)) + np.column_stack([np.cos(codes), np.sin(codes)])
    return rbf(X, codes.astype(float), costs, gamma=10.0 ** rng.uniform(-1, 1))


FAMILIES: dict[str, Callable[[Generator, int], Instance]] = {
    "blobs": _blobs,
    "banana": _banana,
    "linear": _linear,
    "polynomial": _polynomial,
    "duplicates": _duplicates,
    "near_duplicates": _near_duplicates,
    "integer_grid": _integer_grid,
    "strings": _strings,
    "graphs": _graphs,
    "norms": _norms,
    "norms_polynomial": _norms_polynomial,
    "huge_row": _huge_row,
    "decades": _decades,
    "reported": _reported,
    "wide_costs": _wide_costs,
    "tiny_costs": _tiny_costs,
    "low_rank": _low_rank,
    "nearly_constant": _nearly_constant,
    "nearly_diagonal": _nearly_diagonal,
    "tiny_class": _tiny_class,
    "all_bounded": _all_bounded,
    "shifted": _shifted,
    "laplacian": _laplacian,
    "ties": _ties,
    "noise": _noise,
    "zero_costs": _zero_costs,
    "scaled": _scaled,
    "hard_margin": _hard_margin,
    "extreme_scale": _extreme_scale,
    "binary": _binary,
    "large": _large,
    "boundary": boundary,
    "degenerate": degenerate,
    "edges": edges,
    "indefinite": indefinite,
    "classes": _classes,
}
