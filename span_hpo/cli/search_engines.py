"""Run and resume the search of the command line, with Optuna or with Ray Tune."""

import errno
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from span_hpo.cli.gradient_engine import GradientEngine
from span_hpo.cli.interrupts import gentle_ctrl_c, noted_ctrl_c
from span_hpo.cli.options import SearchSettings
from span_hpo.cli.output import print_note
from span_hpo.estimators import sampler_seed
from span_hpo.objective import SpanObjective
from span_hpo.runtime import ArgumentError
from span_hpo.selection import ENSEMBLE_LOSSES, MOST_CANDIDATES, HonestEstimate

_SAMPLER = "tpe"  # default sampler of Optuna


class Engine(Protocol):
    """Framework that runs the trials of a search.

    Attributes
    ----------
    settings
        Settings of the search.
    place
        Path or URL of the storage that keeps the trials, or None if they are not kept.
    search
        Name of the search in results.
    in_folder
        Whether the storage is a folder.
    honest
        Honest estimate of the loss of the chosen hyperparameters, once they are chosen; a text that
        says why if there is none.
    """

    settings: SearchSettings
    place: Any
    in_folder: ClassVar[bool]
    search: ClassVar[str]
    honest: HonestEstimate | str

    def prepare(self) -> None:
        """Raise if the search cannot begin.

        A package may be missing, there may be no search to resume, or one that would be replaced
        unasked.
        """

    def chosen(self, objective: SpanObjective) -> dict[str, Any]:
        """Run the trials and return the hyperparameters of the best one."""

    def candidates(self, objective: SpanObjective) -> list[dict[str, Any]]:
        """Run the trials and return the hyperparameters of the best ones, best first."""

    def finished(self) -> int:
        """Return the number of trials that have finished so far."""

    def settled(self) -> bool:
        """Return whether the last finished trials have brought no lower loss, so that it ended."""


def engine_of(
    settings: SearchSettings, model: Path, *, progress_bar: bool, by_gradients: bool = False
) -> Engine:
    """Return the engine that the settings ask for.

    Parameters
    ----------
    settings
        Settings of the search.
    model
        Path of the model without its suffix, after which the study is named.
    progress_bar
        Show a progress bar.
    by_gradients
        Search by gradients, unless a sampler or another engine is given.
    """
    if by_gradients and settings.sampler is None and settings.engine == "optuna":
        return GradientEngine(settings, progress_bar)
    if settings.engine == "ray":
        folder = settings.storage or str(model.with_name(model.name + ".ray"))
        return RayEngine(settings, model.name, _absolute(folder), progress_bar)
    journal = settings.storage or str(model.with_name(model.name + ".journal"))
    return OptunaEngine(settings, model.name, journal, progress_bar)


