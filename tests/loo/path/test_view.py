from fractions import Fraction

import numpy as np
import pytest

from span_hpo import Problem, solve
from span_hpo.loo.path.segments import END, SUCCESS
from span_hpo.loo.path.tableau import PathState, Tableau
from span_hpo.loo.path.view import beyond_of, concerned_rows, stops_of, view_of
from span_hpo.runtime import interpreted
from tests.problems import moons_problem, random_problem, rbf, symmetric_problem, two_moons

SLACK = 1e-9  # movement of margins for which rows are looked at in addition


def followed(complete, seed=0, problem=None):
    """Return a fit, a tableau and the paths of its support vectors."""
    solution = solve(problem or moons_problem(50, cost=30.0, gamma=3.0, seed=seed))
    tableau = Tableau(solution.problem, PathState.of_fit(solution))
    rows = np.flatnonzero(solution.alpha)
    paths = tableau.paths(rows, solution.alpha[rows], tableau.watched(rows, "all"))
    tableau.follow(paths, complete)
    return solution, tableau, paths


def viewed(complete, seed=0):
    """Return what `followed` does, with the stops and the view of all paths on all rows."""
    solution, tableau, paths = followed(complete, seed)
    some = np.flatnonzero(np.isin(paths.outcome, (SUCCESS, END)))
    stops = stops_of(tableau, paths, some)
    everyone = np.arange(len(tableau.rows))
    view = view_of(tableau, paths, some, stops, everyone, np.full(2, np.inf))
    return solution, tableau, paths, some, stops, view


