"""Run a whole search with Optuna: open a storage, create or continue a study, and add trials."""

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
    "percentile": lambda: PercentilePruner(10.0),  # stops all trials but the best tenth
    "halving": SuccessiveHalvingPruner,
    "hyperband": HyperbandPruner,
}
_SEEDS = 2**32  # number of different seeds that NumPy accepts
# Errors that Optuna raises for a damaged journal, whose lines it replays without a check.
_DAMAGED = (ValueError, LookupError, TypeError, AttributeError, AssertionError)
STORAGE_ERRORS = (OptunaError, SQLAlchemyError)
_FINISHED = (TrialState.COMPLETE, TrialState.PRUNED)


def as_storage(storage: Any) -> Any:
    """Return the storage of Optuna that a path or a URL stands for.

    Parameters
    ----------
    storage
        Path of a journal, which is created if there is none; URL of a database; storage of Optuna,
        which is returned as it is; or None for the memory of this process.

    Returns
    -------
    Storage of Optuna, or None for the memory of this process.

    Raises
    ------
    ValueError
        If the file is not a journal, or the database cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> from span_hpo.integrations.optuna import as_storage
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(type(as_storage(f"{folder}/study.journal")).__name__)
    JournalStorage
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
            "must be the URL of a database, a journal of Optuna or a new file, got "
            f"{storage} ({reason}).",
        ) from error


def trial_count(storage: Any, study_name: str) -> int:
    """Return the number of trials of a study, without creating a storage or a study.

    Parameters
    ----------
    storage, study_name
        Storage (see `as_storage`), and the name of the study in it.

    Returns
    -------
    Number of trials, which is 0 if there is no such study.

    Examples
    --------
    >>> from optuna.storages import InMemoryStorage
    >>> from span_hpo.integrations.optuna import new_study, trial_count
    >>> storage = InMemoryStorage()
    >>> trial = new_study(storage=storage, study_name="iris").ask()
    >>> trial_count(storage, "iris"), trial_count(storage, "digits")
    (1, 0)
    """
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
    """Delete the study of this name from a storage (see `as_storage`), with all its trials.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from span_hpo.integrations.optuna import delete_study, new_study, trial_count
    >>> with TemporaryDirectory() as folder:
    ...     journal = Path(folder, "study.journal")
    ...     trial = new_study(storage=journal, study_name="iris").ask()
    ...     delete_study(journal, "iris")
    ...     trial_count(journal, "iris")
    0
    """
    with _quiet():
        optuna.delete_study(study_name=study_name, storage=as_storage(storage))


def finished_trials(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    """Return the finished trials of a study: complete ones, and those that a pruner has stopped.

    Examples
    --------
    >>> from span_hpo.integrations.optuna import finished_trials, new_study
    >>> study = new_study()
    >>> running, complete = study.ask(), study.tell(study.ask(), 0.1)
    >>> [trial.value for trial in finished_trials(study)]
    [0.1]
    """
    return study.get_trials(deepcopy=False, states=_FINISHED)


def new_study(
    *,
    sampler: Any = None,
    pruner: Any = None,
    storage: Any = None,
    study_name: str | None = None,
    seed: int | None = None,
) -> optuna.Study:
    """Create a study that minimises one loss, or load the study of this name.

    Parameters
    ----------
    sampler
        A sampler of Optuna, or the name of one: "tpe" (the default), "random", "qmc", "cmaes" or
        "gp".
    pruner
        A pruner of Optuna, or the name of one: "none" (the default), "median", "percentile",
        "halving" or "hyperband".
    storage
        Storage of the study (see `as_storage`); by default the memory of this process.
    study_name
        Name of the study. A study of this name in the storage is continued.
    seed
        Random seed of a sampler that is given by name.

    Returns
    -------
    Study of Optuna.

    Raises
    ------
    ValueError
        If a name is unknown, or the storage cannot be used.

    Examples
    --------
    >>> from span_hpo.integrations.optuna import new_study
    >>> study = new_study(sampler="random", pruner="median", seed=0)
    >>> study.direction.name
    'MINIMIZE'
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
        # A study that is continued must not repeat its random numbers.
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
    """Add trials to a study, beginning with the defaults of the objective.

    Parameters
    ----------
    study
        Study of Optuna, whose earlier trials count.
    objective
        Objective that is minimised.
    n_trials
        Total number of finished trials of the study, including earlier ones.
    budgets, max_support
        Numbers or shares of rows, and largest number of support vectors; see `OptunaObjective`.
    timeout
        Start no trial after this many seconds.
    n_jobs
        Number of threads that run trials.
    callbacks
        Functions that are called with the study and each trial that has ended.
    progress_bar
        Show a progress bar.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.integrations.optuna import new_study, search
    >>> study = new_study(sampler="random", seed=0)
    >>> search(study, SpanObjective(*load_iris(return_X_y=True)), n_trials=5)
    >>> study.best_value < 0.1
    True
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
            # Other processes may run trials of the same study.
            callbacks=[MaxTrialsCallback(n_trials, states=_FINISHED), *callbacks],
        )


def _check_journal(path: Path) -> None:
    """Raise if a file exists that is not a journal, because Optuna would append to it."""
    if not path.exists():
        return
    content = path.read_bytes()
    if not content:
        return
    if "op_code" not in json.loads(content.partition(b"\n")[0]):
        raise ValueError("its first line is not one of a journal")
    if not content.endswith(b"\n"):
        raise ValueError("it ends in the middle of a line: remove that line")


def _new_sampler(name: str, seed: int | None) -> BaseSampler:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        return SAMPLER_OF_NAME[_known_name("sampler", SAMPLERS, name)](seed=seed)


def _known_name(argument: str, known: Sequence[str], name: str) -> str:
    if name not in known:
        raise ValueError(
            f"`{argument}` must be a {argument} of Optuna or one of {list(known)}, got {name!r}."
        )
    return name


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Optuna from logging a line for each trial, and a traceback for an interrupted one.

    An exception is reported by whoever catches it, and a failed fit by an attribute of its trial.
    """
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(level, optuna.logging.ERROR))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(level)
