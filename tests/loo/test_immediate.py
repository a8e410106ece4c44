import numpy as np
import pytest

from span_hpo import Problem, leave_one_out, solve
from span_hpo.loo.immediate import fit_proofs, immediate_proofs, proofs_by_definition
from span_hpo.runtime import interpreted
from tests.compiled import needs_compiled
from tests.problems import (
    mixed_norms_problem,
    moons_problem,
    random_problem,
    symmetric_problem,
)
from tests.truth import boundary_width, refits, refitted_margins, removable


def with_some_costs_of_zero(seed):
    """Return a random problem in which some rows take no part, but some of each class do."""
    problem = random_problem(seed, largest=20)
    costs = problem.costs.copy()
    costs[np.random.default_rng(seed).random(len(costs)) < 0.2] = 0.0
    for label in (-1.0, 1.0):
        first = np.flatnonzero(problem.y == label)[0]
        costs[first] = problem.costs[first]
    return Problem(problem.K, problem.y, costs)


@pytest.mark.parametrize("seed", range(100))
def test_values_known_at_once_are_those_of_refits(seed):
    """Rows of cost 0, zero rows and last rows of their class have the value of a refit, or -1."""
    problem = with_some_costs_of_zero(seed)
    solution = solve(problem)
    proofs = immediate_proofs(solution)
    expected = (solution.alpha == 0) | ~removable(problem)
    np.testing.assert_array_equal(proofs.solved, expected)
    truth, proven = refitted_margins(problem), proofs.proven
    assert not proven[~expected].any()
    np.testing.assert_allclose(proofs.margin[proven], truth[proven], atol=boundary_width(solution))


@pytest.mark.parametrize("seed", range(40))
def test_proofs_by_definition(seed):
    """Only rows of cost 0, with their decision value, and the last row of a class are known."""
    problem = with_some_costs_of_zero(seed)
    solution = solve(problem)
    proofs = proofs_by_definition(solution)
    free, alone = problem.costs == 0, ~removable(problem)
    np.testing.assert_array_equal(proofs.proven, free | alone)
    np.testing.assert_array_equal(proofs.margin[free], (problem.y * solution.decision_values)[free])
    assert (proofs.margin[alone] == -1).all()


def test_an_unsolved_fit_tells_only_errors_by_definition():
    """Where the fit is not solved no decision value is known, but a last row is still an error."""
    problem = moons_problem(60, cost=5.0)
    y = np.where(np.arange(60) == 7, 1.0, -1.0)
    costs = problem.costs.copy()
    costs[3] = 0.0
    solution = solve(Problem(problem.K, y, costs), polish=False, tol=0.5)
    assert not solution.is_optimal
    for proofs in (immediate_proofs(solution), proofs_by_definition(solution)):
        assert np.flatnonzero(proofs.proven).tolist() == [7]
        assert proofs.margin[7] == -1.0


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


@needs_compiled
@pytest.mark.parametrize("fit", ["polished", "rough"])
@pytest.mark.parametrize(
    "generate", [with_some_costs_of_zero, random_problem, symmetric_problem, mixed_norms_problem]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_call_proves_what_its_parts_prove(generate, fit):
    """Values, errors by definition and classes from the fit alone are those of Python."""
    n_values = n_classes = 0
    for seed in range(100):
        solution = solve(generate(seed), polish=fit == "polished").basic
        for prove in (immediate_proofs, fit_proofs):
            found = prove(solution)
            with interpreted():  # bounds and gaps of the solution are the same in both cases
                wanted = prove(solution)
            np.testing.assert_array_equal(found.solved, wanted.solved)
            np.testing.assert_array_equal(found.proven, wanted.proven)
            np.testing.assert_array_equal(found.accuracy, wanted.accuracy)
            np.testing.assert_array_equal(found.margin[found.solved], wanted.margin[found.solved])
            assert found.ends.keys() == wanted.ends.keys()
        bounds, wanted_bounds = found.margin[~found.solved], wanted.margin[~found.solved]
        np.testing.assert_array_equal(np.sign(bounds), np.sign(wanted_bounds))
        if generate is not mixed_norms_problem:  # whose keys tie up to rounding
            np.testing.assert_allclose(bounds, wanted_bounds, rtol=1e-5, atol=1e-9)
        n_values += np.count_nonzero(found.solved & found.proven)
        n_classes += np.count_nonzero(found.proven & ~found.solved)
    assert n_classes > 20 or generate is mixed_norms_problem
    assert n_values > 50 or fit == "rough"


def test_one_call_reads_rows_of_symmetric_matrices():
    """On moons of any cost, Python and the one call, which reads other triangles, agree."""
    for cost in (0.01, 1.0, 100.0, 1e5):
        solution = solve(moons_problem(200, cost=cost))
        found = fit_proofs(solution)
        with interpreted():
            wanted = fit_proofs(solution)
        np.testing.assert_array_equal(found.proven, wanted.proven)
        np.testing.assert_array_equal(found.accuracy, wanted.accuracy)
        np.testing.assert_allclose(found.margin, wanted.margin, rtol=1e-9)
