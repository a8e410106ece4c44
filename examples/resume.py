"""Stop a study and continue it later from an SQLite file, which keeps all trials.

Each session opens the file as a new process would. The second session finds the trials of the
first, does not repeat the default points, and can only improve on the best trial.
"""

import tempfile
from pathlib import Path

import optuna
from optuna.storages import RDBStorage
from optuna.trial import TrialState
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import minmax_scale

from span_hpo import SpanObjective
from span_hpo.integrations.optuna import OptunaObjective, best_trial, enqueue_defaults

X, y = load_breast_cancer(return_X_y=True)
X = minmax_scale(X)


def session(file, seed):
    """Open or create the study in a file, and add 20 trials."""
    storage = RDBStorage(f"sqlite:///{file}")
    study = optuna.create_study(
        study_name="breast cancer",
        storage=storage,
        sampler=optuna.samplers.TPESampler(seed=seed),  # a sampler's state is not in the file
        load_if_exists=True,
    )
    objective = SpanObjective(X, y, metric="smooth_error")
    found = len(study.trials)
    enqueue_defaults(study, objective)  # skips points that the study has already
    waiting = len(study.get_trials(states=(TrialState.WAITING,)))
    study.optimize(OptunaObjective(objective), n_trials=20)
    best = best_trial(study)
    print(
        f"found {found} trials, enqueued {waiting} default points, now {len(study.trials)} trials; "
        f"best is trial {best.number} with loss {best.value:.6f}"
    )
    storage.remove_session()
    storage.engine.dispose()


optuna.logging.set_verbosity(optuna.logging.WARNING)
with tempfile.TemporaryDirectory() as folder:
    for seed in (0, 1):
        session(Path(folder) / "study.db", seed)
