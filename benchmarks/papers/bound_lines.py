"""Minima of radius-margin bounds along lines: which of the bounds lie where the test error is low.

Tables 2.1, 2.2 and 3.1 and Figure 1 of Chung, Kao, Sun, Wang and Lin, "Radius margin bounds for
support vector machines with the RBF kernel", 2003. Along one line, C is fixed and the width of the
kernel ``exp(-|x - x'|^2 / (2 sigma^2))`` varies, and along the other one, sigma is fixed and C
varies. ln C and ln sigma^2 take the values -10, -9.9, ..., 10. Data sets as in
`benchmarks.papers.radius_margin`.

The paper takes the fixed values from Duan, Keerthi and Poo, "Evaluation of simple performance
measures for tuning SVM hyperparameters", 2003, and does not print them. `FIXED` holds those with
which the published minima come out best. For the L1-SVM, they are the published places of the least
test error. For the L2-SVM they are near its radius-margin minimum.
"""

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.harness.data import Split, load
from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, Options, rows_with
from benchmarks.papers import published
from span_hpo import Problem, bounds, solve
from span_hpo.kernels import KernelMatrix
from span_hpo.runtime import FloatArray

VARIED = ("ln_sigma2", "ln_C")
GRID = [round(-10 + k / 10, 1) for k in range(201)]
# ln C, where the width varies, and ln sigma^2, where the cost varies.
FIXED = {
    ("ida_banana", "l1"): (5.2, 0.6),
    ("ida_image", "l1"): (3.9, 1.0),
    ("splice", "l1"): (0.4, 3.4),
    ("ida_waveform", "l1"): (1.4, 3.2),
    ("ida_banana", "l2"): (-0.9, -1.4),
    ("ida_image", "l2"): (0.44, -0.29),
    ("splice", "l2"): (6.0, 3.07),
    ("ida_waveform", "l2"): (0.0, 2.7),
}
TEST = "test_error"
# Columns of the values of each SVM, by what the tables call them.
CURVES = {
    "l1": {
        TEST: "test error",
        "diameter_slack": "1.9",
        "radius_slack": "3.1",
        "radius_cost": "3.2",
        "smooth": "3.3, Δ = 1",
        "smooth_half": "3.3, Δ = 0.5",
    },
    "l2": {TEST: "test error", "l2": "R̃² ‖w̃‖²", "l2_distance": "2.5", "l2_slack": "2.7"},
}
DATASETS = list(published.LINES)
OPTIONS = ("jobs", "quick")
_QUICK_DATASETS, _QUICK_STEP = ["ida_banana"], 40
_COLUMNS = [TEST, *(name for curves in CURVES.values() for name in curves if name != TEST)]


def _points(options: Options) -> list[dict[str, Any]]:
    names = options.datasets or (_QUICK_DATASETS if options.quick else DATASETS)
    grid = GRID[::_QUICK_STEP] if options.quick else GRID
    return [
        {"dataset": name, "varied": varied, "svm": svm, "x": x}
        for name in names
        for varied in VARIED
        for svm in CURVES
        for x in grid
    ]


@functools.lru_cache(maxsize=1)
def _split(dataset: str) -> Split:
    return load(dataset, scaled=False)


@functools.lru_cache(maxsize=1)
def _prepared(
    dataset: str, ln_sigma2: float
) -> tuple[KernelMatrix, FloatArray, bounds.EnclosingBall]:
    """Return the kernel matrix, the kernel between training and test rows, and the ball."""
    split, gamma = _split(dataset), 0.5 * math.exp(-ln_sigma2)
    K = KernelMatrix(rbf_kernel(split.X_train, gamma=gamma))
    K_test = rbf_kernel(split.X_train, split.X_test, gamma=gamma)
    return K, K_test, bounds.enclosing_ball(K)


def values(dataset: str, svm: str, ln_C: float, ln_sigma2: float) -> dict[str, float]:
    """Return the test error of a fit and all bounds of its kind of SVM.

    Parameters
    ----------
    dataset, svm
        Name of the data set, and "l1" or "l2".
    ln_C, ln_sigma2
        The hyperparameters.
    """
    split = _split(dataset)
    K, K_test, ball = _prepared(dataset, ln_sigma2)
    problem = Problem(K, split.y_train, np.full(len(K), math.exp(ln_C)))
    fit: Any
    if svm == "l1":
        fit = solve(problem)
        found = {
            "diameter_slack": bounds.diameter_slack_bound(fit, ball=ball),
            "radius_slack": bounds.radius_slack_bound(fit, ball=ball),
            "radius_cost": bounds.radius_cost_bound(fit, ball=ball),
            "smooth": bounds.smooth_radius_margin(fit, ball=ball),
            "smooth_half": bounds.smooth_radius_margin(fit, penalty=0.5, ball=ball),
        }
    else:
        fit = bounds.l2_solution(problem)
        found = {
            "l2": bounds.l2_radius_margin(fit),
            "l2_distance": bounds.l2_distance_bound(fit, ball=ball),
            "l2_slack": bounds.l2_slack_bound(fit, ball=ball),
        }
    decisions = (split.y_train * fit.alpha) @ K_test + fit.b
    error = float(np.mean(split.y_test * decisions <= 0))
    return {TEST: round(error, 6), **found}


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    fixed = FIXED[point["dataset"], point["svm"]][VARIED.index(point["varied"])]
    ln_C, ln_sigma2 = (fixed, point["x"]) if point["varied"] == "ln_sigma2" else (point["x"], fixed)
    found = values(point["dataset"], point["svm"], ln_C, ln_sigma2)
    return {name: f"{found[name]:.8g}" if name in found else "" for name in _COLUMNS}


BENCHMARK = Benchmark("bound_lines.csv", _points, _measure, _COLUMNS)
run = BENCHMARK.run


def minimum(rows: list[dict[str, str]], column: str) -> tuple[float, float]:
    """Return the test error in percent at the least value of a column, and the place of it.

    Parameters
    ----------
    rows
        Rows of one line of the CSV.
    column
        Name of the value; of equal values the first counts.
    """
    least = min(rows, key=lambda row: float(row[column]))
    return 100 * float(least[TEST]), float(least["x"])


def table() -> str:
    """Return Tables 2.1, 2.2 and 3.1, with the published numbers in brackets."""
    rows, lines = BENCHMARK.rows(), []
    for varied in VARIED:
        for svm, curves in CURVES.items():
            for column, title in curves.items():
                cells = []
                for name in DATASETS:
                    own = rows_with(rows, dataset=name, varied=varied, svm=svm)
                    error, place = minimum(own, column)
                    known = published.LINES[name][svm, varied]
                    printed = known[list(curves).index(column)]
                    cells.append(f"{error:.1f} at {place:g} ({printed[0]:.1f} at {printed[1]:g})")
                what = "C fixed" if varied == "ln_sigma2" else "sigma fixed"
                lines.append([f"{svm.upper()}, {what}", title, *cells])
    return markdown_table(["SVM", "what is least", *DATASETS], lines)
