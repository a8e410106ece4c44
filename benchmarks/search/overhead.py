"""What the adapter adds to a trial, where the time of a study goes, and what a thread gains.

Studies of 150 trials in memory, on one BLAS thread, each with a new objective. A study with the
adapter is compared with one of a hand-written function that calls the objective, by CPU time. The
shares are those of the methods of Optuna's sampler, of `SpanObjective.evaluate`, and of everything
else, which is the work of Optuna's study and storage and of the adapter. `search` is the function
by which `SpanSVC` and the command line add trials. The repeat with the least CPU time counts.

A study with two threads is compared with one of a single thread. For comparison, two processes of
pure computation run at once and one after the other. The least wall time of several repeats counts.
"""

import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import optuna

from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, grid_points
from benchmarks.harness.timing import Stopwatch
from benchmarks.search.studies import first_split, new_objective, new_study
from span_hpo import Float, SpanObjective
from span_hpo.integrations.optuna import OptunaObjective, search

DATASETS = ["ida_banana", "ida_waveform", "splice"]
_TRIALS = 150
_REPEATS = 3
_SAMPLER = (
    "before_trial",
    "infer_relative_search_space",
    "sample_relative",
    "sample_independent",
    "after_trial",
)
STUDIES = {
    "by_hand": "hand-written function",
    "adapter": "`OptunaObjective`",
    "search": "`search`",
}
_PARTS = ["sampler", "evaluations", "rest"]
COMPUTATION = 6_000_000  # additions, which take about half a second
_COLUMNS = [
    "rows",
    "trials",
    "overhead",
    "one_thread_s",
    "two_threads_s",
    "speed_up_of_threads",
    "speed_up_of_processes",
    "threads_per_processes",
    *(f"{study}_cpu_s" for study in STUDIES),
    *(f"{study}_{part}_share" for study in STUDIES for part in _PARTS),
]


def table() -> str:
    """Return a table of the overhead and of the speed-ups."""
    return markdown_table(
        [
            "data set",
            "rows",
            "adapter against a hand-written function",
            "speed-up of two threads",
            "speed-up of two processes of pure computation",
        ],
        [
            [
                row["dataset"],
                row["rows"],
                f"{float(row['overhead']):+.1%}",
                f"{float(row['speed_up_of_threads']):.2f}",
                f"{float(row['speed_up_of_processes']):.2f}",
            ]
            for row in BENCHMARK.rows()
        ],
    )


def shares_table() -> str:
    """Return a table of where the time of a study goes."""
    return markdown_table(
        ["data set", "rows", "study", "CPU s", "Optuna's sampler", "evaluations", "rest"],
        [
            [
                row["dataset"],
                row["rows"],
                title,
                f"{float(row[f'{study}_cpu_s']):.2f}",
                *(f"{float(row[f'{study}_{part}_share']):.0%}" for part in _PARTS),
            ]
            for row in BENCHMARK.rows()
            for study, title in STUDIES.items()
        ],
    )


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    name = point["dataset"]

    def by_hand() -> None:
        objective = new_objective(name)
        ranges = {name: part for name, part in objective.space.items() if isinstance(part, Float)}

        def function(trial: optuna.Trial) -> float:
            params = {
                name: trial.suggest_float(name, part.low, part.high, log=True)
                for name, part in ranges.items()
            }
            return objective.evaluate(params).loss

        new_study(0).optimize(function, n_trials=_TRIALS)

    def by_adapter(n_jobs: int = 1) -> None:
        function = OptunaObjective(new_objective(name))
        new_study(0).optimize(function, n_trials=_TRIALS, n_jobs=n_jobs)

    def by_search() -> None:
        search(new_study(0), new_objective(name), n_trials=_TRIALS)

    context = multiprocessing.get_context("spawn")
    with context.Pool(2) as pool:
        pool.map(compute, [1, 1])  # both processes have started
        least = _least(
            {
                "one_thread": by_adapter,
                "two_threads": lambda: by_adapter(n_jobs=2),
                "one_process": lambda: [pool.apply(compute, [COMPUTATION]) for _ in range(2)],
                "two_processes": lambda: pool.map(compute, [COMPUTATION] * 2, chunksize=1),
            }
        )
    threads = least["one_thread"] / least["two_threads"]
    processes = least["one_process"] / least["two_processes"]
    shares = _shares({"by_hand": by_hand, "adapter": by_adapter, "search": by_search})
    return {
        "rows": len(first_split(name).y_train),
        "trials": _TRIALS,
        "overhead": round(shares["adapter_cpu_s"] / shares["by_hand_cpu_s"] - 1, 4),
        "one_thread_s": round(least["one_thread"], 3),
        "two_threads_s": round(least["two_threads"], 3),
        "speed_up_of_threads": round(threads, 3),
        "speed_up_of_processes": round(processes, 3),
        "threads_per_processes": round(threads / processes, 3),
        **shares,
    }


def _least(tasks: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for name, task in _REPEATS * list(tasks.items()):
        start = time.perf_counter()
        task()
        seconds[name].append(time.perf_counter() - start)
    return {name: min(values) for name, values in seconds.items()}


def _shares(studies: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the CPU time of each study, and the shares of its parts, as columns."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in studies}
    for name, study in _REPEATS * list(studies.items()):
        found[name].append(parts_of(study))
    columns = {}
    for name, repeats in found.items():
        spent = min(repeats, key=lambda spent: spent["study"])
        whole = spent["study"]
        rest = whole - spent["sampler"] - spent["evaluations"]
        columns[f"{name}_cpu_s"] = round(whole, 3)
        columns[f"{name}_sampler_share"] = round(spent["sampler"] / whole, 4)
        columns[f"{name}_evaluations_share"] = round(spent["evaluations"] / whole, 4)
        columns[f"{name}_rest_share"] = round(rest / whole, 4)
    return columns


def parts_of(study: Callable[[], Any]) -> dict[str, float]:
    """Return the CPU seconds of a study, of Optuna's TPE in it, and of its evaluations."""
    stopwatch = Stopwatch()
    with _timed(stopwatch), stopwatch("study"):
        study()
    return stopwatch.seconds


@contextmanager
def _timed(stopwatch: Stopwatch) -> Iterator[None]:
    """Time the methods of TPE, and evaluations, within a block; no two of them are nested."""

    def timed(method: Callable[..., Any], part: str) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            with stopwatch(part):
                return method(*given, **named)

        return call

    sampler = optuna.samplers.TPESampler
    with ExitStack() as stack:
        for name in _SAMPLER:
            method = timed(getattr(sampler, name), "sampler")
            stack.enter_context(patch.object(sampler, name, method))
        method = timed(SpanObjective.evaluate, "evaluations")
        stack.enter_context(patch.object(SpanObjective, "evaluate", method))
        yield


def compute(count: int) -> int:
    """Keep a processor busy."""
    total = 0
    for number in range(count):
        total += number
    return total


BENCHMARK = Benchmark("overhead.csv", grid_points(dataset=DATASETS), _measure, _COLUMNS)
run = BENCHMARK.run
