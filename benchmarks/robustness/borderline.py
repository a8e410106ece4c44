"""Families whose problems lie on a border: of a class, of a margin, of a cost, of definiteness.

The borders are found with the reference solver of the sweep, not with the package.
"""

from collections.abc import Callable

import numpy as np

from benchmarks.robustness.draws import FloatArray, Generator, blob_rows, costs_of, size
from benchmarks.robustness.instances import Instance, given, linear, rbf
from benchmarks.robustness.reference import offset_interval, solve_dual

_SEGMENTS = 10  # segments that are tried before a row stays where it is
_BISECTIONS = 60  # halvings of a segment, after which its ends are neighbouring numbers
_LEAST_EIGENVALUE = 1e-10  # of the largest one: what kernels from files and users may have
Kernel = Callable[[FloatArray, FloatArray], FloatArray]


def boundary(rng: Generator, number: int) -> Instance:
    """Put rows where the fit without them is nearly 0: one row, and some of cost 0."""
    X, y = blob_rows(rng, size(rng, 5, 20))
    build, kernel = _kernel(rng)
    costs = costs_of(rng, y)
    moved = [0, *range(1, int(rng.integers(1, max(2, len(y) // 2))))]
    costs[moved] = 0.0
    for label in (-1.0, 1.0):
        if not costs[y == label].any():
            last = len(y) - 1 if label > 0 else len(y) - 2
            y[last], costs[last] = label, costs.max() or 1.0
    if len(np.unique(y[costs > 0])) == 2:
        f = _decision_function(X, y, costs, kernel)
        for p in moved:
            X[p] = _placed(rng, f, X, X[p], _near(rng, 0.0))
        costs[0] = costs.max()
    return build(X, y, _with_both(y, costs))


def degenerate(rng: Generator, number: int) -> Instance:
    """Add rows at the margin of the fit, whose dual variables are nearly 0."""
    X, y = blob_rows(rng, size(rng, 5, 20))
    build, kernel = _kernel(rng)
    costs = costs_of(rng, y)
    fixed = np.arange(len(y)) < max(3, len(y) // 2)
    kept = _with_both(y, np.where(fixed, costs, 0.0))
    f = _decision_function(X, y, kept, kernel)
    for p in np.flatnonzero(kept == 0):
        X[p] = _placed(rng, f, X, X[p], _near(rng, float(y[p])))
    return build(X, y, costs)


def edges(rng: Generator, number: int) -> Instance:
    """Let the dual variables of some rows end nearly at their costs."""
    X, y = blob_rows(rng, size(rng, 4, 30))
    build, _ = _kernel(rng)
    first = build(X, y, costs_of(rng, y, 0, 3))
    alpha = np.abs(solve_dual(first.K, y, first.costs, np.zeros(len(y))))
    chosen = (alpha > 0) & (rng.random(len(y)) < 0.5)
    shares = np.array([_near(rng, 1.0) for _ in y])
    return build(X, y, np.where(chosen, alpha * shares, first.costs))


def indefinite(rng: Generator, number: int) -> Instance:
    """Disturb a kernel matrix, so that its least eigenvalues are slightly negative."""
    X, y = blob_rows(rng, size(rng, 4, 20))
    build, _ = _kernel(rng)
    first = build(X, y, costs_of(rng, y, -2, 1))
    noise = rng.normal(size=first.K.shape)
    noise += noise.T
    largest = np.linalg.eigvalsh(first.K)[-1] / np.abs(np.linalg.eigvalsh(noise)).max()
    strength = _LEAST_EIGENVALUE * 10.0 ** rng.uniform(-5, 0)
    return given(first.K + strength * largest * noise, y, first.costs)


def _kernel(
    rng: Generator,
) -> tuple[Callable[[FloatArray, FloatArray, FloatArray], Instance], Kernel]:
    """Return a function that builds a problem, and its kernel."""
    if rng.random() < 0.5:
        return linear, lambda X, Z: X @ Z.T
    gamma = 10.0 ** rng.uniform(-1.5, 0.5)

    def kernel(X: FloatArray, Z: FloatArray) -> FloatArray:
        squares = ((X[:, None, :] - Z[None, :, :]) ** 2).sum(axis=2)
        values: FloatArray = np.exp(-gamma * squares)
        return values

    return (lambda X, y, costs: rbf(X, y, costs, gamma=gamma)), kernel


def _with_both(y: FloatArray, costs: FloatArray) -> FloatArray:
    """Return the costs, positive in some row of each class."""
    costs = costs.copy()
    for label in (-1.0, 1.0):
        if not costs[y == label].any():
            costs[np.argmax(y == label)] = costs.max() or 1.0
    return costs


def _decision_function(
    X: FloatArray, y: FloatArray, costs: FloatArray, kernel: Kernel
) -> Callable[[FloatArray], float]:
    """Return the decision function of a fit."""
    K, X = kernel(X, X), X.copy()
    beta = solve_dual(K, y, costs, np.zeros(len(y)))
    low, high = offset_interval(y, costs, beta, K @ beta)
    return lambda x: float(kernel(x[None, :], X)[0] @ beta + (low + high) / 2)


def _near(rng: Generator, value: float) -> float:
    """Return the value, or a number that differs from it by 1e-17 to 1e-4."""
    if rng.random() < 0.3:
        return value
    return float(value + rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-17, -4))


def _placed(
    rng: Generator,
    f: Callable[[FloatArray], float],
    X: FloatArray,
    default: FloatArray,
    value: float,
) -> FloatArray:
    """Return a point between two rows at which f has the value, or the default if there is none."""
    for _ in range(_SEGMENTS):
        a: FloatArray = X[rng.integers(len(X))].copy()
        b: FloatArray = X[rng.integers(len(X))].copy()
        side = f(a) > value
        if (f(b) > value) == side:
            continue
        for _ in range(_BISECTIONS):
            middle = (a + b) / 2
            if (f(middle) > value) == side:
                a = middle
            else:
                b = middle
        return a
    return default
