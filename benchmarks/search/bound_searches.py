"""Whether a search by gradients should minimise a radius-margin bound or a leave-one-out loss.

All methods search costs and widths of an RBF kernel, on the rows and splits of
`benchmarks.search.ard`, from the default start of `minimize` and with its default settings.

- "L1 bound": the radius-margin bound of the SVM (eq. 3.3), by "bfgs-projected";
- "L2 bound": the radius-margin bound of the L2-SVM, by "bfgs-projected";
- "smooth error": the leave-one-out loss "smooth_error", by "adam".

Each of them is measured with one width for all features and with one for each, and with one width
and a cost for each class. `seconds` is CPU time on one thread, from the scaled rows to a fitted
model.
"""

import time
from collections.abc import Mapping
from itertools import product
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.harness.markdown import least_in_bold, markdown_table, mean_of
from benchmarks.harness.runner import Benchmark, Options, rows_with
from benchmarks.harness.timing import import_once
from benchmarks.search import ard
from span_hpo import (
    ARD,
    RBF,
    ClassCosts,
    RadiusMargin,
    SpanObjective,
    UniformCost,
    minimize,
)
from span_hpo.runtime import FloatArray

DATASETS = [name for name in ard.DATASETS if name != "a1a"]
OPTIONS = ("jobs", "quick")
# What is searched, as a kernel and a weighting.
SEARCHED = {
    "one width": (RBF, UniformCost),
    "widths": (ARD, UniformCost),
    "class costs": (RBF, ClassCosts),
}
LOSSES = ("L1 bound", "L2 bound", "smooth error")
METHODS = [f"{loss}, {searched}" for searched, loss in product(SEARCHED, LOSSES)]
_QUICK_DATASETS = ["ida_thyroid"]
_COLUMNS = ["n_train", "n_features", "evaluations", "test_error", "seconds", "reason"]


def _points(options: Options) -> list[dict[str, Any]]:
    names = options.datasets or (_QUICK_DATASETS if options.quick else DATASETS)
    return [
        {"dataset": name, "split": split, "method": method}
        for name in names
        for split in range(ard.SPLITS[name])
        for method in METHODS
    ]


def _objective(method: str, X: FloatArray, y: FloatArray) -> RadiusMargin | SpanObjective:
    loss, searched = method.split(", ")
    kernel, weighting = SEARCHED[searched]
    chosen: dict[str, Any] = {"kernel": kernel(), "weighting": weighting()}
    if loss == "smooth error":
        return SpanObjective(X, y, metric="smooth_error", **chosen)
    return RadiusMargin(X, y, bound=loss[:2].lower(), **chosen)


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    import_once()
    rows = ard.rows_of(point["dataset"], point["split"])
    start = time.process_time()
    objective: Any = _objective(point["method"], rows.X_train, rows.y_train)
    is_bound = isinstance(objective, RadiusMargin)
    found = minimize(objective, method="bfgs-projected" if is_bound else "adam")
    model = objective.fit_model(found.params)
    seconds = time.process_time() - start
    return {
        "n_train": len(rows.y_train),
        "n_features": len(rows.names),
        "evaluations": found.n_evaluations,
        "test_error": round(float(np.mean(model.predict(rows.X_test) != rows.y_test)), 6),
        "seconds": round(seconds, 2),
        "reason": found.reason,
    }


BENCHMARK = Benchmark("bound_searches.csv", _points, _measure, _COLUMNS)
run = BENCHMARK.run


def table() -> str:
    """Return mean test errors over the splits, the least in bold, with means over the sets."""
    rows, lines, means = BENCHMARK.rows(), [], []
    for name in DATASETS:
        own = rows_with(rows, dataset=name)
        errors = [mean_of(own, "test_error", method=method) for method in METHODS]
        means.append(errors)
        cells = least_in_bold(errors)
        lines.append([name, own[0]["n_train"], own[0]["n_features"], *cells])
    overall = [f"{mean(errors):.4f}" for errors in zip(*means, strict=True)]
    counts = [f"{mean_of(rows, 'evaluations', method=method):.0f}" for method in METHODS]
    seconds = [f"{mean_of(rows, 'seconds', method=method):.2f}" for method in METHODS]
    lines.append(["mean over the sets", "", "", *overall])
    lines.append(["evaluations, mean", "", "", *counts])
    lines.append(["CPU time, mean, s", "", "", *seconds])
    return markdown_table(["data set", "rows", "features", *METHODS], lines)
