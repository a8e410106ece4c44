from dataclasses import replace
from fractions import Fraction

import numpy as np
import piqp
import pytest

from span_hpo import Linear, Problem, solve
from tests.problems import (
    mixed_norms_problem,
    moons_problem,
    random_problem,
    symmetric_problem,
)

FAMILIES = [lambda seed: random_problem(seed, largest=15), symmetric_problem, mixed_norms_problem]
NAMES = ["random", "symmetric", "mixed"]


def test_offset_without_in_bound_rows_is_the_middle():
    """Two rows at their cost: every offset in an interval is optimal, the middle is taken."""
    problem = Problem(np.eye(2), np.array([1.0, -1.0]), np.array([0.5, 0.5]))
    solution = solve(problem)
    assert not solution.in_bound.any()
    assert solution.offset_limits.interval == (-0.5, 0.5)
    assert solution.b == 0.0
    assert not solution.b_unique
    assert solution.kkt_violation() == 0.0


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (
            {"K": np.ones((2, 3))},
            ValueError,
            "`K` must be a square kernel matrix, got shape (2, 3)",
        ),
        ({"K": [[1, 2], [0, 1]]}, ValueError, "`K` must be symmetric"),
        ({"K": [[1, np.inf], [np.inf, 1]]}, ValueError, "`K` must be finite"),
        ({"y": [1, -1, 1]}, ValueError, "`y` must hold one value for each of the 2 rows"),
        ({"y": [0, 1]}, ValueError, "`y` must hold -1 and +1 only, got [0.0, 1.0]"),
        ({"costs": [1]}, ValueError, "`costs` must hold one value for each of the 2 rows"),
        ({"costs": [1, -2]}, ValueError, "`costs` must not be negative, got -2.0 in row 1"),
        ({"costs": [1, np.nan]}, ValueError, "`costs` must be finite, got nan in row 1"),
        ({"costs": [np.inf, 1]}, ValueError, "`costs` must be finite, got inf in row 0"),
        ({"costs": [0, 0]}, ValueError, "positive in some row of each class, got only zeros"),
        ({"costs": [1, 0]}, ValueError, "of each class, got only rows of class -1"),
        ({"y": [1, 1]}, ValueError, "of each class, got only rows of class +1"),
        ({"K": [[1.0]], "y": [1], "costs": [1]}, ValueError, "got only rows of class +1"),
    ],
)
def test_wrong_problems_are_named(change, kind, message):
    """No wrong problem reaches LIBSVM."""
    given = {"K": np.eye(2), "y": [-1, 1], "costs": [1.0, 1.0], **change}
    with pytest.raises(kind) as caught:
        Problem(**given)
    assert message in str(caught.value)


def test_blocks_in_place_of_a_matrix():
    """Any object that gives blocks and the diagonal is a kernel matrix."""
    problem = moons_problem(40)

    class Blocks:
        def __len__(self):
            return 40

        def diagonal(self):
            return problem.K.values.diagonal()

        def block(self, rows, columns):
            return problem.K.values[rows][:, columns]

    lazy = solve(Problem(Blocks(), problem.y, problem.costs))
    np.testing.assert_allclose(lazy.alpha, solve(problem).alpha, atol=1e-10)


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("make", FAMILIES, ids=NAMES)
@pytest.mark.parametrize("polish", [False, True])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rounding_bounds_every_decision_value(make, seed, polish):
    """No decision value is further from that of exact arithmetic than its own bound."""
    solution = solve(make(seed), polish=polish)
    problem = solution.problem
    beta = [Fraction(value) for value in (problem.y * solution.alpha).tolist()]
    for i, row in enumerate(problem.K.values.tolist()):
        terms = (Fraction(k) * part for k, part in zip(row, beta, strict=True))
        exact = sum(terms, Fraction(solution.b))
        assert abs(Fraction(solution.decision_values[i]) - exact) <= solution.rounding[i]
        margin = int(problem.y[i]) * exact - 1
        assert abs(Fraction(solution.excess[i]) - margin) <= solution.rounding[i]


def test_rounding_is_that_of_the_row_itself():
    """A tiny row beside a huge one has a tiny bound, although its fit has huge kernel values."""
    x = np.array([1e6, -1e6, 1e-6])
    solution = solve(Problem(np.outer(x, x), [1.0, -1.0, 1.0], np.ones(3)))
    assert solution.rounding[2] < 1e-14


@pytest.mark.parametrize("make", FAMILIES, ids=NAMES)
def test_imbalance_is_summed_exactly(make):
    """``y'alpha`` is the double next to the exact sum."""
    for seed in range(15):
        solution = solve(make(seed))
        beta = (solution.problem.y * solution.alpha).tolist()
        assert solution.imbalance == float(sum(map(Fraction, beta)))


def lagrangian(problem, alpha, b):
    """Return ``sum(alpha) - |w|^2 / 2 - b y'alpha`` by fractions."""
    beta = [int(label) * Fraction(value) for label, value in zip(problem.y, alpha, strict=True)]
    used = [i for i, value in enumerate(beta) if value]
    K = problem.K.values
    square = sum(beta[i] * beta[j] * Fraction(K[i, j]) for i in used for j in used)
    return sum(map(Fraction, alpha)) - square / 2 - Fraction(b) * sum(beta)


