"""Run a whole search with Optuna: open a storage, create or continue a study, and add trials."""

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import optuna
from optuna.exceptions import OptunaError
from optuna.pruners import BasePruner
from optuna.storages import BaseStorage, get_storage

from span_hpo.integrations.optuna.claims import FINISHED, Claims, SurplusTrialError
from span_hpo.integrations.optuna.journals import journal_storage
from span_hpo.integrations.optuna.pruners import PRUNER_OF_NAME, note_given
from span_hpo.integrations.optuna.samplers import named_sampler, quiet
from span_hpo.integrations.optuna.stopping import has_settled
from span_hpo.integrations.optuna.trials import OptunaObjective, check_study
from span_hpo.integrations.optuna.workers import abandoned_trials
from span_hpo.objective import SpanObjective
from span_hpo.runtime import (
    ArgumentError,
    Deadline,
    OutOfTimeError,
    over_at_ctrl_c,
    thread_count,
    time_limit,
    whole,
)
from span_hpo.search import PRUNERS, SAMPLERS, Forecast, wanted_trials, written_params

_FIRST_TRIAL = 1.0  # seconds within which the first trial begins, however short the timeout is
_PAUSE = 0.2  # seconds between two looks at the trials of other processes
# Errors that Optuna raises for a damaged journal, whose lines it replays without a check.
_DAMAGED: tuple[type[Exception], ...] = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    AssertionError,
)


def as_storage(storage: Any) -> Any:
    """Return the storage of Optuna that a path or a URL stands for.

    Parameters
    ----------
    storage
        Path of a journal, which is created if there is none; URL of a database; storage of Optuna,
        which is returned as it is; or None for the memory of this process. If the last line of a
        journal was cut, for instance by a full disk, it is dropped with a warning, and a copy is
        kept beside the journal.

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
    return _opened(storage, mend=True)


def _opened(storage: Any, *, mend: bool) -> Any:
    """Return a storage, and mend it if it is a journal whose last line was cut."""
    if storage is None or isinstance(storage, BaseStorage):
        return storage
    try:
        if "://" in str(storage):
            return get_storage(str(storage))
        return journal_storage(Path(storage), mend=mend)
    except _DAMAGED + storage_errors() as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ArgumentError(
            "storage",
            "must be the URL of a database, a journal of Optuna or a new file, got "
            f"{storage} ({reason}).",
        ) from error


def storage_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that storages of Optuna raise.

    This imports SQLAlchemy, which takes longer than Optuna and is needed for databases only. An
    ``except`` clause calls the function only if there is an exception.

    Examples
    --------
    >>> from optuna.exceptions import DuplicatedStudyError
    >>> from span_hpo.integrations.optuna import storage_errors
    >>> issubclass(DuplicatedStudyError, storage_errors())
    True
    """
    from sqlalchemy.exc import SQLAlchemyError

    return (OptunaError, SQLAlchemyError)


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
        for summary in optuna.get_all_study_summaries(_opened(storage, mend=False))
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
    with quiet():
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
    return study.get_trials(deepcopy=False, states=FINISHED)


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
        A sampler of Optuna, or the name of one: "tpe" (the default), "random", "qmc", "cmaes", "gp"
        (which needs PyTorch) or "gradient", a `GradientSampler` that draws points by TPE.
    pruner
        A pruner of Optuna, or the name of one: "none" (the default), "median", "percentile",
        "halving" or "hyperband". A pruner that is given by name takes its settings from the budgets
        of the trials. Without budgets, its trials have those of 1/8, 1/4, 1/2 and all rows.
    storage
        Storage of the study (see `as_storage`); by default the memory of this process.
    study_name
        Name of the study. A study of this name in the storage is continued.
    seed
        Random seed of a sampler that is given by name. What a trial draws depends on the seed, the
        number of the draw and the history only, so that a study that is continued draws what it
        would have drawn without the break.

    Returns
    -------
    Study of Optuna.

    Raises
    ------
    ValueError
        If a name is unknown, or the storage cannot be used.
    ImportError
        If a sampler needs a package that is not installed.

    Examples
    --------
    >>> from span_hpo.integrations.optuna import new_study
    >>> study = new_study(sampler="random", pruner="median", seed=0)
    >>> study.direction.name
    'MINIMIZE'
    """
    if sampler is None or isinstance(sampler, str):
        sampler = named_sampler(_known_name("sampler", SAMPLERS, sampler or "tpe"), seed)
    if not isinstance(pruner, BasePruner):
        pruner = PRUNER_OF_NAME[_known_name("pruner", PRUNERS, pruner or "none")]()
    else:
        note_given(pruner)
    with quiet():
        return optuna.create_study(
            sampler=sampler,
            pruner=pruner,
            storage=as_storage(storage),
            study_name=study_name,
            load_if_exists=study_name is not None,
        )


def search(
    study: optuna.Study,
    objective: SpanObjective,
    *,
    n_trials: int | None,
    budgets: Sequence[float] | None = None,
    max_support: int | None = None,
    timeout: float | None = None,
    patience: int | None = None,
    n_jobs: int = 1,
    callbacks: Sequence[Callable[[optuna.Study, optuna.trial.FrozenTrial], None]] = (),
    until: Callable[[], bool] | None = None,
    progress_bar: bool = False,
    report: Callable[[str], None] | None = None,
) -> None:
    """Add trials to a study, beginning with the defaults of the objective.

    Several processes may do so at the same time. The study then ends with exactly `n_trials`
    finished trials: each process claims a trial before it begins, and waits at the end for the
    trials of the others. Trials of killed processes are repeated.

    Parameters
    ----------
    study
        Study of Optuna, whose earlier trials count.
    objective
        Objective that is minimised.
    n_trials
        Total number of finished trials of the study, including earlier ones; None for as many as
        the `timeout` allows.
    budgets, max_support
        Numbers or shares of rows, and largest number of support vectors; see `OptunaObjective`.
    timeout
        End the search after this many seconds. A trial that is running then is given up, and is
        repeated when the study is continued; only the first trial of a study is always finished.
    patience
        End the search when so many finished trials have brought no lower loss, as `StopWhenSettled`
        does. Earlier trials of the study count, and those of other processes. By default, the
        search does not end for this reason.
    n_jobs
        Number of threads that run trials; -1 stands for all cores.
    callbacks
        Functions that are called with the study and each trial that has ended.
    until
        Function that returns whether to end the search; it is called after each trial and while
        this process waits for others.
    progress_bar
        Show a progress bar.
    report
        Function that is called with lines about the search. On more than 3,000 rows, one line
        forecasts the memory, and after the first trials another one the time that is left. By
        default, the logger ``span_hpo.search`` gets these lines.

    Raises
    ------
    ValueError
        If an argument is not as described, or neither `n_trials` nor `timeout` is given, or there
        is a `patience` and the objective has several metrics.

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
    wanted, threads = wanted_trials(n_trials, timeout), thread_count("n_jobs", n_jobs)
    function = OptunaObjective(objective, budgets=budgets, max_support=max_support)
    check_study(study, objective)
    conditions = [] if until is None else [until]
    if patience is not None:
        patience = whole("patience", patience, at_least=1)
        conditions.append(partial(has_settled, study, patience))
    forecast = Forecast(
        objective,
        n_trials=wanted - len(finished_trials(study)),
        timeout=timeout,
        threads=threads,
        report=report,
    )
    forecast.begin()
    starts = [written_params(objective.space, params) for params in objective.defaults()]
    claims, given = Claims(study, wanted, starts), study.sampler
    study.sampler = claims.sampler
    try:
        with quiet():
            run_trials(
                claims,
                function,
                timeout=timeout,
                until=lambda: any(condition() for condition in conditions),
                callbacks=[*callbacks, lambda *_: forecast.trial_done()],
                n_jobs=threads,
                show_progress_bar=progress_bar,
            )
    except (AssertionError, UnboundLocalError) as error:
        # Optuna is sure that a trial has ended, also if the storage could not record it.
        raise _of_the_storage(error) from None
    finally:
        claims.release()
        study.sampler = given


