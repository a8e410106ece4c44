"""The time of squared spans by their closed form and by one quadratic program of PIQP each."""

from collections.abc import Mapping
from statistics import mean
from typing import Any

import numpy as np

from benchmarks.harness.data import load
from benchmarks.harness.runner import Benchmark, grid_points, rows_with
from benchmarks.harness.timing import cpu_milliseconds
from benchmarks.papers import published
from span_hpo import RBF, Problem, free_squared_spans, solve
from span_hpo.kernels import KernelMatrix

DATASETS = list(published.SECONDS)
COSTS = [2.0**-2, 2.0**2, 2.0**6]
_COLUMNS = ["n_support", "n_in_bound", "closed_ms", "piqp_ms", "difference"]


def programs_per_closed_form(dataset: str) -> float:
    """Return how much more time the programs of a data set take than its closed forms."""
    rows = rows_with(BENCHMARK.rows(), dataset=dataset)
    programs, closed = (mean(float(row[name]) for row in rows) for name in ("piqp_ms", "closed_ms"))
    return programs / closed


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    split = load(point["dataset"])
    K = RBF(gamma=1 / split.n_features)(split.X_train)
    solution = solve(Problem(KernelMatrix(K), split.y_train, np.full(len(K), point["C"])))
    closed = free_squared_spans(solution)
    programs = free_squared_spans(solution, spans="piqp")
    closed_ms = cpu_milliseconds({"closed": lambda: _fresh_spans(solution)}, repeats=3, in_a_row=1)
    piqp_ms = cpu_milliseconds(
        {"piqp": lambda: free_squared_spans(solution, spans="piqp")}, repeats=1, in_a_row=1
    )
    return {
        "n_support": solution.n_support,
        "n_in_bound": solution.n_in_bound,
        "closed_ms": round(closed_ms["closed"], 4),
        "piqp_ms": round(piqp_ms["piqp"], 4),
        "difference": float(np.nanmax(np.abs(programs - closed), initial=0.0)),
    }


def _fresh_spans(solution: Any) -> None:
    """Compute the spans anew, with the factor that the fit has left behind."""
    if solution.n_in_bound:
        solution.gram.__dict__.pop("_inverse_diagonal", None)
    free_squared_spans(solution)


BENCHMARK = Benchmark("spans.csv", grid_points(dataset=DATASETS, C=COSTS), _measure, _COLUMNS)
run = BENCHMARK.run
