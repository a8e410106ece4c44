"""Stop a study when its last trials have brought no lower loss."""

from optuna import Study
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from span_hpo.integrations.optuna.claims import FINISHED
from span_hpo.runtime import whole
from span_hpo.selection import PATIENCE, is_settled


class StopWhenSettled:
    """Callback that stops a study after so many finished trials without a lower loss.

    Trials that are complete or that a pruner has stopped count, in the order in which they have
    ended, whichever process has run them, and also those of earlier calls of ``study.optimize``.
    Failed trials do not count. Trials that a pruner has stopped, that violate a constraint, or
    whose value only equals the best one, bring no lower loss. In a study that maximises, larger
    values take the place of lower losses. Processes that share a study each need the callback.

    Parameters
    ----------
    patience
        Number of finished trials without a lower loss, after which the study stops.

    Attributes
    ----------
    patience
        Argument of the constructor.

    Examples
    --------
    >>> import optuna
    >>> from span_hpo.integrations.optuna import StopWhenSettled
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> study = optuna.create_study()
    >>> study.optimize(lambda trial: 0.1, n_trials=100, callbacks=[StopWhenSettled(patience=5)])
    >>> len(study.trials)
    6
    """

    def __init__(self, patience: int = PATIENCE) -> None:
        self.patience = whole("patience", patience, at_least=1)

    def __call__(self, study: Study, trial: FrozenTrial) -> None:
        """Stop the study if it has settled.

        Raises
        ------
        ValueError
            If the study has several directions.
        """
        if has_settled(study, self.patience):
            study.stop()


def has_settled(study: Study, patience: int = PATIENCE) -> bool:
    """Return whether the last finished trials of a study have brought no lower loss.

    Parameters
    ----------
    study
        Study with one direction.
    patience
        Number of finished trials without a lower loss; `StopWhenSettled` says which trials count.

    Raises
    ------
    ValueError
        If the study has several directions.

    Examples
    --------
    >>> from optuna.trial import create_trial
    >>> from span_hpo.integrations.optuna import has_settled, new_study
    >>> study = new_study()
    >>> study.add_trials([create_trial(value=loss) for loss in (0.2, 0.1, 0.3, 0.1)])
    >>> has_settled(study, patience=2), has_settled(study, patience=3)
    (True, False)
    """
    if len(study.directions) > 1:
        raise ValueError(
            f"`study` must have one direction to settle, got {len(study.directions)}. Limit the "
            "trials or the time of a study with several."
        )
    sign = -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0
    finished = study.get_trials(deepcopy=False, states=FINISHED)
    losses = [_loss(trial, sign) for trial in sorted(finished, key=_end)]
    return is_settled(losses, whole("patience", patience, at_least=1))


def _loss(trial: FrozenTrial, sign: float) -> float | None:
    """Return what a trial minimises, or None if it cannot be the best one."""
    if trial.state != TrialState.COMPLETE or any(c > 0 for c in trial.constraints.values()):
        return None
    assert trial.value is not None  # a complete trial has a value
    return sign * trial.value


def _end(trial: FrozenTrial) -> tuple[float, int]:
    assert trial.datetime_complete is not None  # a finished trial has an end
    return trial.datetime_complete.timestamp(), trial.number
