from fractions import Fraction

import numpy as np
import pytest

from span_hpo.runtime.arrays import read_only, rows_of, sums_of_others, weighted_mean


def test_read_only_protects_the_array_itself():
    """No copy is made, and the array refuses to be changed from then on."""
    array = np.arange(3.0)
    assert read_only(array) is array
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 5.0


@pytest.mark.parametrize("column", [[0.0, 2.0, 0.0, -1.0], [False, True, True], [0, 0], []])
def test_rows_where_a_column_is_not_zero(column):
    """Masks, numbers and empty columns give the rows that a plain loop finds."""
    assert rows_of(np.array(column)).tolist() == [i for i, value in enumerate(column) if value]


@pytest.mark.parametrize("seed", range(20))
def test_sums_of_others_lose_no_digits(seed):
    """Beside exact fractions every sum is right to 1e-14, whatever the largest value is."""
    values = 10.0 ** np.random.default_rng(seed).uniform(-10, 10, size=12)
    exact = [sum(map(Fraction, np.delete(values, i).tolist())) for i in range(12)]
    np.testing.assert_allclose(sums_of_others(values), [float(one) for one in exact], rtol=1e-14)


def test_sums_of_others_by_hand():
    """The largest value does not swallow the sum of the others, and one value has no others."""
    assert sums_of_others(np.array([1e20, 1.0, 2.0]))[0] == 3.0
    assert sums_of_others(np.array([7.0])).tolist() == [0.0]


def test_weighted_mean_is_that_of_numpy():
    """Means of numbers and of masks agree with np.average."""
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=30), rng.uniform(0.1, 2, 30)
    assert weighted_mean(values, weights) == pytest.approx(np.average(values, weights=weights))
    share = np.average(values > 0, weights=weights)
    assert weighted_mean(values > 0, weights) == pytest.approx(share)
