"""Which model the span bound selects with each row's own span instead of the largest one.

Eq. 66 of Sarafis, Diou and Delopoulos, "Span error bound for weighted SVM with applications in
hyperparameter selection", beside their Theorem 1, on the 33 x 33 class costs of
`benchmarks.papers.weighted_points`. "splice" and "a1a" are the sets of these grids with a published
split and at most 2,000 training rows.

Two more values are no bounds, but may be what was published: Theorem 1 with the radius of the ball
in place of its diameter, and eq. 66 with the spans of the span-rule, which ignore the box.
"""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.harness.data import Split, load
from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, Options, combinations, rows_with
from benchmarks.papers import published, weighted_points
from span_hpo import (
    RBF,
    DualSolution,
    Problem,
    bounds,
    free_squared_spans,
    solve,
    span_exists,
)
from span_hpo.kernels import KernelBlocks, KernelCache

DATASETS = ["splice", "a1a"]
OPTIONS = ("jobs", "quick")
BOUNDS = {
    "span_bound": "largest span (Theorem 1)",
    "own_span_bound": "own spans (eq. 66)",
    "with_radius": "largest span and radius",
    "own_free_spans": "own spans without the box",
}
_COLUMNS = ["test_error", *BOUNDS]


def _points(options: Options) -> list[dict[str, Any]]:
    names = options.datasets or (DATASETS[:1] if options.quick else DATASETS)
    grid = weighted_points.grid("class_costs", quick=options.quick)
    return combinations(dataset=names, **grid)


@functools.lru_cache(maxsize=1)
def _prepared(dataset: str) -> tuple[Split, KernelBlocks, float, weighted_points.UnseenRows]:
    """Return a split, its kernel matrix, the diameter of its ball and its test rows."""
    split = load(dataset)
    gamma = 1 / split.n_features
    K = KernelCache(RBF(gamma=gamma), split.X_train).matrix({})
    unseen = weighted_points.UnseenRows(split, gamma)
    return split, K, bounds.enclosing_ball(K).diameter, unseen


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    split, K, diameter, unseen = _prepared(point["dataset"])
    costs = np.where(split.y_train > 0, point["C_1"], point["C_-1"])
    fit = solve(Problem(K, split.y_train, costs))
    return {
        "test_error": round(unseen.error(fit), 6),
        "span_bound": round(bounds.span_bound(fit, diameter=diameter), 9),
        "own_span_bound": round(bounds.own_span_bound(fit, diameter=diameter), 9),
        "with_radius": round(bounds.span_bound(fit, diameter=diameter / 2), 9),
        "own_free_spans": round(_by_free_spans(fit, diameter), 9),
    }


def _by_free_spans(fit: DualSolution, diameter: float) -> float:
    """Return eq. 66 with spans that ignore the box."""
    has_span = fit.in_bound & span_exists(fit)
    spans = np.sqrt(free_squared_spans(fit)[has_span])
    sizes = np.maximum(diameter, fit.problem.costs[has_span] ** -0.5) * fit.alpha[has_span]
    return float((spans @ sizes + fit.n_support - has_span.sum()) / len(fit.problem))


BENCHMARK = Benchmark("own_spans.csv", _points, _measure, _COLUMNS)
run = BENCHMARK.run


def selected(rows: list[dict[str, str]], bound: str) -> tuple[float, int]:
    """Return the worst test error of the minima of a bound, and their number.

    Parameters
    ----------
    rows
        All points of a data set.
    bound
        One of `BOUNDS`.
    """
    values = np.array([float(row[bound]) for row in rows])
    errors = np.array([float(row["test_error"]) for row in rows])
    is_best = values == values.min()
    return float(errors[is_best].max()), int(is_best.sum())


def table() -> str:
    """Return a table of the test error that both bounds select, beside the published one."""
    rows, lines = BENCHMARK.rows(), []
    for name in DATASETS:
        own = rows_with(rows, dataset=name)
        cells = []
        for bound in BOUNDS:
            error, ties = selected(own, bound)
            cells.append(f"{error:.4f}" + (f" ({ties} points tie)" if ties > 1 else ""))
        printed = published.SELECTED[name][published.CRITERIA.index("span_bound")]
        lines.append([name, *cells, f"{printed:.4f}"])
    return markdown_table(["data set", *BOUNDS.values(), "published"], lines)
