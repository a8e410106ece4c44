"""A process that works on a study.

Usage: ``python -m tests.integrations.optuna.worker STORAGE TRIALS [SLOW]``.

From its trial number SLOW on it takes for ever, to be killed in the middle of a trial.
"""

import contextlib
import os
import sys
import time

import optuna

from span_hpo import SpanObjective
from span_hpo.integrations.optuna import (
    GradientSampler,
    OptunaObjective,
    new_study,
    refine,
    search,
)
from span_hpo.integrations.optuna.samplers import named_sampler
from tests.integrations.optuna.parts import AlwaysPrune
from tests.problems import two_moons

STUDY = "moons"
HEARTBEAT = {"heartbeat_interval": 1, "grace_period": 2}


def storage_of(url):
    """Return the storage that a text stands for; one ending in ``#heartbeat`` beats."""
    if url.startswith("journal:"):
        backend = optuna.storages.journal.JournalFileBackend(url.removeprefix("journal:"))
        return optuna.storages.JournalStorage(backend)
    if url.endswith("#heartbeat"):
        return optuna.storages.RDBStorage(
            url.removesuffix("#heartbeat"),
            **HEARTBEAT,
            heartbeat_stale_trial_callback=optuna.storages.RetryHeartbeatStaleTrialCallback(
                max_retry=1
            ),
        )
    return optuna.storages.RDBStorage(url)


@contextlib.contextmanager
def opened(url):
    """Open the study as a process of its own would, and close its connections."""
    storage = storage_of(url)
    try:
        yield optuna.create_study(study_name=STUDY, storage=storage, load_if_exists=True)
    finally:
        storage.remove_session()
        if isinstance(storage, optuna.storages.RDBStorage):
            storage.engine.dispose()


class SlowFrom:
    """The error, which stops answering in trial number `first`."""

    __name__ = "error"  # so that it is the same study as one of "error"

    def __init__(self, first):
        self.first = first
        self.calls = 0

    def __call__(self, y, f):
        """Return the error, or do not return."""
        if self.calls >= self.first:
            time.sleep(600)
        self.calls += 1
        return float((y * f <= 0).mean())


def search_together(url, trials):
    """Work on the study until all processes together have finished so many trials."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = new_study(study_name=STUDY, storage=storage_of(url), seed=0)
    search(study, SpanObjective(*two_moons(60)), n_trials=trials)


def prune_together(url, trials):
    """Work on a study, of which a pruner wants to stop every trial."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = new_study(study_name=STUDY, storage=storage_of(url), seed=0, pruner=AlwaysPrune())
    search(study, SpanObjective(*two_moons(60)), n_trials=trials, budgets=(0.25, 0.5, 1.0))


def descend_together(url, trials):
    """Work on a study in which some trials follow gradients."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = GradientSampler(named_sampler("tpe", 0), n_startup=5, n_steps=8)
    study = new_study(study_name=STUDY, storage=storage_of(url), sampler=sampler)
    search(study, SpanObjective(*two_moons(60), metric="smooth_error"), n_trials=trials)


def descend_alone(url, trials):
    """Do so many trials of such a study, without a search that counts those of others."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = GradientSampler(n_startup=5, n_steps=8, seed=os.getpid())
    study = new_study(study_name=STUDY, storage=storage_of(url), sampler=sampler)
    objective = SpanObjective(*two_moons(60), metric="smooth_error")
    study.optimize(OptunaObjective(objective), n_trials=trials)


def refine_together(url, steps):
    """Refine a study."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = new_study(study_name=STUDY, storage=storage_of(url))
    refine(study, SpanObjective(*two_moons(60), metric="smooth_error"), n_steps=steps)


def main(url, trials, slow=1_000_000):
    """Work on the study."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    objective = SpanObjective(*two_moons(60), metric=SlowFrom(int(slow)))
    study = optuna.create_study(study_name=STUDY, storage=storage_of(url), load_if_exists=True)
    study.optimize(OptunaObjective(objective), n_trials=int(trials))


if __name__ == "__main__":
    main(*sys.argv[1:])
