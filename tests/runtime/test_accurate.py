import math
from fractions import Fraction

import numpy as np
import pytest

from span_hpo.runtime.accurate import ROUNDING_UNIT, accurate_dots, exact_dots, exact_products
from span_hpo.runtime.compilation import interpreted


def exact_sum(row, x, plus=0.0):
    """Return ``plus`` and a sum of products, and the sum of their sizes, by fractions."""
    terms = [Fraction(a) * Fraction(b) for a, b in zip(row.tolist(), x.tolist(), strict=True)]
    return sum(terms, Fraction(plus)), sum((abs(term) for term in terms), Fraction(0))


def cancelling(seed, count):
    """Return a matrix and a vector of very different numbers, whose products nearly cancel."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(5, count)) * 10.0 ** rng.integers(-12, 13, size=(5, count))
    x = rng.normal(size=count) * 10.0 ** rng.integers(-12, 13, size=count)
    if count > 1:
        A[:, -1] = -(A[:, :-1] @ x[:-1]) / x[-1]
    return A, x


@pytest.mark.parametrize("seed", range(5))
def test_products_and_errors_are_exact(seed):
    """The rounded product and its error have the exact product as their sum."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 200)) * 10.0 ** rng.integers(-60, 61, size=(2, 200))
    product, error = exact_products(a, b)
    np.testing.assert_array_equal(product, a * b)
    for i in range(200):
        assert Fraction(product[i]) + Fraction(error[i]) == Fraction(a[i]) * Fraction(b[i])


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 64, 101])
@pytest.mark.parametrize("seed", range(3))
def test_accurate_dots_have_twice_the_digits(seed, count):
    """The error is within its bound, although a plain sum of the same numbers has no digit."""
    A, x = cancelling(seed, count)
    for found, row in zip(accurate_dots(A, x), A, strict=True):
        exact, sizes = exact_sum(row, x)
        unit = Fraction(ROUNDING_UNIT)
        assert abs(Fraction(found) - exact) <= unit * abs(exact) + 4 * count**2 * unit**2 * sizes


@pytest.mark.parametrize("n_parts", [1, 2, 4])
@pytest.mark.parametrize("seed", range(5))
def test_exact_dots_are_rounded_once(seed, n_parts):
    """The result is the double next to the exact sum, however much cancels."""
    A, x = cancelling(seed, 20)
    parts = [x, 1e-17 * x[::-1], 1e-33 * x, 1e-50 * x][:n_parts]
    plus = -A @ x
    found = exact_dots(A, parts, plus)
    for i, row in enumerate(A):
        exact = sum((exact_sum(row, part)[0] for part in parts), Fraction(plus[i]))
        assert found[i] == float(exact)


def test_what_is_zero_comes_out_as_zero():
    """A sum that cancels exactly is 0, and one that differs from 0 has its sign."""
    A = np.array([[1e16, 1.0, -1e16, -1.0], [1e16, 1.0, -1e16, -1.0 + 2.0**-53]])
    ones = np.ones(4)
    np.testing.assert_array_equal(exact_dots(A, [ones], np.zeros(2)), [0.0, 2.0**-53])
    np.testing.assert_array_equal(accurate_dots(A, ones), [0.0, 2.0**-53])
    np.testing.assert_array_equal(exact_dots(A[:, :0], [ones[:0]], np.array([3.0, 0.1])), [3, 0.1])


@pytest.mark.parametrize("seed", range(5))
def test_machine_code_has_the_dots_of_its_twin(seed):
    """Sums that do not cancel agree, for matrices in any layout and parts of vectors."""
    A, x = np.abs(cancelling(seed, 90)[0]), np.linspace(0.1, 3.0, 180)[::2]
    fixed = A.copy()
    fixed.setflags(write=False)
    with interpreted():
        wanted = accurate_dots(A, x)
    for other in (A, np.asfortranarray(A), fixed):
        np.testing.assert_allclose(accurate_dots(other, x), wanted, rtol=1e-15)
    np.testing.assert_allclose(accurate_dots(A[::2], x), wanted[::2], rtol=1e-15)


def test_the_unit_is_that_of_doubles():
    """One operation errs by up to the unit, and not by more."""
    assert math.ulp(1.0) / 2 == ROUNDING_UNIT
