from collections import Counter

import numpy as np
import pytest

from span_hpo import Problem, solve
from span_hpo.loo.path.segments import (
    BOUNDED,
    END,
    ERROR,
    IN_BOUND,
    LONG,
    MOST_SEGMENTS,
    NEEDS_COLUMN,
    REMOVED,
    SUCCESS,
    ZERO,
    Paths,
    dual_variables,
    follow_paths,
)
from span_hpo.loo.path.tableau import PathState, Tableau
from span_hpo.runtime import interpreted
from tests.problems import moons_problem, random_problem, symmetric_problem
from tests.truth import boundary_width, refits, refitted_margins, removable


def started(problem, rows=None):
    """Return a fit, its tableau and the paths of all support vectors, or of some rows."""
    solution = solve(problem)
    state = PathState.of_fit(solution)
    tableau = Tableau(problem, state)
    if rows is None:
        rows = np.flatnonzero((solution.alpha > 0) & removable(problem))
    return (
        solution,
        tableau,
        tableau.paths(rows, solution.alpha[rows], tableau.watched(rows, "all")),
    )


def three_rows(costs):
    """Return the problem of the rows 0, 1 and 3 on a line, with labels +, + and -."""
    x = np.array([0.0, 1.0, 3.0])
    return Problem(np.outer(x, x), [1, 1, -1], costs)


def by_row(tableau, values):
    """Return values in tableau order in the order of the problem."""
    found = np.empty(len(values), dtype=values.dtype)
    found[tableau.rows] = values
    return found.tolist()


def test_a_path_by_hand():
    """Rows 0, 1 and 3 with labels +, +, -: row 1 leaves, and row 0 takes its place on the way.

    The fit has w = -1, b = 2 and alpha = (0, 1/2, 1/2). While alpha_1 falls by t, alpha_2 falls
    alike, so that w = -1 + 2 t, and f(3) = -1 asks for b = 2 - 6 t. The margin 1 - 4 t of row 1
    falls at the rate of its squared span, 4, until f(0) = b = 1 at t = 1/6. From there on rows 0
    and 2 fix w = -2/3 and b = 1; in the end alpha_0 = alpha_2 = 2/9.
    """
    _, tableau, paths = started(three_rows([10.0, 10.0, 10.0]), rows=np.array([1]))
    assert by_row(tableau, paths.kind[0]) == [ZERO, REMOVED, IN_BOUND]
    tableau.follow(paths, complete=True, most_segments=1)
    assert paths.outcome[0] == LONG
    assert paths.margin[0] == pytest.approx(1 / 3)
    assert by_row(tableau, paths.kind[0]) == [IN_BOUND, REMOVED, IN_BOUND]
    alpha = dual_variables(tableau.table, paths, 0) / tableau.unit
    np.testing.assert_allclose(by_row(tableau, alpha), [0, 1 / 3, 1 / 3], atol=1e-14)
    tableau.follow(paths, complete=True)
    assert paths.outcome[0] == END
    assert paths.segments[0] == 2
    assert paths.margin[0] == pytest.approx(1 / 3)
    alpha = dual_variables(tableau.table, paths, 0) / tableau.unit
    np.testing.assert_allclose(by_row(tableau, alpha), [2 / 9, 0, 2 / 9], atol=1e-14)


def test_a_path_on_which_a_row_reaches_its_cost_by_hand():
    """As above, but row 0 costs only 1/9, so that it is bounded before row 1 is gone.

    On the second segment alpha_0 = 2/9 - 2/3 alpha_1, which is 1/9 at alpha_1 = 1/6. Then row 2
    alone is inside: alpha_2 = 1/9 + alpha_1, w = alpha_1 - 3 alpha_2 = -1/3 - 2 alpha_1,
    b = -1 - 3 w, and the margin w + b of row 1 is -1 - 2 w = -1/3 + 4 alpha_1.
    """
    _, tableau, paths = started(three_rows([1 / 9, 10.0, 10.0]), rows=np.array([1]))
    seen = []
    for _ in range(3):
        paths.segments[0] = 0
        tableau.follow(paths, complete=True, most_segments=1)
        seen.append((paths.remaining[0] / tableau.unit, paths.margin[0]))
    np.testing.assert_allclose(seen, [(1 / 3, 1 / 3), (1 / 6, 1 / 3), (0, -1 / 3)], atol=1e-13)
    assert by_row(tableau, paths.kind[0]) == [BOUNDED, REMOVED, IN_BOUND]
    assert paths.outcome[0] == END


