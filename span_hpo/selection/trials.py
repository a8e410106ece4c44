"""The honest estimate of the trials of a search."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from span_hpo.metrics import SMOOTH_ERROR, Metric
from span_hpo.objective import MOST_TRIALS, SpanObjective, TrialRows
from span_hpo.runtime import Array, FloatArray, whole
from span_hpo.selection.honest import LEVEL, HonestEstimate, checked_level, honest_estimate
from span_hpo.selection.honest_ensembles import ENSEMBLE_LOSSES, honest_ensemble
from span_hpo.selection.members import evaluated, loo_probabilities
from span_hpo.selection.tables import LossTable
from span_hpo.space import Params

_logger = logging.getLogger("span_hpo.selection")
_WORTH_A_LINE = 10.0  # seconds of evaluations that are reported before they are made


def honest_estimate_of(
    objective: SpanObjective,
    points: Sequence[Params],
    ranks: Sequence[tuple[float, ...]],
    *,
    level: float = LEVEL,
    seed: int = 0,
    ensemble: bool = False,
    report: Callable[[str], None] | None = None,
) -> HonestEstimate:
    """Return the honest estimate for the best of some points, or for their ensemble.

    The row losses that the objective has kept are used. Those of other points are computed again.

    Parameters
    ----------
    objective
        Objective that was minimised.
    points
        Hyperparameters of the complete and feasible trials on all rows, in their order.
    ranks
        Rank of each point, as of `model_rank`. The best 300 points are used.
    level
        Share of the intervals that are meant to hold the expected loss.
    seed
        Random seed of the bootstrap samples.
    ensemble
        Estimate the loss of `ensemble_of` these points. All of them are then evaluated again.
    report
        Function that is called with a line if many points have to be computed again. By default,
        the logger ``span_hpo.selection`` gets it.

    Raises
    ------
    ValueError
        If the loss is not a mean of row losses, or there are no points.

    Examples
    --------
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.selection import honest_estimate_of
    >>> objective = SpanObjective([[0], [1], [3], [4]], [0, 0, 1, 1], kernel="linear")
    >>> points = [{"C_0": C, "C_1": C} for C in (0.1, 0.2, 1.0)]
    >>> ranks = [evaluation.rank for evaluation in objective.evaluate_all(points)]
    >>> honest_estimate_of(objective, points, ranks).n_trials
    3
    """
    check_is_mean(objective, ensemble=ensemble)
    level, seed = checked_level(level), whole("seed", seed, at_least=0)  # before the fits
    if len(points) == 0:
        raise ValueError("`points` must hold at least one trial on all rows, got none.")
    best = sorted(range(len(points)), key=lambda number: (*ranks[number], number))[:MOST_TRIALS]
    chosen = [points[number] for number in sorted(best)]
    trials = _row_losses(objective, chosen, report)
    data, metric, weight = objective.data, objective.metrics[0], objective.metric_weight
    if ensemble:
        estimate = honest_ensemble(
            *_ranking(trials, metric, data.y),
            loo_probabilities(*evaluated(objective, chosen)),
            data.codes,
            weight,
            loss=metric.name,
            level=level,
            seed=seed,
        )
    else:
        estimate = honest_estimate_of_rows(trials, metric, data.y, weight, level=level, seed=seed)
    return replace(estimate, n_trials=len(points))


def honest_estimate_of_rows(
    trials: Sequence[TrialRows],
    metric: Metric,
    y: FloatArray,
    weight: FloatArray,
    *,
    level: float = LEVEL,
    seed: int = 0,
) -> HonestEstimate:
    """Return the honest estimate for the best of some trials from their row losses.

    Parameters
    ----------
    trials
        Row losses of the trials, in their order.
    metric
        Metric that was minimised.
    y, weight
        Labels as numbers, and weight of each row, shape (l,).
    level, seed
        See `honest_estimate_of`.
    """
    return honest_estimate(
        *_ranking(trials, metric, y),
        weight,
        level=level,
        seed=seed,
        optimistic=min(trial.rank for trial in trials)[0],
        loss_name=metric.name,
    )


def _ranking(
    trials: Sequence[TrialRows], metric: Metric, y: FloatArray
) -> tuple[LossTable, LossTable, Array]:
    """Return what trials are ranked by: losses, smooth errors and numbers of support vectors."""
    return (
        LossTable([trial.losses for trial in trials], metric.strata(y)),
        LossTable([trial.smooth for trial in trials], SMOOTH_ERROR.strata(y)),
        np.array([trial.rank[2] for trial in trials]),
    )


def _row_losses(
    objective: SpanObjective, points: Sequence[Params], report: Callable[[str], None] | None
) -> list[TrialRows]:
    """Return the row losses of all points, and report if it takes long to compute them again."""
    missing = sum(point not in objective.kept_rows for point in points)
    found: list[TrialRows] = []
    start = time.perf_counter()
    for point in points:
        is_first = point not in objective.kept_rows and missing > 0
        found.append(objective.row_losses(point))
        if is_first:
            seconds = missing * (time.perf_counter() - start)
            if seconds > _WORTH_A_LINE:
                (report or _logger.info)(
                    f"The honest estimate evaluates {missing} trials of other processes again, "
                    f"which takes about {seconds:.0f} s."
                )
            missing = 0
    return found


def check_is_mean(objective: SpanObjective, *, ensemble: bool = False) -> None:
    """Raise if the loss has no honest estimate, because it is not a mean of row losses.

    For an ensemble, it must also be a loss of classes or probabilities.

    Examples
    --------
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.selection import check_is_mean
    >>> check_is_mean(SpanObjective([[0], [1]], [0, 1], metric="auc"))
    Traceback (most recent call last):
        ...
    ValueError: `metric` must be a mean of losses of the rows for an honest estimate...
    """
    metric = objective.metrics[0]
    if not metric.is_mean:
        raise ValueError(
            "`metric` must be a mean of losses of the rows for an honest estimate, such as "
            f"error, balanced_error or log_loss; {metric.name} has none."
        )
    if ensemble and metric.name not in ENSEMBLE_LOSSES:
        raise ValueError(
            f"`metric` must be one of {sorted(ENSEMBLE_LOSSES)} for an honest estimate of an "
            f"ensemble, got {metric.name}."
        )
