"""What the adapter adds to a trial, and what a second thread gains.

Studies in memory on splice, on one BLAS thread. A study with the adapter is compared with one of a
hand-written function that calls the objective, and a study with two threads with one of a single
thread. For comparison, two processes of pure computation run at once and one after the other. The
least wall time of several repeats counts.
"""

import multiprocessing
import time
from collections.abc import Callable, Mapping
from typing import Any

import optuna

from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, grid_points
from benchmarks.search.studies import new_objective, new_study
from span_hpo import Float
from span_hpo.integrations.optuna import OptunaObjective

DATASETS = ["splice"]
_TRIALS = 100
_REPEATS = 3
COMPUTATION = 6_000_000  # additions, which take about half a second
_COLUMNS = [
    "by_hand_s",
    "adapter_s",
    "overhead",
    "two_threads_s",
    "speed_up_of_threads",
    "speed_up_of_processes",
    "threads_per_processes",
]


def table() -> str:
    """Return a table of the overhead and of the speed-ups."""
    row = BENCHMARK.rows()[0]
    return markdown_table(
        [
            "adapter against a hand-written function",
            "speed-up of two threads",
            "speed-up of two processes of pure computation",
        ],
        [
            [
                f"{float(row['overhead']):+.1%}",
                f"{float(row['speed_up_of_threads']):.2f}",
                f"{float(row['speed_up_of_processes']):.2f}",
            ]
        ],
    )


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    objective = new_objective(point["dataset"])
    ranges = {name: part for name, part in objective.space.items() if isinstance(part, Float)}

    def by_hand(trial: optuna.Trial) -> float:
        params = {
            name: trial.suggest_float(name, part.low, part.high, log=True)
            for name, part in ranges.items()
        }
        return objective.evaluate(params).loss

    def searched(function: Callable[[], Any], n_jobs: int = 1) -> Callable[[], Any]:
        def search() -> None:
            new_study(0).optimize(function(), n_trials=_TRIALS, n_jobs=n_jobs)

        return search

    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        pool.map(compute, [1, 1])  # both processes have started
        least = _least(
            {
                "by_hand": searched(lambda: by_hand),
                "adapter": searched(lambda: OptunaObjective(objective)),
                "two_threads": searched(lambda: OptunaObjective(objective), n_jobs=2),
                "one_process": lambda: [pool.apply(compute, [COMPUTATION]) for _ in range(2)],
                "two_processes": lambda: pool.map(compute, [COMPUTATION] * 2, chunksize=1),
            }
        )
    threads = least["adapter"] / least["two_threads"]
    processes = least["one_process"] / least["two_processes"]
    return {
        "by_hand_s": round(least["by_hand"], 3),
        "adapter_s": round(least["adapter"], 3),
        "overhead": round(least["adapter"] / least["by_hand"] - 1, 4),
        "two_threads_s": round(least["two_threads"], 3),
        "speed_up_of_threads": round(threads, 3),
        "speed_up_of_processes": round(processes, 3),
        "threads_per_processes": round(threads / processes, 3),
    }


def _least(tasks: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for name, task in _REPEATS * list(tasks.items()):
        start = time.perf_counter()
        task()
        seconds[name].append(time.perf_counter() - start)
    return {name: min(values) for name, values in seconds.items()}


def compute(count: int) -> int:
    """Keep a processor busy."""
    total = 0
    for number in range(count):
        total += number
    return total


BENCHMARK = Benchmark("overhead.csv", grid_points(dataset=DATASETS), _measure, _COLUMNS)
run = BENCHMARK.run
