"""The cost of one evaluation, in fits of scikit-learn's SVC and in 5-fold cross-validations.

All tasks are measured in turn within one run on one BLAS thread; the least CPU time of several
repeats counts. "New width" is an evaluation whose kernel matrix has to be built from the distances.
"""

from collections.abc import Callable, Mapping
from itertools import count
from statistics import median
from typing import Any

import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from benchmarks.harness.data import load
from benchmarks.harness.markdown import markdown_table, median_and_worst
from benchmarks.harness.runner import Benchmark, grid_points, rows_with
from benchmarks.harness.timing import cpu_milliseconds
from span_hpo import RBF, Float, Problem, SpanObjective, leave_one_out, solve
from span_hpo.kernels import KernelCache

DATASETS = ["ida_banana", "ida_waveform", "ida_image", "splice", "a1a"]
COSTS = [2.0**-6, 2.0**2, 2.0**10]
_COLUMNS = [
    "rows",
    "features",
    "evaluation_ms",
    "loo_ms",
    "new_width_ms",
    "svc_fit_ms",
    "cv5_ms",
    "evaluation_per_fit",
    "new_width_per_fit",
    "cv5_per_evaluation",
    "loo_share",
    "n_support",
    "n_in_bound",
    "n_refit",
    "span_error",
]


def table() -> str:
    """Return the cost of an evaluation in short, one line for each data set."""
    lines = [[line[0], line[1], line[2], line[4]] for line in _lines()]
    titles = ["data set", "rows", "evaluation / `SVC.fit`", "5-fold CV / evaluation"]
    return markdown_table(titles, lines)


def full_table() -> str:
    """Return the cost of an evaluation and of its parts, one line for each data set."""
    return markdown_table(
        [
            "data set",
            "rows",
            "evaluation / `SVC.fit`, median (worst)",
            "with a new width",
            "5-fold CV / evaluation, median (worst)",
            "share of the LOO part, median (worst)",
        ],
        _lines(),
    )


def _lines() -> list[list[str]]:
    rows = BENCHMARK.rows()
    lines = []
    for name in DATASETS:
        own = rows_with(rows, dataset=name)
        per_cv, share = (
            [float(row[column]) for row in own] for column in ("cv5_per_evaluation", "loo_share")
        )
        lines.append(
            [
                name,
                own[0]["rows"],
                median_and_worst(own, "evaluation_per_fit"),
                median_and_worst(own, "new_width_per_fit"),
                f"{median(per_cv):.1f} ({min(per_cv):.2g})",
                f"{median(share):.0%} ({min(1.0, max(share)):.0%})",
            ]
        )
    return lines


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    split = load(point["dataset"])
    X, y = split.X_train, split.y_train
    gamma = 1 / X.shape[1]
    params = {"C_-1": point["C_neg"], "C_1": point["C_pos"]}
    objective = SpanObjective(X, y, kernel=RBF(gamma=gamma))
    evaluation = objective.evaluate(params)  # builds the kernel matrix, which is kept
    svc = SVC(C=1.0, gamma=gamma, class_weight={-1: point["C_neg"], 1: point["C_pos"]})
    K = KernelCache(RBF(gamma=gamma), X).matrix({})
    solution = solve(Problem(K, y, np.where(y > 0, point["C_pos"], point["C_neg"])))
    of_widths = SpanObjective(X, y, kernel=RBF(gamma=Float(gamma / 2, 2 * gamma)))
    widths = (gamma * (1 + 1e-9 * step) for step in count())
    of_widths({**params, "gamma": next(widths)})  # computes the distances, which are kept
    tasks: dict[str, Callable[[], Any]] = {
        "evaluation": lambda: objective(params),
        "loo": lambda: leave_one_out(solution, certify=False),
        "new_width": lambda: of_widths({**params, "gamma": next(widths)}),
        "svc_fit": lambda: svc.fit(X, y),
        "cv5": lambda: cross_val_score(svc, X, y, cv=5),
    }
    least = cpu_milliseconds(tasks)
    return {
        "rows": len(y),
        "features": X.shape[1],
        **{f"{name}_ms": round(value, 4) for name, value in least.items()},
        "evaluation_per_fit": round(least["evaluation"] / least["svc_fit"], 4),
        "new_width_per_fit": round(least["new_width"] / least["svc_fit"], 4),
        "cv5_per_evaluation": round(least["cv5"] / least["evaluation"], 4),
        "loo_share": round(least["loo"] / least["evaluation"], 4),
        "n_support": evaluation.n_support,
        "n_in_bound": evaluation.n_in_bound,
        "n_refit": evaluation.loo.n_refit,
        "span_error": evaluation.loo.error,
    }


BENCHMARK = Benchmark(
    "speed.csv", grid_points(dataset=DATASETS, C_pos=COSTS, C_neg=COSTS), _measure, _COLUMNS
)
run = BENCHMARK.run
