"""Time and memory of one evaluation as rows, features and support vectors grow.

Two normal distributions in d dimensions, with covariances 4 I and I and means 0 and 2 / sqrt(d)
(ringnorm), 2^8...2^13 rows; RBF kernel with gamma = 1 / d on features in [0, 1], one cost for all.
Wall time of a call of the objective that reuses the kernel matrix, and of one with a new width;
peak of the memory that NumPy holds during a call, without the features.
"""

import time
import tracemalloc
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.preprocessing import minmax_scale

from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, grid_points
from span_hpo import RBF, Float, SpanObjective, UniformCost

DATASETS = ["ringnorm"]
ROWS = [2**k for k in range(8, 14)]
FEATURES = (5, 20, 80, 320)
COSTS = (1.0, 64.0)
_REPEATS = 3
_COLUMNS = ["n_support", "n_in_bound", "evaluation_ms", "new_width_ms", "peak_mb"]


def table() -> str:
    """Return a table of time and memory, with a line for each number of rows."""
    rows = BENCHMARK.rows()
    lines = []
    for count in ROWS:
        own = {
            (int(row["features"]), float(row["C"])): row
            for row in rows
            if int(row["rows"]) == count
        }
        few, many, hard = own[5, 1.0], own[320, 1.0], own[320, 64.0]
        lines.append(
            [
                str(count),
                *(f"{float(row['evaluation_ms']):.3g}" for row in (few, many, hard)),
                *(f"{float(row['new_width_ms']):.3g}" for row in (few, many, hard)),
                f"{max(float(row['peak_mb']) for row in own.values()):.3g}",
                *(f"{row['n_support']} ({row['n_in_bound']})" for row in (few, many, hard)),
            ]
        )
    kinds = ("d = 5, C = 1", "d = 320, C = 1", "d = 320, C = 64")
    return markdown_table(
        [
            "rows",
            *(f"evaluation, ms: {kind}" for kind in kinds),
            *(f"with a new width, ms: {kind}" for kind in kinds),
            "peak memory, MB",
            *(f"support vectors (in-bound): {kind}" for kind in kinds),
        ],
        lines,
    )


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    rows, features = int(point["rows"]), int(point["features"])
    X, y = ringnorm(rows, features)
    widths = RBF(gamma=Float(0.5 / features, 2.0 / features, log=True))
    objective = SpanObjective(X, y, kernel=widths, weighting=UniformCost(float(point["C"])))
    evaluation = objective.evaluate({"gamma": 1 / features})
    tracemalloc.start()
    try:
        objective({"gamma": 1.001 / features})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    kept, new = [], []
    for repeat in range(_REPEATS):
        gamma = (1 + 0.01 * repeat) / features
        start = time.perf_counter()
        objective({"gamma": gamma})
        middle = time.perf_counter()
        objective({"gamma": gamma})
        kept.append(time.perf_counter() - middle)
        new.append(middle - start)
    return {
        "n_support": evaluation.n_support,
        "n_in_bound": evaluation.n_in_bound,
        "evaluation_ms": round(1e3 * min(kept), 3),
        "new_width_ms": round(1e3 * min(new), 3),
        "peak_mb": round(peak / 1e6, 2),
    }


def ringnorm(rows: int, features: int) -> tuple[Any, Any]:
    """Return rows of two normal distributions, one within the other (Breiman, 1996)."""
    rng = np.random.default_rng(rows + features)
    y = np.where(rng.random(rows) < 0.5, 1.0, -1.0)
    X = rng.normal(size=(rows, features))
    X = np.where(y[:, None] > 0, 2 * X, X + 2 / np.sqrt(features))
    return minmax_scale(X), y


BENCHMARK = Benchmark(
    "scale.csv",
    grid_points(dataset=DATASETS, rows=ROWS, features=FEATURES, C=COSTS),
    _measure,
    _COLUMNS,
)
run = BENCHMARK.run