def run_trials(
    claims: Claims,
    function: Callable[[optuna.Trial], Any],
    *,
    timeout: float | None,
    until: Callable[[], bool],
    callbacks: Sequence[Callable[[optuna.Study, optuna.trial.FrozenTrial], None]],
    **settings: Any,
) -> None:
    """Run trials until the study has so many finished ones, and wait for those of others."""
    study, end = claims.study, None if timeout is None else time.monotonic() + timeout
    attempts = claims.n_trials - len(finished_trials(study))  # failed trials are not made up for
    ran, is_full = 0, False
    deadline, of_first = Deadline(end), Deadline()  # without a finished trial there is no model

    def after(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        nonlocal ran, is_full
        ran += 1
        claims.release(trial.number)
        is_full = claims.taken() >= claims.n_trials
        if is_full or until() or (end is not None and time.monotonic() > end):
            study.stop()

    def limited(trial: optuna.Trial) -> Any:
        with time_limit(deadline if finished_trials(study) else of_first):
            return function(trial)

    while attempts > 0 and not until() and len(finished_trials(study)) < claims.n_trials:
        abandoned_trials(study, fail=True)  # those of a killed process, which are repeated
        left = None if end is None else end - time.monotonic()
        if left is not None and not finished_trials(study):
            left = max(left, _FIRST_TRIAL)
        elif left is not None and left <= 0:
            return
        wanted = min(attempts, claims.n_trials - claims.taken())  # may be infinity
        if wanted <= 0:
            time.sleep(_PAUSE)
            continue
        ran, surplus = 0, claims.surplus
        with over_at_ctrl_c(deadline, of_first):
            study.optimize(
                claims.claimed(limited),
                n_trials=None if wanted == math.inf else int(wanted),
                timeout=left,
                catch=(SurplusTrialError, OutOfTimeError),
                callbacks=[*callbacks, after],
                **settings,
            )
        if ran < wanted and not is_full:
            return  # a callback has stopped the study
        attempts -= ran - (claims.surplus - surplus)


def _of_the_storage(error: BaseException) -> BaseException:
    """Return the error of the storage that has led to another error, or else that error."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, (OSError, *storage_errors())):
        found = found.__context__
    return error if found is None else found


def _known_name(argument: str, known: Sequence[str], name: Any) -> str:
    if not isinstance(name, str) or name not in known:
        raise ValueError(
            f"`{argument}` must be a {argument} of Optuna or one of {list(known)}, got {name!r}."
        )
    return name
