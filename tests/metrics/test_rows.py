import numpy as np
import pytest

from span_hpo.metrics import METRICS, RowLosses, as_metrics, unpacked
from tests.problems import labels_and_values

MEANS = ["error", "balanced_error", "smooth_error", "hinge", "span_functional", "log_loss", "brier"]


def several_classes(seed=0, count=50, n_classes=4):
    """Return class numbers, values of all pairs and weights."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_classes, size=count).astype(float)
    codes[:n_classes] = range(n_classes)
    return codes, rng.normal(size=(count, 6)), rng.uniform(0.1, 3.0, count)


@pytest.mark.parametrize("name", MEANS)
@pytest.mark.parametrize("seed", range(3))
def test_losses_are_means_of_row_losses(name, seed):
    """The mean over the strata of weighted means, summed row by row, is the loss."""
    (metric,) = as_metrics(name, weighted=True)
    for y, f, w in (labels_and_values(seed), several_classes(seed)):
        rows = metric.row_losses(y, f, w)
        means = []
        for values, stratum in zip(rows.values, rows.strata, strict=True):
            own = np.arange(len(y))[stratum]
            pairs = list(zip(own.tolist(), values.tolist(), strict=True))
            means.append(sum(w[row] * loss for row, loss in pairs) / sum(w[row] for row in own))
        assert sum(means) / len(means) == pytest.approx(metric.loss(y, f, w), rel=1e-12)
        assert rows.mean(w) == metric.loss(y, f, w)
    assert METRICS[name](*labels_and_values(seed)) == metric.loss(*labels_and_values(seed))


def test_strata():
    """Balanced error has the classes, other losses of several classes have their pairs."""
    y, f, w = several_classes()
    counts = {"error": 1, "balanced_error": 4, "smooth_error": 6, "log_loss": 6}
    for name, count in counts.items():
        (metric,) = as_metrics(name, weighted=True)
        strata = metric.row_losses(y, f, w).strata
        assert len(strata) == count
        for found, expected in zip(metric.strata(y), strata, strict=True):
            np.testing.assert_array_equal(np.arange(50)[found], np.arange(50)[expected])


def test_other_metrics_are_no_means():
    """Ranks, F1, correlations and functions of users have no row losses."""
    y, f, w = labels_and_values()
    names = [name for name in METRICS if name not in MEANS]
    for metric in as_metrics((*names, lambda y, f: 0.5), weighted=False):
        assert not metric.is_mean
        assert metric.row_losses(y, f, w) is None


def test_influences_of_a_plain_mean():
    """They sum to 0, and their norm is the standard deviation over the root of n."""
    values = np.random.default_rng(0).exponential(size=30)
    influences = RowLosses((values,), (slice(None),)).influences(np.full(30, 7.0))
    assert influences.sum() == pytest.approx(0, abs=1e-12)
    assert np.linalg.norm(influences) == pytest.approx(np.std(values, ddof=1) / np.sqrt(30))


def test_rows_without_weight_have_no_influence():
    """They count as rows that are not there, and a stratum of one row varies by nothing."""
    values, weight = np.array([1.0, 0.0, 5.0, 2.0]), np.array([1.0, 3.0, 0.0, 2.0])
    kept = weight > 0
    influences = RowLosses((values,), (slice(None),)).influences(weight)
    fewer = RowLosses((values[kept],), (slice(None),)).influences(weight[kept])
    np.testing.assert_allclose(influences[kept], fewer, rtol=1e-14)
    assert influences[2] == 0
    alone = RowLosses((values[:1], values[1:]), (np.array([0]), np.array([1, 2, 3])))
    assert alone.influences(np.ones(4))[0] == 0


def test_compact_values():
    """Errors are kept exactly, other losses to three digits, however large they are."""
    rng = np.random.default_rng(0)
    errors, small, large = rng.random(19) < 0.3, rng.random(19), 1e6 * rng.random(19)
    rows = RowLosses((errors, small, large), (slice(None),) * 3)
    bits, halves, singles = rows.compact()
    assert bits.nbytes == 3
    assert halves.nbytes == 38
    np.testing.assert_array_equal(unpacked(bits, 19), errors)
    np.testing.assert_allclose(unpacked(halves, 19), small, rtol=1e-3)
    np.testing.assert_allclose(unpacked(singles, 19), large, rtol=1e-6)
