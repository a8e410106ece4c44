"""Radius-margin bounds of both SVMs and their test errors over C and the width.

Figures 2 and 3 of Chung, Kao, Sun, Wang and Lin, "Radius margin bounds for support vector machines
with the RBF kernel", 2003, which show the contours of the bounds and the paths of the searches
(`benchmarks.papers.radius_margin`). The second figure shows waveform. The first one shows "tree",
which is not public; banana takes its place. ln C and ln sigma^2 take 41 values from -10 to 10 each.
"""

from collections.abc import Mapping
from typing import Any

from benchmarks.harness.runner import Benchmark, Options
from benchmarks.papers.bound_lines import TEST, values

DATASETS = ["ida_banana", "ida_waveform"]
OPTIONS = ("jobs", "quick")
GRID = [k / 2 for k in range(-20, 21)]
_QUICK_STEP = 20
_COLUMNS = ["l1", "l1_error", "l2", "l2_error"]


def _points(options: Options) -> list[dict[str, Any]]:
    grid = GRID[::_QUICK_STEP] if options.quick else GRID
    return [
        {"dataset": name, "ln_sigma2": ln_sigma2, "ln_C": ln_C}
        for name in options.datasets or DATASETS
        for ln_sigma2 in grid
        for ln_C in grid
    ]


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    l1, l2 = (
        values(point["dataset"], svm, point["ln_C"], point["ln_sigma2"]) for svm in ("l1", "l2")
    )
    return {
        "l1": f"{l1['smooth']:.8g}",
        "l1_error": l1[TEST],
        "l2": f"{l2['l2']:.8g}",
        "l2_error": l2[TEST],
    }


BENCHMARK = Benchmark("bound_contours.csv", _points, _measure, _COLUMNS)
run = BENCHMARK.run
