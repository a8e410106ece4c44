"""How far losses jump where a row changes its kind, with and without continuous spans.

Along a common cost, or the width of an RBF kernel, over a factor of ten, rows become in-bound or
bounded or leave the support vectors. Each place is bisected until its two sides are neighbouring
numbers but for a few digits, and the loss (smooth error) and the leave-one-out values of both sides
are compared: those of the span-rule, in columns with a strength of 0, and those with a penalty of
some strengths eta at the bounds of the boxes. Values within 100 rows are of size 1.
"""

import itertools
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, Options, combinations, rows_with
from span_hpo import DualSolution, Problem, leave_one_out, solve
from span_hpo.gradients import continuous_values
from span_hpo.metrics import METRICS
from span_hpo.runtime import FloatArray

OPTIONS = ("jobs", "quick")
DATASETS = ["spread rows", "equal rows", "tiny class", "cost per row"]
MOVED = ("cost", "width")
STRENGTHS = (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
PROBLEMS = 15
_GRID = 40
_APART = 1e-13  # relative distance of the two sides of a change
_COLUMNS = [
    "rows",
    "changes",
    "left_out",
    *(f"{what}_{eta:g}" for what in ("loss", "value") for eta in STRENGTHS),
]


def table() -> str:
    """Return the largest jumps of the loss for each strength of the penalty."""
    rows = BENCHMARK.rows()
    lines = []
    for name in (*DATASETS, "all"):
        own = rows if name == "all" else rows_with(rows, dataset=name)
        worst = [max(float(row[f"loss_{eta:g}"]) for row in own) for eta in STRENGTHS]
        changes = sum(int(row["changes"]) for row in own)
        lines.append([name, str(changes), *(f"{value:.1e}" for value in worst)])
    titles = ["problems", "changes", "span-rule", *(f"η = {eta:g}" for eta in STRENGTHS[1:])]
    return markdown_table(titles, lines)


def fits(dataset: str, moved: str, number: int) -> Callable[[float], DualSolution]:
    """Return the fit of a problem as a function of its common cost or its width."""
    rng = np.random.default_rng(zlib.crc32(repr((dataset, number)).encode()))
    count = int(rng.integers(20, 51))
    X = rng.normal(size=(count, 2))
    y = np.where(X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * rng.normal(size=count) > 0, 1.0, -1.0)
    if dataset == "tiny class":
        y[np.flatnonzero(y > 0)[3:]] = -1.0
    if dataset == "equal rows":
        chosen = rng.integers(0, count, size=count // 3)
        X[: len(chosen)], y[: len(chosen)] = X[chosen], y[chosen]
    shares = 10.0 ** rng.uniform(-1, 1, count) if dataset == "cost per row" else np.ones(count)
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)

    def fit(at: float) -> DualSolution:
        cost, gamma = (at, 0.5) if moved == "cost" else (2.0, at / 4)
        return solve(Problem(np.exp(-gamma * squared), y, cost * shares), tol=1e-8)

    return fit


def changes(
    fit: Callable[[float], DualSolution], grid: FloatArray
) -> Iterator[tuple[DualSolution, DualSolution]]:
    """Yield the fits on the two sides of the first change within each step of a grid."""
    for start, end in itertools.pairwise(grid.tolist()):
        first = _kinds(fit(start))
        if _kinds(fit(end)) == first:
            continue
        while end - start > _APART * end:
            middle = (start + end) / 2
            if _kinds(fit(middle)) == first:
                start = middle
            else:
                end = middle
        yield fit(start), fit(end)


def _points(options: Options) -> list[dict[str, Any]]:
    numbers = range(1 if options.quick else PROBLEMS)
    return combinations(dataset=options.datasets or DATASETS, moved=MOVED, number=numbers)


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    fit = fits(**point)
    found, left_out = [], 0
    for sides in changes(fit, np.geomspace(0.5, 5.0, _GRID)):
        if min(int(side.in_bound.sum()) for side in sides) < 2:
            left_out += 1  # there are no spans
            continue
        found.append([_jump(sides, eta) for eta in STRENGTHS])
    worst = np.array(found).max(axis=0) if found else np.zeros((len(STRENGTHS), 2))
    columns = {
        f"{what}_{eta:g}": f"{worst[place, kind]:.3e}"
        for kind, what in enumerate(("loss", "value"))
        for place, eta in enumerate(STRENGTHS)
    }
    return {"rows": len(fit(1.0).problem), "changes": len(found), "left_out": left_out, **columns}


def _jump(sides: tuple[DualSolution, DualSolution], eta: float) -> tuple[float, float]:
    """Return by how much the loss and, at most, a value differ on the two sides of a change."""
    y = sides[0].problem.y
    values = [
        continuous_values(side, eta) if eta else leave_one_out(side, method="span").decision_values
        for side in sides
    ]
    losses = [METRICS["smooth_error"](y, one, np.ones(len(y))) for one in values]
    return abs(losses[0] - losses[1]), float(np.abs(values[0] - values[1]).max())


def _kinds(solution: DualSolution) -> bytes:
    return np.concatenate([solution.in_bound, solution.bounded]).tobytes()


BENCHMARK = Benchmark("jumps.csv", _points, _measure, _COLUMNS)
run = BENCHMARK.run
