from fractions import Fraction

import numpy as np
import pytest

from benchmarks.robustness.referee import exact_value
from span_hpo import Problem, solve
from span_hpo.kernels.blocks import KernelMatrix
from span_hpo.loo.elsewhere import values_elsewhere
from tests.problems import mixed_norms_problem, random_problem, symmetric_problem


def split(problem, seed):
    """Return a fit of some rows, the rows, all others, and their decision values."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate([np.flatnonzero(problem.y == label)[:2] for label in (-1.0, 1.0)])
    rest = np.setdiff1d(np.arange(len(problem)), rows)
    rows = np.sort(np.concatenate([rows, rest[rng.random(len(rest)) < 0.5]]))
    others = np.setdiff1d(np.arange(len(problem)), rows)
    fit = solve(problem.take(rows))
    values = problem.K.values[np.ix_(others, rows)] @ (fit.problem.y * fit.alpha) + fit.b
    return fit, rows, others, values


def truth_of(problem, rows, p):
    """Return the decision value of row p by the fit of some rows, in rational numbers."""
    costs = np.where(np.isin(np.arange(len(problem)), rows), problem.costs, 0.0)
    return exact_value(problem.K.values.tolist(), problem.y, costs, p, rational=True)


FAMILIES = [lambda seed: random_problem(seed, largest=10), symmetric_problem, mixed_norms_problem]


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("make", FAMILIES, ids=["random", "symmetric", "mixed"])
def test_votes_are_those_of_exact_arithmetic(make, seed):
    """Every proven sign is right, every bound holds, and nearly every sign is proven."""
    problem = make(seed)
    fit, rows, others, values = split(problem, seed)
    proofs = values_elsewhere(fit, problem.K, rows, others, values, certify=True)
    for i, p in enumerate(others):
        truth = truth_of(problem, rows, p)
        if proofs.accuracy[i] < np.inf:
            error = abs(Fraction(proofs.margin[i]) - truth)
            assert error <= Fraction(proofs.accuracy[i]) * (1 + Fraction(1, 10**9))
        if proofs.proven[i]:
            assert (proofs.margin[i] > 0) == (truth > 0)
        else:
            assert abs(truth) < 1e-9 * (1 + fit.alpha.sum())


def test_a_vote_of_zero_by_hand():
    """A row on the boundary of a dyadic fit is 0 for certain, whatever the order of rows."""
    X = np.array([[0.0, -1.0], [-1.0, 1.0], [0.0, 0.0], [-1.0, -1.0], [0.0, 1.0]])
    for order in (np.arange(5), np.arange(5)[::-1]):
        K = (X @ X.T)[np.ix_(order, order)]
        rows, others = np.flatnonzero(order % 3 != 1), np.flatnonzero(order % 3 == 1)
        y = np.where(order[rows] == 3, 1.0, -1.0)
        fit = solve(Problem(K[np.ix_(rows, rows)], y, np.ones(3)))
        values = K[np.ix_(others, rows)] @ (y * fit.alpha) + fit.b
        proofs = values_elsewhere(fit, KernelMatrix(K), rows, others, values, certify=True)
        assert proofs.proven.all()
        found = dict(zip(order[others].tolist(), proofs.margin.tolist(), strict=True))
        assert found[1] == 0.0
        assert found[4] == pytest.approx(-1.0)
        assert proofs.accuracy[order[others] == 1] == 0.0


def test_what_cannot_be_proven_is_zero():
    """A decision value that is 0 up to rounding, and not proven, becomes 0."""
    X = np.array([[-1.5, 0.0], [1.5, 0.0], [0.0, 0.7]])
    K = KernelMatrix(X @ X.T)
    fit = solve(Problem((X @ X.T)[:2, :2], [-1.0, 1.0], np.ones(2)))
    for noise in (0.0, 1e-16, -1e-16):
        proofs = values_elsewhere(
            fit, K, np.arange(2), np.array([2]), np.array([noise]), certify=True
        )
        assert proofs.margin[0] == 0
        assert proofs.accuracy[0] < 1e-12


def test_the_given_values_are_left_alone():
    """The array of decision values is not written to."""
    problem = symmetric_problem(1)
    fit, rows, others, values = split(problem, 1)
    before = values.copy()
    values_elsewhere(fit, problem.K, rows, others, values, certify=True)
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize("seed", range(10))
def test_swapped_classes_swap_the_votes(seed):
    """With the classes of the fit exchanged, every decision value changes its sign."""
    problem = random_problem(seed, largest=15)
    fit, rows, others, values = split(problem, seed)
    swapped = solve(Problem(fit.problem.K, -fit.problem.y, fit.problem.costs))
    one = values_elsewhere(fit, problem.K, rows, others, values, certify=True)
    other = values_elsewhere(swapped, problem.K, rows, others, -values, certify=True)
    np.testing.assert_allclose(one.margin, -other.margin, rtol=1e-12, atol=1e-12)
    nonzero = one.margin != 0
    np.testing.assert_array_equal(one.proven[nonzero], other.proven[nonzero])
