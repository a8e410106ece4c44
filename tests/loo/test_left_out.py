from fractions import Fraction

import numpy as np
import pytest

from benchmarks.robustness.referee import exact_value
from span_hpo import leave_one_out, solve
from span_hpo.kernels.blocks import KernelMatrix
from span_hpo.loo.left_out import RowValues, left_out_row, replaced_rows
from span_hpo.solver.pairwise import solve_pairs
from tests.problems import mixed_norms_problem, random_problem, rbf, symmetric_problem

FITS = {"tol": 1e-3, "max_iter": 10**6}
FAMILIES = [lambda seed: random_problem(seed, largest=10), symmetric_problem, mixed_norms_problem]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("make", FAMILIES, ids=["random", "symmetric", "mixed"])
def test_values_are_those_of_exact_arithmetic(make, seed):
    """Every bound holds and every proven sign is right, whatever the cost of the row was."""
    problem = make(seed)
    codes = (problem.y > 0).astype(int)
    for p in range(min(len(problem), 5)):
        found = left_out_row(problem.K, codes, problem.costs, p, **FITS)
        assert found.rows.tolist() == [p]
        costs = problem.without(p).costs
        if not costs[problem.y == problem.y[p]].any():
            assert found.decision_values[0] == -problem.y[p]
            assert found.certified[0]
            continue
        truth = exact_value(problem.K.values.tolist(), problem.y, costs, p, rational=True)
        value, accuracy = found.decision_values[0], found.accuracy[0]
        if accuracy < np.inf:
            assert abs(Fraction(value) - truth) <= Fraction(accuracy) * (1 + Fraction(1, 10**9))
        if found.certified[0]:
            assert (problem.y[p] * value > 0) == (problem.y[p] * truth > 0)
        else:
            assert abs(truth) < 1e-9 * (1 + problem.costs.sum())


@pytest.mark.parametrize("alone", [False, True], ids=["many", "a class of one row"])
def test_several_classes_are_those_of_refits(alone):
    """On the kernel matrix of all rows, the values are those of method "refit"."""
    rng = np.random.default_rng(3)
    codes = np.arange(30) % 3
    if alone:
        codes[codes == 2] = 1
        codes[7] = 2
    X = rng.normal(size=(30, 2)) + codes[:, None]
    K, costs = KernelMatrix(rbf(X, 0.5)), rng.uniform(0.5, 3.0, 30)
    refits = leave_one_out(solve_pairs(K, codes, costs, **FITS), method="refit")
    parts = [left_out_row(K, codes, costs, p, **FITS) for p in range(30)]
    found = RowValues.joined(parts)
    np.testing.assert_allclose(found.decision_values, refits.decision_values, atol=1e-6)
    np.testing.assert_array_equal(found.certified, refits.certified)
    assert found.certified.all()


def test_replaced_rows():
    """Values, proofs and bounds of some rows are replaced, and those of the others stay."""
    problem = random_problem(4, largest=30)
    solution = solve(problem)
    span, exact = (leave_one_out(solution, method) for method in ("span", "exact"))
    rows = np.array([0, 2])
    wrong = -problem.y[rows]
    new = RowValues(rows, wrong, np.zeros(2), np.ones(2, dtype=bool))
    found = replaced_rows(span, exact, new)
    others = np.setdiff1d(np.arange(len(problem)), rows)
    np.testing.assert_array_equal(found.decision_values[rows], wrong)
    np.testing.assert_array_equal(found.decision_values[others], span.decision_values[others])
    assert found.certified[rows].all()
    assert found.exact[rows].all()
    n_wrong = 2 + np.count_nonzero(problem.y[others] * exact.decision_values[others] <= 0)
    assert exact.certified[others].all()
    assert found.error_bounds == pytest.approx((n_wrong / len(problem),) * 2)
    assert found.n_refit == span.n_refit + 2
    same = replaced_rows(span, exact, RowValues.of(span, rows))
    np.testing.assert_array_equal(same.decision_values, span.decision_values)
