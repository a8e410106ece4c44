"""How a search of the command line is run, resumed and counted: by Optuna, or by Ray Tune."""

import contextlib
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from span_hpo.objective import SpanObjective
from span_hpo.svc import sampler_seed


class Engine(Protocol):
    """A way to search.

    Attributes
    ----------
    place
        Where trials are kept.
    """

    place: str

    def begin(self, *, resume: bool, force: bool) -> None:
        """See that a search is resumed if and only if that is wanted."""

    def chosen(self, objective: SpanObjective) -> dict[str, Any]:
        """Run the trials and return the hyperparameters of the best one."""

    def finished(self) -> int:
        """Return how many trials have finished so far."""


@dataclass
class OptunaEngine:
    """Threads of this process, with a study in a journal or a database."""

    place: str
    name: str
    trials: int
    timeout: float | None
    sampler: str
    pruner: str
    budgets: Sequence[float]
    jobs: int
    seed: int | None
    progress_bar: bool
    _replaces: bool = field(default=False, init=False)

    def begin(self, *, resume: bool, force: bool) -> None:
        """Raise unless there is a study to resume, or none that would be mixed with this one."""
        has_trials = self._adapter().trial_count(self.place, self.name) > 0
        if resume and not has_trials:
            raise ValueError(
                f"`resume` needs a study, but {self.place} has none called {self.name!r}."
            )
        if has_trials and not resume and not force:
            raise ValueError(
                f"{self.place} has a study {self.name!r} already: --resume goes on with it, "
                "--force begins anew."
            )
        self._replaces = has_trials and not resume

    def chosen(self, objective: SpanObjective) -> dict[str, Any]:
        """Run the trials and return the hyperparameters of the best one."""
        adapter = self._adapter()
        adapter.OptunaObjective(objective, budgets=self.budgets)  # raises before any study
        if self._replaces:
            adapter.delete_study(self.place, self.name)
            self._replaces = False
        try:
            study = adapter.new_study(
                sampler=self.sampler,
                pruner=self.pruner,
                storage=self.place,
                study_name=self.name,
                seed=sampler_seed(self.seed),
            )
            adapter.abandoned_trials(study, fail=True)  # of a process that was killed
            adapter.search(
                study,
                objective,
                n_trials=self.trials,
                budgets=self.budgets,
                timeout=self.timeout,
                n_jobs=self.jobs,
                progress_bar=self.progress_bar,
            )
        except adapter.STORAGE_ERRORS as error:
            reason = str(error).strip().splitlines()[0]
            raise OSError(f"{self.place} cannot be used: {reason}.") from error
        params: dict[str, Any] = adapter.params_of(adapter.best_trial(study), objective)
        return params

    def finished(self) -> int:
        """Return how many trials have finished so far."""
        adapter = self._adapter()
        if self._replaces or not adapter.trial_count(self.place, self.name):
            return 0
        study = adapter.new_study(storage=self.place, study_name=self.name)
        return len(adapter.finished_trials(study))

    def _adapter(self) -> Any:
        try:
            from span_hpo.integrations import optuna as adapter
        except ImportError as error:
            raise ImportError("`tune` needs Optuna: pip install 'span-hpo[optuna]'.") from error
        return adapter


@dataclass
class RayEngine:
    """Processes of this machine or of a cluster, with a folder of results."""

    place: str
    name: str
    trials: int
    timeout: float | None
    search: str
    scheduler: str | None
    budgets: Sequence[float]
    jobs: int | None
    seed: int | None
    address: str
    cpus_per_trial: float
    progress_bar: bool
    _resumes: bool = field(default=False, init=False)
    _replaces: bool = field(default=False, init=False)
    _done: int = field(default=0, init=False)

    def begin(self, *, resume: bool, force: bool) -> None:
        """Raise unless there is a run to resume, or none that would be replaced unasked."""
        exists = self._adapter().has_run(self._path)
        if resume and not exists:
            raise ValueError(f"`resume` needs a run of Ray Tune, but {self._path} is none.")
        if exists and not resume and not force:
            raise ValueError(
                f"{self._path} is a run already: --resume goes on with it, --force begins anew."
            )
        self._resumes = resume
        self._replaces = exists and not resume

    def finished(self) -> int:
        """Return how many trials have finished so far."""
        return self._done

    @property
    def _path(self) -> str:
        return f"{self.place.rstrip('/')}/{self.name}"

    def chosen(self, objective: SpanObjective) -> dict[str, Any]:
        """Run the trials and return the hyperparameters of the best one."""
        adapter = self._adapter()
        common = {"budgets": self.budgets, "cpus_per_trial": self.cpus_per_trial}
        # What Ray prints is no result.
        with contextlib.redirect_stdout(sys.stderr), adapter.cluster(self.address):
            if self._resumes:
                tuner = adapter.restored_tuner(self._path, objective, **common)
            else:
                if self._replaces:
                    shutil.rmtree(self._path)
                tuner = adapter.tuner(
                    objective,
                    num_samples=self.trials,
                    scheduler=self.scheduler,
                    search=self.search,
                    max_concurrent_trials=self.jobs,
                    timeout=self.timeout,
                    seed=self.seed,
                    storage_path=self.place,
                    name=self.name,
                    verbose=int(self.progress_bar),
                    **common,
                )
            results = tuner.fit()
            self._done = len(adapter.finished_results(results))
            # Ray returns after Ctrl-C as it does after its last trial.
            if self._done < len(results) and self.timeout is None:
                raise KeyboardInterrupt
            params: dict[str, Any] = adapter.params_of(
                adapter.best_result(results, objective), objective
            )
        return params

    def _adapter(self) -> Any:
        from span_hpo.integrations import ray as adapter

        return adapter


def local_folder(place: str) -> str:
    """Return the absolute path of a folder, or the address of a storage elsewhere."""
    return place if "://" in place else str(Path(place).absolute())