@dataclass
class OptunaEngine:
    """Search in threads of this process, with a study in a journal or a database."""

    in_folder: ClassVar[bool] = False
    search: ClassVar[str] = "optuna"
    settings: SearchSettings
    name: str
    place: str
    progress_bar: bool
    honest: HonestEstimate | str = field(default="", init=False)
    _replaces: bool = field(default=False, init=False)
    _study: Any = field(default=None, init=False)

    def prepare(self) -> None:
        """Raise if a package is missing, or a study to resume, or one would be replaced unasked."""
        self._adapter().check_sampler(self.settings.sampler or _SAMPLER)
        has_trials = self._adapter().trial_count(self.place, self.name) > 0
        if self.settings.resume and not has_trials:
            raise ArgumentError(
                "--resume",
                f"needs a study, but {self.place} has none called {self.name!r}. Leave the option "
                "out to start one.",
            )
        if has_trials and not self.settings.resume and not self.settings.force:
            raise ValueError(
                f"{self.place} has a study {self.name!r} already. Use --resume to continue it, or "
                "--force to start again."
            )
        self._replaces = has_trials and not self.settings.resume

    def chosen(self, objective: SpanObjective) -> dict[str, Any]:
        """Run the trials and return the hyperparameters of the best one."""
        adapter, study = self._adapter(), self._searched(objective, ensemble=False)
        params: dict[str, Any] = adapter.params_of(adapter.best_trial(study), objective)
        return params

    def candidates(self, objective: SpanObjective) -> list[dict[str, Any]]:
        """Run the trials and return the hyperparameters of the best ones, best first."""
        study = self._searched(objective, ensemble=True)
        points: list[dict[str, Any]] = self._adapter().ranked_params(
            study, objective, MOST_CANDIDATES
        )
        return points

    def _searched(self, objective: SpanObjective, *, ensemble: bool) -> Any:
        """Run the trials and return their study."""
        adapter = self._adapter()
        budgets = self._checked_budgets(objective)
        if self._replaces:
            adapter.delete_study(self.place, self.name)
        try:
            self._study = study = adapter.new_study(
                sampler=self.settings.sampler or _SAMPLER,
                pruner=self.settings.pruner,
                storage=self.place,
                study_name=self.name,
                seed=sampler_seed(self.settings.seed),
            )
            with gentle_ctrl_c() as was_interrupted:
                adapter.search(
                    study,
                    objective,
                    n_trials=self.settings.trials,
                    budgets=budgets,
                    timeout=self.settings.timeout,
                    patience=self.settings.patience,
                    n_jobs=self.settings.jobs or 1,
                    until=was_interrupted,
                    progress_bar=self.progress_bar,
                    report=print_note,
                )
            if was_interrupted():
                raise KeyboardInterrupt
            why_not = _why_not_honest(objective, budgets, ensemble=ensemble)
            self.honest = why_not or adapter.honest_estimate(
                study, objective, ensemble=ensemble, report=print_note
            )
        except adapter.storage_errors() as error:
            raise OSError(
                errno.EIO, f"the storage has failed ({_reason(error)})", self.place
            ) from error
        return study

    def finished(self) -> int:
        """Return the number of trials that have finished so far."""
        if self._study is None:
            return 0
        try:
            return len(self._adapter().finished_trials(self._study))
        except (OSError, *self._adapter().storage_errors()):  # the storage does not answer any more
            return 0

    def settled(self) -> bool:
        """Return whether the last finished trials have brought no lower loss, so that it ended."""
        patience = self.settings.patience
        if self._study is None or patience is None:
            return False
        return bool(self._adapter().has_settled(self._study, patience))

    def _checked_budgets(self, objective: SpanObjective) -> Sequence[int] | None:
        """Return the budgets in rows, or raise before a study is created or deleted."""
        given = self.settings.budgets
        return None if given is None else objective.budget_rows(given)

    def _adapter(self) -> Any:
        from span_hpo.integrations import optuna as adapter

        return adapter


