from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.robustness.referee import exact_value
from span_hpo import Problem, solve
from span_hpo.loo.ends import ValueProof, end_errors, proven_values, values_without, without_each
from tests.problems import mixed_norms_problem, moons_problem, random_problem, symmetric_problem
from tests.truth import removable

UNCONVERGED = "ignore::sklearn.exceptions.ConvergenceWarning"


def errors_of(gap, square, room, excess=0.0, root=0.0, imbalance=0.0):
    """Return the bound of one in-bound row as a number."""
    one = [np.array([value]) for value in (gap, square, room, excess, root)]
    return float(end_errors(*one, imbalance)[0])


def left_out(problem, p):
    """Return ``f^p(x_p)`` in rational numbers."""
    K = problem.K.values.tolist()
    return exact_value(K, problem.y, problem.without(p).costs, p, rational=True)


def zero_rows(solution):
    """Return the rows that a fit does not need and that are not the last of their class."""
    return np.flatnonzero((solution.alpha == 0) & removable(solution.problem))


def test_the_bound_is_the_distance_times_the_root_of_twice_the_gap():
    """With room enough, the best step gives ``S sqrt(2 gap) + |g_k|``."""
    assert errors_of(gap=2.0, square=9.0, room=1e3) == pytest.approx(6.0)
    assert errors_of(gap=2.0, square=9.0, room=1e3, excess=0.25) == pytest.approx(6.25)
    assert errors_of(gap=0.0, square=9.0, room=1e-3) == 0.0


def test_a_short_step_is_the_largest_one():
    """With little room, the step s is the room, and the bound ``s S^2 / 2 + gap / s``."""
    assert errors_of(gap=2.0, square=9.0, room=0.5) == pytest.approx(0.25 * 9 + 4)


