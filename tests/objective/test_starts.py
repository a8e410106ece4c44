import numpy as np

from span_hpo import Problem, solve
from span_hpo.objective.starts import walk
from tests.problems import moons_problem

SETTINGS = {"tol": 1e-3, "max_iter": 10_000, "solver": "auto"}


def test_order():
    """Kernels follow each other, and costs grow within each of them."""
    kernels = ["a", "b", "a", "b", "a"]
    costs = [np.full(4, cost) for cost in (3.0, 5.0, 1.0, 0.0, 2.0)]
    assert [number for number, _ in walk(kernels, costs)] == [2, 4, 0, 3, 1]


def test_nearest_has_the_same_ratio_of_costs():
    """A fit begins where all costs differ by one factor, not where one class has the same cost."""
    problem = moons_problem(40)
    y = problem.y
    pairs = [(1.0, 1.0), (1.0, 4.0), (4.0, 1.0), (4.0, 4.0)]
    costs = [np.where(y > 0, C_pos, C_neg) for C_pos, C_neg in pairs]
    used = {}
    for number, starts in walk(["rbf"] * 4, costs):
        start = starts.nearest()
        used[number] = None if start is None else start.problem.costs
        starts.solved(Problem(problem.K, y, costs[number]), SETTINGS)
    assert used[0] is None
    np.testing.assert_array_equal(used[3], costs[0])


def test_starts_hold_no_factors():
    """Kept solutions have what a fit needs to begin, and no matrices of in-bound rows."""
    problem = moons_problem(40)
    starts = next(walk(["rbf"], [problem.costs]))[1]
    found = starts.solved(problem, SETTINGS)
    np.testing.assert_array_equal(found.alpha, solve(problem, **SETTINGS).alpha)
    kept = starts.nearest()
    np.testing.assert_array_equal(kept.alpha, found.alpha)
    assert "gram" not in vars(kept)
    assert kept.known_spans is None
