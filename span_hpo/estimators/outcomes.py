"""Evaluate candidates in a list, in threads, and keep what the results show of each."""

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from span_hpo.estimators.scoring import ScorerLoss
from span_hpo.estimators.shared_objectives import (
    CandidateError,
    Placed,
    SharedObjectives,
    failures_of_candidate,
)
from span_hpo.metrics import SMOOTH_ERROR, Metric, spread_over_samples, standard_error
from span_hpo.objective import MOST_TRIALS, Evaluation, TrialRows
from span_hpo.runtime import FloatArray, one_blas_thread
from span_hpo.selection import HonestEstimate, honest_estimate_of_rows

# Ties and columns need the values of rows, whether or not the scores do.
_COMPLETE = True
FIGURES = ("smooth_error", "n_support", "n_in_bound", "n_undefined")


@dataclass(frozen=True, eq=False)
class Outcome:
    """What is known of a candidate after its evaluation.

    Attributes
    ----------
    params
        The candidate.
    losses, standard_errors
        Loss of each metric of the objective, and its standard error, which is NaN if the loss is
        not a mean of row losses.
    figures
        Numbers that the results show in columns of their own.
    seconds
        Time of the fit and of the leave-one-out values.
    rows
        Row losses of the first metric, or None if it is no mean.
    failure
        Why the fit has failed, or None.
    error
        Class of the error that made it fail, or None.
    """

    params: Mapping[str, Any]
    losses: tuple[float, ...]
    standard_errors: tuple[float, ...]
    figures: Mapping[str, float]
    seconds: float
    rows: TrialRows | None
    failure: str | None = None
    error: type[BaseException] | None = None

    @classmethod
    def of(
        cls, params: Mapping[str, Any], evaluation: Evaluation, metrics: Sequence[Metric]
    ) -> "Outcome":
        """Return the outcome of an evaluation."""
        loo, weight = evaluation.loo, evaluation.metric_weight
        y, values = loo.y, loo.decision_values
        figures = evaluation.figures()
        low, high = loo.error_bounds
        return cls(
            params,
            tuple(evaluation.losses.values()),
            tuple(
                standard_error(metric, y, values, weight) if metric.is_mean else math.nan
                for metric in metrics
            ),
            {
                "loo_error": float(loo.error),
                "loo_error_low": float(low),
                "loo_error_high": float(high),
                **{name: float(figures[name]) for name in FIGURES},
            },
            evaluation.seconds,
            _trial_rows(evaluation),
        )

    @classmethod
    def failed(cls, params: Mapping[str, Any], n_losses: int, error: CandidateError) -> "Outcome":
        """Return the outcome of a candidate whose fit has failed."""
        nothing = (math.nan,) * n_losses
        names = ("loo_error", "loo_error_low", "loo_error_high", *FIGURES)
        figures = dict.fromkeys(names, math.nan)
        reason = None if error.__cause__ is None else type(error.__cause__)
        return cls(params, nothing, nothing, figures, 0.0, None, str(error), reason)

    def rank(self, position: int) -> tuple[float, ...]:
        """Return the key by which candidates are sorted by a metric, the best first."""
        loss = self.losses[position]
        if math.isnan(loss):
            return (math.inf, math.inf, math.inf)
        return loss, self.figures["smooth_error"], self.figures["n_support"]


@dataclass(frozen=True, eq=False)
class SearchedRows:
    """The row losses of the best candidates of a search.

    Attributes
    ----------
    trials
        Row losses of each candidate.
    metric
        The metric that was minimised.
    y, weight
        Labels as numbers, and weight of each row.
    n_candidates
        Number of all candidates.
    """

    trials: Sequence[TrialRows]
    metric: Metric
    y: FloatArray
    weight: FloatArray
    n_candidates: int

    @classmethod
    def of(cls, outcomes: Sequence[Outcome], shared: SharedObjectives) -> "SearchedRows":
        """Return the row losses of the candidates that were evaluated."""
        first = next(outcome for outcome in outcomes if outcome.failure is None)
        objective = shared.placed(first.params).objective
        best = sorted(range(len(outcomes)), key=lambda number: (outcomes[number].rank(0), number))
        trials = [outcomes[number].rows for number in sorted(best[:MOST_TRIALS])]
        return cls(
            [rows for rows in trials if rows is not None],
            objective.metrics[0],
            objective.data.y,
            objective.metric_weight,
            sum(outcome.failure is None for outcome in outcomes),
        )

    def honest_estimate(self) -> HonestEstimate:
        """Return the estimate of the loss of the chosen candidate, corrected for the choice."""
        estimate = honest_estimate_of_rows(self.trials, self.metric, self.y, self.weight)
        return replace(estimate, n_trials=self.n_candidates)


