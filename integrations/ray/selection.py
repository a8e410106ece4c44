"""The best result of a run, and its model."""

from typing import Any

from ray import tune
from sklearn.svm import SVC

from span_hpo.integrations.ray.spaces import config_params
from span_hpo.integrations.ray.trainable import LOSS, ROWS
from span_hpo.objective import SpanObjective, model_rank


def best_result(results: tune.ResultGrid, objective: SpanObjective) -> tune.Result:
    """Return the result with the least loss among those that have seen all rows.

    Ties go to the lower smooth error, then to fewer support vectors, then to the earlier trial.

    Parameters
    ----------
    results
        What ``tuner.fit()`` returned.
    objective
        What was searched.

    Raises
    ------
    ValueError
        If no trial has finished.
    """
    all_rows = len(objective.data)
    found = [result for result in results if (result.metrics or {}).get(ROWS) == all_rows]
    if not found:
        errors = [result.error for result in results if result.error is not None]
        raise ValueError(
            f"`results` must have a trial that has seen all {all_rows} rows, got {len(results)} "
            f"trials, {len(errors)} of them with errors."
            + (f" The last one: {errors[-1]}" if errors else "")
        )
    return min(found, key=_rank)


def finished_results(results: tune.ResultGrid) -> list[tune.Result]:
    """Return the results of trials that have ended: on all rows, or stopped by the scheduler."""
    return [result for result in results if (result.metrics or {}).get("done")]


def params_of(result: tune.Result, objective: SpanObjective) -> dict[str, Any]:
    """Return the hyperparameters of a result.

    Raises
    ------
    ValueError
        If it is not one of this objective.
    """
    return config_params(objective, result.config or {})


def best_model(results: tune.ResultGrid, objective: SpanObjective) -> SVC:
    """Return scikit-learn's ``SVC`` with the hyperparameters of `best_result`, on all rows.

    Parameters
    ----------
    results
        What ``tuner.fit()`` returned.
    objective
        What was searched.

    Raises
    ------
    ValueError
        If no trial has finished.
    """
    return objective.fit_model(params_of(best_result(results, objective), objective))


def _rank(result: tune.Result) -> tuple[float, float, float]:
    metrics = result.metrics or {}
    return model_rank(metrics[LOSS], metrics)
