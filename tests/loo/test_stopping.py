import contextlib

import numpy as np
import pytest
from scipy.optimize import minimize

from span_hpo import Problem, leave_one_out, solve
from span_hpo.loo.stopping import alpha_without, optimise_until_proven, stopped_rows
from span_hpo.runtime import interpreted
from tests.problems import moons_problem, random_problem
from tests.truth import boundary_width, refitted_margins, removable


@pytest.mark.parametrize("seed", range(100))
def test_stopping_is_brute_force(seed):
    """Classes agree with refits, and values if fits go on to their ends."""
    problem = random_problem(seed, largest=20)
    solution = solve(problem)
    truth, width = refitted_margins(problem), boundary_width(solution)
    clear = np.abs(truth) > width
    loo = leave_one_out(solution, "stopping")
    np.testing.assert_array_equal((problem.y * loo.decision_values > 0)[clear], (truth > 0)[clear])
    assert loo.certified.all()
    complete = leave_one_out(solution, "stopping", complete=True)
    np.testing.assert_allclose(problem.y * complete.decision_values, truth, atol=width)
    assert complete.exact.all()


@pytest.mark.parametrize("seed", range(20))
def test_machine_code_stops_where_its_twin_stops(seed):
    """On ugly problems, proofs are the same, and dual variables and products agree to 1e-12.

    The offset may be another one where the primal is flat up to rounding.
    """
    solution = solve(random_problem(seed, largest=20))
    problem, rows = solution.problem, np.flatnonzero(solution.alpha)[:3]
    for r in rows[removable(solution.problem)[rows]]:
        K, costs = problem.K.values, problem.without(int(r)).costs
        start = alpha_without(solution, int(r))
        ends = []
        for is_plain, watch in ((False, True), (True, True), (False, False), (True, False)):
            alpha, F = start.copy(), K @ (problem.y * start)
            with interpreted() if is_plain else contextlib.nullcontext():
                proof = optimise_until_proven(
                    K, problem.y, costs, int(r), alpha, F, watch, 1e-6, 200
                )
            ends.append((*proof, alpha, F))
        for found, wanted in (ends[:2], ends[2:]):
            assert found[0] == wanted[0]
            for one, other in zip(found[2:], wanted[2:], strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_fits_are_stopped_early():
    """On a separable problem most open rows are proven before the fit has converged."""
    solution = solve(moons_problem(100, cost=100.0, gamma=0.5))
    rows = np.flatnonzero(solution.alpha)
    proofs = stopped_rows(solution, rows, complete=False)
    assert proofs.proven.all()
    assert np.count_nonzero(~proofs.exact) > len(rows) / 4


def test_start_is_feasible():
    """What a row leaves is taken over: boxes and the sum hold."""
    for seed in range(60):
        solution = solve(random_problem(seed))
        problem = solution.problem
        for r in np.flatnonzero((solution.alpha > 0) & removable(problem)):
            alpha = alpha_without(solution, int(r))
            assert alpha[r] == 0
            assert (alpha >= 0).all()
            assert (alpha <= problem.costs).all()
            assert abs(problem.y @ alpha) <= 1e-12 * problem.costs.sum()


def test_proof_is_below_every_classifier_on_the_boundary():
    """When it stops, the primal is less than a lower bound of all classifiers with f(x_r) = 0.

    That is the dual of the problem on the boundary, here maximised by a general optimiser.
    """
    problem = moons_problem(30, cost=3.0)
    solution = solve(problem)
    K, y = problem.K.values, problem.y
    checked = 0
    for r in np.flatnonzero(solution.alpha):
        costs = problem.costs.copy()
        costs[r] = 0.0
        alpha = alpha_without(solution, int(r))
        F = K @ (y * alpha)
        proven, b = optimise_until_proven(K, y, costs, int(r), alpha, F, True, 1e-9, 10_000)
        if not proven:
            continue
        on_boundary = K - K[r] - K[r][:, None] + K[r, r]
        Q = y[:, None] * y * on_boundary
        best = minimize(
            lambda beta, Q=Q: beta @ Q @ beta / 2 - beta.sum(),
            np.zeros(30),
            jac=lambda beta, Q=Q: Q @ beta - 1,
            bounds=[(0, cost) for cost in costs],
            method="L-BFGS-B",
        )
        beta = y * alpha
        primal = beta @ K @ beta / 2 + costs @ np.maximum(1 - y * (K @ beta + b), 0)
        assert primal < -best.fun
        checked += 1
    assert checked >= 3


def test_rounding_proves_nothing_where_the_offset_is_free():
    """Without row 2 all rows are bounded and b is anywhere in [-0.96, 0.96]: its middle counts.

    Every such offset has the same primal, up to rounding that once passed for a proof.
    """
    problem = random_problem(30775, largest=25)
    scale = 10.0 ** np.random.default_rng(30874).integers(-10, 4)
    problem = Problem(problem.K, problem.y, problem.costs * scale)
    loo = leave_one_out(solve(problem), "stopping")
    truth = refitted_margins(problem)
    assert truth[2] > 1e-3
    np.testing.assert_array_equal(problem.y * loo.decision_values > 0, truth > 0)
