import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from span_hpo import Problem, SolverError, leave_one_out, solve
from span_hpo.loo.methods import METHODS
from span_hpo.loo.path.follow import dual_path, follow_rows
from span_hpo.loo.path.tableau import Tableau
from span_hpo.loo.proofs import Proofs
from span_hpo.runtime import interpreted
from tests.problems import (
    indefinite_problem,
    moons_problem,
    random_problem,
    rbf,
    symmetric_problem,
    two_moons,
)
from tests.truth import boundary_width, refits, refitted_margins, removable

SEEDS = range(120)


@pytest.fixture
def step_by_step(monkeypatch):
    """Let every path be followed by the functions that usually take over what one call left."""

    def nothing(problem, state, rows, **how):
        return Proofs.none(len(rows))

    monkeypatch.setattr("span_hpo.loo.path.follow.followed_in_one_call", nothing)


def disagreements(problem, **how):
    """Return (rows, refitted rows, what is wrong) of the exact methods on one problem."""
    solution = solve(problem, **how)
    truth, width = refitted_margins(problem), boundary_width(solution)
    if not how.get("polish", True):
        width *= 100  # a solution up to 1e-6 in the margins
    clear = np.abs(truth) > width
    found, refitted = [], 0
    for method, complete in (("exact", False), ("exact", True), ("span", False)):
        loo = leave_one_out(solution, method, complete=complete)
        margins = problem.y * loo.decision_values
        if method == "exact":
            refitted += loo.n_refit
            if not loo.certified[clear].all():
                found.append(f"{method}: not certified")
            if (clear & ((margins > 0) != (truth > 0))).any():
                found.append(f"{method}: wrong class")
            if complete and not loo.exact.all():
                found.append(f"{method}: not complete")
        if (loo.exact & (np.abs(margins - truth) > np.maximum(width, loo.accuracy))).any():
            found.append(f"{method}, {complete}: wrong value")
        least, largest = np.mean(clear & (truth <= 0)), np.mean(~clear | (truth <= 0))
        if loo.error_bounds[0] > largest + 1e-12 or loo.error_bounds[1] < least - 1e-12:
            found.append(f"{method}: bounds {loo.error_bounds} miss {least}...{largest}")
    return 2 * len(problem), refitted, found


def wrong(found):
    """Return the disagreements without rows that are not proven, which happen with equal rows."""
    return [what for what in found if "not certified" not in what and "not complete" not in what]


@pytest.mark.parametrize("seed", SEEDS)
def test_exact_is_brute_force(seed):
    """Classes, complete values and error bounds agree with polished refits on ugly problems."""
    _, _, found = disagreements(random_problem(seed, largest=25))
    assert not found


@pytest.mark.parametrize("seed", SEEDS)
def test_exact_with_ties_everywhere(seed):
    """The same where many rows reach a bound or a margin at once, or miss it by the last bit."""
    _, _, found = disagreements(symmetric_problem(seed))
    assert not found


@pytest.mark.slow
def test_exact_with_ties_on_a_thousand_problems():
    """The same over many more problems with ties."""
    unproven = 0
    for seed in range(1000, 2000):
        _, _, found = disagreements(symmetric_problem(seed))
        assert not wrong(found), seed
        unproven += bool(found)
    assert unproven <= 2


@pytest.mark.slow
def test_exact_is_brute_force_on_three_thousand_problems():
    """The same over 3,000 problems, and at most one row in a hundred is refitted."""
    rows = refitted = unproven = 0
    for seed in range(5000, 8000):
        count, refits, found = disagreements(random_problem(seed, largest=20))
        rows, refitted = rows + count, refitted + refits
        assert not wrong(found), seed
        unproven += bool(found)
    assert unproven <= 3
    assert rows > 60_000
    assert refitted <= 0.01 * rows


@pytest.mark.parametrize("tol", [1e-3, 1e-7])
@pytest.mark.parametrize("seed", range(40))
def test_exact_from_a_fit_without_polish(seed, tol):
    """A rough fit proves what it can and the rest is refitted; from a fine one paths start."""
    _, _, found = disagreements(random_problem(seed, largest=20), polish=False, tol=tol)
    assert not found