def bootstrap_error(shared: SharedObjectives, outcome: Outcome, position: int) -> float:
    """Return the standard error of a loss that is no mean, for which it is evaluated again.

    Sigmoids are fitted to the values of all rows, and not anew in each sample.

    Parameters
    ----------
    shared
        Objectives of the candidates.
    outcome
        Outcome of a candidate.
    position
        Position of the metric among those of the objectives.
    """
    placed = shared.placed(outcome.params)
    metric, evaluation = placed.objective.metrics[position], placed.objective.evaluate(placed.point)
    loo, weight = evaluation.loo, evaluation.metric_weight
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # in a sample, a class may have no prediction
        given = shared.metrics[position]
        if isinstance(given, ScorerLoss):
            loss_of = given.of_samples(loo.y, loo.decision_values, weight)
            return spread_over_samples(loss_of, loo.y, weight)
        return standard_error(metric, loo.y, loo.decision_values, weight)


@one_blas_thread
def outcome_of(shared: SharedObjectives, candidate: Mapping[str, Any]) -> Outcome:
    """Evaluate one candidate."""
    try:
        placed = shared.placed(candidate)
    except CandidateError as error:
        return Outcome.failed(candidate, len(shared.metrics), error)
    return _outcome(placed, candidate)


def outcomes_in_order(
    shared: SharedObjectives,
    candidates: Sequence[Mapping[str, Any]],
    *,
    threads: int,
    is_over: Callable[[], bool],
    found: dict[int, Outcome],
) -> None:
    """Evaluate candidates in their order until the search is over; the first one in any case.

    Parameters
    ----------
    shared
        Objectives of the candidates.
    candidates
        Candidates.
    threads
        Number of threads.
    is_over
        Function that returns whether to begin no more candidates.
    found
        Outcomes by the number of the candidate, which are added as they are found.
    """

    def evaluate(number: int) -> None:
        if number == 0 or not is_over():
            found[number] = outcome_of(shared, candidates[number])

    _in_threads(evaluate, range(len(candidates)), threads)


def outcomes_in_batches(
    shared: SharedObjectives,
    candidates: Sequence[Mapping[str, Any]],
    *,
    prefix: str,
    threads: int,
    found: dict[int, Outcome],
) -> None:
    """Evaluate all candidates, those with the same features and kernel together.

    Parameters
    ----------
    shared, candidates, threads, found
        See `outcomes_in_order`.
    prefix
        What the names of the parameters of the SVM begin with.
    """
    settings: dict[Any, list[int]] = {}
    for number, candidate in enumerate(candidates):
        settings.setdefault(shared.setting_of(candidate, prefix), []).append(number)
    for numbers in settings.values():
        batches: dict[Any, list[tuple[int, Placed]]] = {}
        for number in numbers:
            try:
                placed = shared.placed(candidates[number])
            except CandidateError as error:
                found[number] = Outcome.failed(candidates[number], len(shared.metrics), error)
                continue
            batches.setdefault(placed.batch, []).append((number, placed))

        def evaluate(batch: list[tuple[int, Placed]]) -> None:
            found.update(_of_batch(batch, candidates))

        # An objective and its matrices are let go when its last batch has been evaluated.
        _in_threads(evaluate, (batches.pop(key) for key in list(batches)), threads)


@one_blas_thread
def _of_batch(
    batch: Sequence[tuple[int, Placed]], candidates: Sequence[Mapping[str, Any]]
) -> list[tuple[int, Outcome]]:
    """Return the outcomes of candidates that share their kernel matrix, by number."""
    objective = batch[0][1].objective
    try:
        with failures_of_candidate():
            points = [placed.point for _, placed in batch]
            evaluations = objective.evaluate_all(points, complete=_COMPLETE)
    except CandidateError:  # of one of the candidates; the others count
        return [(number, _outcome(placed, candidates[number])) for number, placed in batch]
    return [
        (number, Outcome.of(candidates[number], evaluation, objective.metrics))
        for (number, _), evaluation in zip(batch, evaluations, strict=True)
    ]


def _outcome(placed: Placed, candidate: Mapping[str, Any]) -> Outcome:
    objective = placed.objective
    try:
        with failures_of_candidate():
            evaluation = objective.evaluate(placed.point, complete=_COMPLETE)
    except CandidateError as error:
        return Outcome.failed(candidate, len(objective.metrics), error)
    return Outcome.of(candidate, evaluation, objective.metrics)


def _in_threads(function: Callable[[Any], None], tasks: Iterable[Any], threads: int) -> None:
    """Call a function with each task; the first error ends what has not begun yet."""
    if threads == 1:
        for task in tasks:
            function(task)
        return
    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(function, task) for task in tasks]
        try:
            for future in futures:
                future.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _trial_rows(evaluation: Evaluation) -> TrialRows | None:
    """Return the row losses of an evaluation, or None if its loss is not their mean."""
    rows = evaluation.row_losses
    if rows is None:
        return None
    loo, weight = evaluation.loo, evaluation.metric_weight
    smooth = SMOOTH_ERROR.row_losses(loo.y, loo.decision_values, weight)
    assert smooth is not None  # it is a mean
    return TrialRows(evaluation.rank, rows.compact(), smooth.compact())
