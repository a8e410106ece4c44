"""Cost of one hyperparameter point in a search by other packages and ours, and what they pick.

Every peer searches the class costs C+ and C- of an SVM with the RBF kernel and gamma = 1/d on the
training rows, in one process on one thread. `cpu_seconds` is CPU time of the whole search without
imports and compilation: each peer first searches the corners of the grid. Right after it
scikit-learn's ``SVC.fit`` is timed at every point the search has visited; on small sets both are
repeated, for every peer alike, and the least time counts. `svc_fit_ms` is the median of these fits
and `fits_seconds` their sum. `ratio_to_fit` is the mean CPU time of a point in median fits;
`ratio_to_fits`, a sum by a sum, is how many fits at the same points a point is worth. `loss` is the
peer's own estimate for its pick; `test_error` is that of its own model if it leaves one, else of an
``SVC`` with the costs it picked, fitted on all training rows.

`benchmarks.peers.libraries` says what each peer does. A peer that cannot be imported is left out
with a message, and has no row.
"""

import functools
import time
from collections.abc import Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.harness.data import load
from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import (
    RESULTS,
    Benchmark,
    Options,
    ResultFile,
    combinations,
    read_rows,
)
from benchmarks.peers.libraries import PEERS, Costs, Found, Peer, Task
from span_hpo.weighting import COST_RANGE

DATASETS = ["ida_banana", "ida_waveform", "ida_image", "splice"]
OPTIONS = ("jobs", "quick")
COSTS: list[float] = COST_RANGE.grid(9)  # for either class: 2^(k/2 - 6), k = 0, 4...32
QUICK_COSTS: list[float] = COST_RANGE.grid(3)
_REPEATS = 3  # how often a search and its fits are timed on a small set
_MANY_ROWS = 1000  # with as many rows a search takes seconds and is timed once
_COLUMNS = [
    "rows",
    "points",
    "repeats",
    "cpu_seconds",
    "cpu_per_point_ms",
    "svc_fit_ms",
    "fits_seconds",
    "ratio_to_fit",
    "ratio_to_fits",
    "loss",
    "test_error",
    "C_pos",
    "C_neg",
    "version",
]


def run(options: Options) -> ResultFile:
    """Measure every installed peer that is not in the CSV yet."""
    measured = functools.partial(measure, costs=QUICK_COSTS if options.quick else COSTS)
    # One process: two at a time would share the caches of the machine.
    return Benchmark("peers.csv", _points, measured, _COLUMNS).run(replace(options, jobs=1))


def _points(options: Options) -> list[dict[str, Any]]:
    names = options.datasets or (DATASETS[:1] if options.quick else DATASETS)
    return combinations(dataset=names, peer=installed())


def installed() -> list[str]:
    """Return the keys of the peers that can be imported; print why others cannot."""
    keys = []
    for key, peer in PEERS.items():
        try:
            peer.load()
        except ImportError as error:
            print(f"{peer.title} is left out because {peer.distribution} is not installed: {error}")
        else:
            keys.append(key)
    return keys


def measure(point: Mapping[str, Any], costs: list[float]) -> dict[str, Any]:
    """Let one peer search one data set, then fit scikit-learn's model at the visited points."""
    split, peer = load(point["dataset"]), PEERS[point["peer"]]
    task = Task(split.X_train, split.y_train, 1 / split.X_train.shape[1], costs)
    peer.search(Task(task.X, task.y, task.gamma, [costs[0], costs[-1]]))  # imports and compiles
    repeats = _REPEATS if len(task.y) < _MANY_ROWS else 1
    found, seconds, fits = _timed(peer, task)
    for _ in range(repeats - 1):
        _, again, fits_again = _timed(peer, task)
        seconds, fits = min(seconds, again), list(map(min, fits, fits_again))
    predict = found.predict or task.svc(found.picked).fit(task.X, task.y).predict
    per_point = seconds / len(found.visited)
    return {
        "rows": len(task.y),
        "points": len(found.visited),
        "repeats": repeats,
        "cpu_seconds": round(seconds, 5),
        "cpu_per_point_ms": round(1e3 * per_point, 5),
        "svc_fit_ms": round(1e3 * median(fits), 5),
        "fits_seconds": round(sum(fits), 5),
        "ratio_to_fit": round(per_point / median(fits), 4),
        "ratio_to_fits": round(seconds / sum(fits), 4),
        "loss": "" if found.loss is None else found.loss,
        "test_error": float(np.mean(predict(split.X_test) != split.y_test)),
        "C_pos": found.picked[0],
        "C_neg": found.picked[1],
        "version": metadata.version(peer.distribution),
    }


def table(path: Path = RESULTS / "peers.csv") -> str:
    """Return a table of the cost of a point and the test error of every peer.

    Peers that visit the grid share one time of a fit, the median over them: the machine may have
    been busy during the fits of one of them.
    """
    rows = {(row["dataset"], row["peer"]): row for row in read_rows(path)}
    names = list(dict.fromkeys(dataset for dataset, _ in rows))
    fits = {
        name: median(
            float(row["svc_fit_ms"])
            for (dataset, key), row in rows.items()
            if dataset == name and PEERS[key].on_grid
        )
        for name in names
    }
    lines = [
        [peer.title, *(_cost_and_error(peer, rows.get((name, key)), fits[name]) for name in names)]
        for key, peer in PEERS.items()
    ]
    lines.append(["`SVC.fit`, median, ms", *(f"{fit:.3g}" for fit in fits.values())])
    return markdown_table(["point / `SVC.fit` (test error)", *names], lines)


def _cost_and_error(peer: Peer, row: Mapping[str, str] | None, grid_fit_ms: float) -> str:
    if row is None:
        return "not installed"
    fit = grid_fit_ms if peer.on_grid else float(row["svc_fit_ms"])
    return f"{float(row['cpu_per_point_ms']) / fit:.2f} ({float(row['test_error']):.4f})"


def _timed(peer: Peer, task: Task) -> tuple[Found, float, list[float]]:
    """Return the result, the CPU time of the search, and that of a fit at each visited point."""
    start = time.process_time()
    found = peer.search(task)
    seconds = time.process_time() - start
    return found, seconds, [_fit_seconds(task, point) for point in found.visited]


def _fit_seconds(task: Task, point: Costs) -> float:
    svc = task.svc(point)
    start = time.process_time()
    svc.fit(task.X, task.y)
    return time.process_time() - start
