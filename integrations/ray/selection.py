"""Select the best result of a run, fit its model, and judge the choice."""

from collections.abc import Callable
from typing import Any

from ray import tune
from sklearn.svm import SVC

from span_hpo.integrations.ray.spaces import config_params
from span_hpo.integrations.ray.trainable import LOSS, ROWS
from span_hpo.objective import SpanObjective, model_rank
from span_hpo.selection import (
    LEVEL,
    Ensemble,
    HonestEstimate,
    check_is_mean,
    ensemble_of,
    honest_estimate_of,
)


def best_result(results: tune.ResultGrid, objective: SpanObjective) -> tune.Result:
    """Return the result with the smallest loss among those that have seen all rows.

    Ties go to the lower smooth error, then to fewer support vectors, then to the earlier trial.

    Parameters
    ----------
    results
        Results that ``tuner.fit()`` has returned.
    objective
        Objective whose hyperparameters were searched.

    Returns
    -------
    Result of the best trial.

    Raises
    ------
    ValueError
        If no trial has seen all rows.

    Examples
    --------
    For a `SpanObjective` named ``objective``:

    >>> from span_hpo.integrations.ray import best_result, tuner
    >>> results = tuner(objective, num_samples=16).fit()  # doctest: +SKIP
    >>> loss = best_result(results, objective).metrics["loss"]  # doctest: +SKIP
    """
    return min(_on_all_rows(results, objective), key=_rank)


def finished_results(results: tune.ResultGrid) -> list[tune.Result]:
    """Return the results of trials that have seen all rows, or that the scheduler has stopped.

    The others were interrupted, or have failed.

    Examples
    --------
    For the ``results`` of a tuner, perhaps after an interruption:

    >>> losses = [result.metrics["loss"] for result in finished_results(results)]  # doctest: +SKIP
    """
    return [result for result in results if (result.metrics or {}).get("done")]


def params_of(result: tune.Result, objective: SpanObjective) -> dict[str, Any]:
    """Return the hyperparameters of one result, with a value for every name in `objective.space`.

    Raises
    ------
    ValueError
        If the result belongs to another objective.

    Examples
    --------
    For the ``results`` of a tuner that searches the hyperparameters of ``objective``:

    >>> best = best_result(results, objective)  # doctest: +SKIP
    >>> evaluation = objective.evaluate(params_of(best, objective))  # doctest: +SKIP
    """
    return config_params(objective, result.config or {})


def best_model(results: tune.ResultGrid, objective: SpanObjective) -> SVC:
    """Return scikit-learn's ``SVC``, fitted to all rows with the hyperparameters of `best_result`.

    Parameters
    ----------
    results, objective
        Results that ``tuner.fit()`` has returned, and the objective of the tuner.

    Raises
    ------
    ValueError
        If there is no best result, because no trial has seen all rows.

    Examples
    --------
    For a `SpanObjective` named ``objective``, and new rows ``X_new``:

    >>> model = best_model(tuner(objective).fit(), objective)  # doctest: +SKIP
    >>> labels = model.predict(X_new)  # doctest: +SKIP
    """
    return objective.fit_model(params_of(best_result(results, objective), objective))


def honest_estimate(
    results: tune.ResultGrid,
    objective: SpanObjective,
    *,
    level: float = LEVEL,
    seed: int = 0,
    ensemble: bool = False,
    report: Callable[[str], None] | None = None,
) -> HonestEstimate:
    """Return an estimate of the loss of `best_result` that is corrected for its choice.

    The choice is repeated on bootstrap samples of the rows, and judged on the other rows. Results
    on all rows count; what a scheduler has stopped is outside the correction. With fewer than about
    20 results, the estimate is pessimistic. The best 300 results are evaluated again in this
    process, because workers do not report the losses of rows.

    Parameters
    ----------
    results, objective
        Results that ``tuner.fit()`` has returned, and the objective of the tuner.
    level
        Share of the intervals that are meant to hold the expected loss.
    seed
        Random seed of the bootstrap samples.
    ensemble
        Estimate the loss of `best_ensemble`.
    report
        Function that is called with a line if it takes long to evaluate trials again. By default,
        the logger ``span_hpo.selection`` gets it.

    Raises
    ------
    ValueError
        If the metric is not a mean of losses of the rows, such as "auc", or no trial has seen all
        rows.

    Examples
    --------
    For a `SpanObjective` named ``objective``:

    >>> results = tuner(objective, num_samples=64).fit()  # doctest: +SKIP
    >>> honest_estimate(results, objective).interval  # doctest: +SKIP
    """
    check_is_mean(objective, ensemble=ensemble)
    found = _on_all_rows(results, objective)
    points = [params_of(result, objective) for result in found]
    ranks = [_rank(result) for result in found]
    return honest_estimate_of(
        objective, points, ranks, level=level, seed=seed, ensemble=ensemble, report=report
    )


def ranked_params(
    results: tune.ResultGrid, objective: SpanObjective, count: int | None = None
) -> list[dict[str, Any]]:
    """Return the hyperparameters of the trials that may join an ensemble, the best first.

    These are the trials that have seen all rows, in the order of `best_result`.

    Parameters
    ----------
    results, objective
        Results that ``tuner.fit()`` has returned, and the objective of the tuner.
    count
        Largest number of trials; None for all.

    Raises
    ------
    ValueError
        If no trial has seen all rows.

    Examples
    --------
    For the ``results`` of a tuner that searches the hyperparameters of ``objective``:

    >>> best, second = ranked_params(results, objective, 2)  # doctest: +SKIP
    """
    ranked = sorted(_on_all_rows(results, objective), key=_rank)[:count]
    return [params_of(result, objective) for result in ranked]


def best_ensemble(results: tune.ResultGrid, objective: SpanObjective) -> Ensemble:
    """Return an ensemble of the best trials, fitted to all rows.

    The members are chosen among the 30 best trials by the log loss of their mean calibrated
    leave-one-out probability, in ten greedy steps. These trials are evaluated once more, in this
    process.

    Parameters
    ----------
    results, objective
        Results that ``tuner.fit()`` has returned, and the objective of the tuner.

    Raises
    ------
    ValueError
        If no trial has seen all rows.

    Examples
    --------
    For a `SpanObjective` named ``objective``, and new rows ``X_new``:

    >>> results = tuner(objective, num_samples=64).fit()  # doctest: +SKIP
    >>> best_ensemble(results, objective).predict_proba(X_new)  # doctest: +SKIP
    """
    return ensemble_of(objective, ranked_params(results, objective))


def _on_all_rows(results: tune.ResultGrid, objective: SpanObjective) -> list[tune.Result]:
    """Return the results that have seen all rows, or raise if there are none."""
    all_rows = len(objective.data)
    found = [result for result in results if (result.metrics or {}).get(ROWS) == all_rows]
    if not found:
        errors = [result.error for result in results if result.error is not None]
        raise ValueError(
            f"`results` must have a trial that has seen all {all_rows} rows, got {len(results)} "
            f"trials, {len(errors)} of them with errors."
            + (f" The last one: {errors[-1]}" if errors else "")
        )
    return found


def _rank(result: tune.Result) -> tuple[float, float, float]:
    metrics = result.metrics or {}
    return model_rank(metrics[LOSS], metrics)
