"""The cost of exact leave-one-out, in fits of scikit-learn's SVC and in 5-fold cross-validations.

CPU time of tasks that are measured in turn within one run on one BLAS thread. On a sample of rows
the values are compared with refits.
"""

import tracemalloc
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from benchmarks.harness.data import load
from benchmarks.harness.markdown import markdown_table, median_and_worst
from benchmarks.harness.runner import Benchmark, Options, rows_with
from benchmarks.harness.timing import cpu_milliseconds
from span_hpo import RBF, Problem, leave_one_out, solve
from span_hpo.kernels import KernelCache
from span_hpo.loo import certified, free_squared_spans
from span_hpo.runtime import interpreted
from span_hpo.solver import DualSolution

DATASETS = ["ida_banana", "ida_waveform", "ida_image", "splice", "a1a", "ida_ringnorm"]
SIZES = {"ida_ringnorm": [1024, 4096]}  # other sets: the official training rows
COSTS = [2.0**-6, 2.0**2, 2.0**10]
CHECKED = 10  # rows that are compared with refits
_COLUMNS = [
    "svc_fit_ms",
    "cv5_ms",
    "classes_ms",
    "values_ms",
    "plain_classes_ms",
    "solve_ms",
    "spans_ms",
    "certificates_ms",
    "classes_per_fit",
    "values_per_fit",
    "plain_classes_per_fit",
    "classes_per_cv5",
    "certificate_share",
    "peak_mb",
    "n_support",
    "n_in_bound",
    "n_paths",
    "n_refit",
    "span_error",
    "exact_error",
    "checked",
    "wrong",
]


def _points(options: Options) -> list[dict[str, Any]]:
    return [
        {"dataset": dataset, "rows": rows, "C_pos": C_pos, "C_neg": C_neg}
        for dataset in options.datasets or DATASETS
        for rows in SIZES.get(dataset, [len(load(dataset).y_train)])
        for C_pos, C_neg in product(COSTS, COSTS)
    ]


def table() -> str:
    """Return a table of the cost of exact leave-one-out, with a line for each data set."""
    rows = BENCHMARK.rows()
    groups = [
        (name, size, rows_with(rows, dataset=name, rows=size))
        for name, size in dict.fromkeys((row["dataset"], row["rows"]) for row in rows)
    ]
    with_paths = [row for row in rows if int(row["n_paths"])]
    groups += [("all", "", rows), ("those that need paths", "", with_paths)]
    ratios = {
        "classes / `SVC.fit`": "classes_per_fit",
        "all values / `SVC.fit`": "values_per_fit",
        "classes / 5-fold CV": "classes_per_cv5",
        "classes in Python / `SVC.fit`": "plain_classes_per_fit",
    }
    return markdown_table(
        ["data set", "rows", "points that need paths", *ratios],
        [
            [
                name,
                size,
                f"{sum(int(row['n_paths']) > 0 for row in own)} of {len(own)}",
                *(median_and_worst(own, column) for column in ratios.values()),
            ]
            for name, size, own in groups
        ],
    )


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    split = load(point["dataset"], rows=point["rows"])
    X, y = split.X_train, split.y_train
    gamma = 1 / X.shape[1]
    weight = {-1: point["C_neg"], 1: point["C_pos"]}
    on_features = SVC(C=1.0, gamma=gamma, class_weight=weight)
    on_kernel = SVC(C=1.0, kernel="precomputed", class_weight=weight)
    K = KernelCache(RBF(gamma=gamma), X).matrix({})
    matrix = np.asarray(K.block(slice(None), slice(None)))
    problem = Problem(K, y, np.where(y > 0, point["C_pos"], point["C_neg"]))
    solution = solve(problem)
    support = np.flatnonzero(solution.alpha)
    span, classes = leave_one_out(solution), leave_one_out(solution, "exact")  # loads the code, too
    values = leave_one_out(solution, "exact", complete=True)

    def plain_classes() -> None:
        with interpreted():
            leave_one_out(solution, "exact")

    tasks: dict[str, Callable[[], Any]] = {
        "svc_fit": lambda: on_features.fit(X, y),
        "cv5": lambda: cross_val_score(on_kernel, matrix, y, cv=5),
        "classes": lambda: leave_one_out(solution, "exact"),
        "values": lambda: leave_one_out(solution, "exact", complete=True),
        "plain_classes": plain_classes,
        "solve": lambda: solve(problem),
        "spans": lambda: free_squared_spans(solution),
        "certificates": lambda: certified(solution, support),
    }
    least = cpu_milliseconds(tasks, repeats=2, in_a_row=2)
    fit = least["svc_fit"]
    return {
        **{f"{name}_ms": round(value, 4) for name, value in least.items()},
        "classes_per_fit": round(least["classes"] / fit, 4),
        "values_per_fit": round(least["values"] / fit, 4),
        "plain_classes_per_fit": round(least["plain_classes"] / fit, 4),
        "classes_per_cv5": round(least["classes"] / least["cv5"], 4),
        "certificate_share": round(least["certificates"] / (least["solve"] + least["spans"]), 4),
        "peak_mb": round(_peak_megabytes(solution), 1),
        "n_support": solution.n_support,
        "n_in_bound": solution.n_in_bound,
        "n_paths": len(certified(solution, support).open),
        "n_refit": classes.n_refit + values.n_refit,
        "span_error": span.error,
        "exact_error": classes.error,
        **_compared(solution, classes.decision_values, values.decision_values),
    }


def _peak_megabytes(solution: DualSolution) -> float:
    """Return the memory that all values need in addition to the kernel matrix and the fit."""
    tracemalloc.start()
    leave_one_out(solution, "exact", complete=True)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / 1e6


def _compared(solution: DualSolution, classes: Any, values: Any) -> dict[str, int]:
    """Return how many support vectors were compared with refits, and how many were wrong."""
    problem, y = solution.problem, solution.problem.y
    rng = np.random.default_rng(0)
    support = np.flatnonzero(solution.alpha)
    wrong = 0
    sample = rng.choice(support, size=min(CHECKED, len(support)), replace=False)
    for p in sample:
        others = np.delete(np.arange(len(y)), p)
        refit = solve(problem.take(others))
        value = problem.K.block(np.array([p]), others)[0] @ (y[others] * refit.alpha) + refit.b
        width = 1e-5 + 2e-7 * solution.alpha.sum()
        misplaced = abs(value - values[p]) > width
        misjudged = abs(value) > width and (y[p] * value > 0) != (y[p] * classes[p] > 0)
        wrong += bool(misplaced or misjudged)
    return {"checked": len(sample), "wrong": wrong}


BENCHMARK = Benchmark("exact.csv", _points, _measure, _COLUMNS)
run = BENCHMARK.run
