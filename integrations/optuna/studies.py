"""A whole search: a study, its storage, its defaults, its trials."""

import contextlib
import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import ExperimentalWarning, OptunaError
from optuna.pruners import (
    HyperbandPruner,
    MedianPruner,
    NopPruner,
    PercentilePruner,
    SuccessiveHalvingPruner,
)
from optuna.samplers import (
    BaseSampler,
    CmaEsSampler,
    GPSampler,
    QMCSampler,
    RandomSampler,
    TPESampler,
)
from optuna.storages import BaseStorage, JournalStorage, get_storage
from optuna.storages.journal import JournalFileBackend
from optuna.study import MaxTrialsCallback
from optuna.trial import TrialState
from sqlalchemy.exc import SQLAlchemyError

from span_hpo.integrations.optuna.spaces import enqueue_defaults
from span_hpo.integrations.optuna.trials import OptunaObjective, check_study
from span_hpo.objective import SpanObjective
from span_hpo.runtime import ArgumentError
from span_hpo.search import PRUNERS, SAMPLERS

SAMPLER_OF_NAME: dict[str, Callable[..., BaseSampler]] = {
    "tpe": TPESampler,
    "random": RandomSampler,
    "qmc": QMCSampler,
    "cmaes": CmaEsSampler,
    "gp": GPSampler,
}
PRUNER_OF_NAME: dict[str, Callable[[], optuna.pruners.BasePruner]] = {
    "none": NopPruner,
    "median": MedianPruner,
    "percentile": lambda: PercentilePruner(10.0),  # the best tenth goes on
    "halving": SuccessiveHalvingPruner,
    "hyperband": HyperbandPruner,
}
_SEEDS = 2**32  # of NumPy's random numbers, that samplers use
# What Optuna raises where a journal is damaged: it replays the lines as they are.
_DAMAGED = (ValueError, LookupError, TypeError, AttributeError, AssertionError)
STORAGE_ERRORS = (OptunaError, SQLAlchemyError)
_FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)


def as_storage(storage: Any) -> Any:
    """Return what Optuna takes as a storage.

    Parameters
    ----------
    storage
        Optuna's own, or the URL of a database, which stay as they are; the path of a file, which
        becomes a journal; or None, for the memory of this process.

    Raises
    ------
    ValueError
        If the file is not a journal, or the database cannot be opened.
    """
    if storage is None or isinstance(storage, BaseStorage):
        return storage
    try:
        if "://" in str(storage):
            return get_storage(str(storage))
        _check_journal(Path(storage))
        return JournalStorage(JournalFileBackend(str(storage)))
    except (*_DAMAGED, *STORAGE_ERRORS) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ArgumentError(
            "storage",
            "must be the URL of a database, or a journal of Optuna or a new file, got "
            f"{storage} ({reason}).",
        ) from error


def trial_count(storage: Any, study_name: str) -> int:
    """Return how many trials a study of this name has in a storage; nothing is made."""
    is_file = not isinstance(storage, BaseStorage) and "://" not in str(storage)
    if is_file and not Path(storage).exists():
        return 0
    found = [
        summary.n_trials
        for summary in optuna.get_all_study_summaries(as_storage(storage))
        if summary.study_name == study_name
    ]
    return sum(found)


def delete_study(storage: Any, study_name: str) -> None:
    """Delete a study with all its trials."""
    with _quiet():
        optuna.delete_study(study_name=study_name, storage=as_storage(storage))


def finished_trials(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    """Return the trials that count: complete ones, and those that a pruner has ended."""
    return study.get_trials(deepcopy=False, states=_FINISHED)


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
    sampler
        Optuna's, or "tpe" (the default), "random", "qmc", "cmaes" or "gp".
    pruner
        Optuna's, or "none" (the default), "median", "percentile", "halving" or "hyperband".
    storage, study_name
        Where it is kept (see `as_storage`) and how it is called; by default in memory.
    seed
        Seed of a sampler that is given by name.

    Raises
    ------
    ValueError
        If a name is unknown, or the storage cannot be used.
    """
    by_name = (sampler or "tpe") if sampler is None or isinstance(sampler, str) else None
    if by_name:
        sampler = _new_sampler(by_name, seed)
    if pruner is None or isinstance(pruner, str):
        pruner = PRUNER_OF_NAME[_known_name("pruner", PRUNERS, pruner or "none")]()
    with _quiet():
        study = optuna.create_study(
            sampler=sampler,
            pruner=pruner,
            storage=as_storage(storage),
            study_name=study_name,
            load_if_exists=study_name is not None,
        )
    if by_name and seed is not None:
        # A study that goes on must not begin its random numbers again.
        existing = len(study.get_trials(deepcopy=False))
        study.sampler = _new_sampler(by_name, (seed + existing) % _SEEDS)
    return study


def search(
    study: optuna.Study,
    objective: SpanObjective,
    *,
    n_trials: int,
    budgets: Sequence[float] = (1.0,),
    max_support: int | None = None,
    timeout: float | None = None,
    n_jobs: int = 1,
    callbacks: Sequence[Callable[[optuna.Study, optuna.trial.FrozenTrial], None]] = (),
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
    callbacks
        Called with the study and each trial that has ended.
    progress_bar
        Whether to show one.
    """
    function = OptunaObjective(objective, budgets=budgets, max_support=max_support)
    check_study(study, objective)
    left = n_trials - len(finished_trials(study))
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
            # Other processes may be at work on the same study.
            callbacks=[MaxTrialsCallback(n_trials, states=_FINISHED), *callbacks],
        )


def _check_journal(path: Path) -> None:
    """Raise if a file is there that is no journal: Optuna would append to it."""
    if not path.exists():
        return
    content = path.read_bytes()
    if not content:
        return
    if "op_code" not in json.loads(content.partition(b"\n")[0]):
        raise ValueError("its first line is not that of a journal")
    if not content.endswith(b"\n"):
        raise ValueError("it ends in the middle of a line: remove what is after the last full one")


def _new_sampler(name: str, seed: int | None) -> BaseSampler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return SAMPLER_OF_NAME[_known_name("sampler", SAMPLERS, name)](seed=seed)


def _known_name(argument: str, known: Sequence[str], name: str) -> str:
    if name not in known:
        raise ValueError(f"`{argument}` must be one of Optuna's or of {list(known)}, got {name!r}.")
    return name


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Optuna from writing a line for each trial, and a traceback for one that is interrupted.

    What surfaces is told by whoever catches it; a fit that fails, by the attributes of its trial.
    """
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(level, optuna.logging.ERROR))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)