@pytest.mark.parametrize("seed", range(10))
def test_paths_end_at_the_fit_without_the_row(seed):
    """At the end the dual variables are those of a fit that never had the row."""
    problem = moons_problem(30, cost=10.0, seed=seed)
    _, tableau, paths = started(problem)
    tableau.follow(paths, complete=True)
    assert (paths.outcome == END).all()
    removed = tableau.rows[paths.row]
    compared = 0
    for p, refit, value in refits(problem):
        if not refit.in_bound.any() or p not in removed:
            continue
        k = int(np.flatnonzero(removed == p)[0])
        alpha = by_row(tableau, dual_variables(tableau.table, paths, k) / tableau.unit)
        np.testing.assert_allclose(np.delete(alpha, p), refit.alpha, atol=1e-7)
        assert problem.y[p] * value == pytest.approx(paths.margin[k], abs=1e-7)
        compared += 1
    assert compared > 3


def test_early_outcomes_are_on_the_right_side_of_the_refit():
    """A path stops for an error above the refitted margin, for a success only if there is one."""
    seen = Counter()
    for seed in range(60):
        problem = random_problem(seed, largest=20)
        if not solve(problem).in_bound.any():
            continue  # the tableau needs a row inside
        solution, tableau, paths = started(problem)
        tableau.follow(paths, complete=False)
        truth, width = refitted_margins(problem)[tableau.rows[paths.row]], boundary_width(solution)
        errors, successes = paths.outcome == ERROR, paths.outcome == SUCCESS
        assert (truth[errors] <= paths.margin[errors] + width).all()
        assert (paths.margin[errors] < 0).all()
        assert (truth[successes] > -width).all()
        assert (paths.beyond[successes] > 0).all()
        seen.update(paths.outcome.tolist())
    assert min(seen[ERROR], seen[SUCCESS], seen[END]) > 20


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_machine_code_follows_the_paths_of_its_twin(seed, complete):
    """On ugly problems, kinds, outcomes and segments are the same, and coordinates to 1e-12."""
    for problem in (random_problem(seed), symmetric_problem(seed)):
        if not solve(problem).in_bound.any():
            continue
        _, tableau, fast = started(problem)
        tableau.follow(fast, complete)
        _, tableau, slow = started(problem)
        with interpreted():
            tableau.follow(slow, complete)
        for name in ("kind", "outcome", "segments", "changed", "n_changed", "n_in_bound"):
            np.testing.assert_array_equal(getattr(fast, name), getattr(slow, name), name)
        for name in ("value", "remaining", "margin", "beyond", "direction"):
            np.testing.assert_allclose(
                getattr(fast, name), getattr(slow, name), rtol=1e-12, atol=1e-12
            )


def test_a_path_that_lacks_a_column_goes_on_when_it_is_there():
    """It names the row whose column it wants, and stands where it stood."""
    _, tableau, paths = started(three_rows([10.0, 10.0, 10.0]), rows=np.array([1]))
    follow_paths(tableau.table, paths, np.array([0]), True, MOST_SEGMENTS)
    assert paths.outcome[0] == NEEDS_COLUMN
    assert tableau.rows[paths.wanted[0]] == 0
    before = Paths(*(part.copy() for part in paths))
    follow_paths(tableau.table, paths, np.array([0]), True, MOST_SEGMENTS)
    for one, other in zip(before, paths, strict=True):
        np.testing.assert_array_equal(one, other)
    tableau.follow(paths, complete=True)
    assert paths.outcome[0] == END
