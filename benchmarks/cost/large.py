"""Time and memory of an evaluation on large data, with span-rule values and with exact classes.

The kernel matrix of MNIST 3 against 6 fits into memory. That of ijcnn1 exceeds the memory limit, so
that its blocks are computed from the features. CPU time on one BLAS thread, without the first
evaluation, which builds the kernel matrix. The peak of memory is that of the process.
"""

import resource
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.harness.data import load_pair
from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, Options
from benchmarks.harness.timing import cpu_milliseconds
from span_hpo import RBF, SpanObjective

DATASETS = ["ijcnn1", "mnist_3_6"]  # the smaller peak of memory comes first
POINTS: dict[str, list[tuple[float, float, float]]] = {
    "mnist_3_6": [(1 / 784, 2.0**p, 2.0**n) for p, n in ((-6, -6), (-2, 0), (2, 2), (8, 8))],
    "ijcnn1": [(1.0, 2.0, 2.0)],
}
_COLUMNS = [
    "rows",
    "evaluation_s",
    "exact_evaluation_s",
    "peak_gb",
    "n_support",
    "n_in_bound",
    "span_error",
    "exact_error",
]


def _points(options: Options) -> list[dict[str, Any]]:
    return [
        {"dataset": dataset, "gamma": gamma, "C_pos": C_pos, "C_neg": C_neg}
        for dataset in options.datasets or DATASETS
        for gamma, C_pos, C_neg in POINTS[dataset]
    ]


def table() -> str:
    """Return a table of time, memory and errors, with a line for each point."""
    return markdown_table(
        [
            "data set",
            "rows",
            "C⁺, C⁻",
            "support vectors (in-bound)",
            "evaluation, s",
            "with exact classes, s",
            "memory, GB",
            "error: span-rule, exact",
        ],
        [
            [
                row["dataset"],
                row["rows"],
                f"{float(row['C_pos']):g}, {float(row['C_neg']):g}",
                f"{row['n_support']} ({row['n_in_bound']})",
                row["evaluation_s"],
                row["exact_evaluation_s"],
                row["peak_gb"],
                f"{float(row['span_error']):.4f}, {float(row['exact_error']):.4f}",
            ]
            for row in BENCHMARK.rows()
        ],
    )


class _Measurement:
    """Measurement of a point; keeps the objective of a data set with its kernel matrix."""

    def __init__(self) -> None:
        self._dataset = ""
        self._span: SpanObjective | None = None

    def __call__(self, point: Mapping[str, Any]) -> dict[str, Any]:
        if self._dataset != point["dataset"] or self._span is None:
            self._span = None  # frees the matrix of the last data set
            X, y = load_pair(point["dataset"])
            self._span = SpanObjective(X, y, kernel=RBF(gamma=point["gamma"]))
            self._dataset = point["dataset"]
        span, params = self._span, {"C_-1": point["C_neg"], "C_1": point["C_pos"]}
        evaluation = span.evaluate(params)
        times = cpu_milliseconds({"evaluation": lambda: span(params)}, repeats=1, in_a_row=2)
        span.loo_method = "exact"  # the same objective, so that there is one kernel matrix
        try:
            exact = span.evaluate(params)
            times |= cpu_milliseconds({"exact": lambda: span(params)}, repeats=1, in_a_row=2)
        finally:
            span.loo_method = "span"
        return {
            "rows": evaluation.n_rows,
            "evaluation_s": round(times["evaluation"] / 1e3, 3),
            "exact_evaluation_s": round(times["exact"] / 1e3, 3),
            "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
            "n_support": evaluation.n_support,
            "n_in_bound": evaluation.n_in_bound,
            "span_error": np.float64(evaluation.loo.error),
            "exact_error": np.float64(exact.loo.error),
        }


BENCHMARK = Benchmark("large.csv", _points, _Measurement(), _COLUMNS)
run = BENCHMARK.run
