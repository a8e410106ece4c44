"""How a search of the command line is run, resumed and counted: by Optuna, or by Ray Tune."""

import contextlib
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from span_hpo.objective import SpanObjective


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

    def settings(self) -> dict[str, Any]:
        """Return the arguments of a `SpanSVC` that searches so."""

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

    def begin(self, *, resume: bool, force: bool) -> None:
        """Raise unless there is a study to resume, or none that would be mixed with this one."""
        adapter = self._adapter()
        has_trials = adapter.trial_count(self.place, self.name) > 0
        if resume and not has_trials:
            raise ValueError(
                f"`resume` needs a study, but {self.place} has none called {self.name!r}."
            )
        if not has_trials:
            return
        if resume:
            study = adapter.new_study(storage=self.place, study_name=self.name)
            adapter.abandoned_trials(study, fail=True)  # of a process that was killed
        elif force:
            adapter.delete_study(self.place, self.name)
        else:
            raise ValueError(
                f"{self.place} has a study {self.name!r} already: --resume goes on with it, "
                "--force begins anew."
            )

    def settings(self) -> dict[str, Any]:
        """Return the arguments of a `SpanSVC` that searches so."""
        return {
            "n_trials": self.trials,
            "timeout": self.timeout,
            "sampler": self.sampler,
            "pruner": self.pruner,
            "budgets": self.budgets,
            "storage": self.place,
            "study_name": self.name,
            "n_jobs": self.jobs,
            "random_state": self.seed,
            "progress_bar": self.progress_bar,
        }

    def finished(self) -> int:
        """Return how many trials have finished so far."""
        adapter = self._adapter()
        if not adapter.trial_count(self.place, self.name):
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
    _done: int = field(default=0, init=False)

    def begin(self, *, resume: bool, force: bool) -> None:
        """Raise unless there is a run to resume, or none that would be replaced unasked."""
        exists = self._adapter().has_run(self._path)
        if resume and not exists:
            raise ValueError(f"`resume` needs a run of Ray Tune, but {self._path} is none.")
        if exists and not resume:
            if not force:
                raise ValueError(
                    f"{self._path} is a run already: --resume goes on with it, --force begins anew."
                )
            shutil.rmtree(self._path)
        self._resumes = resume

    def settings(self) -> dict[str, Any]:
        """Return the arguments of a `SpanSVC` that searches so."""
        return {"search": self._chosen}

    def finished(self) -> int:
        """Return how many trials have finished so far."""
        return self._done

    @property
    def _path(self) -> str:
        return f"{self.place.rstrip('/')}/{self.name}"

    def _chosen(self, objective: SpanObjective) -> dict[str, Any]:
        """Run the trials and return the hyperparameters of the best one."""
        adapter = self._adapter()
        common = {"budgets": self.budgets, "cpus_per_trial": self.cpus_per_trial}
        # What Ray prints is no result.
        with contextlib.redirect_stdout(sys.stderr), adapter.cluster(self.address):
            if self._resumes:
                tuner = adapter.restored_tuner(self._path, objective, **common)
            else:
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
