"""Cost of span-rule and cross-validation as rows grow: Figures 5 and 6 of the span paper.

Breiman's ringnorm as in section 6.7 of Sarafis, Diou and Delopoulos, "Span error bound for weighted
SVM with applications in hyperparameter selection": 30 % of the rows from N(1, I), 70 % from N(0, 4
I), in d = 20, 40, 80 dimensions; RBF kernel with gamma = 1/d, features scaled to [0, 1]. The
figures are means over the paper's 33 x 33 class costs, with 2^13 rows over every second value of
either cost and with 2^14 rows over every fourth. CPU seconds on one BLAS thread, without the
computation of the kernel matrices of all rows and of the folds.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks.harness.runner import Benchmark, Options, ResultFile
from benchmarks.harness.timing import Stopwatch, import_once
from span_hpo import RBF, Problem, leave_one_out, solve
from span_hpo.kernels import KernelCache, KernelMatrix
from span_hpo.runtime import FloatArray
from span_hpo.weighting import COST_RANGE

DATASETS = ["ringnorm"]
OPTIONS = ("jobs", "quick")
FEATURES = (20, 40, 80)
ROWS = tuple(2**k for k in range(7, 15))
_QUICK_ROWS = tuple(2**k for k in range(7, 13))
_COSTS = dict.fromkeys(ROWS, 33) | {2**13: 17, 2**14: 9}  # values of either class cost
_FOLDS = 5
_MEMORY = 16_000.0  # megabytes
_COLUMNS = ["points", "fit_s", "span_s", "exact_s", "cv5_s", "n_support", "n_in_bound"]


def run(options: Options) -> ResultFile:
    """Measure every size that is not in the CSV yet."""
    measure = _measure_quickly if options.quick else _measure
    return Benchmark("ringnorm.csv", _points, measure, _COLUMNS).run(options)


def _points(options: Options) -> list[dict[str, Any]]:
    sizes = [(20, rows) for rows in _QUICK_ROWS] if options.quick else product(FEATURES, ROWS)
    return [{"features": features, "rows": rows} for features, rows in sizes]


def sample(features: int, rows: int) -> tuple[FloatArray, FloatArray]:
    """Return scaled features and labels of drawn rows."""
    rng = np.random.default_rng((features, rows))
    y = np.where(np.arange(rows) < round(0.3 * rows), 1.0, -1.0)
    X = rng.normal(size=(rows, features))
    X[y > 0] += 1.0
    X[y < 0] *= 2.0
    low, high = X.min(axis=0), X.max(axis=0)
    return (X - low) / (high - low), y


def _measure_quickly(point: Mapping[str, Any]) -> dict[str, Any]:
    return _means(point, COST_RANGE.grid(2))


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    return _means(point, COST_RANGE.grid(_COSTS[point["rows"]]))


def _means(point: Mapping[str, Any], costs: list[Any]) -> dict[str, Any]:
    X, y = sample(point["features"], point["rows"])
    K = KernelCache(RBF(gamma=1 / point["features"]), X, memory_limit=_MEMORY).matrix({})
    grid = [np.where(y > 0, C_pos, C_neg) for C_pos, C_neg in product(costs, costs)]
    import_once()
    watch = Stopwatch()
    n_support = n_in_bound = 0
    for row_costs in grid:
        with watch("fit"):
            solution = solve(Problem(K, y, row_costs))
        for method in ("span", "exact"):
            with watch(method):
                leave_one_out(solution, method, certify=False)
        n_support += solution.n_support
        n_in_bound += solution.n_in_bound
    # Fold by fold, so that only one of their matrices is in memory.
    for kept, held_out in StratifiedKFold(_FOLDS, shuffle=True, random_state=0).split(y, y):
        K_kept, across = KernelMatrix(K.block(kept, kept)), K.block(kept, held_out)
        for row_costs in grid:
            with watch("cv5"):
                fit = solve(Problem(K_kept, y[kept], row_costs[kept]))
                _ = (y[kept] * fit.alpha) @ across + fit.b
    return {
        "points": len(grid),
        **{f"{name}_s": round(seconds / len(grid), 6) for name, seconds in watch.seconds.items()},
        "n_support": round(n_support / len(grid), 1),
        "n_in_bound": round(n_in_bound / len(grid), 1),
    }
