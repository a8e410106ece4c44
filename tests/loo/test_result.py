from itertools import product

import numpy as np
import pytest

from span_hpo import Problem, leave_one_out, solve
from span_hpo.loo.result import LeaveOneOut, error_bounds
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
    assert f"40 rows; the exact error is {exact.error:.4f}" in str(exact)
    assert len(text.splitlines()) == 6


def test_problem_with_many_rows_prints_quickly():
    """A summary does not list arrays."""
    X, y = two_moons(300)
    loo = leave_one_out(solve(Problem(rbf(X, 1.0), y, np.ones(300))))
    assert len(repr(loo)) < 400


def result_of(y, values):
    """Return a result with these values, of which nothing is proven."""
    count = len(y)
    return LeaveOneOut(
        y=np.array(y, dtype=float),
        decision_values=np.array(values, dtype=float),
        squared_spans=None,
        method="span",
        certified=np.zeros(count, dtype=bool),
        exact=np.zeros(count, dtype=bool),
        accuracy=np.full(count, np.inf),
        error_bounds=(0.0, 1.0),
        n_undefined=0,
        n_refit=0,
    )


@pytest.mark.parametrize("seed", range(20))
def test_error_bounds_are_the_extremes_of_all_outcomes(seed):
    """Whatever the rows without a proof turn out to be, the error is in the bounds, and at both."""
    rng = np.random.default_rng(seed)
    proven, wrong = rng.random((2, 7)) < 0.5
    outcomes = [
        np.mean(np.where(proven, wrong, other)) for other in product([False, True], repeat=7)
    ]
    assert error_bounds(proven, wrong) == pytest.approx((min(outcomes), max(outcomes)))


def test_error_of_two_classes_by_hand():
    """A value of the other sign is an error, and so is 0."""
    assert result_of([1, 1, -1, -1, -1], [0.1, -2.0, 0.0, -3.0, 4.0]).error == 3 / 5


def test_error_of_three_classes_by_hand():
    """The pairs (0, 1), (0, 2) and (1, 2) vote, positive for the second class of each."""
    values = [
        [-1, -1, 1],  # 0, 0 and 2: class 0
        [1, -1, -1],  # 1, 0 and 1: class 1
        [1, 1, 1],  # 1, 2 and 2: class 2
        [1, 1, 1],
    ]
    assert result_of([0, 1, 2, 0], values).error == 1 / 4
