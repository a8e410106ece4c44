"""Select the best trial of a study, fit its model, and judge the choice."""

import copy
from collections.abc import Callable
from typing import Any

from optuna import Study
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState
from sklearn.svm import SVC

from span_hpo.integrations.optuna.spaces import as_objective, params_of
from span_hpo.integrations.optuna.trials import check_owner
from span_hpo.objective import SpanObjective, model_rank
from span_hpo.selection import (
    LEVEL,
    Ensemble,
    HonestEstimate,
    check_is_mean,
    ensemble_of,
    honest_estimate_of,
)


def best_trial(study: Study) -> FrozenTrial:
    """Return the trial with the least loss.

    Ties, which are common with the metric "error", go to the lower smooth error, then to fewer
    support vectors, then to the earlier trial. Trials that violate a constraint do not count.

    Parameters
    ----------
    study
        Study of an `OptunaObjective` with one metric.

    Returns
    -------
    Copy of the best trial.

    Raises
    ------
    ValueError
        If the study has several directions, maximises, or has no trial that is complete and
        feasible.

    Examples
    --------
    >>> from optuna.trial import create_trial
    >>> from span_hpo.integrations.optuna import best_trial, new_study
    >>> study = new_study()
    >>> study.add_trials([create_trial(value=loss) for loss in (0.2, 0.1, 0.3)])
    >>> best_trial(study).number
    1
    """
    return copy.deepcopy(min(_candidates(study), key=_rank))


def best_model(study: Study, objective: SpanObjective) -> SVC:
    """Return scikit-learn's ``SVC``, fitted to all rows with the hyperparameters of `best_trial`.

    Parameters
    ----------
    study, objective
        Study with one metric, and the objective whose hyperparameters it has searched.

    Raises
    ------
    ValueError
        If the study has no best trial, or its trials belong to another objective.

    Examples
    --------
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.integrations.optuna import best_model, new_study, search
    >>> objective = SpanObjective([[0], [1], [3], [4]], ["a", "a", "b", "b"])
    >>> study = new_study(seed=0)
    >>> search(study, objective, n_trials=3)
    >>> best_model(study, objective).predict([[0.5], [3.5]]).tolist()
    ['a', 'b']
    """
    objective = as_objective(objective)
    return objective.fit_model(params_of(best_trial(study), objective))


def honest_estimate(
    study: Study,
    objective: SpanObjective,
    *,
    level: float = LEVEL,
    seed: int = 0,
    ensemble: bool = False,
    report: Callable[[str], None] | None = None,
) -> HonestEstimate:
    """Return an estimate of the loss of the best trial that is corrected for its choice.

    The loss of `best_trial` is optimistic, because the trial was chosen by it. The estimate repeats
    the choice on bootstrap samples of the rows, and judges it on the other rows. It counts the
    trials that are complete, feasible and on all rows. What a pruner has stopped is outside the
    correction. With fewer than about 20 trials, the estimate is pessimistic.

    Parameters
    ----------
    study, objective
        Study with one metric, and the objective whose hyperparameters it has searched. What the
        objective does not know from this process, such as the trials of other workers, is evaluated
        again.
    level
        Share of the intervals that are meant to hold the expected loss.
    seed
        Random seed of the bootstrap samples.
    ensemble
        Estimate the loss of `best_ensemble`. All trials are then evaluated again.
    report
        Function that is called with a line if it takes long to evaluate trials again. By default,
        the logger ``span_hpo.selection`` gets it.

    Returns
    -------
    The estimate, with its interval.

    Raises
    ------
    ValueError
        If the metric is not a mean of losses of the rows, such as "auc"; if the study has no
        complete and feasible trial on all rows; or if its trials belong to another objective.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.integrations.optuna import honest_estimate, new_study, search
    >>> objective = SpanObjective(*make_moons(60, noise=0.4, random_state=0))
    >>> study = new_study(sampler="random", seed=0)
    >>> search(study, objective, n_trials=25)
    >>> estimate = honest_estimate(study, objective)
    >>> bool(estimate.optimistic < estimate.error < estimate.interval[1])
    True
    """
    objective = as_objective(objective)
    check_is_mean(objective, ensemble=ensemble)
    trials = _on_all_rows(study, objective)
    points = [params_of(trial, objective) for trial in trials]
    ranks = [_rank(trial) for trial in trials]
    return honest_estimate_of(
        objective, points, ranks, level=level, seed=seed, ensemble=ensemble, report=report
    )


