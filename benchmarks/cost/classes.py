"""The leave-one-out error of several classes: one evaluation against scikit-learn's refits.

CPU time in one run on one BLAS thread. The data sets come with scikit-learn; "digits" is cut to its
first 500 rows.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.preprocessing import minmax_scale
from sklearn.svm import SVC

from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, grid_points
from benchmarks.harness.timing import cpu_milliseconds
from span_hpo import RBF, SpanObjective, UniformCost

LOADERS: dict[str, Callable[..., Any]] = {
    "iris": load_iris,
    "wine": load_wine,
    "digits": load_digits,
}
DATASETS = list(LOADERS)
MOST_ROWS = 500
COSTS = [1.0, 10.0]
_COLUMNS = [
    "rows",
    "classes",
    "evaluation_ms",
    "exact_ms",
    "refits_ms",
    "refits_per_evaluation",
    "span_error",
    "exact_error",
    "refits_error",
]


def table() -> str:
    """Return a table of times and errors of evaluations and of refits."""
    return markdown_table(
        [
            "data set",
            "rows",
            "classes",
            "C",
            "evaluation, ms",
            "with exact classes, ms",
            "`LeaveOneOut` refits, s",
            "refits / evaluation",
            "error: span-rule, exact, refits",
        ],
        [
            [
                row["dataset"],
                row["rows"],
                row["classes"],
                f"{float(row['C']):g}",
                f"{float(row['evaluation_ms']):.3g}",
                f"{float(row['exact_ms']):.3g}",
                f"{float(row['refits_ms']) / 1e3:.3g}",
                f"{float(row['refits_per_evaluation']):.0f}",
                ", ".join(
                    f"{float(row[f'{one}_error']):.4f}" for one in ("span", "exact", "refits")
                ),
            ]
            for row in BENCHMARK.rows()
        ],
    )


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    X, y = LOADERS[point["dataset"]](return_X_y=True)
    X, y = minmax_scale(X[:MOST_ROWS]), y[:MOST_ROWS]
    gamma = 1 / X.shape[1]
    settings: dict[str, Any] = {
        "kernel": RBF(gamma=gamma),
        "weighting": UniformCost(point["C"]),
    }
    span = SpanObjective(X, y, **settings)
    exact = SpanObjective(X, y, loo_method="exact", **settings)
    svc = SVC(C=point["C"], gamma=gamma)
    errors = {"span": span({}), "exact": exact({})}  # builds the kernel matrices
    times = cpu_milliseconds({"evaluation": lambda: span({}), "exact": lambda: exact({})})
    predictions = []
    times |= cpu_milliseconds(
        {"refits": lambda: predictions.append(cross_val_predict(svc, X, y, cv=LeaveOneOut()))},
        repeats=1,
        in_a_row=1,
    )
    return {
        "rows": len(y),
        "classes": len(np.unique(y)),
        **{f"{name}_ms": round(value, 3) for name, value in times.items()},
        "refits_per_evaluation": round(times["refits"] / times["evaluation"], 2),
        "span_error": errors["span"],
        "exact_error": errors["exact"],
        "refits_error": float(np.mean(predictions[-1] != y)),
    }


BENCHMARK = Benchmark("classes.csv", grid_points(dataset=DATASETS, C=COSTS), _measure, _COLUMNS)
run = BENCHMARK.run
