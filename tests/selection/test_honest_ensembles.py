"""The honest estimate of an ensemble, against a loop over bootstrap samples."""

import numpy as np
import pytest

from span_hpo.selection import (
    bootstrap_counts,
    greedy_counts,
    greedy_samples,
    honest_ensemble,
    own_probabilities,
    ranked_candidates,
)
from tests.selection.tables import dense, table_of


def trials(seed, n_trials=40, n_rows=30, n_classes=2, noise=0.7):
    """Return row losses, numbers of supports, probabilities, the classes, and weights."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n_rows) % n_classes
    logs = rng.normal(size=(n_rows, n_classes)) + noise * rng.normal(
        size=(n_trials, n_rows, n_classes)
    )
    logs[:, np.arange(n_rows), codes] += rng.uniform(0, 2, (n_trials, 1))
    found = np.exp(logs) / np.exp(logs).sum(axis=2, keepdims=True)
    wrong = found.argmax(axis=2) != codes
    smooth = 1 - own_probabilities(found, codes)
    criterion, smooth = table_of(wrong), table_of(smooth)
    return criterion, smooth, rng.integers(2, 9, n_trials), found, codes


def by_a_loop(criterion, smooth, n_support, found, codes, weight, counts, loss):
    """Return the losses of all samples out of the bag, one by one."""
    n_rows = len(codes)
    errors, ties = (dense(table, n_rows)[:, 0] for table in (criterion, smooth))
    own = own_probabilities(found, codes)
    for sample in counts:
        in_bag = sample * weight
        keys = [
            (round(float(a), 12), round(float(b), 12), int(size), number)
            for number, (a, b, size) in enumerate(
                zip(
                    errors @ in_bag / in_bag.sum(),
                    ties @ in_bag / in_bag.sum(),
                    n_support,
                    strict=False,
                )
            )
        ]
        best = np.sort([number for *_, number in sorted(keys)[:30]])
        chosen = greedy_counts(own[best], in_bag)
        mean = np.tensordot(chosen / chosen.sum(), found[best], axes=1)
        right = mean[np.arange(n_rows), codes]
        others = np.where(np.arange(mean.shape[1]) == codes[:, None], -1, mean).max(axis=1)
        losses = -np.log(right) if loss == "log_loss" else (right <= others).astype(float)
        out = (sample == 0) * weight
        if loss == "balanced_error":
            yield np.mean(
                [
                    losses[codes == k] @ out[codes == k] / out[codes == k].sum()
                    for k in np.unique(codes)
                ]
            )
        else:
            yield losses @ out / out.sum()


@pytest.mark.parametrize("loss", ["error", "balanced_error", "log_loss"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_estimate_is_that_of_a_loop(loss, n_classes):
    """Ranking, greedy steps and judgement agree in every sample, also with weights."""
    parts = trials(1, n_classes=n_classes, n_rows=60)
    weight = np.random.default_rng(2).uniform(0.2, 3, 60)
    estimate = honest_ensemble(*parts, weight, loss=loss, n_resamples=25, seed=4)
    counts = np.concatenate(list(bootstrap_counts(60, 25, 4)))
    expected = np.mean(list(by_a_loop(*parts, weight, counts, loss)))
    assert estimate.error == pytest.approx(expected)
    low, high = estimate.interval
    assert low < estimate.error < high
    assert (estimate.n_trials, estimate.n_rows, estimate.loss_name) == (40, 60, loss)


def test_samples_take_the_steps_of_each_by_itself():
    """Samples that share steps choose what each would choose alone."""
    criterion, smooth, n_support, found, codes = trials(5)
    own = own_probabilities(found, codes)
    weights = np.concatenate(list(bootstrap_counts(30, 40, 0)))
    candidates = ranked_candidates(criterion, smooth, n_support, weights)
    assert (candidates.sum(axis=1) == 30).all()
    counts = greedy_samples(own, weights, candidates)
    for sample, usable, chosen in zip(weights, candidates, counts, strict=True):
        np.testing.assert_array_equal(greedy_counts(own[usable], sample), chosen[usable])
        assert chosen.sum() == 10


def test_the_choice_among_noise_is_corrected():
    """Where no trial knows anything, the ensemble looks good, and the estimate says otherwise."""
    rng = np.random.default_rng(0)
    codes = np.arange(80) % 2
    second = rng.uniform(0.2, 0.8, (120, 80))
    found = np.stack([1 - second, second], axis=2)
    wrong = found.argmax(axis=2) != codes
    parts = table_of(wrong), table_of(1 - own_probabilities(found, codes)), np.full(120, 5)
    estimate = honest_ensemble(*parts, found, codes, np.ones(80))
    assert estimate.optimistic < 0.35
    assert estimate.error == pytest.approx(0.5, abs=0.08)
    assert estimate.interval[0] < 0.5 < estimate.interval[1]
    again = honest_ensemble(*parts, found, codes, np.ones(80))
    assert (again.error, again.interval) == (estimate.error, estimate.interval)


def test_seeds_are_whole_numbers():
    """A seed that no generator takes is named."""
    *tables, found, codes = trials(0)
    for wrong in (-1, "a"):
        with pytest.raises(ValueError, match="`seed` must be a whole number of at least 0, got"):
            honest_ensemble(*tables, found, codes, np.ones(30), seed=wrong)


def test_other_losses_are_refused():
    """Only losses of the mean probability are estimated."""
    with pytest.raises(ValueError, match=r"`loss` must be one of .*, got 'hinge'"):
        honest_ensemble(*trials(0), np.ones(30), loss="hinge")