@dataclass
class RayEngine:
    """Search in processes of this machine or of a cluster, with a folder of results."""

    in_folder: ClassVar[bool] = True
    search: ClassVar[str] = "ray"
    settings: SearchSettings
    name: str
    place: str
    progress_bar: bool
    honest: HonestEstimate | str = field(default="", init=False)
    _replaces: bool = field(default=False, init=False)
    _done: int = field(default=0, init=False)
    _stopper: Any = field(default=None, init=False)

    def prepare(self) -> None:
        """Raise if there is no run to resume, or one that would be replaced unasked."""
        exists = self._adapter().has_run(self._path)
        if self.settings.resume and not exists:
            raise ArgumentError("--resume", f"needs a run of Ray Tune, but {self._path} has none.")
        if exists and not self.settings.resume and not self.settings.force:
            raise ValueError(
                f"{self._path} has a run already. Use --resume to continue it, or --force to start "
                "again."
            )
        self._replaces = exists and not self.settings.resume

    def chosen(self, objective: SpanObjective) -> dict[str, Any]:
        """Run the trials and return the hyperparameters of the best one."""
        adapter, results = self._adapter(), self._searched(objective, ensemble=False)
        params: dict[str, Any] = adapter.params_of(
            adapter.best_result(results, objective), objective
        )
        return params

    def candidates(self, objective: SpanObjective) -> list[dict[str, Any]]:
        """Run the trials and return the hyperparameters of the best ones, best first."""
        results = self._searched(objective, ensemble=True)
        points: list[dict[str, Any]] = self._adapter().ranked_params(
            results, objective, MOST_CANDIDATES
        )
        return points

    def _searched(self, objective: SpanObjective, *, ensemble: bool) -> Any:
        """Run the trials and return their results."""
        adapter = self._adapter()
        # The output of Ray is not part of the result.
        with redirect_stdout(sys.stderr), self._cluster():
            tuner = self._tuner(objective)
            if self._replaces:  # all arguments have been checked
                shutil.rmtree(self._path)
            with noted_ctrl_c() as was_interrupted:
                results = tuner.fit()
            # Ray returns after Ctrl-C in the same way as after its last trial.
            if was_interrupted():
                self._done = len(adapter.finished_results(results))
                raise KeyboardInterrupt
            self._done = len(adapter.finished_results(results) if self.settled() else results)
            self.honest = _why_not_honest(objective, ensemble=ensemble) or adapter.honest_estimate(
                results, objective, ensemble=ensemble, report=print_note
            )
        return results

    def finished(self) -> int:
        """Return the number of trials that have finished so far."""
        return self._done

    def settled(self) -> bool:
        """Return whether the last finished trials have brought no lower loss, so that it ended."""
        return self._stopper is not None and bool(self._stopper.stop_all())

    @property
    def _path(self) -> str:
        return f"{self.place.rstrip('/')}/{self.name}"

    @contextmanager
    def _cluster(self) -> Iterator[None]:
        """Join or start a cluster, or raise an error that names the option --address."""
        address = self.settings.address or "local"
        with ExitStack() as stack:
            try:
                stack.enter_context(self._adapter().cluster(address))
            except ConnectionError as error:
                raise ArgumentError(
                    "--address",
                    f"must be local, auto or the address of a cluster, got {address!r}, where "
                    f"none answers ({error.__cause__ or error}).",
                ) from error
            yield

    def _tuner(self, objective: SpanObjective) -> Any:
        """Return a new tuner of Ray, or the tuner of the run that is resumed."""
        settings, adapter = self.settings, self._adapter()
        cpus = 1.0 if settings.cpus_per_trial is None else settings.cpus_per_trial
        if settings.resume:
            return adapter.restored_tuner(
                self._path, objective, budgets=settings.budgets, cpus_per_trial=cpus
            )
        if settings.patience is not None:
            self._stopper = adapter.SettledStopper(settings.patience)
        return adapter.tuner(
            objective,
            num_samples=settings.trials,
            scheduler=settings.scheduler,
            search="random" if settings.sampler == "random" else None,
            budgets=settings.budgets,
            cpus_per_trial=cpus,
            max_concurrent_trials=None if settings.jobs == -1 else settings.jobs,
            timeout=settings.timeout,
            patience=self._stopper,
            seed=settings.seed,
            storage_path=self.place,
            name=self.name,
            verbose=int(self.progress_bar),
        )

    def _adapter(self) -> Any:
        from span_hpo.integrations import ray as adapter

        return adapter


@contextmanager
def resume_hint(engine: Engine) -> Iterator[None]:
    """Explain after Ctrl-C or a failure which trials are kept, and how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        kept = _kept(engine) or "No trial has finished, so nothing is kept."
        raise KeyboardInterrupt(kept) from None
    except OSError as error:  # such as a full disk
        kept = _kept(engine)
        if not kept or not error.strerror:
            raise
        reason = f"{error.strerror.removesuffix('.')}. {kept}"
        raise OSError(error.errno, reason, error.filename) from error


def _why_not_honest(
    objective: SpanObjective, budgets: Sequence[int] | None = None, *, ensemble: bool
) -> str:
    """Return why a search has no honest estimate; an empty text if it has one."""
    metric = objective.metrics[0]
    if not metric.is_mean:
        return f"none, because {metric.name} is not a mean of losses of the rows"
    if ensemble and metric.name not in ENSEMBLE_LOSSES:
        return f"none, because {metric.name} is not a loss of an ensemble's probabilities"
    if budgets is not None and budgets[-1] < len(objective.data):
        return f"none, because no trial uses all {len(objective.data)} rows"
    return ""


def _kept(engine: Engine) -> str:
    """Return how to go on with the trials that are kept; an empty text if there are none."""
    done, trials = engine.finished(), engine.settings.trials
    if not done or engine.place is None:
        return ""
    command = [part for part in sys.argv[1:] if part not in ("--resume", "--force")]
    again = shlex.join(["span-hpo", *command, "--resume"])
    kept = f"{done} of {trials} trials are kept in {engine.place}. Continue with: {again}"
    if isinstance(engine, OptunaEngine) and done < trials:
        kept += f" (or save the best trial with: {again} --trials {done})"
    return kept


def _reason(error: BaseException) -> str:
    """Return the first line of what has caused an error in the first place."""
    while error.__cause__ is not None:
        error = error.__cause__
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def _absolute(place: str) -> str:
    """Return the absolute path of a folder, or the address of a storage elsewhere."""
    return place if "://" in place else str(Path(place).absolute())
