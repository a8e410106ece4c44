"""A tuner of Ray with everything in its place."""

import json
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import ray
from ray import cloudpickle, tune
from ray.tune.schedulers import (
    ASHAScheduler,
    HyperBandScheduler,
    MedianStoppingRule,
    PopulationBasedTraining,
    TrialScheduler,
)
from ray.tune.search import BasicVariantGenerator, SearchAlgorithm, Searcher

from span_hpo.integrations.ray.searchers import StudySearch
from span_hpo.integrations.ray.spaces import nearest_config, search_space
from span_hpo.integrations.ray.trainable import LOSS, ROWS, SpanTrainable
from span_hpo.io import write_text
from span_hpo.objective import SpanObjective, check_same
from span_hpo.runtime import real, whole
from span_hpo.search import (
    DEFAULT_BUDGETS,
    SCHEDULERS,
    SEARCHES,
    budgets_to_all_rows,
    written_grid,
    written_params,
)
from span_hpo.space import points_per_name

_FACTOR = 2  # of these budgets half of the trials go on to the next
_PATIENCE = 5.0  # seconds until a cluster must answer
_STEPS = "training_iteration"  # Ray's count of reports


def tuner(
    objective: SpanObjective,
    *,
    num_samples: int = 64,
    scheduler: Any = "asha",
    search: Any = None,
    budgets: Sequence[float] | None = None,
    cpus_per_trial: float = 1,
    max_concurrent_trials: int | None = None,
    max_failures: int = 3,
    timeout: float | None = None,
    seed: int | None = None,
    storage_path: Any = None,
    name: str | None = None,
    callbacks: Sequence[tune.Callback] = (),
    verbose: int = 0,
) -> tune.Tuner:
    """Return a tuner that is ready for ``fit()``.

    Parameters
    ----------
    objective
        What is searched.
    num_samples
        Number of trials; of a grid, the most that it may have.
    scheduler
        "asha", "hyperband", "median", "pbt", a scheduler of Ray, or None: all trials see all rows.
    search
        "optuna" (the default, a `StudySearch`), "random", "grid", or a search algorithm of Ray.
        The first two begin with `SpanObjective.defaults`. "random" is the default with "pbt", and
        with "hyperband", whose brackets need their trials at once.
    budgets
        Rows of each step: increasing numbers or shares of rows that end with all of them. By
        default 1/8, 1/4, 1/2 and all, or without a scheduler all at once.
    cpus_per_trial
        Cores that a trial reserves.
    max_concurrent_trials
        Most trials at a time; by default as many as there are cores for.
    max_failures
        How often a trial may lose its process before it counts as failed.
    timeout
        Seconds after which the run ends.
    seed
        Seed of the search.
    storage_path, name
        Folder of the results, which all nodes of a cluster must see, and name of the run within
        it; by default in ``~/ray_results``.
    callbacks
        Of Ray, such as loggers.
    verbose
        How much Ray prints, from 0 to 2.

    Returns
    -------
    The tuner. Its objective travels to every worker once, through the object store.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, or the objective cannot be sent to workers. No worker
        has been started then.
    """
    if budgets is None:
        budgets = (1.0,) if scheduler is None else DEFAULT_BUDGETS
    row_counts, cpus = _checked(objective, budgets, cpus_per_trial)
    num_samples = whole("num_samples", num_samples, at_least=1)
    max_failures = whole("max_failures", max_failures, at_least=-1)  # -1: as often as it takes
    if max_concurrent_trials is not None:
        max_concurrent_trials = whole("max_concurrent_trials", max_concurrent_trials, at_least=1)
    if search is None:
        search = "random" if scheduler in ("pbt", "hyperband") else "optuna"
    if scheduler == "pbt" and search != "random":
        raise ValueError(
            '`search` must be "random" with the scheduler "pbt", which changes the configurations '
            f"of running trials, got {search!r}."
        )
    if scheduler == "pbt" and not objective.space:
        raise ValueError('`scheduler` must not be "pbt" where nothing is searched.')
    chosen = _scheduler(objective, scheduler, row_counts)
    algorithm, space, samples = _search(objective, search, num_samples, seed)
    if search == "random" and max_concurrent_trials is not None:
        # Ray ignores its own setting for this algorithm, which has one of its own.
        algorithm.max_concurrent, max_concurrent_trials = max_concurrent_trials, None
    if storage_path is not None and name is not None:
        _note(objective, row_counts, f"{_absolute(storage_path)}/{name}")
    return tune.Tuner(
        _trainable(objective, row_counts, cpus),
        param_space=space,
        tune_config=tune.TuneConfig(
            metric=LOSS,
            mode="min",
            num_samples=samples,
            scheduler=chosen,
            search_alg=algorithm,
            max_concurrent_trials=max_concurrent_trials,
            time_budget_s=None if timeout is None else real("timeout", timeout, above=0),
            reuse_actors=True,
        ),
        run_config=tune.RunConfig(
            name=name,
            storage_path=None if storage_path is None else _absolute(storage_path),
            failure_config=tune.FailureConfig(max_failures=max_failures),
            # The trainable asks for its checkpoints.
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
            callbacks=list(callbacks),
            verbose=verbose,
        ),
    )


