import numpy as np
import pytest

from span_hpo import solve
from span_hpo.loo.path import check
from span_hpo.loo.path.check import checked_paths
from span_hpo.loo.path.segments import END, ERROR, IN_BOUND, SUCCESS
from span_hpo.loo.path.tableau import PathState, Tableau
from span_hpo.runtime import interpreted
from tests.problems import moons_problem, random_problem, symmetric_problem
from tests.truth import removable

SLACK = 1e-9  # movement of margins for which rows are looked at in addition


def followed(complete, problem=None):
    """Return a tableau and the paths of its support vectors."""
    solution = solve(problem or moons_problem(150, cost=30.0, gamma=3.0)).basic
    tableau = Tableau(solution.problem, PathState.of_fit(solution))
    rows = np.flatnonzero((solution.alpha > 0) & removable(solution.problem))
    paths = tableau.paths(rows, solution.alpha[rows], tableau.watched(rows, "all"))
    tableau.follow(paths, complete)
    return tableau, paths


def test_every_outcome_is_proven():
    """On a regular problem each path proves what it stopped for."""
    tableau, paths = followed(complete=False)
    assert set(paths.outcome) == {ERROR, SUCCESS, END}
    proofs = checked_paths(tableau, paths, SLACK)
    assert proofs.proven.all()
    np.testing.assert_array_equal(proofs.exact, paths.outcome == END)
    np.testing.assert_array_equal(proofs.solved, paths.outcome == END)
    assert (proofs.margin[paths.outcome == ERROR] < 0).all()
    assert (proofs.margin[paths.outcome == SUCCESS] > 0).all()


@pytest.mark.parametrize("complete", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_machine_code_proves_what_its_twin_proves(seed, complete):
    """On ugly problems, the same classes are proven, and margins agree to 1e-12.

    The accuracy of a value is the root of a sum of roundings, and has fewer digits.
    """
    for problem in (random_problem(seed), symmetric_problem(seed)):
        solution = solve(problem).basic
        if not solution.in_bound.any() or not solution.alpha[removable(problem)].any():
            continue
        tableau, paths = followed(complete, problem)
        found = checked_paths(tableau, paths, SLACK)
        with interpreted():
            wanted = checked_paths(tableau, paths, SLACK)
        for name in ("solved", "proven", "exact"):
            np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name), name)
        assert found.ends.keys() == wanted.ends.keys()
        np.testing.assert_allclose(found.margin, wanted.margin, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(found.accuracy, wanted.accuracy, rtol=1e-2, atol=1e-9)


@pytest.mark.parametrize("complete", [False, True])
def test_wrong_dual_variables_prove_nothing(complete):
    """Tampered states violate the KKT conditions, the sum or the box."""
    tableau, paths = followed(complete)
    in_bound = paths.kind == IN_BOUND
    rng = np.random.default_rng(0)
    paths.value[in_bound] *= 1 + 0.05 * rng.normal(size=np.count_nonzero(in_bound))
    assert not checked_paths(tableau, paths, SLACK).proven.any()


def test_dual_variables_outside_the_box_prove_nothing():
    """What one row gains another loses, but one of them leaves its box."""
    tableau, paths = followed(complete=True)
    both = np.flatnonzero((paths.kind[:, :2] == IN_BOUND).all(axis=1))
    shift = paths.upper[both, 0] + 1.0
    paths.value[both, 0] += shift
    paths.value[both, 1] -= tableau.table.y[0] * tableau.table.y[1] * shift
    assert len(both)
    assert not checked_paths(tableau, paths, SLACK).proven[both].any()


def test_a_wrong_claim_proves_nothing():
    """A path that claims the other outcome is not believed."""
    tableau, paths = followed(complete=False)
    errors, successes = paths.outcome == ERROR, paths.outcome == SUCCESS
    paths.outcome[successes] = ERROR
    paths.outcome[errors] = SUCCESS
    paths.beyond[errors] = paths.remaining[errors]
    proofs = checked_paths(tableau, paths, SLACK)
    assert not proofs.proven[successes].any()
    assert not proofs.proven[errors].any()


def test_rows_outside_the_view_are_not_forgotten(monkeypatch):
    """If the account of the paths is too small, so that rows are skipped, nothing is proven."""
    tableau, paths = followed(complete=True)
    rows = tableau.rows[paths.row]
    blind = Tableau(tableau.problem, tableau.state)
    few = np.full(len(rows), blind.table.n_base)
    paths = blind.paths(rows, blind.state.alpha[rows], few)
    blind.follow(paths, complete=True)
    honest = checked_paths(blind, paths, SLACK)
    assert 0 < np.count_nonzero(honest.proven) < len(rows)

    def too_small(*arguments):
        stops = stops_of(*arguments)
        stops.moves[:] = 0.0
        return stops

    stops_of = check.stops_of
    monkeypatch.setattr(check, "stops_of", too_small)
    assert not checked_paths(blind, paths, SLACK).proven.any()
