"""Select the best result of a run, and fit its model."""

from typing import Any

from ray import tune
from sklearn.svm import SVC

from span_hpo.integrations.ray.spaces import config_params
from span_hpo.integrations.ray.trainable import LOSS, ROWS
from span_hpo.objective import SpanObjective, model_rank


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
    >>> from sklearn.datasets import load_iris
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.integrations.ray import best_result, tuner
    >>> objective = SpanObjective(*load_iris(return_X_y=True))
    >>> results = tuner(objective, num_samples=16).fit()  # doctest: +SKIP
    >>> best_result(results, objective).metrics["loss"] < 0.1  # doctest: +SKIP
    True
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
    """Return the results of trials that have seen all rows, or that the scheduler has stopped.

    Parameters
    ----------
    results
        Results that ``tuner.fit()`` has returned, perhaps after an interruption.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.integrations.ray import finished_results, tuner
    >>> objective = SpanObjective(*load_iris(return_X_y=True))
    >>> results = tuner(objective, num_samples=16).fit()  # doctest: +SKIP
    >>> len(finished_results(results))  # doctest: +SKIP
    16
    """
    return [result for result in results if (result.metrics or {}).get("done")]


def params_of(result: tune.Result, objective: SpanObjective) -> dict[str, Any]:
    """Return the hyperparameters of a result.

    Parameters
    ----------
    result
        Result of one trial.
    objective
        Objective whose hyperparameters were searched.

    Returns
    -------
    A value for every name in the space of the objective.

    Raises
    ------
    ValueError
        If the result belongs to another objective.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.integrations.ray import best_result, params_of, tuner
    >>> objective = SpanObjective(*load_iris(return_X_y=True))
    >>> results = tuner(objective, num_samples=16).fit()  # doctest: +SKIP
    >>> sorted(params_of(best_result(results, objective), objective))  # doctest: +SKIP
    ['C_0', 'C_1', 'C_2', 'gamma']
    """
    return config_params(objective, result.config or {})


def best_model(results: tune.ResultGrid, objective: SpanObjective) -> SVC:
    """Return scikit-learn's ``SVC``, fitted to all rows with the hyperparameters of `best_result`.

    Parameters
    ----------
    results
        Results that ``tuner.fit()`` has returned.
    objective
        Objective whose hyperparameters were searched.

    Returns
    -------
    A model that predicts the labels of new rows.

    Raises
    ------
    ValueError
        If no trial has seen all rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.integrations.ray import best_model, tuner
    >>> X, y = load_iris(return_X_y=True)
    >>> objective = SpanObjective(X, y)
    >>> results = tuner(objective, num_samples=16).fit()  # doctest: +SKIP
    >>> best_model(results, objective).predict(X[::50]).tolist()  # doctest: +SKIP
    [0, 1, 2]
    """
    return objective.fit_model(params_of(best_result(results, objective), objective))


def _rank(result: tune.Result) -> tuple[float, float, float]:
    metrics = result.metrics or {}
    return model_rank(metrics[LOSS], metrics)
