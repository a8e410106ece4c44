"""An estimate of the loss of a chosen model that is corrected for the choice.

The least of many losses is an optimistic estimate. If the choice is repeated on a bootstrap sample
of the rows, the rows that are out of the bag had no part in it, so that their losses judge it
fairly. The choice is made among the row losses of the trials; nothing is fitted again.

References
----------
Tsamardinos, Greasidou and Borboudakis, "Bootstrapping the out-of-sample predictions for efficient
and accurate cross-validation", 2018 (Bootstrap Bias Corrected cross-validation).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from span_hpo.runtime import Array, FloatArray, IndexArray, Printable, counted, real, whole
from span_hpo.selection.bootstrap import binomial_interval, bootstrap_counts
from span_hpo.selection.tables import LossTable

N_RESAMPLES = 500
LEVEL = 0.9
FEW_TRIALS = 20  # with fewer trials, the estimate is pessimistic
_SAME = 1e-12  # relative difference of two weighted means that is rounding


@dataclass(frozen=True, eq=False, repr=False)
class HonestEstimate(Printable):
    """The expected loss on new rows of what a search has chosen, corrected for the choice.

    Attributes
    ----------
    error
        The estimate.
    interval
        Lower and upper end of a confidence interval.
    level
        Share of such intervals that are meant to hold the expected loss.
    optimistic
        Loss of the chosen trial, which is too good on average because the trial was chosen by it.
    n_trials
        Number of trials among which the choice was made. With fewer than about 20 of them, the
        estimate is pessimistic.
    n_rows
        Number of rows.
    loss_name
        Name of the loss, such as "error".

    Examples
    --------
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.integrations.optuna import honest_estimate, new_study, search
    >>> objective = SpanObjective([[0], [1], [2], [3], [4]], [0, 0, 1, 0, 1], kernel="linear")
    >>> study = new_study(seed=0)
    >>> search(study, objective, n_trials=25)
    >>> estimate = honest_estimate(study, objective)
    >>> estimate.optimistic < estimate.error
    True
    """

    error: float
    interval: tuple[float, float]
    level: float
    optimistic: float
    n_trials: int
    n_rows: int
    loss_name: str = "error"

    @property
    def is_pessimistic(self) -> bool:
        """Whether there are so few trials that the estimate is too high on average."""
        return self.n_trials < FEW_TRIALS

    def _summary(self) -> tuple[str, Mapping[str, str]]:
        low, high = self.interval
        lines = {
            self.loss_name: f"{self.error:.4f}",
            f"{self.level:.0%} interval": f"{low:.4f} to {high:.4f}",
            "loss of the chosen": f"{self.optimistic:.4f}, which is optimistic",
        }
        if self.is_pessimistic:
            lines["note"] = f"pessimistic, because there are fewer than {FEW_TRIALS} trials"
        trials, rows = counted(self.n_trials, "trial"), counted(self.n_rows, "row")
        return f"Honest estimate from {trials} on {rows}", lines


def honest_estimate(
    criterion: LossTable,
    smooth: LossTable,
    n_support: Array,
    weight: FloatArray,
    *,
    level: float = LEVEL,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
    optimistic: float | None = None,
    loss_name: str = "error",
) -> HonestEstimate:
    """Return the estimate from the row losses of all trials.

    In each of B bootstrap samples, the trial with the least loss is chosen in the bag. Ties go to
    the lower smooth error there, then to fewer support vectors, then to the earlier trial. The
    estimate is the mean loss of the chosen trials on the rows out of the bag. Where these lack a
    stratum, such as a small class, its mean over the other samples stands in for it.

    The interval of a share of errors is that of Clopper and Pearson for n rows, with n times the
    estimate as the number of errors. Other losses, and rows with weights, have the percentiles of
    the bootstrap, which are wider than necessary, because only 37 % of the rows are out of a bag.

    Parameters
    ----------
    criterion
        Row losses by which trials are chosen, in the order of the trials.
    smooth
        Row losses of the smooth error.
    n_support
        Number of support vectors of each trial, shape (T,).
    weight
        Weight of each row, shape (n,).
    level
        Share of intervals that are meant to hold the expected loss.
    n_resamples
        Number of bootstrap samples, B.
    seed
        Random seed of the samples.
    optimistic
        Loss of the trial that is chosen on all rows; by default that of the table.
    loss_name
        Name of the loss, for the summary.
    """
    level, n_rows = checked_level(level), len(weight)
    n_resamples = whole("n_resamples", n_resamples, at_least=1)
    seed = whole("seed", seed, at_least=0)
    parts = []
    for counts in bootstrap_counts(n_rows, n_resamples, seed):
        chosen = chosen_trials(criterion, smooth, n_support, counts * weight)
        different, place = np.unique(chosen, return_inverse=True)
        means, has_rows = criterion.of(different).stratum_means((counts == 0) * weight)
        own = means[:, np.arange(len(chosen)), place]
        parts.append(np.where(has_rows, own, np.nan))
    losses = out_of_bag_losses(np.concatenate(parts, axis=1))
    error = float(losses.mean())
    if criterion.is_error_rate and (weight == weight[0]).all():
        interval = binomial_interval(min(error, 1.0) * n_rows, n_rows, level)
    else:
        interval = percentile_interval(losses, level)
    if optimistic is None:
        (best,) = chosen_trials(criterion, smooth, n_support, weight[None, :])
        optimistic = float(criterion.of(np.array([best])).stratum_means(weight[None, :])[0].mean())
    return HonestEstimate(
        error, interval, level, optimistic, len(criterion.trials), n_rows, loss_name
    )


def chosen_trials(
    criterion: LossTable, smooth: LossTable, n_support: Array, weights: FloatArray
) -> IndexArray:
    """Return the number of the trial that is chosen in each of some weighted samples.

    Parameters
    ----------
    criterion, smooth, n_support
        What trials are chosen by, in this order; see `honest_estimate`.
    weights
        Weights of all rows in each sample, shape (b, n).
    """
    tied = np.ones((len(weights), len(criterion.trials)), dtype=bool)
    for table in (criterion, smooth):
        means = table.stratum_means(weights)[0].mean(axis=0)
        least = np.where(tied, means, np.inf).min(axis=1, keepdims=True)
        tied &= means <= least * (1 + _SAME)
    chosen: IndexArray = np.where(tied, n_support, np.inf).argmin(axis=1)
    return chosen


def out_of_bag_losses(means: FloatArray) -> FloatArray:
    """Return the loss of each sample from the means of its strata.

    Parameters
    ----------
    means
        Means out of the bag, shape (S, B); NaN where a sample has no row of a stratum there.

    Raises
    ------
    ValueError
        If no sample has a row of some stratum out of the bag.
    """
    missing = np.isnan(means)
    if missing.all(axis=1).any():
        raise ValueError(
            f"`n_resamples` must be larger: of {means.shape[1]} bootstrap samples, none has a row "
            "of each class out of the bag."
        )
    filled = np.where(missing, np.nanmean(means, axis=1, keepdims=True), means)
    losses: FloatArray = filled.mean(axis=0)
    return losses


def percentile_interval(losses: FloatArray, level: float) -> tuple[float, float]:
    """Return the interval that holds this share of the losses, with equal tails."""
    tail = (1 - level) / 2
    low, high = np.quantile(losses, [tail, 1 - tail]).tolist()
    return low, high


def checked_level(level: Any) -> float:
    """Return the level of an interval, or raise if it is not between 0 and 1."""
    share = real("level", level, above=0)
    if share >= 1:
        raise ValueError(f"`level` must be below 1, got {level!r}.")
    return share
