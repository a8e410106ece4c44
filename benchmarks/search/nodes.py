"""How many trials a cluster finishes in a second, simulated from measured costs.

Workers evaluate the budgets of a trial. After each budget they wait for the driver, which serves
one worker after the other. Evaluation times are those of `scale.csv`, and of ijcnn1 in `large.csv`,
in proportion to the square of the rows of a budget. The time of the driver for a report is that of
the trivial trainable of `cluster.csv`. Nodes have 16 cores.
"""

import heapq
from collections.abc import Mapping
from typing import Any

from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import RESULTS, Benchmark, grid_points, read_rows, rows_with

DATASETS = ["simulation"]
NODES = (1, 4, 16, 64, 256)
CORES = 16
ROWS = (1024, 8192, 49990)
BUDGETS = {"all rows": (1.0,), "four budgets, half go on": (0.125, 0.25, 0.5, 1.0)}
_FEATURES, _COST = 20, 64.0
_TRIALS = 20_000
_COLUMNS = ["evaluation_ms", "report_ms", "trials_per_s", "busy_workers", "busy_driver"]


def table() -> str:
    """Return a table of simulated trials per second, with a line for each kind of trial."""
    rows = BENCHMARK.rows()
    lines = []
    for count in ROWS:
        for budgets in BUDGETS:
            own = rows_with(rows, rows=str(count), budgets=budgets)
            lines.append(
                [
                    str(count),
                    budgets,
                    f"{float(own[0]['evaluation_ms']):.3g}",
                    *(
                        f"{float(r['trials_per_s']):.3g} ({float(r['busy_workers']):.1%})"
                        for r in own
                    ),
                ]
            )
    return markdown_table(
        [
            "rows",
            "trials",
            "evaluation of all rows, ms",
            *(f"{number} node{'s' * (number > 1)}" for number in NODES),
        ],
        lines,
    )


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    evaluation = _evaluation_seconds(int(point["rows"]))
    report = _report_seconds()
    shares = BUDGETS[str(point["budgets"])]
    workers = CORES * int(point["nodes"])
    stages = [evaluation * share**2 for share in shares]
    trials, seconds, computed, served = simulated(stages, report, workers, _TRIALS)
    return {
        "evaluation_ms": round(1e3 * evaluation, 2),
        "report_ms": round(1e3 * report, 2),
        "trials_per_s": round(trials / seconds, 2),
        "busy_workers": round(computed / seconds / workers, 3),
        "busy_driver": round(served / seconds, 3),
    }


def simulated(
    stages: list[float], report: float, workers: int, trials: int
) -> tuple[int, float, float, float]:
    """Simulate workers and a driver; every second trial ends at each stage.

    Parameters
    ----------
    stages
        Seconds of the evaluation of each budget.
    report
        Seconds of the driver for one report.
    workers, trials
        Number of workers, and of trials that finish.

    Returns
    -------
    Number of finished trials, and seconds of the run, of all evaluations and of the driver.
    """
    waiting = [(stages[0], worker, 0) for worker in range(workers)]
    heapq.heapify(waiting)
    driver_free = computed = served = 0.0
    passed = [0] * len(stages)
    finished = 0
    while finished < trials:
        ready, worker, stage = heapq.heappop(waiting)
        driver_free = max(driver_free, ready) + report
        computed += stages[stage]
        served += report
        passed[stage] += 1
        goes_on = stage + 1 < len(stages) and passed[stage] % 2 == 0
        finished += not goes_on
        stage = stage + 1 if goes_on else 0
        heapq.heappush(waiting, (driver_free + stages[stage], worker, stage))
    return finished, driver_free, computed, served


def _evaluation_seconds(rows: int) -> float:
    beyond_memory = [
        float(row["evaluation_s"])
        for row in read_rows(RESULTS / "large.csv")
        if int(row["rows"]) == rows
    ]
    if beyond_memory:
        return beyond_memory[0]
    (row,) = (
        row
        for row in read_rows(RESULTS / "scale.csv")
        if (int(row["rows"]), int(row["features"]), float(row["C"])) == (rows, _FEATURES, _COST)
    )
    return float(row["new_width_ms"]) / 1e3


def _report_seconds() -> float:
    """Return the seconds of the driver for one report of a trial that ASHA may stop."""
    rows = {row["dataset"]: row for row in read_rows(RESULTS / "cluster.csv")}
    return float(rows["splice"]["trivial_ms"]) / float(rows["splice"]["reports_per_trial"]) / 1e3


BENCHMARK = Benchmark(
    "nodes.csv",
    grid_points(dataset=DATASETS, rows=ROWS, budgets=BUDGETS, nodes=NODES),
    _measure,
    _COLUMNS,
)
run = BENCHMARK.run