def permuted(problem, order):
    K = problem.K.values
    return Problem(K[np.ix_(order, order)], problem.y[order], problem.costs[order])


@pytest.mark.parametrize("seed", SEEDS)
def test_order_and_names_of_the_classes_do_not_matter(seed):
    """Permuted rows and swapped classes have the same classes, whatever alpha the solver finds."""
    problem = random_problem(seed)
    solution = solve(problem)
    right = problem.y * leave_one_out(solution, "exact").decision_values > 0
    values = problem.y * leave_one_out(solution, "exact", complete=True).decision_values
    clear = np.abs(values) > boundary_width(solution)
    swapped = solve(Problem(problem.K, -problem.y, problem.costs))
    np.testing.assert_array_equal(
        -problem.y * leave_one_out(swapped, "exact").decision_values > 0, right
    )
    order = np.random.default_rng(seed).permutation(len(problem))
    other = solve(permuted(problem, order))
    reordered = other.problem.y * leave_one_out(other, "exact").decision_values > 0
    np.testing.assert_array_equal(reordered[clear[order]], right[order][clear[order]])


def test_ties_on_a_grid_are_errors_in_every_order():
    """On a symmetric XOR grid values are exactly 0: errors, whatever rounding makes of them."""
    X = np.array([(i, j) for i in range(4) for j in range(4)], dtype=float)
    y = np.where((X.sum(axis=1) % 2) == 0, 1.0, -1.0)
    problem = Problem(X @ X.T, y, np.ones(16))
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(16)
        loo = leave_one_out(solve(permuted(problem, order)), "exact")
        assert loo.error == 1.0


def false_certificate(solution, p):
    """Return ``y_p f(x_p) - alpha_p max_j |x_p - x_j|^2``, the tempting lower bound."""
    K = solution.problem.K.values
    squares = K[p, p] + np.diag(K) - 2 * K[p]
    margin = solution.problem.y[p] * solution.decision_values[p]
    return margin - solution.alpha[p] * squares.max()


def test_first_counterexample_to_the_false_certificate():
    """Alternating labels, nearly equal small costs: the offset slides, every positive row fails."""
    x = np.linspace(0, 1, 6)
    y = np.where(np.arange(6) % 2 == 0, 1.0, -1.0)
    costs = np.full(6, 1e-3)
    costs[0] = 1.001e-3
    problem = Problem(np.exp(-((x[:, None] - x) ** 2)), y, costs)
    solution = solve(problem)
    truth = refitted_margins(problem)
    tempting = [false_certificate(solution, p) for p in range(0, 6, 2)]
    assert max(tempting) > 0
    loo = leave_one_out(solution, "exact")
    np.testing.assert_array_equal(y * loo.decision_values > 0, truth > 0)
    assert (y * loo.decision_values <= 0)[y > 0].all()


def test_second_counterexample_to_the_false_certificate():
    """All rows equal, y = (+, +, -), C = (1, 1, 1.5): without row 0 the offset is -1."""
    problem = Problem(np.ones((3, 3)), [1, 1, -1], [1.0, 1.0, 1.5])
    solution = solve(problem)
    assert false_certificate(solution, 0) > 0
    loo = leave_one_out(solution, "exact", complete=True)
    assert loo.decision_values[0] == pytest.approx(-1.0)
    assert leave_one_out(solution, "exact").decision_values[0] < 0
    assert leave_one_out(solution, "span").error_bounds[1] >= loo.error


