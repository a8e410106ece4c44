import numpy as np
import piqp
import pytest

from span_hpo import Problem, box_squared_spans, free_squared_spans, solve, span_exists
from span_hpo.loo import box_spans
from span_hpo.loo.box_spans import BoxPrograms, UpperBounds, largest_box_squared_span
from tests.problems import moons_problem, random_problem
from tests.truth import lemma_slack, span_program

SEEDS = range(150)


def largest_of_all(solution):
    squared = box_squared_spans(solution)[solution.in_bound]
    return np.nanmax(squared) if np.isfinite(squared).any() else 0.0


@pytest.mark.parametrize("seed", range(300))
def test_the_largest_is_that_of_all_programs(seed):
    """Bounds decide which programs need not be solved, never the answer."""
    solution = solve(random_problem(seed))
    unit = solution.problem.K.diagonal().max()
    found = largest_box_squared_span(solution)
    assert found == pytest.approx(largest_of_all(solution), abs=3e-6 * unit)


@pytest.mark.parametrize("cost", [0.1, 1.0, 100.0])
def test_few_programs_are_solved(cost, monkeypatch):
    """On ordinary problems the exchanges find the minimum of the largest."""
    solution = solve(moons_problem(200, cost=cost, gamma=5.0))
    solved = []
    one = BoxPrograms.squared_span
    monkeypatch.setattr(
        BoxPrograms, "squared_span", lambda self, p: solved.append(p) or one(self, p)
    )
    largest_box_squared_span(solution)
    assert solution.n_in_bound > 5
    assert not solved


@pytest.mark.parametrize("seed", range(100))
def test_pairs_bound_spans_from_above(seed):
    """Moving pairs end at feasible points: no shorter than the span, no longer than the start."""
    solution = solve(random_problem(seed))
    in_bound = np.flatnonzero(solution.in_bound)
    if len(in_bound) < 3:
        return
    bounds = UpperBounds(BoxPrograms(solution))
    squared = box_squared_spans(solution)[in_bound]
    unit = solution.problem.K.diagonal().max()
    G = bounds.box.G
    for k in np.flatnonzero(np.isfinite(squared)):
        start = bounds.shared[:, k]
        found = bounds.by_pairs(k)
        assert squared[k] - 3e-6 * unit <= found <= start @ G @ start * (1 + 1e-9) + 1e-12 * unit


@pytest.mark.parametrize("seed", range(100))
def test_pairs_take_over_where_exchanges_do_not_end(seed, monkeypatch):
    """Without exchanges the answer is the same."""
    monkeypatch.setattr(box_spans, "_PIVOTS", 1)
    solution = solve(random_problem(seed))
    unit = solution.problem.K.diagonal().max()
    found = largest_box_squared_span(solution)
    assert found == pytest.approx(largest_of_all(solution), abs=3e-6 * unit)


def test_equal_spans_are_not_solved_one_by_one():
    """Where all spans are the same, one of them is enough; where exchanges fail, PIQP answers."""
    y = np.where(np.arange(300) % 3 == 0, 1.0, -1.0)
    solution = solve(Problem(np.eye(300), y, np.full(300, 10.0)))
    expected = box_squared_spans(solution)[rows := np.flatnonzero(solution.in_bound)[:3]].max()
    assert len(rows) == 3
    assert largest_box_squared_span(solution) == pytest.approx(expected, rel=1e-6)


def test_the_largest_by_hand():
    """Three in-bound rows of a triangle: its greatest height, whose foot is in the box."""
    X = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 3.0]])
    solution = solve(Problem(X @ X.T, np.array([1.0, 1.0, -1.0]), np.full(3, 100.0)))
    assert largest_box_squared_span(solution) == pytest.approx(9.0)


def test_without_in_bound_rows():
    """No span, no largest one."""
    solution = solve(Problem(np.ones((2, 2)), np.array([1.0, -1.0]), np.full(2, 0.5)))
    assert not solution.in_bound.any()
    assert largest_box_squared_span(solution) == 0
    assert not span_exists(solution).any()


@pytest.mark.parametrize("seed", SEEDS)
def test_box_spans_are_feasible_and_above_the_free_ones(seed):
    """Lemma 1 agrees with PIQP's feasibility, box spans with PIQP's minimum, and box >= free."""
    solution = solve(random_problem(seed))
    free, box, exists = (
        function(solution) for function in (free_squared_spans, box_squared_spans, span_exists)
    )
    unit = solution.problem.K.diagonal().max()
    assert exists[solution.alpha == 0].all()
    assert (box[solution.alpha == 0] == 0).all()
    np.testing.assert_array_equal(np.isnan(box), ~exists)
    both = ~np.isnan(box) & ~np.isnan(free)
    assert (box[both] >= free[both] - 1e-7 * unit).all()
    for p in np.flatnonzero(solution.alpha):
        if abs(lemma_slack(solution, p)) < 1e-6 * solution.alpha[p]:
            continue  # one point or none is feasible: an interior-point solver cannot tell
        status, expected = span_program(solution, p, box=True)
        if status == piqp.PIQP_MAX_ITER_REACHED:
            continue  # equal rows make the program singular
        assert exists[p] == (status == piqp.PIQP_SOLVED)
        if exists[p]:
            assert box[p] == pytest.approx(expected, abs=1e-6 * unit)