def has_run(path: Any) -> bool:
    """Tell whether a folder holds a run that `restored_tuner` could go on with."""
    return bool(tune.Tuner.can_restore(_absolute(path)))


@contextmanager
def cluster(address: str = "local") -> Iterator[None]:
    """Join a cluster, or start one on this machine, and leave or stop it at the end.

    Parameters
    ----------
    address
        "local" for this machine, "auto" for the cluster that runs on it, or that of another one.

    Raises
    ------
    ConnectionError
        If there is none.
    """
    _check_reachable(address)
    ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        yield
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Raise if nobody answers at HOST:PORT: Ray would go on trying for a quarter of an hour."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:
        return
    try:
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ConnectionError(
            f"`address` must be local, auto or that of a cluster, got {address!r}, where none "
            f"answers ({error})."
        ) from error


def restored_tuner(
    path: Any,
    objective: SpanObjective,
    *,
    budgets: Sequence[float] | None = None,
    cpus_per_trial: float = 1,
) -> tune.Tuner:
    """Return the tuner of a run that was interrupted; its ``fit()`` finishes what is left.

    Number of trials, scheduler, search and time limit are those of the run.

    Parameters
    ----------
    path
        Folder of the run: `storage_path` and `name` of its tuner.
    objective, budgets, cpus_per_trial
        As they were; the budgets of a run with a name in a local folder are known.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, or there is no run, or one of another objective.
    """
    path = _absolute(path)
    if not has_run(path):
        raise ValueError(f"`path` must be the folder of a run of Ray Tune, got {path}.")
    noted = _noted(path)
    if "objective" in noted and isinstance(objective, SpanObjective):
        check_same(f"the run {path}", noted["objective"], objective.description())
    if budgets is None:
        budgets = noted.get("budgets", DEFAULT_BUDGETS)
    row_counts, cpus = _checked(objective, budgets, cpus_per_trial)
    return tune.Tuner.restore(
        path, trainable=_trainable(objective, row_counts, cpus), resume_errored=True
    )


def _note(objective: SpanObjective, row_counts: tuple[int, ...], path: str) -> None:
    """Write beside a run in a local folder what it is about."""
    if "://" not in path:
        about = {"objective": objective.description(), "budgets": row_counts}
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_text(f"{path}.json", json.dumps(about))


def _noted(path: str) -> dict[str, Any]:
    """Return what `_note` has written about a run, if it has."""
    file = Path(f"{path}.json")
    noted: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {}
    return noted


def _checked(
    objective: Any, budgets: Sequence[float], cpus_per_trial: float
) -> tuple[tuple[int, ...], float]:
    """Return the budgets in rows and the cores, if the objective can travel."""
    if not isinstance(objective, SpanObjective):
        raise TypeError(f"`objective` must be a SpanObjective, got {type(objective).__name__}.")
    try:
        # Not the data, which are arrays.
        cloudpickle.dumps((objective.kernel, objective.weighting, objective.metrics))
    except Exception as error:  # users' objects may raise anything
        raise TypeError(
            "`objective` must be one that can be sent to workers, got one whose kernel, weighting "
            f"or metric cannot be pickled: {error}."
        ) from error
    cpus = real("cpus_per_trial", cpus_per_trial, above=0)
    return budgets_to_all_rows(objective, budgets), cpus