@pytest.mark.parametrize("seed", range(60))
def test_margin_never_rises_along_a_path(seed):
    """y_p f falls all the way, slides of the offset included, and ends at the refitted value."""
    problem = random_problem(seed, largest=25)
    solution = solve(problem)
    truth, width = refitted_margins(problem), boundary_width(solution)
    refits_of = {p: refit for p, refit, _ in refits(problem)}
    complete = leave_one_out(solution, "exact", complete=True)
    for p in np.flatnonzero((solution.alpha > 0) & removable(problem)):
        try:
            path = dual_path(solution, int(p))
        except SolverError:
            assert complete.n_refit
            continue
        rounding = 1e-9 * (1 + np.abs(path.margin).max())
        assert (np.diff(path.margin) <= rounding).all()
        assert (np.diff(path.alpha) <= 0).all()
        assert (path.alpha[0], path.alpha[-1]) == (solution.alpha[p], 0)
        # Where the end leaves the offset free, its middle lies towards -y_p.
        if not refits_of[p].in_bound.any():
            assert path.margin[-1] >= truth[p] - width
        elif complete.n_refit == 0:
            assert path.margin[-1] == pytest.approx(truth[p], abs=width)


def test_first_segment_is_the_span_rule():
    """The margin falls at the rate S_p^2 until the first row changes its kind."""
    slid = compared = 0
    for seed in range(80):
        solution = solve(random_problem(seed, largest=25))
        spans = leave_one_out(solution).squared_spans
        alone = np.isin(
            solution.problem.y,
            [label for label in (-1, 1) if (solution.problem.y == label).sum() == 1],
        )
        for p in np.flatnonzero((solution.alpha > 0) & ~alone):
            path = dual_path(solution, int(p))
            if np.isnan(spans[p]):
                slid += path.alpha[1] == path.alpha[0]
                continue
            first = np.flatnonzero(path.alpha < path.alpha[0] * (1 - 1e-6))[0]
            if first > 1:
                continue  # ties at the start
            slope = (path.margin[0] - path.margin[1]) / (path.alpha[0] - path.alpha[1])
            scale = np.abs(solution.problem.K.diagonal()).max()
            assert slope == pytest.approx(spans[p], abs=1e-6 * scale)
            compared += 1
    assert compared > 200
    assert slid > 20


def test_values_hold_the_proof():
    """Without `complete` a value is exact or a bound that is closer to 0 than the truth."""
    solution = solve(moons_problem(120, cost=20.0))
    loo = leave_one_out(solution, "exact")
    complete = leave_one_out(solution, "exact", complete=True)
    bound, truth = loo.y * loo.decision_values, loo.y * complete.decision_values
    assert loo.certified.all()
    assert complete.exact.all()
    assert 0 < np.count_nonzero(~loo.exact) < 120
    assert loo.error == complete.error
    assert loo.error_bounds == (loo.error, loo.error)
    assert (np.abs(bound) <= np.abs(truth) + 1e-9).all()
    np.testing.assert_allclose(bound[loo.exact], truth[loo.exact], atol=1e-9)


def test_long_paths_change_their_tableau(monkeypatch, step_by_step):
    """After few segments the tableau is made anew, with the same answers."""
    solution = solve(moons_problem(150, cost=30.0, gamma=3.0))
    expected = leave_one_out(solution, "exact", complete=True)
    monkeypatch.setattr("span_hpo.loo.path.tableau.Tableau.follow.__defaults__", (3,))
    shortened = leave_one_out(solution, "exact", complete=True)
    np.testing.assert_allclose(shortened.decision_values, expected.decision_values, atol=1e-9)


