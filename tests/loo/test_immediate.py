import pytest

from span_hpo import leave_one_out, solve
from tests.problems import random_problem
from tests.truth import refits


def test_zero_row_that_holds_the_offset():
    """With no in-bound row a zero row may limit the offset: without it the middle moves."""
    moved = 0
    for seed in range(800):
        problem = random_problem(seed, largest=15)
        solution = solve(problem)
        if solution.in_bound.any():
            continue
        loo = leave_one_out(solution)
        for p, _, value in refits(problem):
            if solution.alpha[p] == 0:
                assert loo.decision_values[p] == pytest.approx(value, abs=1e-9)
                moved += abs(value - solution.decision_values[p]) > 1e-6
    assert moved > 5