def _trainable(objective: SpanObjective, row_counts: tuple[int, ...], cpus: float) -> Any:
    """Return the trainable with its data, which go to the object store now, and its cores."""
    trainable = tune.with_parameters(SpanTrainable, objective=objective, budgets=row_counts)
    return tune.with_resources(trainable, {"cpu": cpus})


def _scheduler(objective: SpanObjective, scheduler: Any, row_counts: tuple[int, ...]) -> Any:
    """Return Ray's scheduler of this name."""
    if scheduler is None or isinstance(scheduler, TrialScheduler):
        return scheduler
    if scheduler not in SCHEDULERS:
        raise ValueError(
            f"`scheduler` must be one of {list(SCHEDULERS)}, a scheduler of Ray or None, got "
            f"{scheduler!r}."
        )
    return SCHEDULER_OF_NAME[scheduler](objective, row_counts)


def _asha(_: SpanObjective, row_counts: tuple[int, ...]) -> TrialScheduler:
    return ASHAScheduler(
        time_attr=ROWS, grace_period=row_counts[0], max_t=row_counts[-1], reduction_factor=_FACTOR
    )


def _hyperband(_: SpanObjective, row_counts: tuple[int, ...]) -> TrialScheduler:
    return HyperBandScheduler(time_attr=_STEPS, max_t=len(row_counts), reduction_factor=_FACTOR)


def _median(_: SpanObjective, row_counts: tuple[int, ...]) -> TrialScheduler:
    return MedianStoppingRule(time_attr=ROWS, grace_period=row_counts[0], hard_stop=True)


def _population(objective: SpanObjective, _: tuple[int, ...]) -> TrialScheduler:
    return PopulationBasedTraining(
        time_attr=_STEPS,
        perturbation_interval=1,
        # Numbers are multiplied, and moved back into their range; options are exchanged.
        hyperparam_mutations={
            name: list(domain.categories) if hasattr(domain, "categories") else domain
            for name, domain in search_space(objective).items()
        },
        custom_explore_fn=partial(nearest_config, objective),
    )


SCHEDULER_OF_NAME: dict[str, Callable[[SpanObjective, tuple[int, ...]], TrialScheduler]] = {
    "asha": _asha,
    "hyperband": _hyperband,
    "median": _median,
    "pbt": _population,
}


def _search(
    objective: SpanObjective, search: Any, num_samples: int, seed: int | None
) -> tuple[Any, dict[str, Any], int]:
    """Return the search algorithm, the space that it is given, and its number of samples."""
    if isinstance(search, StudySearch):
        return search, {}, num_samples
    if isinstance(search, Searcher | SearchAlgorithm):
        return search, search_space(objective), num_samples
    if search not in SEARCHES:
        raise ValueError(
            f"`search` must be one of {list(SEARCHES)} or a search algorithm of Ray, got "
            f"{search!r}."
        )
    return SEARCH_OF_NAME[search](objective, num_samples, seed)


def _study_search(
    objective: SpanObjective, num_samples: int, seed: int | None
) -> tuple[Any, dict[str, Any], int]:
    return StudySearch(objective, seed=seed), {}, num_samples


def _random_search(
    objective: SpanObjective, num_samples: int, seed: int | None
) -> tuple[Any, dict[str, Any], int]:
    starts = [written_params(objective.space, params) for params in objective.defaults()]
    algorithm = BasicVariantGenerator(points_to_evaluate=starts[:num_samples], random_state=seed)
    return algorithm, search_space(objective), num_samples


def _grid_search(
    objective: SpanObjective, num_samples: int, _: int | None
) -> tuple[Any, dict[str, Any], int]:
    points = points_per_name(objective.space, num_samples)
    values = written_grid(objective.space, objective.grid(points))
    return None, {name: tune.grid_search(list(grid)) for name, grid in values.items()}, 1


SEARCH_OF_NAME: dict[
    str, Callable[[SpanObjective, int, int | None], tuple[Any, dict[str, Any], int]]
] = {"optuna": _study_search, "random": _random_search, "grid": _grid_search}


def _absolute(path: Any) -> str:
    """Return a folder as Ray wants it; addresses of other storages stay."""
    return str(path) if "://" in str(path) else str(Path(path).expanduser().absolute())
