"""Select the best trial of a study, and fit its model."""

import copy

from optuna import Study
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState
from sklearn.svm import SVC

from span_hpo.integrations.optuna.spaces import as_objective, params_of
from span_hpo.objective import SpanObjective, model_rank


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
    return copy.deepcopy(min(feasible, key=_rank))


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


def _rank(trial: FrozenTrial) -> tuple[float, float, float, int]:
    assert trial.value is not None  # a complete trial has a value
    return *model_rank(trial.value, trial.user_attrs), trial.number
