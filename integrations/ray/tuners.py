"""Create tuners of Ray Tune for an objective, and join or start clusters."""

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
from span_hpo.integrations.ray.stopping import SettledStopper
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

_FACTOR = 2  # reduction factor of schedulers: half of the trials continue at the next budget
_PATIENCE = 5.0  # seconds within which a cluster must answer
_STEPS = "training_iteration"  # name under which Ray counts the reports of a trial


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
    patience: int | SettledStopper | None = None,
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
        Objective whose hyperparameters are searched.
    num_samples
        Number of trials; for a grid, the largest number of its points.
    scheduler
        Scheduler that stops or changes trials: "asha", "hyperband", "median", "pbt", a scheduler of
        Ray, or None (or "none") to give all rows to all trials.
    search
        Search algorithm: "optuna" (the default, a `StudySearch`), "random", "grid", or one of Ray.
        "optuna" and "random" begin with `SpanObjective.defaults`. "random" is the default with the
        schedulers "pbt" and "hyperband"; the brackets of the latter need their trials at once.
    budgets
        Increasing numbers or shares of rows, one for each step, which end with all rows. By default
        1/8, 1/4, 1/2 and all rows, or all rows at once if there is no scheduler.
    cpus_per_trial
        Number of cores that a trial reserves.
    max_concurrent_trials
        Largest number of trials at a time; by default as many as the cores allow.
    max_failures
        How often a trial may lose its process before it counts as failed; -1 for no limit.
    timeout
        End the run after this many seconds.
    patience
        End the run when so many trials on all rows have brought no lower loss, or a
        `SettledStopper`, which can be asked afterwards. By default, the run does not end for this
        reason.
    seed
        Random seed of the search.
    storage_path
        Folder of the results, which all nodes of a cluster must be able to reach; by default
        ``~/ray_results``.
    name
        Name of the run, which is also the name of its folder in `storage_path`.
    callbacks
        Callbacks of Ray, such as loggers.
    verbose
        Amount of text that Ray prints, from 0 to 2.

    Returns
    -------
    The tuner. It sends its objective to each worker only once, through the object store.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, or the objective cannot be sent to workers. In this
        case, no worker has been started.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.integrations.ray import best_model, tuner
    >>> objective = SpanObjective(*load_iris(return_X_y=True))
    >>> results = tuner(objective, num_samples=16).fit()  # doctest: +SKIP
    >>> model = best_model(results, objective)  # doctest: +SKIP
    """
    if isinstance(scheduler, str) and scheduler == "none":  # the word of the command line
        scheduler = None
    if budgets is None:
        budgets = (1.0,) if scheduler is None else DEFAULT_BUDGETS
    row_counts, cpus = _checked(objective, budgets, cpus_per_trial)
    num_samples = whole("num_samples", num_samples, at_least=1)
    max_failures = whole("max_failures", max_failures, at_least=-1)  # -1 stands for no limit
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
        raise ValueError(
            '`scheduler` must not be "pbt" if all hyperparameters are fixed, got "pbt".'
        )
    if patience is not None and not isinstance(patience, SettledStopper):
        patience = SettledStopper(patience)
    chosen = _scheduler(objective, scheduler, row_counts)
    algorithm, space, samples = _search(objective, search, num_samples, seed)
    if search == "random" and max_concurrent_trials is not None:
        # Ray ignores its general setting for this algorithm, which has a setting of its own.
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
            stop=patience,
            failure_config=tune.FailureConfig(max_failures=max_failures),
            # The trainable itself asks for checkpoints.
            checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
            # The stopper is also a callback, whose state Ray keeps for a restored run.
            callbacks=[*callbacks] if patience is None else [*callbacks, patience],
            verbose=verbose,
        ),
    )


def has_run(path: Any) -> bool:
    """Return whether a folder holds a run that `restored_tuner` can continue.

    Parameters
    ----------
    path
        Folder of the run, which consists of the `storage_path` and the `name` of its tuner.

    Examples
    --------
    >>> from span_hpo.integrations.ray import has_run
    >>> has_run("no/such/folder")
    False
    """
    return bool(tune.Tuner.can_restore(_absolute(path)))


@contextmanager
def cluster(address: str = "local") -> Iterator[None]:
    """Join a cluster, or start one on this machine, and leave or stop it at the end.

    Parameters
    ----------
    address
        "local" to start a cluster on this machine, "auto" to join the one that is running on it, or
        the address of another cluster.

    Raises
    ------
    ConnectionError
        If no cluster answers at the address.

    Examples
    --------
    For a `SpanObjective` named ``objective``, and a cluster that is running on this machine:

    >>> from span_hpo.integrations.ray import cluster, tuner
    >>> with cluster("auto"):  # doctest: +SKIP
    ...     results = tuner(objective, num_samples=1000).fit()
    """
    _check_reachable(address)
    ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        yield
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Raise if nobody answers at HOST:PORT, where Ray would try for a quarter of an hour."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:
        return
    try:
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ConnectionError(
            f"`address` must be local, auto or the address of a cluster, got {address!r}, where "
            f"none answers ({error})."
        ) from error


def restored_tuner(
    path: Any,
    objective: SpanObjective,
    *,
    budgets: Sequence[float] | None = None,
    cpus_per_trial: float = 1,
) -> tune.Tuner:
    """Return the tuner of an interrupted run, whose ``fit()`` finishes the run.

    The number of trials, the scheduler, the search, the time limit and the patience are those of
    the run.

    Parameters
    ----------
    path
        Folder of the run, which consists of the `storage_path` and the `name` of its tuner.
    objective
        Objective of the run.
    budgets
        Budgets of the run. They need not be given for a run with a name in a local folder.
    cpus_per_trial
        Number of cores that a trial reserves.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described, or the folder holds no run of the objective.

    Examples
    --------
    For a `SpanObjective` named ``objective``, whose first run is interrupted:

    >>> from span_hpo.integrations.ray import restored_tuner, tuner
    >>> first = tuner(objective, storage_path="runs", name="iris")  # doctest: +SKIP
    >>> results = first.fit()  # doctest: +SKIP
    >>> results = restored_tuner("runs/iris", objective).fit()  # doctest: +SKIP
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
    """Write the objective and the budgets of a run into a file beside its local folder."""
    if "://" not in path:
        about = {"objective": objective.description(), "budgets": row_counts}
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_text(f"{path}.json", json.dumps(about))