def states_of(solution, tableau, view, removed):
    """Yield the dual variables of all rows where each path of a view stands."""
    width = view.own.shape[1]
    for i, p in enumerate(removed):
        alpha = solution.alpha.copy()
        alpha[tableau.rows[:width]] = view.own[i]
        alpha[p] = view.left[i]
        yield alpha


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_machine_code_enters_the_stops_of_its_twin(seed, complete):
    """On ugly problems, dual variables and masks are the same, and movements agree to 1e-12."""
    for problem in (random_problem(seed), symmetric_problem(seed)):
        if not solve(problem).in_bound.any():
            continue
        _, tableau, paths = followed(complete, problem=problem)
        some = np.arange(len(paths.row))[::-1]
        found = stops_of(tableau, paths, some)
        with interpreted():
            wanted = stops_of(tableau, paths, some)
        for name in ("alpha", "holders", "offset_free", "sound"):
            np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), name)
        np.testing.assert_allclose(found.moves, wanted.moves, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_stops_are_in_their_boxes(seed, complete):
    """Dual variables are between 0 and the costs, and the removed row is counted apart."""
    _, tableau, paths, some, stops, _ = viewed(complete, seed)
    width = stops.alpha.shape[1]
    assert (stops.alpha >= 0).all()
    assert (stops.alpha <= tableau.table.costs[:width]).all()
    at = paths.row[some]
    near = np.flatnonzero(at < width)
    assert len(near)
    assert (stops.alpha[near, at[near]] == 0).all()
    assert stops.sound.all()
    assert not stops.offset_free.any()


def test_holders_are_inside_their_boxes():
    """Only rows clearly inside determine the offset, never the removed row."""
    _, tableau, paths, some, stops, _ = viewed(complete=True)
    costs = tableau.table.costs[: stops.alpha.shape[1]]
    room = np.minimum(stops.alpha, costs - stops.alpha)
    assert (room[stops.holders] > 0).all()
    assert stops.holders.any(axis=1).all()
    near = np.flatnonzero(paths.row[some] < stops.alpha.shape[1])
    assert not stops.holders[near, paths.row[some][near]].any()


@pytest.mark.parametrize("seed", range(3))
def test_ends_are_refits(seed):
    """At the end of a path, the dual variables are those of a fit without the row."""
    solution, tableau, paths, some, _, view = viewed(complete=True, seed=seed)
    removed = tableau.rows[paths.row[some]]
    states = list(states_of(solution, tableau, view, removed))
    for i in np.flatnonzero(paths.outcome[some] == END)[:6]:
        refit = solve(solution.problem.without(removed[i]))
        np.testing.assert_allclose(states[i], refit.alpha, atol=1e-6 * refit.alpha.max())


@pytest.mark.parametrize("complete", [False, True])
def test_products_are_those_of_the_kernel(complete):
    """Changes of decision values are within their rounding of sums by fractions."""
    solution, tableau, paths, some, _, view = viewed(complete)
    problem, removed = solution.problem, tableau.rows[paths.row[some]]
    K, states = problem.K.values, list(states_of(solution, tableau, view, removed))
    unit = view.n_terms * 2.0**-53 * 2
    for i in range(0, len(some), 5):
        p = removed[i]
        beta = [Fraction(value) for value in (problem.y * states[i]).tolist()]
        start = [Fraction(value) for value in (problem.y * solution.alpha).tolist()]
        moved = [(j, a - b) for j, (a, b) in enumerate(zip(beta, start, strict=True)) if a != b]
        for k, row in list(enumerate(view.rows))[::10]:
            exact = sum(change * Fraction(K[row, j]) for j, change in moved)
            error = abs(Fraction(view.products[i, k]) - exact)
            assert error <= unit * view.spread[i] * view.roots[k]
        exact = sum(change * Fraction(K[p, j]) for j, change in moved)
        assert abs(Fraction(view.products_of_p[i]) - exact) <= unit * view.spread[i]
        total = sum(beta)
        assert abs(Fraction(view.imbalance[i, 0]) - total) <= Fraction(view.imbalance[i, 1])


def test_square_is_the_movement_of_the_weight_vector():
    """``|w - w'|^2`` is the quadratic form of the changes, and the paths knew it."""
    solution, tableau, paths, some, stops, view = viewed(complete=True)
    problem, removed = solution.problem, tableau.rows[paths.row[some]]
    for i, alpha in enumerate(states_of(solution, tableau, view, removed)):
        change = problem.y * (alpha - solution.alpha)
        square = change @ problem.K.values @ change
        assert view.square[i] == pytest.approx(square, rel=1e-9, abs=1e-12)
        # The movement in units of the tableau is a root of dual variables times margins.
        known = stops.moves[i, 0] / np.sqrt(tableau.unit)
        assert known == pytest.approx(np.sqrt(square), rel=1e-5, abs=1e-7)


def test_the_view_repeats_the_problem():
    """Rows of the view have the labels, costs and starts of the problem, and p its place."""
    solution, tableau, paths, some, _, view = viewed(complete=True)
    problem, removed = solution.problem, tableau.rows[paths.row[some]]
    np.testing.assert_array_equal(view.y, problem.y[view.rows])
    np.testing.assert_array_equal(view.costs, problem.costs[view.rows])
    np.testing.assert_array_equal(view.alpha, solution.alpha[view.rows])
    np.testing.assert_array_equal(view.rows[view.place], removed)
    np.testing.assert_array_equal(view.K_pp, problem.K.values.diagonal()[removed])
    width = view.own.shape[1]
    np.testing.assert_array_equal(view.K_p, problem.K.values[np.ix_(removed, tableau.rows[:width])])
    assert (view.left[paths.outcome[some] == END] == 0).all()


@pytest.mark.parametrize("seed", range(3))
def test_no_row_outside_the_view_is_concerned(seed):
    """A row that is not looked at keeps its side of the margin at the end of every path."""
    X, y = two_moons(120, noise=0.1, seed=seed)
    problem = Problem(rbf(X, 3.0), y, np.full(120, 30.0))
    solution, tableau, paths = followed(complete=True, problem=problem)
    n, skipped = tableau.table.n_base, 0
    for k in np.flatnonzero(paths.outcome == END):
        end = np.array([k])
        stops = stops_of(tableau, paths, end)
        positions, moves = concerned_rows(tableau, stops, n, SLACK)
        assert set(range(n)) <= set(positions.tolist())
        view = view_of(tableau, paths, end, stops, np.arange(len(tableau.rows)), moves)
        assert view.square[0] <= moves[0] ** 2
        outside = np.delete(tableau.rows, positions)
        p = tableau.rows[paths.row[k]]
        refit = solve(problem.without(p))
        rows = outside[outside != p]
        skipped += len(rows)
        assert (np.sign(refit.excess[rows]) == np.sign(solution.excess[rows])).all()
    assert skipped


def test_more_slack_concerns_more_rows():
    """The rows to look at grow with the movement that is allowed for, up to all."""
    _, tableau, paths = followed(complete=True)
    some = np.arange(len(paths.row))
    stops, n = stops_of(tableau, paths, some), tableau.table.n_base
    few, _ = concerned_rows(tableau, stops, n, 0.0)
    more, _ = concerned_rows(tableau, stops, n, 0.5)
    every, _ = concerned_rows(tableau, stops, n, 1e9)
    assert set(few.tolist()) <= set(more.tolist())
    np.testing.assert_array_equal(every, np.arange(len(tableau.rows)))


@pytest.mark.parametrize("seed", range(3))
def test_points_beyond_are_feasible(seed):
    """Successes lead to points in the box, balanced up to what is stated, with alpha_p = -s."""
    solution, tableau, paths, some, _, view = viewed(complete=False, seed=seed)
    beyond = beyond_of(tableau, paths, some, view)
    claims = np.flatnonzero(paths.outcome[some] == SUCCESS)
    assert len(claims)
    np.testing.assert_array_equal(beyond.place[claims], np.arange(len(claims)))
    assert (np.delete(beyond.place, claims) == -1).all()
    assert (beyond.step > 0).all()
    problem, at = solution.problem, beyond.rows
    rows, own = tableau.rows[at], view.own[:, at]
    states = list(states_of(solution, tableau, view, tableau.rows[paths.row[some]]))
    for j, i in enumerate(claims):
        k, p = some[i], tableau.rows[paths.row[some[i]]]
        length = view.left[i] + beyond.step[j]
        target = own[i] + length * paths.direction[k, at]
        target = np.clip(target, 0.0, problem.costs[rows])
        np.testing.assert_allclose(beyond.sizes[j], np.abs(target - own[i]), atol=1e-12)
        assert not np.delete(paths.direction[k], at).any()  # no other row moves
        change = np.zeros(len(problem))
        change[rows] = problem.y[rows] * (target - own[i])
        change[p] -= problem.y[p] * length
        assert beyond.square[j] >= change @ problem.K.values @ change
        alpha = states[i]
        left = sum(Fraction(value) for value in (problem.y * alpha + change).tolist())
        assert abs(left) <= beyond.imbalance[j] + 1e-12 * alpha.sum()
        if beyond.holder[j] >= 0:
            holder = np.flatnonzero(at == beyond.holder[j])[0]
            room = min(target[holder], problem.costs[rows[holder]] - target[holder])
            assert room > beyond.imbalance[j]


def test_ends_with_free_offsets_are_recognised():
    """If no row is inside without the removed one, dual variables are exactly at their bounds."""
    x = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
    costs = np.array([2.0, 2.0, 2.0, 2.0, 2.0, 3.0]) / 256  # the row at 3 makes up the difference
    problem = Problem(np.outer(x, x), np.sign(x), costs)
    solution, tableau, paths = followed(complete=True, problem=problem)
    np.testing.assert_array_equal(solution.in_bound, x == 3)
    some = np.flatnonzero(paths.outcome == END)
    stops = stops_of(tableau, paths, some)
    width = stops.alpha.shape[1]
    costs = tableau.table.costs[:width]
    free = np.flatnonzero(stops.offset_free)
    assert len(free)
    for i in free:
        assert not stops.holders[i].any()
        assert ((stops.alpha[i] == 0) | (stops.alpha[i] == costs)).all()


def test_some_of_the_stops_can_be_taken():
    """Chosen stops are those of the chosen paths."""
    _, _, _, some, stops, _ = viewed(complete=True)
    chosen = np.array([2, 0])
    taken = stops.take(chosen)
    for field, part in zip(stops, taken, strict=True):
        np.testing.assert_array_equal(part, field[chosen])
    assert len(some) > 2
