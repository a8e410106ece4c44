"""The cost of a loss together with its gradient, in evaluations of the loss alone.

The kernel has one width for each of 2 to 1,000 groups of features, and each class has a cost. If a
data set has more features than widths, the features are dealt to the groups in turn. If it has
fewer, columns of noise are added. Features are standardised. Times are taken at the start of
`minimize`, and at its best point after 20 evaluations. Both alternate between two points whose
widths differ by a ten-thousandth, so that no kernel matrix is kept from the evaluation before. They
are the least CPU time of several repeats in turn, within one run on one BLAS thread.
"""

import itertools
from collections.abc import Mapping
from statistics import median
from typing import Any

import numpy as np

from benchmarks.harness.data import load
from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, Options, combinations, rows_with
from benchmarks.harness.timing import cpu_milliseconds
from span_hpo import ARD, SpanObjective, minimize

DATASETS = ["splice", "ida_image", "a1a", "parkinson", "mnist_0_8"]
WIDTHS = (2, 10, 100, 1000)
ROWS = {
    "splice": (250, 1000),
    "ida_image": (250, 1000),
    "a1a": (250, 1000),
    "parkinson": (250, 1000),
    "mnist_0_8": (250, 1000, 2000),
}
PLACES = ("start", "best")
_EVALUATIONS = 20
_NUDGE = 1e-4
_SEED = 0
_COLUMNS = ["seed", "value_ms", "gradient_ms", "ratio", "n_support", "n_in_bound"]


def table() -> str:
    """Return the ratios by numbers of rows and of widths: their median and the largest."""
    rows = BENCHMARK.rows()
    sizes = sorted({int(row["rows"]) for row in rows})
    lines = []
    for size in sizes:
        cells = []
        for widths in WIDTHS:
            own = rows_with(rows, rows=str(size), widths=str(widths))
            ratios = [float(row["ratio"]) for row in own]
            cells.append(f"{median(ratios):.2f} ({max(ratios):.2f})")
        sets = {row["dataset"] for row in rows_with(rows, rows=str(size))}
        lines.append([str(size), str(len(sets)), *cells])
    titles = ["rows", "data sets", *(f"{widths:,} widths" for widths in WIDTHS)]
    return markdown_table(titles, lines)


def objective_of(dataset: str, rows: int, widths: int) -> SpanObjective:
    """Return the objective of some rows of a data set with so many widths."""
    split = load(dataset)
    rng = np.random.default_rng(_SEED)
    chosen = rng.permutation(len(split.y_train))[:rows]
    X = split.X_train[chosen]
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    if X.shape[1] < widths:
        X = np.column_stack([X, rng.normal(size=(len(X), widths - X.shape[1]))])
    groups = [list(range(first, X.shape[1], widths)) for first in range(widths)]
    return SpanObjective(X, split.y_train[chosen], kernel=ARD(groups=groups), metric="smooth_error")


def _points(options: Options) -> list[dict[str, Any]]:
    return [
        point
        for name in options.datasets or DATASETS
        for point in combinations(dataset=[name], rows=ROWS[name], widths=WIDTHS, place=PLACES)
    ]


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    objective: Any = objective_of(point["dataset"], point["rows"], point["widths"])
    evaluations = 1 if point["place"] == "start" else _EVALUATIONS
    params = minimize(objective, max_evaluations=evaluations).params
    nudged = {
        name: value * (1 + _NUDGE) if name.startswith("gamma") else value
        for name, value in params.items()
    }
    evaluation = objective.evaluate(params)
    points = itertools.cycle([nudged, params])
    least = cpu_milliseconds(
        {
            "value": lambda: objective(next(points)),
            "gradient": lambda: objective.value_and_gradient(next(points)),
        },
        repeats=4,
    )
    return {
        "seed": _SEED,
        "value_ms": round(least["value"], 3),
        "gradient_ms": round(least["gradient"], 3),
        "ratio": round(least["gradient"] / least["value"], 3),
        "n_support": evaluation.n_support,
        "n_in_bound": evaluation.n_in_bound,
    }


BENCHMARK = Benchmark("gradient_cost.csv", _points, _measure, _COLUMNS)
run = BENCHMARK.run
