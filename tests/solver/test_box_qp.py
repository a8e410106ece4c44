import numpy as np
import pytest

from span_hpo.errors import SolverError
from span_hpo.solver.box_qp import BoxQP


def test_projection_onto_the_simplex():
    """With P = I the minimum is a projection, worked out by hand."""
    found = BoxQP(np.eye(3)).solve(-np.array([0.8, 0.6, -1.0]), 1.0, np.zeros(3), np.ones(3))
    np.testing.assert_allclose(found.x, [0.6, 0.4, 0.0], atol=1e-7)
    assert found.multiplier == pytest.approx(0.2, abs=1e-6)


def test_one_matrix_many_vectors():
    """Later programs on the same matrix are as right as the first."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4))
    qp = BoxQP(A @ A.T)
    lower, upper = np.full(4, -np.inf), np.full(4, np.inf)
    M = np.block([[A @ A.T, np.ones((4, 1))], [np.ones((1, 4)), np.zeros((1, 1))]])
    for total in (0.0, 1.0, -2.0):
        c = rng.normal(size=4)
        exact = np.linalg.solve(M, np.append(-c, total))[:4]
        np.testing.assert_allclose(qp.solve(c, total, lower, upper).x, exact, atol=1e-5)


def test_far_bounds_hold_where_they_matter():
    """A bound of a million is imposed if the minimum would cross it."""
    lower, upper = np.array([-1e9, -1e9]), np.array([1e6, 1e9])
    found = BoxQP(1e-6 * np.eye(2)).solve(np.array([-3.0, 1.0]), 0.0, lower, upper)
    np.testing.assert_allclose(found.x, [1e6, -1e6], rtol=1e-6)


def test_fixed_variable():
    """Equal bounds fix a variable."""
    bounds = np.array([-1.0, -5.0]), np.array([-1.0, 5.0])
    np.testing.assert_allclose(
        BoxQP(np.eye(2)).solve(np.zeros(2), 0.0, *bounds).x, [-1, 1], atol=1e-7
    )


def test_infeasible_program_is_an_error():
    """No number comes out of a program without a feasible point."""
    with pytest.raises(SolverError, match=r"quadratic program with 2 variables \(PIQP_"):
        BoxQP(np.eye(2)).solve(np.zeros(2), 5.0, np.zeros(2), np.ones(2))
