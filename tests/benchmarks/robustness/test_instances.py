"""Problems of the sweep: their kernels in doubles and without rounding."""

from fractions import Fraction

import numpy as np
import pytest

from benchmarks.robustness import instances

X = np.array([[0.1, 2.0], [-3.0, 0.7], [1e-5, 4.0]])
Y, COSTS = np.array([1.0, -1.0, 1.0]), np.ones(3)
MADE = {
    "linear": instances.linear(X, Y, COSTS),
    "polynomial": instances.polynomial(X, Y, COSTS, degree=3, coef0=2.0),
    "rbf": instances.rbf(X, Y, COSTS, gamma=0.3),
    "laplacian": instances.laplacian(X, Y, COSTS, gamma=0.3),
}


@pytest.mark.parametrize("name", MADE)
def test_exact_kernels_agree_with_doubles(name):
    """Both matrices are symmetric and equal up to rounding."""
    instance = MADE[name]
    exact = instance.exact_kernel()
    np.testing.assert_allclose([[float(value) for value in row] for row in exact], instance.K)
    assert (instance.K == instance.K.T).all()


def test_products_are_rational():
    """The product of 0.1 and -3 plus that of 2 and 0.7, as the doubles are."""
    exact = MADE["linear"].exact_kernel()[0][1]
    assert exact == Fraction(0.1) * -3 + 2 * Fraction(0.7)


def test_a_given_matrix_becomes_symmetric_and_has_no_features():
    """The lower triangle counts; there is nothing more exact than the doubles."""
    instance = instances.given(np.array([[1.0, 5.0], [0.5, 2.0]]), Y[:2], COSTS[:2])
    assert instance.K.tolist() == [[1.0, 0.5], [0.5, 2.0]]
    assert instance.exact_kernel is None
    assert instance.has_two_classes
