"""What the span-rule picks on the paper's grid of class costs, and how good that model is.

C+ and C- in 2^(k/2 - 6), k = 0...32; RBF kernel with gamma = 1/d; features scaled to [0, 1] on the
training rows. Table 2 of Sarafis, Diou and Delopoulos, "Span error bound for weighted SVM with
applications in hyperparameter selection".
"""

import functools
import time
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.data import Split, load
from benchmarks.runner import Options, ResultFile
from span_hpo import RBF, Problem, leave_one_out, solve
from span_hpo.arrays import FloatArray
from span_hpo.gram import KernelBlocks
from span_hpo.kernels import KernelCache
from span_hpo.metrics import METRICS
from span_hpo.weighting import COST_RANGE

DATASETS = ["splice", "a1a", "ida_image", "ida_banana", "ida_waveform"]
# Test error of the model that the span-rule selects, and the least on the grid; of the last three
# on another split than ours.
PUBLISHED = {
    "splice": (0.1080, 0.1016),
    "a1a": (0.1585, 0.1557),
    "ida_image": (0.0623, 0.0623),
    "ida_banana": (0.2324, 0.2324),
    "ida_waveform": (0.1141, 0.1052),
}


def run(options: Options) -> list[ResultFile]:
    """Evaluate every grid point that is not in the CSVs yet, one CSV for each data set."""
    return [_run(name, options.folder) for name in options.datasets or DATASETS]


def _run(name: str, folder: Path) -> ResultFile:
    results = ResultFile(
        folder / f"grid_{name}.csv",
        key=["dataset", "C_pos", "C_neg"],
        columns=[
            "span_error",
            "smooth_error",
            "test_error",
            "n_support",
            "n_in_bound",
            "n_refit",
            "cpu_seconds",
        ],
    )
    costs = COST_RANGE.grid(33)
    points = [
        {"dataset": name, "C_pos": C_pos, "C_neg": C_neg} for C_pos, C_neg in product(costs, costs)
    ]
    results.complete(points, _measure)
    return results


@functools.cache
def _prepared(name: str) -> tuple[Split, KernelBlocks, FloatArray]:
    """Return a data set, its kernel matrix, and the kernel between training and test rows."""
    split = load(name)
    gamma = 1 / split.X_train.shape[1]
    K = KernelCache(RBF(gamma=gamma), split.X_train).matrix({})
    return split, K, rbf_kernel(split.X_train, split.X_test, gamma=gamma)


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    split, K, K_test = _prepared(point["dataset"])
    y = split.y_train
    start = time.process_time()
    solution = solve(Problem(K, y, np.where(y > 0, point["C_pos"], point["C_neg"])))
    loo = leave_one_out(solution)
    seconds = time.process_time() - start
    test_values = (y * solution.alpha) @ K_test + solution.b
    return {
        "span_error": loo.error,
        "smooth_error": METRICS["smooth_error"](y, loo.decision_values, np.ones(len(y))),
        "test_error": float(np.mean(split.y_test * test_values <= 0)),
        "n_support": solution.n_support,
        "n_in_bound": solution.n_in_bound,
        "n_refit": loo.n_refit,
        "cpu_seconds": round(seconds, 5),
    }


def selected(rows: list[dict[str, str]], criterion: str) -> dict[str, float]:
    """Return what a criterion selects: the worst and mean test error of its minima, and more."""
    estimate = np.array([float(row[criterion]) for row in rows])
    test = np.array([float(row["test_error"]) for row in rows])
    best = estimate == estimate.min()
    return {
        "worst_of_ties": float(test[best].max()),
        "mean_of_ties": float(test[best].mean()),
        "ties": int(best.sum()),
        "least_on_grid": float(test.min()),
        "rmse": float(np.sqrt(np.mean((estimate - test) ** 2))),
    }
