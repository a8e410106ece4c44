import numpy as np
import pytest

from span_hpo.selection import LossTable
from tests.selection.tables import dense, random_tables, table_of


@pytest.mark.parametrize("kind", ["error", "balanced", "hinge", "pairs"])
def test_means_of_strata(kind):
    """They are NumPy's weighted averages of the rows of each stratum."""
    criterion, _, _ = random_tables(0, kind=kind)
    weights = np.random.default_rng(1).uniform(0, 2, (5, 23))
    weights[0, :15] = 0
    means, has_rows = criterion.stratum_means(weights)
    losses = dense(criterion, 23)
    for stratum, rows in enumerate(criterion.strata):
        own = np.arange(23)[rows]
        for sample, weight in enumerate(weights[:, own]):
            assert has_rows[stratum, sample] == weight.any()
            expected = np.zeros(12)
            if weight.any():
                expected = np.average(losses[:, stratum, own], axis=1, weights=weight)
            np.testing.assert_allclose(means[stratum, sample], expected, rtol=1e-12)


def test_rows_in_several_blocks():
    """Many rows are unpacked a part at a time, errors as well as other losses."""
    rng = np.random.default_rng(0)
    values = rng.random((3, 700_001))
    weights = rng.uniform(0, 1, (2, 700_001))
    for losses in (values < 0.3, values.astype(np.float16)):
        means, _ = table_of(losses).stratum_means(weights)
        expected = weights @ losses.T.astype(float) / weights.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(means[0], expected, rtol=1e-9)


def test_a_part_of_the_trials():
    """The table of some trials has their means, in the order that was asked for."""
    criterion, _, _ = random_tables(0)
    weights = np.ones((1, 23))
    some = criterion.of(np.array([5, 2])).stratum_means(weights)[0]
    np.testing.assert_array_equal(some, criterion.stratum_means(weights)[0][:, :, [5, 2]])


def test_error_rates_are_known():
    """One stratum of errors is an error rate; classes and other losses are not."""
    rates = {kind: random_tables(0, kind=kind)[0].is_error_rate for kind in ("error", "balanced")}
    assert rates == {"error": True, "balanced": False}
    assert not random_tables(0, kind="hinge")[0].is_error_rate
    assert isinstance(random_tables(0)[0], LossTable)
