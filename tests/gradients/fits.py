"""Fits whose losses the tests differentiate, and the derivatives by central differences."""

import numpy as np

from span_hpo import Problem, leave_one_out, solve
from span_hpo.runtime import OneBlasThread
from tests.differences import central_differences, kinds
from tests.problems import rbf, two_moons

TOL, STEPS = 1e-9, (1e-3, 2e-4, 4e-5)
FLOOR = 1e-7  # derivatives below it, for values of size 1, are rounding of the differences


def span_values(solution):
    """Return the leave-one-out values of the span-rule."""
    return leave_one_out(solution, method="span").decision_values


class Moving:
    """A linear loss of the values of a fit whose costs and kernel matrix move.

    The parameters are the cost of each row by its number, and a direction "t" of the kernel matrix,
    which is 0 at the fit itself.
    """

    def __init__(self, kernel_at, y, costs, values=span_values, seed=0):
        self.kernel_at, self.y, self.values = kernel_at, y, values
        self.params = {row: float(cost) for row, cost in enumerate(costs) if cost > 0} | {"t": 0.0}
        self.costs = np.asarray(costs, dtype=float)
        self.solution = self.solve(self.params)
        values = span_values(self.solution)
        rng = np.random.default_rng(seed)
        self.weights = rng.normal(size=len(y)) / (1 + np.abs(values)) / len(y)

    def solve(self, params):
        costs = self.costs.copy()
        for row, cost in params.items():
            if row != "t":
                costs[row] = cost
        return solve(Problem(self.kernel_at(params["t"]), self.y, costs), tol=TOL)

    def loss(self, params):
        with OneBlasThread():
            return float(self.weights @ self.values(self.solve(params)))

    def is_smooth(self, step=2 * STEPS[0]):
        """Tell whether no row changes its kind over the steps."""
        here = kinds(self.solution)
        return all(
            kinds(self.solve({**self.params, name: value + sign * step * (value or 1.0)})) == here
            for name, value in self.params.items()
            for sign in (1, -1)
        )

    def differences(self):
        """Return the derivatives by the logarithms of the costs and by t."""
        found = central_differences(self.loss, self.params, steps=STEPS)
        return np.array([slope * (self.params[name] or 1.0) for name, slope in found.items()])

    def derivatives(self, found, step=1e-5):
        """Return the same from the derivatives by costs and kernel values."""
        ends = [self.kernel_at(sign * step) for sign in (1, -1, 2, -2)]
        slope = (8 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12 * step)
        by_t = sum(np.vdot(w, slope[np.ix_(i, j)]) for i, j, w in found.blocks())
        costs = [found.by_cost[row] * cost for row, cost in self.params.items() if row != "t"]
        return np.array([*costs, by_t])

    def error(self, found):
        """Return the largest error relative to the largest derivative."""
        expected = self.differences()
        return np.abs(self.derivatives(found) - expected).max() / max(
            np.abs(expected).max(), FLOOR / 2e-5
        )


def every_row(problem):
    return np.arange(len(problem))


def moving_moons(seed, *, values=span_values, equal=0, zero=0):
    """Return random half moons whose rows move, some equal to others and some without a cost."""
    rng = np.random.default_rng(seed)
    X, y = two_moons(int(rng.integers(12, 26)), seed=seed)
    V = rng.normal(size=X.shape)
    if equal:
        X[:equal], V[:equal], y[:equal] = X[-equal:], V[-equal:], y[-equal:]
    costs = 10.0 ** rng.uniform(-1, 2) * rng.uniform(0.3, 3.0, len(y))
    costs[equal : equal + zero] = 0.0
    gamma = 10.0 ** rng.uniform(-0.5, 0.5)
    return Moving(lambda t: rbf(X + t * V, gamma), y, costs, values, seed)
