import numpy as np
import pytest

from span_hpo import Problem, leave_one_out, solve
from span_hpo.loo.path.one_call import followed_in_one_call
from span_hpo.loo.path.tableau import PathState
from span_hpo.loo.proofs import Proofs
from span_hpo.runtime import interpreted
from tests.compiled import needs_compiled
from tests.problems import moons_problem, random_problem, rbf, two_moons
from tests.truth import boundary_width, refitted_margins, removable

SEEDS = range(150)


def followed(solution, complete, threads=1):
    """Return the rows whose paths can be followed, and what one call proves about them."""
    basic = solution.basic
    rows = np.flatnonzero((basic.alpha > 0) & removable(basic.problem))
    proofs = followed_in_one_call(
        basic.problem, PathState.of_fit(basic), rows, complete=complete, threads=threads
    )
    return rows, proofs


def check_proofs(problem, proofs, rows, solution):
    """Assert that proven classes, bounds and accuracies agree with refits."""
    truth, width = refitted_margins(problem)[rows], boundary_width(solution)
    clear = proofs.proven & (np.abs(truth) > width)
    assert ((proofs.margin > 0) == (truth > 0))[clear].all()
    exact = proofs.solved
    assert (np.abs(proofs.margin - truth)[exact] <= proofs.accuracy[exact] + width).all()
    bound = proofs.proven & ~exact
    assert (np.abs(proofs.margin)[bound] <= np.abs(truth)[bound] + width).all()


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_proofs_agree_with_refits(seed, complete):
    """Classes, bounds and accuracies hold on ugly problems."""
    problem = random_problem(seed, largest=25)
    solution = solve(problem)
    if not (solution.is_optimal and solution.basic.in_bound.any()):
        pytest.skip("paths start elsewhere")
    rows, proofs = followed(solution, complete)
    check_proofs(problem, proofs, rows, solution)


@needs_compiled
@pytest.mark.parametrize("cost", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("gamma", [0.3, 3.0, 100.0])
def test_no_row_is_left_open_on_ordinary_problems(cost, gamma):
    """All classes are proven, and all values are accurate to many digits."""
    problem = moons_problem(120, cost=cost, gamma=gamma)
    solution = solve(problem)
    for complete in (False, True):
        rows, proofs = followed(solution, complete)
        check_proofs(problem, proofs, rows, solution)
        assert proofs.proven.all()
        if complete:
            assert (proofs.accuracy[proofs.proven] <= 1e-3).all()
            assert np.median(proofs.accuracy) <= 1e-4


@needs_compiled
def test_equal_rows_do_not_spoil_the_accuracy():
    """A zero row that equals an in-bound row is always on its margin, which says nothing."""
    X, y = two_moons(60)
    X, y = np.concatenate([X, X[:20]]), np.concatenate([y, y[:20]])
    problem = Problem(rbf(X, 2.0), y, np.full(len(y), 50.0))
    solution = solve(problem)
    on_margin = np.abs(solution.basic.excess) <= 1e-8
    assert np.count_nonzero(on_margin & ~solution.basic.in_bound) > 0
    rows, proofs = followed(solution, complete=True)
    check_proofs(problem, proofs, rows, solution)
    assert np.median(proofs.accuracy[proofs.proven]) <= 1e-7


def test_threads_divide_the_rows():
    """Several threads give the same proofs up to the rounding of columns."""
    solution = solve(moons_problem(200, cost=20.0, gamma=3.0))
    _, one = followed(solution, complete=True)
    _, several = followed(solution, complete=True, threads=3)
    np.testing.assert_array_equal(one.proven, several.proven)
    np.testing.assert_allclose(one.margin, several.margin, atol=1e-9)


def test_nothing_is_proven_without_compiled_code():
    """Without compiled code, and for kernels that are not held, the other functions do the work."""
    solution = solve(moons_problem(80))
    with interpreted():
        _, proofs = followed(solution, complete=False)
    assert not proofs.proven.any()

    class Blocks:
        def __len__(self):
            return 80

        def diagonal(self):
            return solution.problem.K.diagonal()

        def block(self, rows, columns):
            return solution.problem.K.block(rows, columns)

    problem = Problem(Blocks(), solution.problem.y, solution.problem.costs)
    _, proofs = followed(solve(problem), complete=False)
    assert not proofs.proven.any()


def test_little_memory_is_enough(monkeypatch):
    """If few columns can be kept, rows may be left open, and others are proven as before."""
    solution = solve(moons_problem(150, cost=30.0, gamma=3.0))
    expected = leave_one_out(solution, "exact", complete=True)
    monkeypatch.setattr("span_hpo.loo.path.one_call._MOST_ENTRIES", 1000)
    found = leave_one_out(solution, "exact", complete=True)
    np.testing.assert_allclose(found.decision_values, expected.decision_values, atol=1e-9)


@pytest.mark.slow
def test_proofs_agree_with_refits_on_many_problems():
    """The proofs of 1,500 further ugly problems hold, and few rows are left open."""
    rows_of_all, left = 0, 0
    for seed in range(1000, 2500):
        problem = random_problem(seed, largest=40)
        solution = solve(problem)
        if not (solution.is_optimal and solution.basic.in_bound.any()):
            continue
        for complete in (False, True):
            rows, proofs = followed(solution, complete)
            check_proofs(problem, proofs, rows, solution)
            rows_of_all += len(rows)
            left += np.count_nonzero(~proofs.proven)
    assert rows_of_all > 20_000
    assert left < 0.25 * rows_of_all


def test_rows_without_a_proof_have_empty_entries():
    """What is left open has neither a margin nor an accuracy."""
    solution = solve(random_problem(3, largest=25))
    _, proofs = followed(solution, complete=False)
    left = ~proofs.proven
    assert isinstance(proofs, Proofs)
    assert np.isinf(proofs.accuracy[left]).all()
    assert not proofs.solved[left].any()


@needs_compiled
def test_accuracies_are_not_sharper_than_a_slightly_indefinite_kernel_allows():
    """Several points satisfy all conditions of such a kernel, with margins that differ by 1e-11."""
    rng = np.random.default_rng(5)
    accuracies = []
    for _ in range(40):
        x = rng.normal(size=11)
        y = np.where(rng.random(11) < 0.5, 1.0, -1.0)
        if min((y > 0).sum(), (y < 0).sum()) < 3:
            continue
        K = np.outer(x, x) - 1e-11 * np.eye(11)
        solution = solve(Problem(K, y, np.where(y > 0, 0.5, 1.5)))
        if solution.basic.in_bound.sum() > 1:  # all rows are on the line through two of them
            _, proofs = followed(solution, True)
            accuracies.append(proofs.accuracy[proofs.solved])
    assert np.concatenate(accuracies).size > 30
    assert np.concatenate(accuracies).min() > 1e-10
