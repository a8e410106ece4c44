"""How a search of the command line is run, resumed and counted: by Optuna, or by Ray Tune."""

import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from span_hpo.estimators import sampler_seed
from span_hpo.objective import SpanObjective


class Engine(Protocol):
    """A way to search.

    Attributes
    ----------
    place, in_folder
        Where trials are kept, and whether that is a folder.
    """

    place: str
    in_folder: ClassVar[bool]

    def begin(self, *, resume: bool, force: bool) -> None:
        """See that a search is resumed if and only if that is wanted."""

    def chosen(self, objective: SpanObjective) -> dict[str, Any]:
        """Run the trials and return the hyperparameters of the best one."""

    def finished(self) -> int:
        """Return how many trials have finished so far."""


@dataclass
class OptunaEngine:
    """Threads of this process, with a study in a journal or a database."""

    in_folder: ClassVar[bool] = False
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
    _study: Any = field(default=None, init=False)

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
        try:
            self._study = study = adapter.new_study(
                sampler=self.sampler,
                pruner=self.pruner,
                storage=self.place,
                study_name=self.name,
                seed=sampler_seed(self.seed),
            )
            adapter.abandoned_trials(study, fail=True)  # of a process that was killed
            with _gentle_ctrl_c() as was_interrupted:
                adapter.search(
                    study,
                    objective,
                    n_trials=self.trials,
                    budgets=self.budgets,
                    timeout=self.timeout,
                    n_jobs=self.jobs,
                    callbacks=[lambda study, _: study.stop() if was_interrupted() else None],
                    progress_bar=self.progress_bar,
                )
            if was_interrupted():
                raise KeyboardInterrupt
        except adapter.STORAGE_ERRORS as error:
            reason = str(error).strip().splitlines()[0]
            raise OSError(f"{self.place} cannot be used: {reason}.") from error
        params: dict[str, Any] = adapter.params_of(adapter.best_trial(study), objective)
        return params

    def finished(self) -> int:
        """Return how many trials have finished so far."""
        return 0 if self._study is None else len(self._adapter().finished_trials(self._study))

    def _adapter(self) -> Any:
        from span_hpo.integrations import optuna as adapter

        return adapter


@dataclass
class RayEngine:
    """Processes of this machine or of a cluster, with a folder of results."""

    in_folder: ClassVar[bool] = True
    place: str
    name: str
    trials: int
    timeout: float | None
    search: str | None
    scheduler: str | None
    budgets: Sequence[float] | None
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
            if self._replaces:  # now that all arguments are known to be right
                shutil.rmtree(self._path)
            with _noted_ctrl_c() as was_interrupted:
                results = tuner.fit()
            # Ray returns after Ctrl-C as it does after its last trial.
            if was_interrupted():
                self._done = len(adapter.finished_results(results))
                raise KeyboardInterrupt
            self._done = len(results)
            params: dict[str, Any] = adapter.params_of(
                adapter.best_result(results, objective), objective
            )
        return params

    def _adapter(self) -> Any:
        from span_hpo.integrations import ray as adapter

        return adapter


@contextlib.contextmanager
def _gentle_ctrl_c() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether Ctrl-C was pressed; only the second press interrupts.

    In the middle of a trial an interrupt would lose it, and may meet code that cannot pass it on.
    """
    presses = 0

    def pressed(*_: Any) -> None:
        nonlocal presses
        presses += 1
        if presses > 1:
            raise KeyboardInterrupt

    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # a job in the background
    before = signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else pressed)
    try:
        yield lambda: presses > 0
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _noted_ctrl_c() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether Ctrl-C was pressed, whoever has handled it."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    pressed = False

    def was_pressed() -> bool:
        return pressed

    try:
        yield was_pressed
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)
        with open(reader, "rb") as numbers:
            pressed = signal.SIGINT in numbers.read()


def local_folder(place: str) -> str:
    """Return the absolute path of a folder, or the address of a storage elsewhere."""
    return place if "://" in place else str(Path(place).absolute())
