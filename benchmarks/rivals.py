"""Exact leave-one-out against brute force and against fits that stop when they are proven.

The sets and the kernel widths are those of Franc, Laskov and Mueller, "Stopping conditions for
exact computation of leave-one-out error in support vector machines", 2008, Table 3 (RBF), on a part
of its grid and the first split. "Standard" is its Algorithm 1: what the fit of all decides is
taken from it, every other row is fitted anew from the dual variables of all.
"""

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np

from benchmarks.data import load
from benchmarks.runner import Options, ResultFile
from benchmarks.timing import cpu_milliseconds
from span_hpo import RBF, LeaveOneOut, Problem, leave_one_out, solve
from span_hpo.certificates import upper_bounds
from span_hpo.kernels import KernelCache
from span_hpo.solver import DualSolution
from span_hpo.stopping import stopped_rows

# Speed-up of the stopping rule over the standard approach in computing time, as published.
PUBLISHED = {
    "ida_banana": 5.1,
    "ida_breast_cancer": 1.5,
    "ida_diabetis": 1.4,
    "ida_flare_solar": 2.2,
    "ida_german": 1.1,
    "ida_heart": 1.1,
    "ida_image": 2.9,
    "ida_ringnorm": 1.4,
    "splice": 1.0,
    "ida_thyroid": 1.5,
    "ida_titanic": 5.7,
    "ida_twonorm": 1.0,
    "ida_waveform": 1.1,
}
DATASETS = list(PUBLISHED)
COSTS = [500.0 ** (i / 7) for i in (0, 3, 7)]
GAMMAS = [2.0 ** (11 * i / 7) for i in (0, 2, 4)]
SAMPLED = 10  # rows that are refitted, from which the time of brute force is taken


def run(options: Options) -> ResultFile:
    """Measure every point that is not in the CSV yet."""
    results = ResultFile(
        options.folder / "rivals.csv",
        key=["dataset", "C", "gamma"],
        columns=[
            "rows",
            "exact_ms",
            "stopping_ms",
            "standard_ms",
            "brute_force_ms",
            "n_support",
            "n_in_bound",
            "exact_error",
            "differ",
        ],
    )
    points = [
        {"dataset": dataset, "C": C, "gamma": gamma}
        for dataset, C, gamma in product(options.datasets or DATASETS, COSTS, GAMMAS)
    ]
    results.complete(points, _measure)
    return results


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    split = load(point["dataset"])
    X, y = split.X_train, split.y_train
    K = KernelCache(RBF(gamma=point["gamma"]), X).matrix({})
    solution = solve(Problem(K, y, np.full(len(y), point["C"])))
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
