"""The truth about rows: what is trusted, what is settled, and what is called wrong."""

from fractions import Fraction

import numpy as np
import pytest

from benchmarks.robustness.families import make
from benchmarks.robustness.instances import given, linear
from benchmarks.robustness.truths import Elections, Truth, truth_of

Y, ONES = np.array([-1.0, 1.0, 1.0]), np.ones(3)


def test_clear_margins_need_no_referee():
    """The signs of an ordinary problem are proven by the reference."""
    truth = Truth(linear(np.array([[0.0], [2.0], [3.0]]), Y, ONES))
    assert [truth.sign(p) for p in range(3)] == [-1, 1, 1]
    assert truth.refereed == set()
    assert truth.margin(1) == Fraction(1, 3)
    assert truth.refereed == {1}


def test_a_tie_is_an_error():
    """A margin of exactly 0 may be called an error, and nothing else."""
    truth = Truth(linear(np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), Y, ONES))
    assert truth.sign(2) == 0
    assert truth.contradiction(2, says_error=True) == ""
    assert truth.contradiction(2, says_error=False) == "wrong"


def test_a_tiny_margin_has_a_sign():
    """A margin of 2^-60 is no error."""
    truth = Truth(linear(np.array([[-1.0, 0.0], [1.0, 0.0], [2.0**-60, 1.0]]), Y, ONES))
    assert truth.contradiction(2, says_error=True) == "wrong"
    assert truth.contradiction(2, says_error=False) == ""


@pytest.mark.parametrize(
    ("number", "row", "is_error"), [(0, 0, False), (1, 2, True), (2, 3, False)]
)
def test_reported_proofs_are_found_to_be_wrong(number, row, is_error):
    """What was once certified contradicts the matrix and the features."""
    truth = Truth(make("reported", number))
    assert truth.contradiction(row, not is_error) == "wrong"
    assert truth.contradiction(row, is_error) == ""
    assert truth.contradicts_features(row, not is_error)


def test_a_matrix_that_rounding_made_indefinite_decides_nothing_alone():
    """If a positive semi-definite matrix close by disagrees, the class is undecided."""
    X = np.array([[1.0, -1.0], [2.0, 0.0], [1.0, 0.0], [1.0, -1.0]])
    y, costs = np.array([-1.0, 1.0, 1.0, -1.0]), np.array([1.0, 1.0, 0.0, 1.0])
    K = X @ X.T
    exact = Truth(given(K, y, costs))
    assert exact.is_definite
    assert exact.sign(2) == 0
    assert exact.contradiction(2, says_error=False) == "wrong"
    for i, j in ((2, 0), (0, 2), (2, 2), (3, 3)):
        K[i, j] -= 2.0**-51
    truth = Truth(given(K, y, costs))
    assert not truth.is_definite
    assert truth.sign(2) == 1
    assert truth.margin(2, "raised") < 0
    assert truth.contradiction(2, says_error=True) == "undecided"


def test_values_are_compared_with_their_accuracy():
    """A value that is off by less than its accuracy is right."""
    truth = Truth(linear(np.array([[0.0], [2.0], [3.0]]), Y, ONES))
    assert truth.wrong_value(1, np.float64(0.3333), np.float64(1e-3)) == ""
    assert "truth 0.333333" in truth.wrong_value(1, np.float64(0.3333), np.float64(1e-6))


def test_error_ranges_leave_open_what_is_not_known():
    """Rows that are not known are errors or not."""
    truth = Truth(linear(np.array([[0.0], [2.0], [3.0]]), Y, ONES))
    assert truth.error_range(np.array([True, True, True])) == (1 / 3, 1 / 3)
    assert truth.error_range(np.array([True, False, True])) == (1 / 3, 2 / 3)


def test_elections_follow_the_rule_of_ties():
    """Pairs whose value is 0 vote for their second class, but against the row in its own pairs."""
    truth = truth_of(make("classes", 0))
    assert isinstance(truth, Elections)
    assert [truth.elected(p) for p in range(5)] == [
        truth_of(make("classes", 1)).elected(4 - p) for p in range(5)
    ]
    assert truth.elected(2) == 0
    assert truth.contradiction(2, says_error=True) == "wrong"
