import numpy as np
import pytest

from span_hpo import Problem, free_squared_spans, solve
from span_hpo.solver.merged_rows import merged_rows
from tests.problems import random_problem, rbf, two_moons


def doubled_moons(count=60, copies=20, cost=5.0, seed=0):
    """Return two moons of which some rows occur two or three times, with random costs."""
    X, y = two_moons(count, seed=seed)
    rng = np.random.default_rng(seed)
    rows = np.append(np.arange(count), rng.integers(0, count // 2, size=copies))
    rows = rows[rng.permutation(len(rows))]
    return Problem(rbf(X[rows], 2.0), y[rows], cost * rng.uniform(0.2, 2.0, len(rows)))


def four_equal_rows():
    """Return a problem in which rows 1, 2 and 4 are equal, and row 3 has their features only."""
    X = np.array([[-1.0], [1.0], [1.0], [1.0], [1.0]])
    return Problem(X @ X.T, np.array([-1.0, 1, 1, -1, 1]), np.array([9.0, 1, 2, 3, 4]))


def test_groups_by_hand():
    """The first of the equal rows of a class has the sum of their costs."""
    merged = merged_rows(four_equal_rows())
    np.testing.assert_array_equal(merged.members, [1, 2, 4])
    np.testing.assert_array_equal(merged.leaders, [1, 1, 1])
    np.testing.assert_array_equal(merged.costs, [9, 7, 0, 3, 0])
    np.testing.assert_array_equal(merged.gathered(np.arange(5.0)), [0, 7, 0, 3, 0])


def test_shares_by_hand():
    """A dual variable of 3.5 is shared by 1 : 2 : 4, or fills one row after the other."""
    merged = merged_rows(four_equal_rows())
    alpha = np.array([6.5, 3.5, 0, 3, 0])
    np.testing.assert_array_equal(merged.shared(alpha), [6.5, 0.5, 1, 3, 2])
    found, same = merged.basic(alpha, merged.shared(alpha))
    np.testing.assert_array_equal(found, [6.5, 1, 2, 3, 0.5])
    assert not same  # row 4 is in-bound instead of row 1
    alpha[1] = 6.75
    found, same = merged.basic(alpha, merged.shared(alpha))
    np.testing.assert_array_equal(found, [6.5, 0.75, 2, 3, 4])
    assert same


@pytest.mark.parametrize("total", [0.0, 7.0])
def test_groups_at_a_bound(total):
    """Rows of a group at a bound equal 0 or their costs bit for bit."""
    merged = merged_rows(four_equal_rows())
    alpha = np.array([7.0, total, 0, 0, 0])
    wanted = [7.0, 1, 2, 0, 4] if total else [7.0, 0, 0, 0, 0]
    np.testing.assert_array_equal(merged.shared(alpha), wanted)
    np.testing.assert_array_equal(merged.basic(alpha, merged.shared(alpha))[0], wanted)


def test_nothing_to_merge():
    """Rows that differ, belong to other classes or have cost 0 are not merged."""
    X = np.array([[-1.0], [1.0], [1.0]])
    K = X @ X.T
    assert merged_rows(Problem(K, [-1, 1, -1], [1, 1, 1])) is None
    assert merged_rows(Problem(K, [-1, 1, 1], [1, 0, 1])) is None
    assert merged_rows(Problem(np.eye(3), [-1, 1, 1], [1, 1, 1])) is None
    assert merged_rows(Problem(K, [-1, 1, 1], [1, 1.7e308, 1.7e308])) is None


@pytest.mark.parametrize("seed", range(20))
def test_basic_dual_variables(seed):
    """They give the same fit, and at most one row of each group is in-bound."""
    problem = doubled_moons(seed=seed, cost=10.0 ** (seed % 5 - 2))
    solution = solve(problem)
    basic, merged = solution.basic, merged_rows(problem)
    for leader in np.unique(merged.leaders):
        rows = merged.members[merged.leaders == leader]
        assert np.count_nonzero(basic.in_bound[rows]) <= 1
        np.testing.assert_allclose(basic.alpha[rows].sum(), solution.alpha[rows].sum(), rtol=1e-12)
    assert ((basic.alpha >= 0) & (basic.alpha <= problem.costs)).all()
    F = problem.K.values @ (problem.y * basic.alpha)
    np.testing.assert_allclose(F + basic.b, basic.decision_values, rtol=0, atol=1e-10)


@pytest.mark.parametrize("generate", [random_problem, lambda seed: doubled_moons(seed=seed)])
def test_spans_are_those_of_all_rows(generate):
    """Spans of the merged fit are those that LIBSVM's start and all rows lead to."""
    for seed in range(40):
        problem = generate(seed)
        found, wanted = solve(problem), solve(problem, solver="libsvm")
        np.testing.assert_allclose(
            free_squared_spans(found),
            free_squared_spans(wanted),
            rtol=1e-6,
            atol=1e-8 * np.abs(problem.K.diagonal()).max(),
        )
