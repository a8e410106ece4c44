"""Small named problems, ugly ones among them, that the tests share."""

import numpy as np

from span_hpo.solver.problem import Problem


def rbf(X, gamma):
    """Return the RBF kernel matrix from differences, independently of the package."""
    return np.exp(-gamma * ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2))


def two_moons(count=60, noise=0.25, seed=0):
    """Return features and labels -1/+1 of two interleaved half circles."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, np.pi, count)
    y = np.where(np.arange(count) % 2 == 0, 1.0, -1.0)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    X[y < 0] = [1.0, 0.5] - X[y < 0]
    return X + noise * rng.normal(size=X.shape), y


def moons_problem(count=60, cost=1.0, gamma=1.0, seed=0):
    """Return a well-behaved weighted problem: mild random costs, distinct rows."""
    X, y = two_moons(count, seed=seed)
    rng = np.random.default_rng(seed + 1)
    return Problem(rbf(X, gamma), y, cost * rng.uniform(0.5, 2.0, count))


def indefinite_problem(cost=1.0, seed=0):
    """Return a problem with the sigmoid kernel, which has negative eigenvalues."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 4))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=30) > 0, 1.0, -1.0)
    return Problem(np.tanh(X @ X.T + 0.5), y, np.full(30, cost))


def has_unique_alpha(solution):
    """Tell whether rounding cannot move a row from one set to another.

    The in-bound Gram matrix is well-conditioned, no other row has margin 1 and no in-bound dual
    variable is close to a bound.
    """
    problem, inside = solution.problem, solution.in_bound
    if not inside.any() or solution.gram.jitter:
        return False
    margin_gap = np.abs(problem.y * solution.decision_values - 1)[~inside]
    box_gap = np.minimum(solution.alpha, problem.costs - solution.alpha)[inside]
    return bool(
        np.linalg.cond(solution.gram.L) < 1e5
        and (margin_gap > 1e-7 * (1 + solution.alpha.sum())).all()
        and (box_gap > 1e-7 * solution.alpha.max()).all()
    )


def random_problem(seed, *, largest=40):
    """Return one of many small random problems.

    Kernels: RBF of any width, linear, polynomial. Costs: equal, per class, per row; over up to
    twelve orders of magnitude. Rows: spread, on a grid (ties), duplicated. Classes: balanced or
    with one to three rows.
    """
    rng = np.random.default_rng(seed)
    count = int(rng.integers(4, largest + 1))
    dimension = int(rng.integers(1, 6))
    layout = rng.choice(["spread", "grid", "duplicates"])
    if layout == "grid":
        X = rng.integers(0, 4, size=(count, dimension)).astype(float)
    else:
        X = rng.normal(size=(count, dimension))
    if layout == "duplicates":
        X = X[rng.integers(0, max(2, count // 2), size=count)]
    y = np.where(X[:, 0] + rng.normal(scale=rng.choice([0.1, 1.0]), size=count) > 0, 1.0, -1.0)
    if rng.random() < 0.25:
        y[:] = -1.0
        y[rng.permutation(count)[: int(rng.integers(1, 4))]] = 1.0
    if len(np.unique(y)) < 2:
        y[0] = -y[0]
    kernel = rng.choice(["rbf", "linear", "polynomial"])
    if kernel == "rbf":
        K = rbf(X, 10.0 ** rng.uniform(-3, 2))
    elif kernel == "linear":
        K = X @ X.T
    else:
        K = (X @ X.T + 1.0) ** int(rng.integers(2, 4))
    costs = np.full(count, 10.0 ** rng.uniform(-3, 3))
    spread = rng.choice(["equal", "class", "row", "extreme"])
    if spread == "class":
        costs = np.where(y > 0, 10.0 ** rng.uniform(-3, 3), costs)
    elif spread == "row":
        costs = 10.0 ** rng.uniform(-2, 2, size=count)
    elif spread == "extreme":
        costs = 10.0 ** rng.uniform(-6, 6, size=count)
    return Problem(K, y, costs)


def symmetric_problem(seed):
    """Return one of many problems full of ties.

    Rows: on a line, a grid, a circle, the corners of a simplex, or all equal; labels alternating,
    halved or random. Costs: equal, equal sums of the classes, or equal up to a few last bits or
    1e-9; of any size from 1e-12 to 1e3.
    """
    rng = np.random.default_rng(seed)
    count = int(rng.integers(4, 19))
    numbers = np.arange(count)
    layout = rng.choice(["line", "grid", "circle", "simplex", "equal"])
    if layout == "line":
        X = numbers[:, None] / 1.0
    elif layout == "grid":
        X = np.column_stack([numbers // 4, numbers % 4]).astype(float)
    elif layout == "circle":
        angle = 2 * np.pi * numbers / count
        X = np.column_stack([np.cos(angle), np.sin(angle)])
    elif layout == "simplex":
        X = np.eye(count)
    else:
        X = np.ones((count, 2))
    labels = rng.choice(["alternating", "halved", "random"])
    if labels == "alternating":
        y = np.where(numbers % 2 == 0, 1.0, -1.0)
    elif labels == "halved":
        y = np.where(numbers < count // 2, 1.0, -1.0)
    else:
        y = rng.choice([-1.0, 1.0], size=count)
        y[:2] = 1.0, -1.0
    K = X @ X.T if rng.random() < 0.4 else rbf(X, 10.0 ** rng.uniform(-2, 1))
    costs = np.ones(count)
    spread = rng.choice(["equal", "balanced", "bits", "nearly"])
    if spread == "balanced":
        costs = np.where(y > 0, (y < 0).sum(), (y > 0).sum()).astype(float)
    elif spread == "bits":
        costs = 1 + 2.0**-52 * rng.integers(-5, 6, size=count)
    elif spread == "nearly":
        costs = 1 + 1e-9 * rng.integers(-5, 6, size=count)
    return Problem(K, y, costs * 10.0 ** rng.integers(-12, 4))


def mixed_norms_problem(seed):
    """Return one of many small linear problems whose rows have norms from 1e-6 to 1e7.

    Every row is a vector of small integers times a power of two, so that no kernel value is
    rounded. Some rows are equal or zero; costs are equal or over up to twelve orders of magnitude.
    """
    rng = np.random.default_rng(seed)
    count = int(rng.integers(4, 10))
    X = rng.integers(-4, 5, size=(count, int(rng.integers(1, 4)))).astype(float)
    X *= 2.0 ** rng.integers(-20, 22, size=(count, 1))
    if rng.random() < 0.3:
        X = X[rng.integers(0, max(2, count // 2), size=count)]
    y = rng.choice([-1.0, 1.0], size=count)
    y[:4] = 1.0, 1.0, -1.0, -1.0
    costs = np.full(count, 10.0 ** rng.integers(-3, 5))
    if rng.random() < 0.4:
        costs = 10.0 ** rng.uniform(-6, 6, size=count)
    return Problem(X @ X.T, y, costs)


def labels_and_values(seed=0, count=60):
    """Return labels, decision values that tend to agree with them, and weights."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(count) < 0.35, 1.0, -1.0)
    y[:2] = [-1, 1]
    return y, y * rng.normal(0.7, 1.0, count), rng.uniform(0.1, 3.0, count)
