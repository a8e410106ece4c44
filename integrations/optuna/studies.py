"""A whole search: a study, its defaults, its trials."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import optuna
from optuna.trial import TrialState

from span_hpo import SpanObjective
from span_hpo.integrations.optuna.spaces import enqueue_defaults
from span_hpo.integrations.optuna.trials import OptunaObjective


def new_study(
    *,
    sampler: Any = None,
    pruner: Any = None,
    storage: Any = None,
    study_name: str | None = None,
    seed: int | None = None,
) -> optuna.Study:
    """Return a study that minimises one loss; one that the storage has is continued.

    Parameters
    ----------
    sampler, pruner
        Optuna's; by default TPE with this seed, and no pruning.
    storage, study_name
        Where it is kept and how it is called; by default in memory.
    seed
        Seed of the default sampler.
    """
    with _quiet():
        return optuna.create_study(
            sampler=optuna.samplers.TPESampler(seed=seed) if sampler is None else sampler,
            pruner=optuna.pruners.NopPruner() if pruner is None else pruner,
            storage=storage,
            study_name=study_name,
            load_if_exists=study_name is not None,
        )


def search(
    study: optuna.Study,
    objective: SpanObjective,
    *,
    n_trials: int,
    budgets: Sequence[float] = (1.0,),
    max_support: int | None = None,
    timeout: float | None = None,
    n_jobs: int = 1,
    progress_bar: bool = False,
) -> None:
    """Run trials, the defaults of the objective first, until the study has so many.

    Parameters
    ----------
    study
        The study; the trials that it has count.
    objective
        What is minimised.
    n_trials
        Number of finished trials of the study in the end.
    budgets, max_support
        As in `OptunaObjective`.
    timeout
        Seconds after which no further trial begins.
    n_jobs
        Threads.
    progress_bar
        Whether to show one.
    """
    function = OptunaObjective(objective, budgets=budgets, max_support=max_support)
    finished = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))
    left = n_trials - len(finished)
    if left <= 0:
        return
    with _quiet():
        enqueue_defaults(study, objective)
        study.optimize(
            function,
            n_trials=left,
            timeout=timeout,
            n_jobs=n_jobs,
            show_progress_bar=progress_bar,
        )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Optuna from writing a line for each trial."""
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(level, optuna.logging.WARNING))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)
