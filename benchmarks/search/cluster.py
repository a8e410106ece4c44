"""What Ray Tune adds to a trial, what a second worker gains, and what ASHA saves.

A run has 64 random trials (with the defaults of the objective among them) over both class costs and
gamma, with 1/8, 1/4, 1/2 and all of the rows as budgets, on a local cluster with two cores. The
overhead of one trial at a time is compared with that of a trainable that only reports the same
losses, so that ASHA stops the same trials. Workers are compared by the time from the first finished
trial to the last. The least of several repeats counts.
"""

import multiprocessing
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

import ray
from ray import tune
from ray.tune.schedulers import ASHAScheduler
from ray.tune.search import BasicVariantGenerator

from benchmarks.harness.data import Split, load
from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, grid_points
from benchmarks.search.overhead import COMPUTATION, compute
from benchmarks.search.studies import WIDTHS
from span_hpo import RBF, SpanObjective
from span_hpo.integrations.ray import best_model, search_space, tuner

DATASETS = ["splice", "ida_ringnorm"]
TRIALS = 64
_ROWS = {"ida_ringnorm": 4096}
_BUDGETS = (0.125, 0.25, 0.5, 1.0)
_REPEATS = 5
_SEED = 0
_COLUMNS = [
    "rows",
    "reports_per_trial",
    "evaluation_ms",
    "overhead_ms",
    "trivial_ms",
    "overhead_per_trivial",
    "speed_up_of_workers",
    "speed_up_of_processes",
    "workers_per_processes",
    "asha_share_of_time",
    "asha_test_error",
    "full_test_error",
]


def table() -> str:
    """Return a table of overhead, speed-ups and errors, with a line for each data set."""
    lines = [
        [
            row["dataset"],
            row["rows"],
            f"{float(row['evaluation_ms']):.1f}",
            f"{float(row['overhead_ms']):.1f}",
            f"{float(row['trivial_ms']):.1f}",
            f"{float(row['overhead_per_trivial']):.2f}",
            f"{float(row['speed_up_of_workers']):.2f}",
            f"{float(row['speed_up_of_processes']):.2f}",
            f"{float(row['asha_share_of_time']):.0%}",
            f"{float(row['asha_test_error']):.4f} ({float(row['full_test_error']):.4f})",
        ]
        for row in BENCHMARK.rows()
    ]
    return markdown_table(
        [
            "data set",
            "rows",
            "evaluations of a trial, ms",
            "Ray's share of a trial, ms",
            "a trivial trainable, ms",
            "Ray's share / trivial trainable",
            "speed-up of two workers",
            "speed-up of two processes of pure computation",
            "ASHA's share of the evaluation time",
            "test error with ASHA (all trials on all rows)",
        ],
        lines,
    )


