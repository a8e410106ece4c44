"""A grid of 81 class costs by the span-rule, compared with five folds of liquidSVM.

The searches `span_rule`, `span_exact` and `liquidsvm` of `benchmarks.peers.libraries` are measured
in turn within one run, in one process on one thread. Each search includes its kernel matrices, but
no imports. The least CPU time of several repeats counts. Without liquidSVM nothing is measured.
"""

import functools
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from benchmarks.harness.data import load
from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, Options, ResultFile, grid_points
from benchmarks.harness.timing import cpu_milliseconds
from benchmarks.peers import peers
from benchmarks.peers.libraries import PEERS, Task

DATASETS = peers.DATASETS
COSTS = peers.COSTS
SEARCHES = ("span_rule", "span_exact", "liquidsvm")
_COLUMNS = [
    "rows",
    "points",
    *(f"{name}_ms" for name in SEARCHES),
    "span_rule_per_liquidsvm",
    "span_exact_per_liquidsvm",
    "version",
]


def run(options: Options) -> ResultFile:
    """Measure every data set that is not in the CSV yet, if liquidSVM is installed."""
    try:
        PEERS["liquidsvm"].load()
    except ImportError as error:
        print(f"No grid is measured because liquidSVM is not installed: {error}")
        return ResultFile(options.folder / BENCHMARK.csv, key=["dataset"], columns=_COLUMNS)
    return BENCHMARK.run(options)


def table() -> str:
    """Return the cost of a grid in searches of liquidSVM, one line for each data set."""
    return markdown_table(
        ["data set", "rows", "liquidSVM, s", "span-rule / liquidSVM", "exact error / liquidSVM"],
        [
            [
                row["dataset"],
                row["rows"],
                f"{float(row['liquidsvm_ms']) / 1e3:.3f}",
                f"{float(row['span_rule_per_liquidsvm']):.2f}",
                f"{float(row['span_exact_per_liquidsvm']):.2f}",
            ]
            for row in BENCHMARK.rows()
        ],
    )


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    split = load(point["dataset"])
    task = Task(split.X_train, split.y_train, 1 / split.X_train.shape[1], COSTS)
    corners = Task(task.X, task.y, task.gamma, [COSTS[0], COSTS[-1]])
    for name in SEARCHES:
        PEERS[name].search(corners)  # imports
    tasks = {name: functools.partial(PEERS[name].search, task) for name in SEARCHES}
    least = cpu_milliseconds(tasks, repeats=3, in_a_row=1)
    return {
        "rows": len(task.y),
        "points": len(task.points),
        **{f"{name}_ms": round(value, 2) for name, value in least.items()},
        "span_rule_per_liquidsvm": round(least["span_rule"] / least["liquidsvm"], 4),
        "span_exact_per_liquidsvm": round(least["span_exact"] / least["liquidsvm"], 4),
        "version": metadata.version("liquidSVM"),
    }


BENCHMARK = Benchmark("grids.csv", grid_points(dataset=DATASETS), _measure, _COLUMNS)