def ranked_params(
    study: Study, objective: SpanObjective, count: int | None = None
) -> list[dict[str, Any]]:
    """Return the hyperparameters of the trials that may join an ensemble, the best first.

    These are the trials that are complete, feasible and on all rows, in the order of `best_trial`.

    Parameters
    ----------
    study, objective
        Study with one metric, and the objective whose hyperparameters it has searched.
    count
        Largest number of trials; None for all.

    Raises
    ------
    ValueError
        If the study has no complete and feasible trial on all rows, or its trials belong to another
        objective.

    Examples
    --------
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.integrations.optuna import new_study, ranked_params, search
    >>> objective = SpanObjective([[0], [1], [3], [4]], ["a", "a", "b", "b"])
    >>> study = new_study(seed=0)
    >>> search(study, objective, n_trials=5)
    >>> len(ranked_params(study, objective, 3))
    3
    """
    objective = as_objective(objective)
    ranked = sorted(_on_all_rows(study, objective), key=_rank)[:count]
    return [params_of(trial, objective) for trial in ranked]


def best_ensemble(study: Study, objective: SpanObjective) -> Ensemble:
    """Return an ensemble of the best trials, fitted to all rows.

    The members are chosen among the 30 best trials by the log loss of their mean calibrated
    leave-one-out probability, in ten greedy steps, so that the log loss and often the error are
    lower than those of `best_model`. These trials are evaluated once more.

    Parameters
    ----------
    study, objective
        Study with one metric, and the objective whose hyperparameters it has searched.

    Returns
    -------
    The ensemble, with `predict` and `predict_proba`.

    Raises
    ------
    ValueError
        If the study has no complete and feasible trial on all rows, or its trials belong to another
        objective.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.integrations.optuna import best_ensemble, new_study, search
    >>> objective = SpanObjective(*make_moons(60, noise=0.4, random_state=0))
    >>> study = new_study(seed=0)
    >>> search(study, objective, n_trials=20)
    >>> best_ensemble(study, objective).predict_proba([[0, 0.5]]).shape
    (1, 2)
    """
    return ensemble_of(as_objective(objective), ranked_params(study, objective))


def _on_all_rows(study: Study, objective: SpanObjective) -> list[FrozenTrial]:
    """Return the trials that are complete, feasible and on all rows, or raise if none is."""
    all_rows, complete = len(objective.data), _candidates(study)
    check_owner(study, objective)
    trials = [trial for trial in complete if trial.user_attrs.get("n_rows", all_rows) == all_rows]
    if not trials:
        raise ValueError(
            f"`study` must have a trial on all {all_rows} rows, got {len(complete)} complete "
            "trials on fewer."
        )
    return trials


def _candidates(study: Study) -> list[FrozenTrial]:
    """Return the trials that may be the best: those that are complete and feasible."""
    if len(study.directions) > 1:
        raise ValueError(
            f"`study` must have one direction, got {len(study.directions)}. Choose one of "
            "`study.best_trials`."
        )
    if study.direction != StudyDirection.MINIMIZE:
        raise ValueError(f"`study` must minimise, got {study.direction.name.lower()}.")
    trials = study.get_trials(deepcopy=False)
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    feasible = [t for t in complete if all(value <= 0 for value in t.constraints.values())]
    if not feasible:
        failures = [t.user_attrs["failure"] for t in trials if "failure" in t.user_attrs]
        raise ValueError(
            f"`study` must have a trial that is complete and keeps its constraints, got "
            f"{len(trials)} trials, {len(complete)} of them complete."
            + (f" The last failure: {failures[-1]}" if failures else "")
        )
    return feasible


def _rank(trial: FrozenTrial) -> tuple[float, float, float, int]:
    assert trial.value is not None  # a complete trial has a value
    return *model_rank(trial.value, trial.user_attrs), trial.number