def balanced(problem, alpha, fixed=None):
    """Return dual variables in the box, near the given ones, whose sum ``y'alpha`` is exactly 0."""
    y, costs = [int(label) for label in problem.y], [Fraction(cost) for cost in problem.costs]
    exact = [min(max(Fraction(a), Fraction(0)), c) for a, c in zip(alpha, costs, strict=True)]
    if fixed is not None:
        exact[fixed] = Fraction(alpha[fixed])
    rest = sum(label * value for label, value in zip(y, exact, strict=True))
    for i in range(len(y)):
        if i != fixed:
            moved = min(max(exact[i] - y[i] * rest, Fraction(0)), costs[i])
            rest += y[i] * (moved - exact[i])
            exact[i] = moved
    return exact if rest == 0 else None


def maximum_with(problem, alpha, p):
    """Return dual variables that maximise the dual with ``alpha_p`` as it is, by PIQP."""
    y, n = problem.y, len(problem)
    others = np.delete(np.arange(n), p)
    Q = (y[:, None] * y) * problem.K.values
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-11
    solver.setup(
        P=np.asfortranarray(Q[np.ix_(others, others)]),
        c=Q[others, p] * alpha[p] - 1,
        A=np.asfortranarray(y[None, others]),
        b=np.array([-y[p] * alpha[p]]),
        x_l=np.zeros(n - 1),
        x_u=problem.costs[others],
    )
    solver.solve()
    found = alpha.copy()
    found[others] = solver.result.x
    return balanced(problem, found, fixed=p)


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize("make", FAMILIES, ids=NAMES)
@pytest.mark.parametrize("tol", [None, 0.1], ids=["polished", "unconverged"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_gap_bounds_the_distance_from_the_maximum(make, seed, tol):
    """Neither a fit that stops early nor a polished one is further from the maximum than stated."""
    problem = make(seed)
    fit = solve(problem) if tol is None else solve(problem, polish=False, tol=tol)
    best = lagrangian(problem, balanced(problem, solve(problem).alpha), 0)
    slack = 1e-9 * fit.gap + abs(fit.imbalance) * np.abs(fit.excess).max()
    assert best - lagrangian(problem, fit.alpha, fit.b) <= fit.gap + slack


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("cost", [0.5, 20.0, 1e4])
@pytest.mark.parametrize("tol", [0.1, 1e-3])
def test_gaps_without_each_row_bound_the_distance(seed, cost, tol):
    """With one dual variable fixed, 0 or not, the others are no further from their maximum."""
    problem = moons_problem(12, cost=cost, gamma=2.0, seed=seed)
    fit = solve(problem, polish=False, tol=tol)
    start = lagrangian(problem, fit.alpha, fit.b)
    gaps = fit.gaps_without
    for p in range(len(problem)):
        best = maximum_with(problem, fit.alpha, p)
        if best is None:
            continue  # the other rows cannot balance alpha_p
        distance = lagrangian(problem, best, 0) - start
        slack = 1e-9 * gaps[p] + abs(fit.imbalance) * np.abs(fit.excess).max()
        assert distance <= gaps[p] + slack


def test_curvature_makes_gaps_of_large_costs_small():
    """Off the top of a parabola by 1e-6, the gap is about its square, not the cost times it."""
    x = np.array([-1.0, 1.0])
    fit = solve(Problem(np.outer(x, x), x, np.full(2, 1e6)))
    alpha = np.full(2, 0.5 + 1e-6)
    off = replace(fit, alpha=alpha, b=0.0, decision_values=2 * alpha * x)
    exact = 2 * 1e-6**2
    assert exact <= off.gap <= 10 * exact
    assert (off.gaps_without >= 0).all()


@pytest.mark.parametrize("seed", range(10))
def test_gap_of_a_polished_fit_is_negligible(seed):
    """At the solution of an ordinary problem only rounding is left."""
    assert solve(moons_problem(60, cost=5.0, seed=seed)).gap < 1e-9


def test_problems_and_solutions_are_printed_in_a_few_lines():
    """No matrix is printed, but what a user wants to know of it."""
    K = Linear()([[0.0], [1.0], [2.0], [3.0]])
    problem = Problem(K, y=[-1, 1, -1, 1], costs=[1.0, 1.0, 1.0, 0.5])
    assert repr(problem).splitlines() == [
        "Problem of 4 rows",
        "  labels         2 of -1, 2 of +1",
        "  costs          from 0.5 to 1",
        "  kernel matrix  in memory, 0.000128 MB",
    ]
    equal = Problem(K, y=[-1, 1, -1, 1], costs=[1.0] * 4)
    assert "\n  costs          1\n" in repr(equal)
    lines = repr(solve(equal)).splitlines()
    assert lines[0].startswith("DualSolution of 4 rows by solver ")
    assert lines[1] == "  support vectors  4, 2 of them in-bound"
    assert lines[2] == "  offset           -1"
    assert lines[-1] == "  converged        yes"
    assert len(lines) == 5