def _noted(path: str) -> dict[str, Any]:
    """Return what `_note` has written about a run; an empty mapping if there is no file."""
    file = Path(f"{path}.json")
    noted: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {}
    return noted


def _checked(
    objective: Any, budgets: Sequence[float], cpus_per_trial: float
) -> tuple[tuple[int, ...], float]:
    """Return the budgets in rows and the cores, or raise if workers cannot get the objective."""
    if not isinstance(objective, SpanObjective):
        raise TypeError(f"`objective` must be a SpanObjective, got {type(objective).__name__}.")
    try:
        # The data are arrays, which can always be pickled.
        cloudpickle.dumps((objective.kernel, objective.weighting, objective.metrics))
    except Exception as error:  # users' objects may raise anything
        raise TypeError(
            "`objective` must be one that can be sent to workers, got one whose kernel, weighting "
            f"or metric cannot be pickled: {error}."
        ) from error
    cpus = real("cpus_per_trial", cpus_per_trial, above=0)
    return budgets_to_all_rows(objective, budgets), cpus


def _trainable(objective: SpanObjective, row_counts: tuple[int, ...], cpus: float) -> Any:
    """Return the trainable with its cores and its data, which go to the object store now."""
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
        # Ray multiplies numbers, which are then moved into their ranges, and exchanges options.
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
    """Return the search algorithm, the space that it gets, and the number of samples."""
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
    """Return a folder as Ray expects it; addresses of other storages stay as they are."""
    return str(path) if "://" in str(path) else str(Path(path).expanduser().absolute())
