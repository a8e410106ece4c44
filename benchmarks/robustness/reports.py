"""Search in a process that reports each finished trial, so that it can be killed."""

from multiprocessing.connection import Connection
from typing import Any

from optuna.trial import FrozenTrial, TrialState
from sklearn.datasets import make_moons

from span_hpo import SpanObjective
from span_hpo.integrations.optuna import new_study, search

_ROWS = 60  # a trial takes a few hundredths of a second
_FOR_EVER = 1_000_000  # trials


def new_objective() -> SpanObjective:
    """Return the objective of all searches."""
    return SpanObjective(*make_moons(_ROWS, noise=0.3, random_state=0))


def report_for_ever(reports: Connection, storage: str, name: str) -> None:
    """Search without an end, and send the number and the loss of each trial that has finished."""

    def report(_: Any, trial: FrozenTrial) -> None:
        if trial.state in (TrialState.COMPLETE, TrialState.PRUNED):
            reports.send((trial.number, trial.value))

    study = new_study(storage=storage, study_name=name, seed=0)
    search(study, new_objective(), n_trials=_FOR_EVER, callbacks=[report])
