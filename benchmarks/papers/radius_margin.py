"""Searches of C and the width by radius-margin bounds: evaluations and test accuracy.

Table 4.1 of Chung, Kao, Sun, Wang and Lin, "Radius margin bounds for support vector machines with
the RBF kernel", 2003. The kernel is ``exp(-|x - x'|^2 / (2 sigma^2))``. As in the paper, the BFGS
method with projected steps begins at ln C = ln sigma^2 = 0 and stays within [-10, 10].

The rows are those of the first realisation of the IDA collection, which the paper took from Duan,
Keerthi and Poo, "Evaluation of simple performance measures for tuning SVM hyperparameters", 2003,
and for "splice" the split of LIBSVM. Features are as in the files. The kernel matrix of "ijcnn1"
takes 20 GB. Therefore `PART` of its 49,990 training rows are drawn, and all test rows are used. The
set "tree" is not public.

`evaluations` counts values, each with its gradient, and `steps` those after which the search has
moved, where the paper computes a gradient. `path` holds ln C and ln sigma^2 of each of them.
`seconds` is CPU time on one thread for the whole search.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.harness.data import Split, load
from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, Options, combinations, rows_with
from benchmarks.harness.timing import Stopwatch, import_once
from benchmarks.papers import published
from span_hpo import RBF, Float, RadiusMargin, UniformCost
from span_hpo.runtime import FloatArray
from span_hpo.search import projected_bfgs

SIDE = 10.0  # ln C and ln sigma^2 are searched in [-10, 10]
PART = 4_000  # training rows that are drawn of ijcnn1
DATASETS = list(published.RADIUS_MARGIN)
OPTIONS = ("jobs", "quick")
SVMS = ("l1", "l2")
_QUICK_DATASETS = ["ida_banana", "ida_waveform"]
_COLUMNS = [
    "rows",
    "evaluations",
    "steps",
    "value",
    "ln_C",
    "ln_sigma2",
    "n_support",
    "n_bounded",
    "accuracy",
    "seconds",
    "path",
    "reason",
]


def objective(X: FloatArray, y: FloatArray, svm: str) -> RadiusMargin:
    """Return a bound over the box of the paper.

    Parameters
    ----------
    X, y
        Features and labels.
    svm
        One of `SVMS`.
    """
    largest = math.exp(SIDE)
    return RadiusMargin(
        X,
        y,
        kernel=RBF(gamma=Float(0.5 / largest, 0.5 * largest, log=True)),
        weighting=UniformCost(C=Float(1 / largest, largest, log=True)),
        bound=svm,
    )


def params_at(point: FloatArray) -> dict[str, float]:
    """Return the hyperparameters of a point ``(ln C, ln sigma^2)``."""
    return {"C": math.exp(point[0]), "gamma": 0.5 * math.exp(-point[1])}


def rows_of_set(name: str) -> Split:
    """Return the training and test rows of a data set, without scaling."""
    split = load(name, scaled=False)
    if name != "ijcnn1":
        return split
    drawn = np.random.default_rng(0).permutation(len(split.y_train))[:PART]
    return replace(split, X_train=split.X_train[drawn], y_train=split.y_train[drawn])


def _points(options: Options) -> list[dict[str, Any]]:
    names = options.datasets or (_QUICK_DATASETS if options.quick else DATASETS)
    return combinations(dataset=names, svm=SVMS)


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    import_once()
    split, watch = rows_of_set(point["dataset"]), Stopwatch()
    bound = objective(split.X_train, split.y_train, point["svm"])

    def function(x: FloatArray) -> tuple[float, FloatArray | None]:
        params = params_at(x)
        found = bound.value_and_gradient(params)
        if found.gradient is None:
            return found.loss, None
        by_cost, by_width = (params[name] * found.gradient[name] for name in ("C", "gamma"))
        return found.loss, np.array([by_cost, -by_width])  # ln sigma^2 is -ln gamma and a constant

    sides = np.full(2, SIDE)
    with watch("search"):
        found = projected_bfgs(function, np.zeros(2), -sides, sides)
    params = params_at(found.x)
    fit, model = bound.solution(params), bound.fit_model(params)
    bounded = getattr(fit, "bounded", np.zeros(0, dtype=bool))  # the L2-SVM has no bounded rows
    return {
        "rows": len(fit.alpha),
        "evaluations": found.n_evaluations,
        "steps": len(found.path),
        "value": f"{found.value:.6g}",
        "ln_C": round(float(found.x[0]), 4),
        "ln_sigma2": round(float(found.x[1]), 4),
        "n_support": np.count_nonzero(fit.alpha),
        "n_bounded": np.count_nonzero(bounded),
        "accuracy": round(float(np.mean(model.predict(split.X_test) == split.y_test)), 6),
        "seconds": round(watch.milliseconds()["search_ms"] / 1000, 2),
        "path": ";".join(f"{x:.4f} {y:.4f}" for x, y in found.path),
        "reason": found.reason,
    }


def path_of(row: Mapping[str, str]) -> FloatArray:
    """Return the points ``(ln C, ln sigma^2)`` of a row of the CSV, shape (steps, 2)."""
    return np.array([[float(part) for part in pair.split()] for pair in row["path"].split(";")])


BENCHMARK = Benchmark("radius_margin.csv", _points, _measure, _COLUMNS)
run = BENCHMARK.run


def table() -> str:
    """Return Table 4.1, with the published numbers in brackets."""
    rows, lines = BENCHMARK.rows(), []
    for name in DATASETS:
        cells = []
        for svm, (n_values, n_gradients, accuracy) in zip(
            SVMS, published.RADIUS_MARGIN[name], strict=True
        ):
            (row,) = rows_with(rows, dataset=name, svm=svm)
            cells += [
                f"{row['evaluations']} ({n_values})",
                f"{row['steps']} ({n_gradients})",
                f"{float(row['ln_C']):.2f}, {float(row['ln_sigma2']):.2f}",
                f"{100 * float(row['accuracy']):.2f} ({accuracy:.2f})",
                f"{float(row['seconds']):.1f}",
            ]
        title = f"{name}, {PART:,} rows" if name == "ijcnn1" else name
        lines.append([title, *cells])
    columns = ["values", "steps", "ln C, ln sigma²", "accuracy, %", "seconds"]
    titles = [f"{svm.upper()}: {column}" for svm in SVMS for column in columns]
    return markdown_table(["data set", *titles], lines)
