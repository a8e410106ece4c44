"""How the cost of exact leave-one-out grows with rows, costs and in-bound support vectors."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.svm import SVC

from benchmarks.harness.data import load
from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, grid_points
from benchmarks.harness.timing import cpu_milliseconds
from span_hpo import RBF, Problem, leave_one_out, solve
from span_hpo.kernels import KernelCache
from span_hpo.loo import certified

DATASETS = ["ida_ringnorm", "a1a"]
ROWS = [256, 512, 1024, 2048, 4096]
COSTS = [2.0**k for k in (-4, 0, 4, 8, 12)]
_COLUMNS = [
    "svc_fit_ms",
    "classes_ms",
    "values_ms",
    "n_support",
    "n_in_bound",
    "n_paths",
    "exact_error",
]


def table() -> str:
    """Return a table of the times, with a line for each number of rows and each cost."""
    times = {"`SVC.fit`, ms": "svc_fit", "classes, ms": "classes", "all values, ms": "values"}
    return markdown_table(
        ["data set", "rows", "C", "support vectors", "in-bound", "paths for classes", *times],
        [
            [
                row["dataset"],
                row["rows"],
                f"{float(row['C']):g}",
                row["n_support"],
                row["n_in_bound"],
                row["n_paths"],
                *(f"{float(row[f'{name}_ms']):.3g}" for name in times.values()),
            ]
            for row in BENCHMARK.rows()
        ],
    )


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    split = load(point["dataset"], rows=point["rows"])
    X, y = split.X_train, split.y_train
    gamma = 1 / X.shape[1]
    K = KernelCache(RBF(gamma=gamma), X).matrix({})
    solution = solve(Problem(K, y, np.full(len(y), point["C"])))
    svc = SVC(C=point["C"], gamma=gamma)
    exact = leave_one_out(solution, "exact")  # loads the code, too
    support = np.flatnonzero(solution.alpha)
    least = cpu_milliseconds(
        {
            "svc_fit": lambda: svc.fit(X, y),
            "classes": lambda: leave_one_out(solution, "exact"),
            "values": lambda: leave_one_out(solution, "exact", complete=True),
        },
        repeats=2,
        in_a_row=2,
    )
    return {
        **{f"{name}_ms": round(value, 4) for name, value in least.items()},
        "n_support": solution.n_support,
        "n_in_bound": solution.n_in_bound,
        "n_paths": len(certified(solution, support).open),
        "exact_error": exact.error,
    }


BENCHMARK = Benchmark(
    "growth.csv", grid_points(dataset=DATASETS, rows=ROWS, C=COSTS), _measure, _COLUMNS
)
run = BENCHMARK.run
