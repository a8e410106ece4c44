"""An estimate of the loss of an ensemble that is not too good because its members were chosen.

In each bootstrap sample of the rows, the trials are ranked in the bag, members are chosen in the
bag among the best ones, and the mean of their leave-one-out probabilities is judged on the rows
that are out of the bag; see `selection.honest`. Nothing is fitted again, so that the calibration of
each trial, with two numbers, is outside of the correction.
"""

from collections.abc import Callable

import numpy as np

from span_hpo.runtime import Array, BoolArray, FloatArray, IndexArray, whole
from span_hpo.selection.bootstrap import binomial_interval, bootstrap_counts
from span_hpo.selection.ensembles import (
    MOST_CANDIDATES,
    N_STEPS,
    class_errors,
    first_least,
    mean_probabilities,
    members_of,
    own_probabilities,
    surprise,
)
from span_hpo.selection.honest import (
    LEVEL,
    HonestEstimate,
    checked_level,
    out_of_bag_losses,
    percentile_interval,
)
from span_hpo.selection.tables import LossTable

N_RESAMPLES = 200
_DIGITS = 12  # decimal places beyond which means of row losses differ by rounding only


def _surprises(mean: FloatArray, codes: Array) -> FloatArray:
    return surprise(own_probabilities(mean, codes))


# Losses of the rows by their mean probabilities.
_LOSSES: dict[str, Callable[[FloatArray, Array], Array]] = {
    "error": class_errors,
    "balanced_error": class_errors,
    "log_loss": _surprises,
}
ENSEMBLE_LOSSES = frozenset(_LOSSES)
_BY_CLASS = frozenset({"balanced_error"})  # means over the classes of means over their rows


def honest_ensemble(
    criterion: LossTable,
    smooth: LossTable,
    n_support: Array,
    probabilities: FloatArray,
    codes: Array,
    weight: FloatArray,
    *,
    loss: str = "error",
    level: float = LEVEL,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> HonestEstimate:
    """Return the estimate from the row losses and the leave-one-out probabilities of all trials.

    Parameters
    ----------
    criterion, smooth, n_support
        What trials are ranked by, in this order; see `honest_estimate`.
    probabilities
        Leave-one-out probabilities of all classes by each trial, shape (T, n, k).
    codes
        Number of each row's class, shape (n,).
    weight
        Weight of each row, shape (n,).
    loss
        Loss that is estimated: "error", "balanced_error" or "log_loss" of the mean probability.
    level
        Share of intervals that are meant to hold the expected loss.
    n_resamples
        Number of bootstrap samples.
    seed
        Random seed of the samples.

    Raises
    ------
    ValueError
        If the loss is another one, or samples lack a class out of the bag.
    """
    if loss not in _LOSSES:
        raise ValueError(f"`loss` must be one of {sorted(_LOSSES)}, got {loss!r}.")
    level, n_rows = checked_level(level), len(weight)
    n_resamples = whole("n_resamples", n_resamples, at_least=1)
    seed = whole("seed", seed, at_least=0)
    own = own_probabilities(probabilities, codes)

    def losses_of(in_bag: FloatArray, judged: FloatArray) -> FloatArray:
        candidates = ranked_candidates(criterion, smooth, n_support, in_bag)
        chosen = greedy_samples(own, in_bag, candidates)
        return _means(chosen, probabilities, codes, judged, loss)

    samples = bootstrap_counts(n_rows, n_resamples, seed)
    parts = [losses_of(counts * weight, (counts == 0) * weight) for counts in samples]
    losses = out_of_bag_losses(np.concatenate(parts, axis=1))
    (optimistic,) = out_of_bag_losses(losses_of(weight[None, :], weight[None, :]))
    error = float(losses.mean())
    if loss == "error" and (weight == weight[0]).all():
        interval = binomial_interval(min(error, 1.0) * n_rows, n_rows, level)
    else:
        interval = percentile_interval(losses, level)
    return HonestEstimate(
        error, interval, level, float(optimistic), len(own), n_rows, loss_name=loss
    )


def ranked_candidates(
    criterion: LossTable, smooth: LossTable, n_support: Array, weights: FloatArray
) -> BoolArray:
    """Return which trials are among the 30 best in each of some weighted samples, shape (b, T).

    Parameters
    ----------
    criterion, smooth, n_support
        What trials are ranked by, in this order; of equal ones, the earlier trial is better.
    weights
        Weights of all rows in each sample, shape (b, n).
    """
    keys = [table.stratum_means(weights)[0].mean(axis=0) for table in (criterion, smooth)]
    first, second = (np.round(key, _DIGITS) for key in keys)
    last = np.broadcast_to(n_support, first.shape)
    best = np.lexsort((last, second, first), axis=1)[:, :MOST_CANDIDATES]
    candidates = np.zeros(first.shape, dtype=bool)
    np.put_along_axis(candidates, best, True, axis=1)
    return candidates


def greedy_samples(own: FloatArray, weights: FloatArray, candidates: BoolArray) -> IndexArray:
    """Return how often each trial is chosen in each of some weighted samples, shape (b, T).

    This is `greedy_counts` for all samples at once. Samples that have chosen the same trials so far
    share the logarithms of the next step.

    Parameters
    ----------
    own
        Leave-one-out probability of each row's own class by each trial, shape (T, n).
    weights
        Weights of all rows in each sample, shape (b, n).
    candidates
        Which trials may be chosen in each sample, shape (b, T).
    """
    counts = np.zeros(candidates.shape, dtype=int)
    for step in range(1, N_STEPS + 1):
        for chosen, samples in _grouped(counts):
            usable = np.flatnonzero(candidates[samples].any(axis=0))
            surprises = surprise((chosen @ own + own[usable]) / step)
            losses = weights[samples] @ surprises.T
            losses[~candidates[np.ix_(samples, usable)]] = np.inf
            counts[samples, usable[first_least(losses)]] += 1
    return counts


def _grouped(counts: IndexArray) -> list[tuple[IndexArray, IndexArray]]:
    """Return the different rows of counts, each with the samples that have it."""
    different, place = np.unique(counts, axis=0, return_inverse=True)
    place = place.ravel()
    return [(row, np.flatnonzero(place == number)) for number, row in enumerate(different)]


def _means(
    chosen: IndexArray, probabilities: FloatArray, codes: Array, weights: FloatArray, loss: str
) -> FloatArray:
    """Return the mean loss of the chosen ensembles in each stratum, NaN without rows, (S, b)."""
    strata = [np.flatnonzero(codes == code) for code in np.unique(codes)]
    strata = strata if loss in _BY_CLASS else [np.arange(len(codes))]
    means = np.full((len(strata), len(chosen)), np.nan)
    for counts, samples in _grouped(chosen):
        members, shares = members_of(counts)
        losses = _LOSSES[loss](mean_probabilities(probabilities[members], shares), codes)
        for stratum, rows in enumerate(strata):
            own = weights[np.ix_(samples, rows)]
            total = own.sum(axis=1)
            has_rows = total > 0
            means[stratum, samples[has_rows]] = (own @ losses[rows])[has_rows] / total[has_rows]
    return means
