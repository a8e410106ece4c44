"""Search the hyperparameters of an estimator with Optuna, or as its user wants."""

import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sklearn.utils import check_random_state

from span_hpo.objective import SpanObjective
from span_hpo.runtime import ArgumentError, thread_count, whole
from span_hpo.search import wanted_trials
from span_hpo.selection import MOST_CANDIDATES
from span_hpo.space import checked_params

_LARGEST_SEED = 2**31 - 1  # upper limit of the seeds of samplers


@dataclass(frozen=True)
class SearchSettings:
    """How an estimator searches; the fields are arguments of `SpanSVC`."""

    n_trials: int | None
    timeout: float | None
    patience: int | None
    sampler: Any
    pruner: Any
    budgets: Any
    storage: Any
    study_name: str | None
    n_jobs: int
    random_state: Any
    progress_bar: bool | None
    search: Any
    ensemble: bool
    refine: Any

    @classmethod
    def of(cls, estimator: Any) -> "SearchSettings":
        """Return the settings that an estimator has as arguments of its constructor."""
        return cls(**{field.name: getattr(estimator, field.name) for field in fields(cls)})

    def check(self, objective: SpanObjective) -> None:
        """Raise if a setting that the search of an objective uses is not valid."""
        if not objective.space:
            return
        if len(objective.metrics) > 1:
            names = tuple(metric.name for metric in objective.metrics)
            raise ValueError(f"`metric` must be one metric for a search, got {names!r}.")
        if self.search is None:
            wanted_trials(self.n_trials, self.timeout)
            thread_count("n_jobs", self.n_jobs)
            if self.patience is not None:
                whole("patience", self.patience, at_least=1)
        if self.is_by_gradients(objective):
            self._check_no_study()

    def is_by_gradients(self, objective: SpanObjective) -> bool:
        """Return whether the search follows gradients: with a width per feature and no sampler."""
        return self.search is None and self.sampler is None and bool(objective.alike)

    def _check_no_study(self) -> None:
        """Raise if a setting is given that only a search with Optuna uses."""
        for name in ("patience", "pruner", "budgets", "storage", "study_name"):
            value = getattr(self, name)
            if value is not None:
                raise ArgumentError(
                    name,
                    "must be None for a search by gradients, which is the default for a kernel "
                    f"with a width for each feature, got {value!r}. Name a sampler, such as "
                    "sampler='tpe', to search with Optuna.",
                )


def searched(
    settings: SearchSettings, objective: SpanObjective
) -> tuple[list[dict[str, Any]], Any]:
    """Return the best hyperparameters, and the study of Optuna that has found them.

    Nothing is searched if all hyperparameters are fixed. Ctrl-C ends a search with Optuna with a
    warning, if there is a trial to return.

    Parameters
    ----------
    settings
        How to search, after `SearchSettings.check`.
    objective
        Objective that is minimised.

    Returns
    -------
    The best hyperparameters, followed by those of the other candidates for an ensemble if one is
    wanted, and the study or None if Optuna was not used.

    Raises
    ------
    ImportError
        If Optuna is needed and not installed.
    """
    if not objective.space:
        return [{}], None
    if settings.search is not None:
        return _found(settings.search(objective), objective, settings), None
    adapter = optuna_adapter(
        "A search needs Optuna: pip install 'span-hpo[optuna]'. It is not needed if all "
        "hyperparameters are fixed, as in SpanSVC(RBF(gamma=0.1), UniformCost(1.0))."
    )
    given = settings.budgets
    budgets = None if given is None else objective.budget_rows(given)
    study = adapter.new_study(
        sampler=settings.sampler,
        pruner=settings.pruner,
        storage=settings.storage,
        study_name=settings.study_name,
        seed=sampler_seed(settings.random_state),
    )
    try:
        adapter.search(
            study,
            objective,
            n_trials=settings.n_trials,
            budgets=budgets,
            timeout=settings.timeout,
            patience=settings.patience,
            n_jobs=thread_count("n_jobs", settings.n_jobs),
            progress_bar=bool(settings.progress_bar),
            report=_print if settings.progress_bar is not False else None,
        )
    except KeyboardInterrupt:
        done = len(adapter.finished_trials(study))
        if not done:
            raise
        warnings.warn(
            f"The search was interrupted after {done} trials. The model is that of the best trial "
            "so far.",
            stacklevel=3,
        )
    if settings.ensemble:
        return adapter.ranked_params(study, objective, MOST_CANDIDATES), study
    return [adapter.params_of(adapter.best_trial(study), objective)], study


def _found(found: Any, objective: SpanObjective, settings: SearchSettings) -> list[dict[str, Any]]:
    """Return what a user's search has found: hyperparameters, or a list of them, best first."""
    if settings.ensemble and (isinstance(found, Mapping) or not found):
        raise ArgumentError(
            "search",
            "must return a list of hyperparameters, the best first, for an ensemble, got "
            f"{found!r}.",
        )
    points = [found] if isinstance(found, Mapping) or not settings.ensemble else found
    return [checked_params(objective.space, point) for point in points]


def optuna_adapter(why: str) -> Any:
    """Return the package that adapts Optuna, or raise an ``ImportError`` that says why."""
    try:
        from span_hpo.integrations import optuna as adapter
    except ModuleNotFoundError:
        raise  # something else than Optuna is missing, for which the adapter has a message
    except ImportError as error:
        raise ImportError(why) from error
    return adapter


def sampler_seed(random_state: Any) -> int:
    """Return the seed of a sampler that follows from a `random_state` of scikit-learn."""
    return int(check_random_state(random_state).randint(_LARGEST_SEED))


def _print(line: str) -> None:
    """Print a line on standard error, as Optuna does with its progress bar."""
    sys.stderr.write(f"SpanSVC: {line}\n")
