"""Thresholds of leave-one-out values, against every cut that there is."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import balanced_accuracy_score, f1_score, matthews_corrcoef

from span_hpo.calibration import PlattSigmoid
from span_hpo.metrics import as_metrics
from span_hpo.selection import (
    COUNTED,
    best_threshold,
    class_share,
    cost_loss,
    cost_probability,
    threshold_at,
)

LOSSES = {
    "error": lambda y, predicted, w: float(w @ (y != predicted) / w.sum()),
    "f1": lambda y, predicted, w: 1 - f1_score(y, predicted, sample_weight=w, zero_division=0.0),
    "mcc": lambda y, predicted, w: 1 - matthews_corrcoef(y, predicted, sample_weight=w),
    "balanced_error": lambda y, predicted, w: (
        1 - balanced_accuracy_score(y, predicted, sample_weight=w)
    ),
}


def values(seed, kind="plain"):
    """Return labels, decision values and weights, some of them ugly."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 60))
    y = np.where(rng.random(n) < rng.choice([0.1, 0.5]), 1.0, -1.0)
    y[:2] = -1, 1
    f = rng.normal(size=n) + rng.uniform(-0.5, 1.5) * y
    w = np.ones(n)
    if kind == "ties":
        f = f.round(0)
    elif kind == "weights":
        w = np.exp(rng.uniform(-6, 6, n))
    elif kind == "zeros":
        w = rng.integers(0, 3, n).astype(float)
        w[:2] = 1
    elif kind == "neighbours":
        f = 1 + np.spacing(1.0) * rng.integers(0, 5, n)
    return y, f, w


@pytest.mark.parametrize("kind", ["plain", "ties", "weights", "zeros", "neighbours"])
@pytest.mark.parametrize("name", LOSSES)
def test_no_cut_is_better(name, kind):
    """No other split of the sorted values has a lower loss, as scikit-learn computes it."""
    (metric,) = as_metrics(name, weighted=True)
    loss = LOSSES[name]
    for seed in range(20):
        y, f, w = values(seed, kind)
        found = best_threshold(y, f, w, metric)
        own = loss(y, np.where(f >= found, 1, -1), w)
        cuts = [*np.unique(f), np.inf]
        least = min(loss(y, np.where(f >= cut, 1, -1), w) for cut in cuts)
        assert own == pytest.approx(least, abs=1e-12), seed


def test_running_sums_agree_with_the_metrics():
    """What is computed for all cuts at once is the metric of the shifted values."""
    for name, count in COUNTED.items():
        (metric,) = as_metrics(name, weighted=True)
        for seed in range(20):
            y, f, w = values(seed, "weights")
            order = np.argsort(f)
            y, f, w = y[order], f[order], w[order]
            cuts = np.concatenate([[f[0] - 1], (f[:-1] + f[1:]) / 2, [f[-1] + 1]])
            missed = np.array([w[(y > 0) & (f < cut)].sum() for cut in cuts])
            rejected = np.array([w[(y < 0) & (f < cut)].sum() for cut in cuts])
            hit, alarm = w[y > 0].sum() - missed, w[y < 0].sum() - rejected
            expected = [metric.loss(y, f - cut, w) for cut in cuts]
            np.testing.assert_allclose(count(hit, missed, alarm, rejected), expected, atol=1e-12)


def test_equal_losses_are_decided_by_the_distance_from_zero():
    """Separated values keep the threshold 0; a gap elsewhere is cut in its middle."""
    (metric,) = as_metrics("error", weighted=False)
    y, w = np.array([-1.0, -1, 1, 1]), np.ones(4)
    assert best_threshold(y, np.array([-2.0, -0.5, 0.1, 3]), w, metric) == 0.0
    assert best_threshold(y, np.array([1.0, 2, 4, 5]), w, metric) == 3.0
    assert best_threshold(-y, np.array([1.0, 2, 4, 5]), w, metric) == 0.0  # all cuts but one


def test_other_metrics_are_tried_at_a_few_hundred_cuts():
    """A user's function of 3,000 values is called at most 202 times, and finds a good cut."""
    calls = []

    def own(y, f):
        calls.append(1)
        return float(np.mean((f > 0) != (y > 0)))

    rng = np.random.default_rng(0)
    y = np.where(np.arange(3000) % 2 == 0, 1.0, -1.0)
    f = rng.normal(size=3000) + y + 2
    (metric,) = as_metrics(own, weighted=False)
    found = best_threshold(y, f, np.ones(3000), metric)
    assert len(calls) <= 202
    (error,) = as_metrics("error", weighted=False)
    best = error.loss(y, f - best_threshold(y, f, np.ones(3000), error), np.ones(3000))
    assert error.loss(y, f - found, np.ones(3000)) <= best + 0.002


def test_a_probability_becomes_a_decision_value():
    """At the threshold the sigmoid has the probability; a constant one predicts one class."""
    sigmoid = PlattSigmoid(slope=2.0, offset=-1.0)
    for probability in (0.01, 0.3, 0.5, 0.99):
        assert expit(2 * threshold_at(sigmoid, probability) - 1) == pytest.approx(probability)
    constant = PlattSigmoid(slope=0.0, offset=-1.0)
    assert threshold_at(constant, 0.9) > 1e300
    assert threshold_at(constant, 0.1) < -1e300
    assert np.isfinite(threshold_at(PlattSigmoid(slope=1e-320, offset=3.0), 0.1))


def test_the_share_is_best_for_calibrated_probabilities():
    """Where P(second) is known, no other probability has a lower expected balanced error or cost.

    The expected losses are written down directly for a fine grid of probabilities.
    """
    p = np.linspace(0.001, 0.999, 1999) ** 3  # mostly of the first class
    y = np.concatenate([np.ones_like(p), -np.ones_like(p)])
    w = np.concatenate([p, 1 - p])
    share = class_share(y, w)
    assert share == pytest.approx(p.mean())

    def balanced(cut):
        return p[p < cut].sum() / p.sum() + (1 - p[p >= cut]).sum() / (1 - p).sum()

    def cost(cut):
        return 2 * (1 - p[p >= cut]).sum() + 5 * p[p < cut].sum()

    cuts = np.linspace(0, 1, 1001)
    assert balanced(share) <= min(map(balanced, cuts)) + 1e-9
    assert cost(cost_probability(2, 5)) <= min(map(cost, cuts)) + 1e-9


def test_cost_of_misses():
    """Three rows of the first class and one of the second, of which two are missed."""
    y, f = np.array([-1.0, -1, -1, 1]), np.array([-1.0, 2, -3, -1])
    assert cost_loss(y, f, np.ones(4), 1, 10) == pytest.approx(11 / 4)
    assert cost_loss(y, f, np.array([1.0, 3, 0, 2]), 1, 10) == pytest.approx(23 / 6)
