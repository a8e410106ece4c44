import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from span_hpo import Problem, leave_one_out, solve
from span_hpo.loo.certificates import certified, lower_bounds, upper_bounds
from span_hpo.runtime import interpreted
from tests.compiled import needs_compiled
from tests.problems import (
    mixed_norms_problem,
    moons_problem,
    random_problem,
    symmetric_problem,
)
from tests.truth import boundary_width, refitted_margins, removable


@pytest.mark.parametrize("seed", range(150))
@pytest.mark.parametrize("fit", ["polished", "rough", "stopped"])
def test_no_bound_is_ever_wrong(seed, fit):
    """Bounds hold at any feasible point: solved, at a tolerance of up to 0.3, or given up."""
    problem = random_problem(seed, largest=20)
    if fit == "polished":
        solution = solve(problem)
    elif fit == "rough":
        tol = 10.0 ** np.random.default_rng(seed).uniform(-4, -0.5)
        solution = solve(problem, polish=False, tol=tol)
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            solution = solve(problem, polish=False, max_iter=3)
    rows = np.flatnonzero(removable(problem))
    truth, width = refitted_margins(problem)[rows], boundary_width(solve(problem))
    upper, lower = upper_bounds(solution, rows), lower_bounds(solution, rows)
    assert (truth[upper <= 0] <= upper[upper <= 0] + width).all()
    assert (truth >= lower - width).all()
    proofs = certified(solution, rows)
    clear = proofs.proven & (np.abs(truth) > width)
    np.testing.assert_array_equal(proofs.margin[clear] > 0, truth[clear] > 0)


def test_three_rows_by_hand():
    """X = (0, 1, 3), y = (+, +, -), linear kernel: without row 1, w = -2/3 and b = 1."""
    x = np.array([0.0, 1.0, 3.0])
    problem = Problem(np.outer(x, x), [1, 1, -1], [10.0, 10.0, 10.0])
    solution = solve(problem)
    # w = -1, b = 2 from rows 1 and 2; row 1 has alpha 1/2.
    np.testing.assert_allclose(solution.alpha, [0, 0.5, 0.5], atol=1e-12)
    exact = leave_one_out(solution, "exact", complete=True)
    np.testing.assert_allclose(exact.decision_values[:2], [2.0, 1 / 3], atol=1e-12)
    # All of alpha_1 can go to row 0, at squared distance 1, with g_0 = 1:
    # 1 - [(2 a)^2 / 2 + 2 a] / a = 1 - 2 a - 2 = -2.
    assert lower_bounds(solution, np.array([1]))[0] == pytest.approx(-2.0)


def test_most_rows_of_a_soft_problem_need_no_path():
    """With small costs nearly every row is settled by a certificate."""
    solution = solve(moons_problem(200, cost=0.05))
    loo = leave_one_out(solution)
    exact = leave_one_out(solution, "exact")
    assert loo.certified.mean() > 0.9
    low, high = loo.error_bounds
    assert low <= exact.error <= high
    assert high - low == pytest.approx(1 - loo.certified.mean())


@needs_compiled
@pytest.mark.parametrize("generate", [random_problem, symmetric_problem, mixed_norms_problem])
def test_machine_code_bounds_what_its_twin_bounds(generate):
    """The same rows are proven; on problems of one scale, the bounds agree.

    They divide by the room beyond alpha_p, which may be next to nothing.
    """
    compared = 0
    for seed in range(120):
        solution = solve(generate(seed)).basic
        rows = np.flatnonzero(solution.alpha)
        found = lower_bounds(solution, rows)
        with interpreted():
            wanted = lower_bounds(solution, rows)
        np.testing.assert_array_equal(found > 0, wanted > 0)
        np.testing.assert_array_equal(np.isfinite(found), np.isfinite(wanted))
        if generate is not mixed_norms_problem:  # whose keys tie up to rounding
            finite = np.isfinite(found)
            np.testing.assert_allclose(found[finite], wanted[finite], rtol=1e-5, atol=1e-9)
            compared += np.count_nonzero(finite)
    assert compared > 200 or generate is mixed_norms_problem
