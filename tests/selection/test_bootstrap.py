import numpy as np
import pytest
from scipy.stats import binom

from span_hpo.selection import binomial_interval, bootstrap_counts


@pytest.mark.parametrize("n_rows", [1, 7, 300])
def test_samples_have_as_many_rows_as_there_are(n_rows):
    """Counts are whole numbers that sum to the number of rows."""
    counts = np.concatenate([*bootstrap_counts(n_rows, 40, seed=0)])
    assert counts.shape == (40, n_rows)
    assert (counts == counts.round()).all()
    assert (counts.sum(axis=1) == n_rows).all()


def test_about_a_third_of_the_rows_is_out_of_the_bag():
    """The share of zeros is (1 - 1/n)^n, and every row is out at times."""
    counts = np.concatenate([*bootstrap_counts(200, 400, seed=3)])
    out = (counts == 0).mean(axis=0)
    assert out.mean() == pytest.approx((1 - 1 / 200) ** 200, abs=0.005)
    assert 0.2 < out.min() < out.max() < 0.6


def test_blocks_of_many_rows():
    """Large samples come in several blocks, the same in every call."""
    blocks = [*bootstrap_counts(300_000, 5, seed=1)]
    assert [len(block) for block in blocks] == [3, 2]
    again = [*bootstrap_counts(300_000, 5, seed=1)]
    other = [*bootstrap_counts(300_000, 5, seed=2)]
    assert all((one == two).all() for one, two in zip(blocks, again, strict=True))
    assert (blocks[0] != other[0]).any()


@pytest.mark.parametrize(("errors", "trials"), [(0, 10), (3, 10), (10, 10), (17, 200)])
def test_binomial_interval_by_its_definition(errors, trials):
    """At each end, so few or so many errors have exactly the probability of the tail."""
    low, high = binomial_interval(errors, trials, 0.9)
    if errors:
        assert binom.sf(errors - 1, trials, low) == pytest.approx(0.05)
    else:
        assert low == 0
    if errors < trials:
        assert binom.cdf(errors, trials, high) == pytest.approx(0.05)
    else:
        assert high == 1
    wider = binomial_interval(errors, trials, 0.99)
    assert wider[0] <= low <= high <= wider[1]


def test_binomial_interval_of_a_fraction():
    """A number of errors between two whole ones has an interval between theirs."""
    ends = np.array([binomial_interval(errors, 50, 0.9) for errors in (4, 4.5, 5)])
    assert (np.diff(ends, axis=0) > 0).all()