class _Clock(tune.Callback):  # type: ignore[misc]  # not typed
    """A callback that records when trials finish."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_trial_complete(self, iteration: int, trials: Any, trial: Any, **info: Any) -> None:
        """Record the time."""
        self.times.append(time.perf_counter())

    @property
    def seconds(self) -> float:
        """Seconds from the first finished trial to the last, without the start of the workers."""
        return self.times[-1] - self.times[0]


class _Trivial(tune.Trainable):  # type: ignore[misc]  # not typed
    """A trainable that reports known losses; reused actors need its empty checkpoints."""

    def setup(self, config: dict[str, Any], *, known: Mapping[Any, Sequence[Any]]) -> None:
        """Store the losses of all configurations."""
        self.known = known
        self.reset_config(config)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Start the reports of a new configuration."""
        self.reports = iter(self.known[_key(new_config)])
        return True

    def step(self) -> dict[str, Any]:
        """Report the next loss."""
        return dict(next(self.reports))

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Save nothing: there is no state."""

    def load_checkpoint(self, checkpoint: Any) -> None:
        """Load nothing: there is no state."""


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    name = point["dataset"]
    split = load(name, rows=_ROWS.get(name))
    objective = SpanObjective(split.X_train, split.y_train, kernel=RBF(gamma=WIDTHS))
    ray.init(
        address="local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="error",
    )
    try:
        full, _ = _ran(objective, scheduler=None, workers=1, budgets=(1.0,))
        stepwise, _ = _ran(objective, scheduler=None, workers=1)
        known = {_key(result.config): _reports(result) for result in stepwise}
        asha, pairs, trivials = [], [], []
        for _ in range(_REPEATS):  # in turn: other work on the machine then affects all of them
            asha.append(_ran(objective, scheduler="asha", workers=1))
            trivials.append(_trivial(objective, known))
            pairs.append(_ran(objective, scheduler="asha", workers=2))
    finally:
        ray.shutdown()
    results = asha[0][0]
    spent, all_spent = (_evaluation_seconds(found) for found in (results, full))
    one = min(seconds for _, seconds in asha)
    two = min(seconds for _, seconds in pairs)
    own = min(seconds - _evaluation_seconds(found) for found, seconds in asha)
    trivial = min(trivials)
    processes = _speed_up_of_processes()
    return {
        "rows": len(split.y_train),
        "reports_per_trial": round(
            sum(len(result.metrics_dataframe) for result in results) / TRIALS, 3
        ),
        "evaluation_ms": round(1e3 * spent / (TRIALS - 1), 2),
        "overhead_ms": round(1e3 * own / (TRIALS - 1), 2),
        "trivial_ms": round(1e3 * trivial / (TRIALS - 1), 2),
        "overhead_per_trivial": round(own / trivial, 3),
        "speed_up_of_workers": round(one / two, 3),
        "speed_up_of_processes": round(processes, 3),
        "workers_per_processes": round(one / two / processes, 3),
        "asha_share_of_time": round(spent / all_spent, 3),
        "asha_test_error": round(_test_error(results, objective, split), 5),
        "full_test_error": round(_test_error(full, objective, split), 5),
    }


def _ran(
    objective: SpanObjective,
    scheduler: str | None,
    workers: int,
    budgets: Sequence[float] = _BUDGETS,
) -> tuple[Any, float]:
    """Return the results of a run, and the seconds from its first finished trial to its last."""
    clock = _Clock()
    with tempfile.TemporaryDirectory() as folder:
        results = tuner(
            objective,
            num_samples=TRIALS,
            scheduler=scheduler,
            search="random",
            budgets=budgets,
            max_concurrent_trials=workers,
            seed=_SEED,
            storage_path=folder,
            callbacks=[clock],
        ).fit()
        for result in results:
            assert result.metrics_dataframe is not None  # read before the folder is removed
    return results, clock.seconds


def _trivial(objective: SpanObjective, known: Mapping[Any, Sequence[Any]]) -> float:
    """Return the seconds of the same trials, without any evaluation."""
    clock = _Clock()
    rows = objective.budget_rows(_BUDGETS)
    with tempfile.TemporaryDirectory() as folder:
        trainable = tune.with_parameters(_Trivial, known=known)
        tune.Tuner(
            tune.with_resources(trainable, {"cpu": 1}),
            param_space=search_space(objective),
            tune_config=tune.TuneConfig(
                metric="loss",
                mode="min",
                num_samples=TRIALS,
                scheduler=ASHAScheduler(
                    time_attr="n_rows", grace_period=rows[0], max_t=rows[-1], reduction_factor=2
                ),
                search_alg=BasicVariantGenerator(
                    points_to_evaluate=objective.defaults(),
                    max_concurrent=1,
                    random_state=_SEED,
                ),
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(storage_path=folder, verbose=0, callbacks=[clock]),
        ).fit()
    return clock.seconds


def _key(config: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted(config.items()))


def _reports(result: Any) -> list[dict[str, Any]]:
    """Return the losses of a trial on all budgets, in the form of its reports."""
    frame = result.metrics_dataframe
    last = frame["n_rows"].max()
    return [
        {"loss": loss, "n_rows": rows, "done": rows == last}
        for loss, rows in zip(frame["loss"], frame["n_rows"], strict=True)
    ]


def _evaluation_seconds(results: Any) -> float:
    """Return the seconds of all evaluations except those of the first trial.

    The first trial loads compiled code, and the clock starts after it.
    """
    spent = [float(result.metrics_dataframe["seconds"].sum()) for result in results]
    return sum(spent[1:])


def _test_error(results: Any, objective: SpanObjective, split: Split) -> float:
    return 1 - float(best_model(results, objective).score(split.X_test, split.y_test))


def _speed_up_of_processes() -> float:
    """Return the speed-up of two processes of pure computation."""
    seconds: dict[str, list[float]] = {"one": [], "two": []}
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(compute, [1, 1])  # both processes have started
        for _ in range(_REPEATS):
            start = time.perf_counter()
            for _ in range(2):
                pool.apply(compute, [COMPUTATION])
            middle = time.perf_counter()
            pool.map(compute, [COMPUTATION] * 2, chunksize=1)
            seconds["one"].append(middle - start)
            seconds["two"].append(time.perf_counter() - middle)
    return min(seconds["one"]) / min(seconds["two"])


BENCHMARK = Benchmark("cluster.csv", grid_points(dataset=DATASETS), _measure, _COLUMNS)
run = BENCHMARK.run
