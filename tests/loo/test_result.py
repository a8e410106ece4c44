import numpy as np

from span_hpo import Problem, leave_one_out, solve
from tests.problems import moons_problem, rbf, two_moons


def test_leave_one_out_prints_what_it_found():
    """Error, bounds and counts are there, in words."""
    solution = solve(moons_problem(40, cost=5.0))
    span, exact = leave_one_out(solution), leave_one_out(solution, "exact")
    text = str(span)
    assert text.startswith("Leave-one-out by method 'span'")
    assert f"{span.error:.4f} ({round(40 * span.error)} of 40)" in text
    low, high = span.error_bounds
    assert f"between {low:.4f} and {high:.4f}" in text
    assert f"40 rows: the error is {exact.error:.4f}" in str(exact)
    assert len(text.splitlines()) == 6


def test_problem_with_many_rows_prints_quickly():
    """A summary does not list arrays."""
    X, y = two_moons(300)
    loo = leave_one_out(solve(Problem(rbf(X, 1.0), y, np.ones(300))))
    assert len(repr(loo)) < 400
