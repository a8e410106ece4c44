"""Run one study in three processes, which share it through a journal file.

No server is needed, and processes may join or leave at any time. The samplers are seeded, but the
order in which the processes finish their trials is not fixed, so that the numbers vary a little.
"""

import multiprocessing
import tempfile
from collections import Counter
from pathlib import Path

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from sklearn.datasets import load_digits

from span_hpo import SpanObjective
from span_hpo.integrations.optuna import OptunaObjective, best_trial

WORKERS, TRIALS = 3, 15


def work(file, objective, seed):
    """Add trials to the study in a file."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.load_study(
        study_name="digits",
        storage=JournalStorage(JournalFileBackend(file)),
        sampler=optuna.samplers.TPESampler(seed=seed),  # equal seeds would draw equal points
    )
    study.optimize(objective, n_trials=TRIALS)


def main():
    """Start the processes, wait for them, and print their results."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    X, digits = load_digits(return_X_y=True)
    objective = OptunaObjective(SpanObjective(X[:600] / 16, digits[:600] % 2))
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "journal.log")
        study = optuna.create_study(
            study_name="digits", storage=JournalStorage(JournalFileBackend(file))
        )
        context = multiprocessing.get_context("spawn")
        processes = [
            context.Process(target=work, args=(file, objective, seed)) for seed in range(WORKERS)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        done = Counter(trial.user_attrs["worker"]["pid"] for trial in study.trials)
        best = best_trial(study)
    for process in processes:
        print(f"process {process.pid}: {done[process.pid]} trials")
    print(
        f"{done.total()} trials together; the best is number {best.number} by process "
        f"{best.user_attrs['worker']['pid']}, with leave-one-out error {best.value:.4f}"
    )


if __name__ == "__main__":
    main()
