import numpy as np
import pytest

from span_hpo import Problem, solve
from span_hpo.loo.path.tableau import PathState, Tableau
from tests.problems import moons_problem, rbf, two_moons


def tableau_of(problem):
    solution = solve(problem)
    return Tableau(problem, PathState.of_fit(solution))


def columns_of(tableau):
    """Return the columns of all rows, in tableau order, one in each row of the result."""
    rows = tableau.rows
    return tableau.paths(rows, tableau.state.alpha[rows], np.full(len(rows), len(rows))).own


@pytest.mark.parametrize("seed", range(5))
def test_columns_solve_the_bordered_system(seed):
    """A moved row changes alpha of the base and g of the others as the KKT system says."""
    problem = moons_problem(40, cost=10.0, seed=seed)
    tableau = tableau_of(problem)
    n, rows, unit = tableau.table.n_base, tableau.rows, tableau.unit
    K, y = problem.K.values[np.ix_(rows, rows)], problem.y[rows]
    M = np.block([[K[:n, :n], np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    columns = columns_of(tableau)
    for k in range(len(rows)):
        if k < n:  # f of base row k changes by y_k
            rhs = y[k] * np.append(np.eye(n)[k], 0)
            solved = np.linalg.solve(M, rhs)
            alpha, g = y[:n] * solved[:n], y[n:] * (K[n:, :n] @ solved[:n] + solved[n])
            alpha = alpha * unit
        else:  # alpha of row k changes by 1 / unit
            solved = np.linalg.solve(M, -y[k] * np.append(K[:n, k], 1))
            alpha = y[:n] * solved[:n]
            g = y[n:] * (K[n:, :n] @ solved[:n] + solved[n] + y[k] * K[n:, k]) / unit
        np.testing.assert_allclose(columns[k], np.concatenate([alpha, g]), atol=1e-8)


def test_equal_rows_are_parked():
    """Of rows that lie in the hull of others one spanning set is the base."""
    X, y = two_moons(20)
    X, y = np.vstack([X, X]), np.concatenate([y, y])
    problem = Problem(rbf(X, 1.0), y, np.full(40, 5.0))
    solution = solve(problem)
    tableau = tableau_of(problem)
    base = tableau.rows[: tableau.table.n_base]
    assert len({tuple(x) for x in X[base]}) == len(base)
    in_bound = {tuple(x) for x in X[solution.in_bound]}
    assert in_bound == {tuple(x) for x in X[base]}


def test_units_do_not_matter():
    """(K, C) -> (4^k K, C / 4^k) is the same tableau to the last bit."""
    problem = moons_problem(30, cost=10.0)
    scaled = Problem(4.0**10 * problem.K.values, problem.y, problem.costs / 4.0**10)
    one, other = tableau_of(problem), tableau_of(scaled)
    np.testing.assert_array_equal(one.rows, other.rows)
    np.testing.assert_array_equal(columns_of(one), columns_of(other))