def test_unwatched_rows_are_noticed(monkeypatch, step_by_step):
    """If a path watches far too few rows, the check finds out and it is followed again."""
    problem = moons_problem(150, cost=30.0, gamma=3.0)
    solution = solve(problem)
    expected = leave_one_out(solution, "exact", complete=True)

    def nothing(tableau, removed, watch):
        count = len(tableau.rows) if watch == "all" else tableau.table.n_base
        return np.full(len(removed), count)

    monkeypatch.setattr("span_hpo.loo.path.tableau.Tableau.watched", nothing)
    for complete in (True, False):
        loo = leave_one_out(solution, "exact", complete=complete)
        assert loo.n_refit == 0
        assert loo.error == expected.error
        exact = loo.exact
        np.testing.assert_allclose(
            loo.decision_values[exact], expected.decision_values[exact], atol=1e-9
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_step_by_step_is_brute_force(seed, step_by_step):
    """Without the one call, the answers agree with refits just as well."""
    _, _, found = disagreements(random_problem(seed, largest=25))
    assert not wrong(found)


def test_the_twins_give_the_same_answers(step_by_step):
    """The plain functions give what the compiled ones give."""
    problems = [random_problem(seed) for seed in range(40)]
    problems.append(moons_problem(100, cost=20.0))
    for solution in map(solve, problems):
        fast = leave_one_out(solution, "exact")
        with interpreted():
            plain = leave_one_out(solution, "exact")
        np.testing.assert_array_equal(plain.exact, fast.exact)
        np.testing.assert_allclose(
            plain.decision_values, fast.decision_values, atol=boundary_width(solution)
        )


def test_threads_change_nothing():
    """Paths followed by several threads give the same values to the last bit."""
    solution = solve(moons_problem(200, cost=20.0, gamma=3.0))
    one = leave_one_out(solution, "exact", complete=True)
    several = leave_one_out(solution, "exact", complete=True, n_jobs=3)
    on_all_cores = leave_one_out(solution, "exact", complete=True, n_jobs=-1)
    np.testing.assert_array_equal(on_all_cores.decision_values, several.decision_values)
    np.testing.assert_array_equal(one.decision_values, several.decision_values)
    with interpreted():
        plain = leave_one_out(solution, "exact", n_jobs=2)
    assert plain.error == one.error
    with pytest.raises(ValueError, match="`n_jobs` must be a whole number of at least 1, or -1"):
        leave_one_out(solution, "exact", n_jobs=0)


def test_blocks_of_a_kernel_are_enough():
    """A kernel that gives blocks only, and no matrix, has the same leave-one-out values."""
    problem = moons_problem(60, cost=5.0)

    class Blocks:
        def __len__(self):
            return 60

        def diagonal(self):
            return problem.K.values.diagonal().copy()

        def block(self, rows, columns):
            return problem.K.values[rows][:, columns].copy()

    by_blocks = leave_one_out(solve(Problem(Blocks(), problem.y, problem.costs)), "exact")
    expected = leave_one_out(solve(problem), "exact")
    np.testing.assert_allclose(by_blocks.decision_values, expected.decision_values, atol=1e-9)


def test_paths_from_a_balanced_fit_without_in_bound_rows():
    """All costs equal, all rows bounded: every removal tips the offset, and no row is refitted."""
    X, y = two_moons(60)
    problem = Problem(rbf(X, 1.0), y, np.full(60, 1e-3))
    solution = solve(problem)
    assert not solution.in_bound.any()
    loo = leave_one_out(solution, "exact", complete=True)
    np.testing.assert_allclose(y * loo.decision_values, refitted_margins(problem), atol=1e-9)
    assert loo.n_refit == 0
    assert loo.error == 1.0


def test_follow_rows_proves_every_row_of_a_regular_problem():
    """On two moons no path is lost."""
    solution = solve(moons_problem(120, cost=5.0))
    assert solution.is_optimal
    rows = np.flatnonzero(solution.alpha)
    for complete in (False, True):
        proofs = follow_rows(solution, rows, complete=complete)
        assert proofs.proven.all()
        assert proofs.exact.all() == complete


@pytest.mark.parametrize("method", ["exact", "stopping"])
def test_indefinite_kernels_are_refused(method):
    """Paths need a positive semi-definite kernel, and the error says what to do."""
    with pytest.raises(SolverError, match="method='refit'"):
        leave_one_out(solve(indefinite_problem()), method)


def test_indefinite_kernel_without_in_bound_rows_is_refused():
    """Also where no span is defined, so that only the tableau can notice."""
    refused = 0
    for seed in range(10):
        problem = indefinite_problem(seed=seed)
        half = np.minimum((problem.y > 0).sum(), (problem.y < 0).sum())
        keep = np.concatenate(
            [np.flatnonzero(problem.y > 0)[:half], np.flatnonzero(problem.y < 0)[:half]]
        )
        K = problem.K.values[np.ix_(keep, keep)] - 3 * np.eye(2 * half)
        solution = solve(Problem(K, problem.y[keep], np.full(2 * half, 1e-4)))
        if not solution.in_bound.any():
            with pytest.raises(SolverError, match="not positive semi-definite"):
                leave_one_out(solution)
            refused += 1
    assert refused


def contradictory_problem(cost):
    """Return pairs of equal rows with opposite labels, which only the costs keep finite."""
    x = np.repeat(np.arange(8.0), 2)
    return Problem(np.exp(-((x[:, None] - x) ** 2)), np.tile([1.0, -1.0], 8), np.full(16, cost))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("cost", [1e-10, 1.0, 1e4, 1e13])
def test_no_value_is_missing(method, cost):
    """Every row has a number, also where costs are beyond what double precision can solve."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        loo = leave_one_out(solve(contradictory_problem(cost)), method)
    assert np.isfinite(loo.decision_values).all()
    if cost <= 1e4:
        assert loo.error == 1.0
        assert loo.certified.all()


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_exact_in_any_unit_of_the_kernel(scale):
    """(K, C) -> (s K, C / s) has the same values, far beyond single precision."""
    problem = moons_problem(50, cost=10.0)
    scaled = Problem(scale * problem.K.values, problem.y, problem.costs / scale)
    values = [
        leave_one_out(solve(one), "exact", complete=True).decision_values
        for one in (problem, scaled)
    ]
    np.testing.assert_allclose(*values, atol=1e-8)


def test_kernel_of_zeros():
    """All rows at one point of no length: the majority of the costs decides."""
    problem = Problem(np.zeros((5, 5)), [1, 1, 1, -1, -1], np.ones(5))
    loo = leave_one_out(solve(problem), "exact", complete=True)
    np.testing.assert_allclose(problem.y * loo.decision_values, refitted_margins(problem))


def test_rows_without_cost_take_no_part_in_paths():
    """They keep f, and the paths of the others are those without them."""
    problem = moons_problem(60, cost=10.0)
    costs = problem.costs.copy()
    costs[[3, 10, 40]] = 0.0
    kept = np.flatnonzero(costs)
    whole = leave_one_out(solve(Problem(problem.K, problem.y, costs)), "exact", complete=True)
    part = leave_one_out(
        solve(Problem(problem.K.values[np.ix_(kept, kept)], problem.y[kept], costs[kept])),
        "exact",
        complete=True,
    )
    np.testing.assert_allclose(whole.decision_values[kept], part.decision_values, atol=1e-9)


def test_every_path_is_followed_once_with_others_of_its_width(monkeypatch, step_by_step):
    """Paths are followed in groups that watch similar numbers of rows, the widest first."""
    groups = []
    paths = Tableau.paths

    def noted(self, removed, whole, watched):
        groups.append((removed, watched))
        return paths(self, removed, whole, watched)

    monkeypatch.setattr(Tableau, "paths", noted)
    monkeypatch.setattr("span_hpo.loo.path.follow._ENTRIES_AT_ONCE", 1000)
    monkeypatch.setattr("span_hpo.loo.path.follow._WORTH_A_BLOCK", 0)
    solution = solve(moons_problem(200, cost=5.0))
    rows = np.flatnonzero(solution.alpha)
    assert follow_rows(solution, rows, complete=False).proven.all()
    np.testing.assert_array_equal(np.sort(np.concatenate([group for group, _ in groups])), rows)
    assert len(groups) > 3
    widest = [watched.max() for _, watched in groups]
    assert widest == sorted(widest, reverse=True)
    assert min(widest) * 3 < max(widest)
    for _, watched in groups:
        assert watched.min() * 3 >= watched.max()
        assert len(watched) == 1 or len(watched) * watched.max() <= 1000
