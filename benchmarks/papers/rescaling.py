"""The radius-margin value before and after a rescaling, as a prediction of the best width.

Figure 3 of Chapelle and Vapnik, "Model selection for support vector machines", 1999: on the postal
digits, the bound on the VC dimension, R^2 / M^2, and the same after the data are rescaled along
their principal axes in feature space. Rows, subsets, widths and hard margin are those of
`benchmarks.papers.postal`, which measures the test error.
"""

from collections.abc import Mapping
from statistics import mean, stdev
from typing import Any

import numpy as np

from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import RESULTS, Benchmark, Options, read_rows
from benchmarks.papers import postal
from span_hpo import RBF, Problem, bounds, solve
from span_hpo.kernels import KernelCache

DATASETS = ["usps"]
OPTIONS = ("jobs", "quick")
CURVES = {"radius_margin": "R² / M²", "rescaled": "R² / M² after rescaling"}
TEST = "test_error"


def _points(options: Options) -> list[dict[str, Any]]:
    subsets = range(2 if options.quick else postal.SUBSETS["usps"])
    widths = [sigma for sigma, _ in postal.GRIDS["usps"]]
    return [
        {"subset": subset, "sigma": sigma}
        for subset in subsets
        for sigma in (widths[5:8] if options.quick else widths)
    ]


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    split, _ = postal.prepared("usps", point["subset"])
    gamma, y = 1 / (2 * point["sigma"] ** 2), split.y_train
    K = KernelCache(RBF(gamma=gamma), split.X_train).matrix({})
    fit = solve(Problem(K, y, np.full(len(y), postal.HARD)))
    return {
        "radius_margin": f"{bounds.radius_margin(fit):.8g}",
        "rescaled": f"{bounds.rescaled_radius_margin(fit):.8g}",
    }


BENCHMARK = Benchmark("rescaling.csv", _points, _measure, list(CURVES))
run = BENCHMARK.run


def curves() -> dict[str, list[tuple[float, float, float]]]:
    """Return width, mean and standard deviation of each value and of the test error."""
    rows, found = BENCHMARK.rows(), {}
    for column in CURVES:
        values: dict[float, list[float]] = {}
        for row in rows:
            values.setdefault(float(row["sigma"]), []).append(float(row[column]))
        found[column] = [(x, mean(several), stdev(several)) for x, several in values.items()]
    found[TEST] = postal.curves(read_rows(RESULTS / "postal.csv"), "usps")[TEST]
    return found


def table() -> str:
    """Return a table of the place of each minimum, and of the likeness to the test error."""
    found, lines = curves(), []
    errors = np.array([middle for _, middle, _ in found[TEST]])
    for column, title in CURVES.items():
        middles = np.array([middle for _, middle, _ in found[column]])
        place, least, deviation = min(found[column], key=lambda point: point[1])
        correlation = np.corrcoef(np.log(middles), np.log(errors))[0, 1]
        at_least = errors[int(middles.argmin())]
        lines.append(
            [
                title,
                f"{place:.3g}",
                f"{least:.3g} ± {deviation:.2g}",
                f"{middles.max() / middles.min():.1f}",
                f"{100 * at_least:.2f}",
                f"{correlation:.3f}",
            ]
        )
    place, least, _ = min(found[TEST], key=lambda point: point[1])
    ratio = f"{errors.max() / errors.min():.1f}"
    lines.append(["test error", f"{place:.3g}", "", ratio, f"{100 * least:.2f}", ""])
    columns = [
        "value",
        "least at sigma",
        "value there",
        "largest / least",
        "test error there, %",
        "correlation of logarithms with the test error",
    ]
    return markdown_table(columns, lines)
