"""Search the points of a space by a function of one's own."""

from collections.abc import Callable, Mapping
from typing import Any

from optuna import Study, Trial

from span_hpo.integrations.optuna.claims import Claims
from span_hpo.integrations.optuna.gradient_sampler import wanted_of
from span_hpo.integrations.optuna.samplers import quiet
from span_hpo.integrations.optuna.spaces import suggest_all
from span_hpo.integrations.optuna.stopping import has_settled
from span_hpo.integrations.optuna.studies import run_trials
from span_hpo.runtime import thread_count, whole
from span_hpo.search import wanted_trials
from span_hpo.space import Space


def search_points(
    study: Study,
    space: Space,
    evaluate: Callable[[int, dict[str, Any]], tuple[float, Mapping[str, Any]]],
    *,
    n_trials: int | None,
    timeout: float | None = None,
    patience: int | None = None,
    n_jobs: int = 1,
    progress_bar: bool = False,
) -> None:
    """Add trials to a study that minimises a function of the points of a space.

    Parameters
    ----------
    study
        Study of Optuna with one direction, as `new_study` returns it. With a `GradientSampler`, all
        points are drawn.
    space
        Dimensions by name.
    evaluate
        Function that is called with the number of the trial and a point. It returns the loss, which
        is NaN for a trial that has failed, and attributes of the trial.
    n_trials, timeout, patience, n_jobs, progress_bar
        See `search`.

    Raises
    ------
    ValueError
        If an argument is not as described, or neither `n_trials` nor `timeout` is given.

    Examples
    --------
    >>> from span_hpo import Float
    >>> from span_hpo.integrations.optuna import new_study, search_points
    >>> study = new_study(sampler="random", seed=0)
    >>> def distance(number, point):
    ...     return abs(point["x"] - 0.5), {"number": number}
    >>> search_points(study, {"x": Float(0.0, 1.0)}, distance, n_trials=20)
    >>> study.best_value < 0.2
    True
    """
    wanted, threads = wanted_trials(n_trials, timeout), thread_count("n_jobs", n_jobs)
    if patience is not None:
        patience = whole("patience", patience, at_least=1)

    def is_over() -> bool:
        return patience is not None and has_settled(study, patience)

    def function(trial: Trial) -> float:
        wanted_of(trial, has_gradient=False)
        loss, attributes = evaluate(trial.number, suggest_all(trial, space))
        for name, value in attributes.items():
            trial.set_user_attr(name, value)
        return loss

    claims, given = Claims(study, wanted, []), study.sampler
    study.sampler = claims.sampler
    try:
        with quiet():
            run_trials(
                claims,
                function,
                timeout=timeout,
                until=is_over,
                callbacks=[],
                n_jobs=threads,
                show_progress_bar=progress_bar,
            )
    finally:
        claims.release()
        study.sampler = given
