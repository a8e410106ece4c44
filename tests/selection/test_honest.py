import numpy as np
import pytest

from span_hpo.selection import (
    binomial_interval,
    bootstrap_counts,
    chosen_trials,
    honest_estimate,
    out_of_bag_losses,
)
from tests.selection.tables import dense, random_tables, table_of

KINDS = ["error", "balanced", "hinge", "pairs"]


def mean_by_hand(losses, strata, weight):
    """Return the mean over strata of weighted means, sums over no rows counting as 0."""
    means = []
    for stratum in range(len(strata)):
        own = [i for i in range(len(weight)) if not np.isnan(losses[stratum, i])]
        total = sum(weight[i] for i in own)
        means.append(sum(weight[i] * losses[stratum, i] for i in own) / total if total else None)
    return means


def estimate_by_hand(criterion, smooth, n_support, weight, n_resamples, seed):
    """Return the losses out of the bag by loops over samples, trials and rows."""
    n_rows = len(weight)
    losses, smooth_losses = dense(criterion, n_rows), dense(smooth, n_rows)
    per_sample = []
    for counts in np.concatenate([*bootstrap_counts(n_rows, n_resamples, seed)]):
        keys = []
        for trial in range(len(losses)):
            bag = counts * weight
            first = mean_by_hand(losses[trial], criterion.strata, bag)
            second = mean_by_hand(smooth_losses[trial], smooth.strata, bag)
            loss = sum(mean or 0.0 for mean in first) / len(first)
            tie = sum(mean or 0.0 for mean in second) / len(second)
            keys.append((round(loss, 12), round(tie, 12), n_support[trial], trial))
        chosen = min(keys)[-1]
        per_sample.append(mean_by_hand(losses[chosen], criterion.strata, (counts == 0) * weight))
    table = np.array(per_sample, dtype=float).T
    for row in table:
        row[np.isnan(row)] = np.nanmean(row)
    return table.mean(axis=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_estimate_equals_obvious_loops(kind, weighted, seed):
    """Choosing in the bag and scoring out of it, row by row, gives the same number."""
    tables = random_tables(seed, kind=kind)
    weight = np.exp(np.random.default_rng(seed).normal(0, 2, 23)) if weighted else np.ones(23)
    found = honest_estimate(*tables, weight, n_resamples=30, seed=seed)
    losses = estimate_by_hand(*tables, weight, 30, seed)
    assert found.error == pytest.approx(losses.mean(), rel=1e-9)
    if kind == "error" and not weighted:
        expected = binomial_interval(losses.mean() * 23, 23, 0.9)
    else:
        expected = tuple(np.quantile(losses, [0.05, 0.95]))
    assert found.interval == pytest.approx(expected, rel=1e-9)
    assert found.interval[0] <= found.error <= found.interval[1]
    full = dense(tables[0], 23)
    best = chosen_trials(*tables, weight[None, :])[0]
    means = mean_by_hand(full[best], tables[0].strata, weight)
    assert found.optimistic == pytest.approx(np.mean(means), rel=1e-9)


def test_weights_of_zero_are_rows_that_are_not_there():
    """A class without weight never counts, in the bag or out of it."""
    tables = random_tables(0, kind="balanced")
    weight = np.where(np.arange(23) % 3 == 0, 1.0, 0.0)
    weight[1] = 1.0
    found = honest_estimate(*tables, weight, n_resamples=60, seed=0)
    losses = estimate_by_hand(*tables, weight, 60, 0)
    assert found.error == pytest.approx(losses.mean(), rel=1e-9)


def test_noise_is_seen_through():
    """Where labels are coin tosses, the best of many trials looks good, and the estimate is half.

    The rows stay as few as in a small data set, and the mean over draws is compared.
    """
    found = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        margins = rng.normal(size=(150, 80))
        tables = table_of(margins <= 0), table_of(1 / (1 + np.exp(4 * margins)))
        estimate = honest_estimate(*tables, np.full(150, 5), np.ones(80), n_resamples=200)
        assert estimate.optimistic < 0.42
        found.append(estimate.error)
    assert np.mean(found) == pytest.approx(0.5, abs=0.01)


def test_order_of_trials_decides_only_full_ties():
    """Permuted trials are chosen all the same, and of equal ones the first."""
    criterion, smooth, n_support = random_tables(4)
    counts = np.concatenate([*bootstrap_counts(23, 50, seed=0)])
    chosen = chosen_trials(criterion, smooth, n_support, counts)
    order = np.random.default_rng(0).permutation(12)
    permuted = criterion.of(order), smooth.of(order), n_support[order]
    again = order[chosen_trials(*permuted, counts)]
    full, tie = dense(criterion, 23), dense(smooth, 23)
    np.testing.assert_array_equal(full[chosen], full[again])
    np.testing.assert_array_equal(tie[chosen], tie[again])
    np.testing.assert_array_equal(n_support[chosen], n_support[again])
    assert 11 not in chosen  # it equals trial 0
    estimates = [
        honest_estimate(*tables, np.ones(23))
        for tables in ((criterion, smooth, n_support), permuted)
    ]
    assert estimates[0].error == estimates[1].error


def test_equal_trials_change_nothing():
    """Copies of all trials leave the estimate as it is."""
    criterion, smooth, n_support = random_tables(1, kind="hinge")
    twice = np.tile(np.arange(12), 2)
    tables = criterion.of(twice), smooth.of(twice), n_support[twice]
    one, two = (honest_estimate(*t, np.ones(23)) for t in ((criterion, smooth, n_support), tables))
    assert one.error == two.error
    assert (one.n_trials, two.n_trials) == (12, 24)


def test_one_trial_has_about_its_own_loss():
    """Without a choice there is nothing to correct, whatever the weights are."""
    for kind in KINDS:
        criterion, smooth, n_support = random_tables(2, n_trials=1, n_rows=200, kind=kind)
        weight = np.random.default_rng(0).uniform(0.5, 2, 200)
        found = honest_estimate(criterion, smooth, n_support, weight, n_resamples=1000)
        assert found.error == pytest.approx(found.optimistic, rel=0.05)


def test_estimate_depends_on_nothing_but_its_arguments():
    """The same arguments give the same numbers; another seed gives others."""
    tables = random_tables(0)
    first, again = (honest_estimate(*tables, np.ones(23)) for _ in range(2))
    other = honest_estimate(*tables, np.ones(23), seed=1)
    assert (first.error, first.interval) == (again.error, again.interval)
    assert first.error != other.error


def test_a_tiny_class():
    """Samples without its only row out of the bag take its mean over the others."""
    values = np.zeros((2, 12), dtype=bool)
    values[:, 0] = True  # the row of the tiny class is always wrong
    strata = (np.array([0]), np.arange(1, 12))
    tables = table_of(values, strata), table_of(values.astype(float)), np.array([3, 4])
    assert honest_estimate(*tables, np.ones(12)).error == 0.5
    with pytest.raises(ValueError, match="`n_resamples` must be larger: of 2 bootstrap samples"):
        out_of_bag_losses(np.array([[np.nan, np.nan], [0.1, 0.2]]))


def test_levels_of_intervals():
    """A higher level is wider, and a level outside of 0 to 1 is an error."""
    tables = random_tables(0)
    low, high = honest_estimate(*tables, np.ones(23), level=0.5).interval
    wider = honest_estimate(*tables, np.ones(23), level=0.99).interval
    assert wider[0] < low < high < wider[1]
    for wrong in (0, 1, 1.5, "high"):
        with pytest.raises(ValueError, match="`level` must be"):
            honest_estimate(*tables, np.ones(23), level=wrong)


@pytest.mark.parametrize("wrong", [-1, "a", 0.5, None, True])
def test_seeds_are_whole_numbers(wrong):
    """A seed that no generator takes is named."""
    with pytest.raises(ValueError, match="`seed` must be a whole number of at least 0, got"):
        honest_estimate(*random_tables(0), np.ones(23), seed=wrong)


def test_summary():
    """It names the loss, the interval, and that few trials make it pessimistic."""
    few = honest_estimate(*random_tables(0), np.ones(23), loss_name="error")
    many = honest_estimate(*random_tables(0, n_trials=20), np.ones(23))
    assert repr(few).startswith("Honest estimate from 12 trials on 23 rows\n  error ")
    for piece in ("90% interval", "which is optimistic", "fewer than 20 trials"):
        assert piece in repr(few)
    assert "pessimistic" not in repr(many)
    assert few.is_pessimistic
    assert not many.is_pessimistic