def test_no_step_is_better():
    """The bound is least over s of ``(s S + e r)^2 / (2 s) + gap / s + |g| (1 + e / s)``."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        gap, S, room, excess, root = 10.0 ** rng.uniform(-4, 2, size=5)
        e = room * rng.choice([0.0, 1e-6, 0.3])
        s = np.geomspace(1e-9 * (room - e), room - e, 20_001)
        bounds = (s * S + e * root) ** 2 / (2 * s) + gap / s + excess * (1 + e / s)
        found = errors_of(gap, S * S, room, excess, root, e)
        assert found == pytest.approx(bounds.min(), rel=1e-4)


def test_a_row_without_room_proves_nothing():
    """Neither a row at its bound nor one with less room than the imbalance gives a bound."""
    assert errors_of(gap=0.0, square=1.0, room=0.0) == np.inf
    assert errors_of(gap=0.0, square=1.0, room=1e-12, imbalance=1e-12) == np.inf
    assert np.isfinite(errors_of(gap=0.0, square=1.0, room=2e-12, imbalance=1e-12))


@pytest.mark.parametrize("tol", [0.3, 0.1, 1e-3])
@pytest.mark.parametrize("seed", range(15))
def test_errors_hold_at_unconverged_fits(seed, tol):
    """However early LIBSVM stops, values without a zero row are within the bounds."""
    problem = moons_problem(14, cost=5.0, gamma=2.0, seed=seed)
    fit = solve(problem, polish=False, tol=tol)
    rows = zero_rows(fit)
    errors = ValueProof(fit).errors(rows)
    for p, error in zip(rows, errors, strict=True):
        assert abs(float(left_out(problem, p)) - fit.decision_values[p]) <= error * (1 + 1e-12)


@pytest.mark.parametrize("polish", [False, True])
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.filterwarnings(UNCONVERGED)
def test_errors_hold_for_rows_of_different_norms(seed, polish):
    """Values of rows that are much larger than all others are within the bounds too."""
    problem = mixed_norms_problem(seed)
    fit = solve(problem, polish=polish, tol=1e-2)
    rows = zero_rows(fit)
    proofs = proven_values(fit, rows)
    for i, p in enumerate(rows):
        truth = left_out(problem, p) * int(problem.y[p])
        error = abs(float(truth - Fraction(proofs.margin[i])))
        assert error <= proofs.accuracy[i] * (1 + 1e-12)
        if proofs.proven[i]:
            assert (proofs.margin[i] > 0) == (truth > 0)


@pytest.mark.parametrize("seed", range(40))
def test_errors_hold_where_rows_tie(seed):
    """On symmetric problems, with free offsets among them, values are within their bounds."""
    problem = symmetric_problem(seed)
    fit = solve(problem)
    rows = zero_rows(fit)
    proofs = proven_values(fit, rows)
    for i, p in enumerate(rows):
        truth = left_out(problem, p) * int(problem.y[p])
        error = abs(float(truth - Fraction(proofs.margin[i])))
        assert error <= proofs.accuracy[i] * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_polished_fits_prove_nearly_all_zero_rows(seed):
    """The bounds are of use: on ordinary problems they are far below the margin."""
    fit = solve(moons_problem(60, cost=5.0, seed=seed))
    proofs = proven_values(fit, zero_rows(fit))
    assert proofs.proven.all()
    assert proofs.accuracy.max() < 1e-5


@pytest.mark.parametrize("tol", [0.1, 1e-3])
@pytest.mark.parametrize("seed", range(10))
def test_errors_elsewhere_hold(seed, tol):
    """Decision values of rows outside an unconverged fit are within the bounds."""
    whole = moons_problem(16, cost=5.0, gamma=2.0, seed=seed)
    rows, others = np.arange(12), np.arange(12, 16)
    fit = solve(whole.take(rows), polish=False, tol=tol)
    proof = ValueProof(fit)
    K = whole.K.values
    values = K[np.ix_(others, rows)] @ (fit.problem.y * fit.alpha) + fit.b
    errors = proof.errors_elsewhere(
        K[np.ix_(others, rows[proof.holders])], K.diagonal()[others], np.full(4, 1e-13)
    )
    costs = np.where(np.arange(16) < 12, whole.costs, 0.0)
    for p, value, error in zip(others, values, errors, strict=True):
        assert abs(float(exact_value(K.tolist(), whole.y, costs, p)) - value) <= error


def free_offset():
    """Return a fit with bounded rows at -1 and 1 and a free offset, and zero rows at 4, 5 and 6."""
    x = np.array([-1.0, 1.0, 4.0, 5.0, 6.0])
    return solve(Problem(np.outer(x, x), [-1.0, 1.0, 1.0, 1.0, 1.0], [0.25, 0.25, 1, 1, 1]))


def test_a_free_offset_widens_without_the_row_that_limits_it():
    """With f = x / 2 + b, the middle of the offsets that remain is taken for each row."""
    fit = free_offset()
    np.testing.assert_array_equal(fit.alpha, [0.25, 0.25, 0, 0, 0])
    low, high = fit.offset_limits.interval
    assert (low, high) == (-0.5, 0.5)
    rows = np.array([2, 3, 4])
    np.testing.assert_array_equal(values_without(fit, rows), [2.0, 2.5, 3.0])
    truth = [float(left_out(fit.problem, p)) for p in rows]
    np.testing.assert_array_equal(truth, [2.0, 2.5, 3.0])
    proofs = proven_values(fit, rows)
    assert proofs.proven.all()
    assert proofs.accuracy.max() < 1e-13


def test_free_offsets_of_unbalanced_sums_are_not_proven():
    """If y'alpha is not exactly 0, the middle of the offsets is not the answer."""
    fit = free_offset()
    bits = fit.alpha * np.array([1.0, 1 - 2.0**-53, 1, 1, 1])
    problem = Problem(fit.problem.K, fit.problem.y, np.append(bits[:2], [1.0, 1.0, 1.0]))
    unbalanced = replace(fit, problem=problem, alpha=bits)
    assert not unbalanced.in_bound.any()
    assert unbalanced.imbalance != 0
    assert (ValueProof(unbalanced).errors(np.array([2, 3])) == np.inf).all()


def test_largest_value_without_each_row():
    """Only the row of the largest value is given the second largest; -1 stands for no row."""
    values = np.array([3.0, 7.0, 5.0])
    np.testing.assert_array_equal(without_each(values, np.array([0, 1, 2, -1])), [7, 5, 7, 7])
    np.testing.assert_array_equal(without_each(np.array([2.0, 2.0]), np.array([0, 1])), [2, 2])


@pytest.mark.parametrize("seed", range(10))
def test_values_do_not_depend_on_the_order_of_rows(seed):
    """Permuted rows have the same values, within the bounds of both."""
    problem = random_problem(seed, largest=20)
    order = np.random.default_rng(seed).permutation(len(problem))
    fit = solve(problem)
    permuted = solve(problem.take(order))
    both = np.flatnonzero((fit.alpha[order] == 0) & (permuted.alpha == 0))
    if not len(both):
        pytest.skip("no row is zero in both fits")
    one, other = proven_values(fit, order[both]), proven_values(permuted, both)
    gaps = np.abs(one.margin - other.margin)
    assert (gaps <= one.accuracy + other.accuracy).all()
