"""Exact leave-one-out against brute force and against fits that stop when they are proven.

The sets and the kernels are those of Franc, Laskov and Mueller, "Stopping conditions for exact
computation of leave-one-out error in support vector machines", 2008, Table 3, on a part of its
grids and the first split. "Standard" is its Algorithm 1: what the fit of all decides is taken from
it, every other row is fitted anew from the dual variables of all.

RBF kernel (``rivals.csv``): the widths as printed, features scaled to [0, 1]. Linear kernel
(``rivals_linear.csv``): features as the files hold them, see `benchmarks.exact_selection`; sets of
up to 500 rows and four of its five costs, because the standard approach takes long (on the
paper's machine 13 hours for german and 32 for image).
"""

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np

from benchmarks import published
from benchmarks.data import load
from benchmarks.markdown import table as markdown_table
from benchmarks.runner import RESULTS, Options, ResultFile, read_rows
from benchmarks.timing import cpu_milliseconds
from span_hpo import RBF, LeaveOneOut, Problem, leave_one_out, solve
from span_hpo.arrays import FloatArray
from span_hpo.certificates import upper_bounds
from span_hpo.kernels import Kernel, KernelCache, Linear
from span_hpo.solver import DualSolution
from span_hpo.stopping import stopped_rows

# Speed-up of the stopping rule over the standard approach in computing time, as published.
PUBLISHED = {name: rbf[1] for name, (_, rbf) in published.EXACT_SECONDS.items()}
# The same with the linear kernel, of the sets that have up to 500 training rows.
_LARGER = ("ida_flare_solar", "ida_german", "ida_image", "splice")
PUBLISHED_LINEAR = {
    name: linear[1] for name, (linear, _) in published.EXACT_SECONDS.items() if name not in _LARGER
}
DATASETS = list(PUBLISHED)
COSTS = [500.0 ** (i / 7) for i in (0, 3, 7)]
GAMMAS = [2.0 ** (11 * i / 7) for i in (0, 2, 4)]
LINEAR_COSTS = [0.01, 0.1, 1.0, 10.0]
METHODS = ("brute_force", "standard", "stopping", "exact")
_QUICK_DATASETS = ["ida_titanic", "ida_thyroid"]
SAMPLED = 10  # rows that are refitted, from which the time of brute force is taken


def run(options: Options) -> list[ResultFile]:
    """Measure every point that is not in the CSVs yet, one CSV for each kernel."""
    columns = [
        "rows",
        "exact_ms",
        "stopping_ms",
        "standard_ms",
        "brute_force_ms",
        "n_support",
        "n_in_bound",
        "exact_error",
        "differ",
    ]
    rbf = ResultFile(options.folder / "rivals.csv", key=["dataset", "C", "gamma"], columns=columns)
    linear = ResultFile(options.folder / "rivals_linear.csv", key=["dataset", "C"], columns=columns)
    names = options.datasets or (_QUICK_DATASETS if options.quick else DATASETS)
    few = slice(1) if options.quick else slice(None)
    rbf.complete(
        [
            {"dataset": name, "C": C, "gamma": gamma}
            for name, C, gamma in product(names, COSTS[few], GAMMAS[few])
        ],
        _measure_rbf,
        jobs=options.jobs,
    )
    linear.complete(
        [
            {"dataset": name, "C": C}
            for name, C in product(names, LINEAR_COSTS[few])
            if name in PUBLISHED_LINEAR
        ],
        _measure_linear,
        jobs=options.jobs,
    )
    return [rbf, linear]


def table() -> str:
    """Return the time for a leave-one-out error by four methods, summed over the RBF grid."""
    return _table("rivals.csv", PUBLISHED)


def linear_table() -> str:
    """Return the time for a leave-one-out error by four methods, summed over the linear grid."""
    return _table("rivals_linear.csv", PUBLISHED_LINEAR)


def _table(file: str, speed_ups: Mapping[str, float]) -> str:
    rows = read_rows(RESULTS / file)
    lines = []
    for name, speed_up in speed_ups.items():
        own = [row for row in rows if row["dataset"] == name]
        seconds = [sum(float(row[f"{method}_ms"]) for row in own) / 1e3 for method in METHODS]
        brute, standard, stopping, exact = seconds
        lines.append(
            [
                name,
                own[0]["rows"],
                *(f"{time:.3g}" for time in seconds),
                f"{standard / stopping:.1f} ({speed_up:.1f})",
                f"{standard / exact:.0f}",
                f"{brute / exact:.0f}",
            ]
        )
    times = [f"{method.replace('_', ' ')}, s" for method in METHODS]
    compared = ["standard / stopping (published)", "standard / exact", "brute force / exact"]
    return markdown_table(["data set", "rows", *times, *compared], lines)


def _measure_rbf(point: Mapping[str, Any]) -> dict[str, Any]:
    split = load(point["dataset"])
    return _measure(split.X_train, split.y_train, RBF(gamma=point["gamma"]), point["C"])


def _measure_linear(point: Mapping[str, Any]) -> dict[str, Any]:
    split = load(point["dataset"], scaled=False)
    return _measure(split.X_train, split.y_train, Linear(), point["C"])


def _measure(X: FloatArray, y: FloatArray, kernel: Kernel, C: float) -> dict[str, Any]:
    K = KernelCache(kernel, X).matrix({})
    solution = solve(Problem(K, y, np.full(len(y), C)))
    exact = leave_one_out(solution, "exact")  # also compiles
    answers: dict[str, LeaveOneOut] = {}
    sample = np.random.default_rng(0).choice(len(y), size=SAMPLED, replace=False)
    slow: dict[str, Callable[[], Any]] = {
        "stopping": lambda: answers.update(stopping=leave_one_out(solution, "stopping")),
        "standard": lambda: _standard(solution),
        "sample": lambda: [_refit(solution, p) for p in sample],
    }
    least = cpu_milliseconds({"exact": lambda: leave_one_out(solution, "exact")})
    least |= cpu_milliseconds(slow, repeats=1, in_a_row=1)  # seconds: once is enough
    brute_force = least.pop("sample") * len(y) / SAMPLED
    proven = y * answers["stopping"].decision_values > 0
    return {
        "rows": len(y),
        **{f"{name}_ms": round(value, 4) for name, value in least.items()},
        "brute_force_ms": round(brute_force, 2),
        "n_support": solution.n_support,
        "n_in_bound": solution.n_in_bound,
        "exact_error": exact.error,
        "differ": int(np.count_nonzero((y * exact.decision_values > 0) != proven)),
    }


def _standard(solution: DualSolution) -> None:
    support = np.flatnonzero(solution.alpha)
    stopped_rows(solution, support[upper_bounds(solution, support) > 0], complete=True)


def _refit(solution: DualSolution, p: int) -> DualSolution:
    others = np.delete(np.arange(len(solution.problem)), p)
    return solve(solution.problem.take(others), polish=False)
