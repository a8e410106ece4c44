from dataclasses import replace
from fractions import Fraction

import numpy as np
import piqp
import pytest

from span_hpo import (
    Problem,
    SolverError,
    box_squared_spans,
    free_squared_spans,
    leave_one_out,
    solve,
    span_exists,
)
from tests.problems import indefinite_problem, moons_problem, random_problem, rbf
from tests.truth import lemma_slack, span_program

SEEDS = range(150)


def test_spans_of_three_rows_by_hand():
    """Rows at 0, 1 and 3 on a line: distances to the lines and points that the others span.

    With two in-bound rows at 0 and 1 each one's span is their distance 1; the bounded row at 3 lies
    on the line through them, so its span is 0. With one in-bound row at 1 the span of the row at
    3 is 2, and that of the in-bound row itself is undefined.
    """
    x = np.array([0.0, 1.0, 3.0])
    problem = Problem(np.outer(x, x), np.array([-1.0, 1.0, -1.0]), np.array([9.0, 9.0, 0.1]))
    solution = solve(problem)
    assert solution.in_bound.tolist() == [True, True, False]
    assert solution.bounded.tolist() == [False, False, True]
    np.testing.assert_allclose(free_squared_spans(solution), [1, 1, 0], atol=1e-12)

    one = solve(Problem(np.outer(x, x), np.array([-1.0, 1.0, -1.0]), np.array([0.5, 9.0, 0.1])))
    assert one.in_bound.tolist() == [False, True, False]
    np.testing.assert_allclose(free_squared_spans(one), [1, np.nan, 4], atol=1e-12)


def test_spans_in_the_plane_by_hand():
    """The distance of a row from the line through two others, and their heights in a triangle."""
    X = np.array([[0.0, 0.0], [2.0, 0.0], [1.0, 3.0]])
    y, costs = np.array([1.0, 1.0, -1.0]), np.full(3, 100.0)
    solution = solve(Problem(X @ X.T, y, costs))
    assert solution.in_bound.all()
    # Heights of the triangle: twice its area, 6, over the opposite side.
    np.testing.assert_allclose(free_squared_spans(solution), [3.6, 3.6, 9.0])


@pytest.mark.parametrize("seed", SEEDS)
def test_free_spans_equal_piqp_without_the_box(seed):
    """The closed form is the minimum that a quadratic-programming solver finds."""
    solution = solve(random_problem(seed))
    squared = free_squared_spans(solution)
    rounding = 1e-12 * solution.problem.K.diagonal().max()
    for p in np.flatnonzero(solution.alpha):
        status, expected = span_program(solution, p, box=False)
        if status == piqp.PIQP_SOLVED:
            tolerance = 1e-6 * (solution.gram.scale + expected) + rounding
            assert squared[p] == pytest.approx(expected, abs=tolerance)
        else:
            assert np.isnan(squared[p])
    assert (squared[solution.alpha == 0] == 0).all()


@pytest.mark.parametrize("seed", range(40))
def test_lemma_holds_over_six_orders_of_magnitude(seed):
    """On problems whose costs span six orders, the rows without a span are found."""
    rng = np.random.default_rng(seed)
    base = moons_problem(25, seed=seed)
    problem = Problem(base.K, base.y, 10.0 ** rng.uniform(-3, 3, 25))
    solution = solve(problem)
    exists = span_exists(solution)
    for p in np.flatnonzero(solution.alpha):
        assert exists[p] == (lemma_slack(solution, p) >= 0)
        status, _ = span_program(solution, p, box=True)
        assert exists[p] == (status == piqp.PIQP_SOLVED)


@pytest.mark.parametrize(
    ("x", "y", "costs"),
    [
        ([1.0, 0.0, -1.0], [1, -1, -1], [1e-8, 5e-9, 1e6]),
        ([1.0, 2.0, 0.0], [1, 1, -1], [1e-8, 1e6, 1e-8]),
        ([1.0, 2.0, 0.0], [1, 1, -1], [1.0, 1e12, 1.0]),
    ],
)
def test_large_costs_of_others_do_not_blur_the_lemma(x, y, costs):
    """A cost of a million elsewhere makes no room for a row of cost 1e-8, by exact arithmetic."""
    x = np.array(x)
    solution = solve(Problem(np.outer(x, x), np.array(y), np.array(costs)))
    exists = span_exists(solution)
    for p in np.flatnonzero(solution.alpha):
        room = sum(
            Fraction(solution.problem.costs[i]) - Fraction(solution.alpha[i])
            if y[i] == y[p]
            else Fraction(solution.alpha[i])
            for i in np.flatnonzero(solution.in_bound)
            if i != p
        )
        assert exists[p] == (room >= Fraction(solution.alpha[p]) * (1 - Fraction(1, 10**11)))
    assert not exists[solution.alpha > 0].all()
    assert np.isnan(box_squared_spans(solution)[~exists]).all()


