"""Whether leave-one-out values are a function of the problem where rows are equal or dependent.

The values of the span-rule are computed from LIBSVM's start, from pairwise steps, from the solution
with other costs, from random dual variables, from permuted rows, from exchanged classes and in
another unit of the kernel. The largest difference is noted for the reported dual variables and for
those that the solver found, together with what the rule costs.
"""

import time
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from benchmarks.harness.data import load
from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, Options, rows_with
from benchmarks.robustness.families import make
from span_hpo import RBF, Problem, leave_one_out, solve
from span_hpo.kernels import KernelMatrix
from span_hpo.runtime import FloatArray
from span_hpo.solver import DualPoint, DualSolution, reported_alpha

REAL = {"ida_titanic": 3, "ida_flare_solar": 9, "splice": 60}  # numbers of features
FAMILIES = ["duplicates", "integer_grid", "low_rank", "ties", "wide_costs", "zero_costs", "binary"]
DATASETS = [*REAL, *FAMILIES]
WIDTHS = [0.1, 1.0]  # gamma times the number of features
EXPONENTS = range(-6, 11, 4)  # of the costs, which are powers of two
PROBLEMS = 60  # problems of a family
AGREE = 1e-9  # difference, relative to 1 + |value|, up to which values are the same
_COLUMNS = ["rows", "changed", "moved", "moved_without_rule", "rule_ms", "svc_fit_ms"]


def _points(options: Options) -> list[dict[str, Any]]:
    chosen = options.datasets or DATASETS
    real = [
        {"dataset": name, "point": f"{width:g} {a} {b}"}
        for name in REAL
        for width in WIDTHS
        for a in EXPONENTS
        for b in EXPONENTS
        if name in chosen
    ]
    made = [
        {"dataset": name, "point": str(number)}
        for name in FAMILIES
        for number in range(PROBLEMS)
        if name in chosen
    ]
    return [*real, *made]


def table() -> str:
    """Return a table with a line for each data set and family."""
    rows = BENCHMARK.rows()
    lines = []
    for name in [*DATASETS, None]:
        own = rows if name is None else rows_with(rows, dataset=name)
        differ = [
            sum(float(row[column]) > AGREE for row in own)
            for column in ("moved_without_rule", "moved")
        ]
        rule, fit = (sum(float(row[column]) for row in own) for column in ("rule_ms", "svc_fit_ms"))
        lines.append(
            [
                "all" if name is None else name.removeprefix("ida_").replace("_", " "),
                str(len(own)),
                str(sum(row["changed"] == "True" for row in own)),
                *map(str, differ),
                f"{rule / fit:.3f}",
            ]
        )
    columns = [
        "problems",
        "several solutions",
        "differ without the rule",
        "differ",
        "rule / `SVC.fit`",
    ]
    return markdown_table(["data set or family", *columns], lines)


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    problem = _problem(point)
    K, y, costs = problem.K.block(slice(None), slice(None)), problem.y, problem.costs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solution = solve(problem)
        rng = np.random.default_rng(0)
        order = rng.permutation(len(y))
        shift = np.where(y > 0, 4.0, 0.25)
        permuted = Problem(KernelMatrix(K[np.ix_(order, order)].copy()), y[order], costs[order])
        others = [
            (solve(problem, solver="libsvm"), 1.0, None),
            (solve(problem, solver="smo"), 1.0, None),
            (solve(permuted), 1.0, order),
            (solve(Problem(problem.K, -y, costs)), -1.0, None),
            (solve(Problem(KernelMatrix(K * 3.0), y, costs / 3.0)), 1.0, None),
            (solve(problem, start=solve(Problem(problem.K, y, costs * shift))), 1.0, None),
            (solve(problem, start=costs * rng.random(len(y))), 1.0, None),
        ]
        fit_ms = _fit_milliseconds(K, y, costs)
    return {
        "rows": len(y),
        "changed": solution.basic is not solution,
        "moved": _largest_difference(solution, others, basic=False),
        "moved_without_rule": _largest_difference(solution, others, basic=True),
        "rule_ms": round(_rule_milliseconds(problem), 4),
        "svc_fit_ms": round(fit_ms, 4),
    }


def _problem(point: Mapping[str, Any]) -> Problem:
    name = point["dataset"]
    if name in REAL:
        width, a, b = (float(part) for part in point["point"].split())
        split = load(name)
        K = RBF(gamma=width / REAL[name])(split.X_train)
        return Problem(KernelMatrix(K), split.y_train, np.where(split.y_train > 0, 2.0**a, 2.0**b))
    instance = make(name, int(point["point"]))
    return Problem(KernelMatrix(instance.K), instance.y, instance.costs)


def _largest_difference(
    solution: DualSolution, others: list[tuple[DualSolution, float, Any]], *, basic: bool
) -> float:
    """Return the largest difference of a value, relative to 1 + |value|."""
    expected = _values(solution, basic=basic)
    worst = 0.0
    for fit, sign, order in others:
        found = sign * _values(fit, basic=basic)
        if order is not None:
            found = found[np.argsort(order)]
        worst = max(worst, float((np.abs(found - expected) / (1 + np.abs(expected))).max()))
    return worst


def _values(solution: DualSolution, *, basic: bool) -> FloatArray:
    fit = solution.basic if basic else solution
    return leave_one_out(fit, certify=False).decision_values


def _rule_milliseconds(problem: Problem) -> float:
    """Return the CPU time that the rule adds to a fit, as the least of some differences."""
    basic = solve(problem).basic
    F = basic.decision_values - basic.b
    gram = basic.gram if basic.in_bound.any() else None
    point = DualPoint(problem.K, problem.y, problem.costs, basic.alpha, F, gram=gram)
    times = []
    for _ in range(3):
        start = time.process_time()
        reported_alpha(point)
        times.append(time.process_time() - start)
    return 1e3 * min(times)


def _fit_milliseconds(K: FloatArray, y: FloatArray, costs: FloatArray) -> float:
    """Return the CPU time of a fit by scikit-learn on the kernel matrix."""
    kept = costs > 0
    K = K[np.ix_(kept, kept)]
    times = []
    for _ in range(3):
        start = time.process_time()
        SVC(C=1.0, kernel="precomputed").fit(K, y[kept], costs[kept])
        times.append(time.process_time() - start)
    return 1e3 * min(times)


BENCHMARK = Benchmark("one_answer.csv", _points, _measure, _COLUMNS)
run = BENCHMARK.run