def test_rows_without_a_span_do_occur():
    """The problems above contain rows of both kinds for which the box leaves nothing."""
    kinds = set()
    for seed in SEEDS:
        solution = solve(random_problem(seed))
        missing = ~span_exists(solution)
        kinds |= {"in-bound"} if (missing & solution.in_bound).any() else set()
        kinds |= {"bounded"} if (missing & solution.bounded).any() else set()
    assert kinds == {"in-bound", "bounded"}


def test_no_in_bound_row_leaves_spans_undefined():
    """With every support vector at its cost no span exists, and nothing fails."""
    solution = solve(Problem(np.eye(4), np.array([1.0, 1, -1, -1]), np.full(4, 0.1)))
    assert not solution.in_bound.any()
    assert np.isnan(free_squared_spans(solution)).all()
    assert np.isnan(box_squared_spans(solution)).all()


def distance_to_flat(x, rows):
    """Return the squared distance of a point from the flat through some rows, by least squares."""
    basis = (rows[1:] - rows[0]).T
    rest = x - rows[0]
    if basis.shape[1]:
        rest = rest - basis @ np.linalg.lstsq(basis, rest)[0]
    return rest @ rest


@pytest.mark.parametrize("polish", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_linear_kernel_with_more_in_bound_rows_than_dimensions(seed, polish):
    """With duplicates and n* > d + 1 spans are the distances in the plane, many of them 0."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(60, 2)).astype(float)
    y = np.where(X.sum(axis=1) + rng.normal(scale=0.3, size=60) > 2, 1.0, -1.0)
    solution = solve(Problem(X @ X.T, y, np.full(60, 5.0)), polish=polish)
    squared = free_squared_spans(solution)
    inside = np.flatnonzero(solution.in_bound)
    for p in np.flatnonzero(solution.alpha):
        others = X[inside[inside != p]]
        if len(others):
            assert squared[p] == pytest.approx(distance_to_flat(X[p], others), abs=1e-9)
        else:
            assert np.isnan(squared[p])


def test_scaling_the_kernel_scales_the_spans():
    """(K, C) -> (s K, C / s) multiplies every squared span by s."""
    problem = moons_problem(50, cost=4.0)
    scaled = Problem(7.0 * problem.K.values, problem.y, problem.costs / 7.0)
    for spans in (free_squared_spans, box_squared_spans):
        np.testing.assert_allclose(
            spans(solve(scaled)), 7 * spans(solve(problem)), rtol=1e-5, atol=1e-7
        )


def test_many_bounded_rows_are_done_in_blocks(monkeypatch):
    """Blocks of columns give the same spans as all columns at once."""
    solution = solve(moons_problem(100, cost=0.2))
    assert solution.bounded.sum() > 20
    whole = free_squared_spans(solution)
    monkeypatch.setattr("span_hpo.loo.span_rule._COLUMNS_AT_ONCE", 7)
    np.testing.assert_allclose(free_squared_spans(solution), whole, rtol=1e-12)


def test_indefinite_kernel_has_no_spans():
    """Spans of a kernel that is not positive semi-definite are refused, with the remedy."""
    with pytest.raises(SolverError, match=r"not positive semi-definite .* method='refit'"):
        free_squared_spans(solve(indefinite_problem()))


@pytest.mark.parametrize("seed", range(60))
def test_programs_give_the_same_spans(seed):
    """PIQP's minimum without bounds is the closed form, and undefined spans are the same."""
    solution = solve(random_problem(seed))
    closed = free_squared_spans(solution)
    programs = free_squared_spans(solution, spans="piqp")
    unit = solution.problem.K.diagonal().max()
    np.testing.assert_array_equal(np.isnan(programs), np.isnan(closed))
    np.testing.assert_allclose(programs, closed, atol=1e-6 * unit)


def test_values_by_programs():
    """Leave-one-out with spans by PIQP gives the same values."""
    solution = solve(moons_problem())
    found = leave_one_out(solution, spans="piqp").decision_values
    np.testing.assert_allclose(found, leave_one_out(solution).decision_values, atol=1e-7)


def test_ways_to_spans_are_checked():
    """The message names the argument, what is wanted and what was received."""
    with pytest.raises(ValueError, match=r"`spans` must be one of \['closed', 'piqp'\], got 'qp'"):
        leave_one_out(solve(moons_problem()), spans="qp")


@pytest.mark.parametrize("seed", range(20))
def test_equal_rows_have_the_spans_of_the_hull(seed):
    """Spans of a fit in which equal rows are one equal those of all in-bound rows."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 3)), rng.choice([-1.0, 1.0], 40)
    X, y = np.concatenate([X, X[:12]]), np.concatenate([y, y[:12]])
    solution = solve(Problem(rbf(X, 0.5), y, rng.uniform(1, 20, 52)))
    if solution.basic is solution:
        pytest.skip("no equal row is in-bound")
    found = free_squared_spans(solution)
    plain = free_squared_spans(replace(solution, known_spans=None))
    np.testing.assert_allclose(found, plain, atol=1e-9)
