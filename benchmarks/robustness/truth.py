"""Check proven leave-one-out classes and exact values against an independent truth.

Every row of many small problems is checked, by families that attack the proofs: ties, duplicates,
rows of very different norms, costs over 20 orders of magnitude, free offsets, singular kernels.
The truth comes from a solver in double precision of its own (`reference`) and, where that cannot
prove a sign or contradicts the package, from rational numbers or 120 digits (`referee`). The part
`exhaustive` holds every problem of two to five rows on {-1, 0, 1}^2, up to symmetry.

A row of the CSV is a part of a family. `--family NAME --number N` prints one problem in detail.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, Options
from benchmarks.robustness.exhaustive import n_problems
from benchmarks.robustness.families import EXHAUSTIVE, FAMILIES, make
from benchmarks.robustness.judge import COUNTS, Verdict, judge
from benchmarks.robustness.truths import Truth

DATASETS = [*FAMILIES, EXHAUSTIVE]
OPTIONS = ("jobs", "quick", "number")
PARTS = 2  # of each family; most rows are those of the small grids
ROWS = 2_400  # rows of a part, at least
EXHAUSTIVE_PARTS = 60
QUICK_ROWS = 24
_NUMBERS = 10_000  # numbers that a part has for its problems
_ALL = 10**9  # more rows than any part has
_CASES = 5  # cases that a row of the CSV names
_IN_DOCUMENTS = [
    "problems",
    "checks",
    "unproven",
    "wrong_proofs",
    "wrong_values",
    "wrong_bounds",
    "failures",
    "refits",
]
_COLUMNS = [*COUNTS, "package_seconds", "judge_seconds", "cases"]


def _points(options: Options) -> list[dict[str, Any]]:
    chosen = options.datasets or DATASETS
    if options.quick:
        return [{"family": family, "part": 0, "rows": QUICK_ROWS} for family in chosen]
    points = [
        {"family": family, "part": part, "rows": ROWS}
        for part in range(PARTS)
        for family in chosen
        if family != EXHAUSTIVE
    ]
    if EXHAUSTIVE in chosen:
        points += [
            {"family": EXHAUSTIVE, "part": part, "rows": _ALL} for part in range(EXHAUSTIVE_PARTS)
        ]
    return points


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    verdict = judged_part(point["family"], point["part"], point["rows"])
    worst_first = sorted(verdict.cases, key=lambda case: not case.startswith("wrong"))
    return {
        **{name: verdict.counts[name] for name in COUNTS},
        "package_seconds": round(verdict.package_seconds, 2),
        "judge_seconds": round(verdict.judge_seconds, 2),
        "cases": " | ".join(" ".join(case.split()) for case in worst_first[:_CASES]),
    }


def judged_part(family: str, part: int, rows: int) -> Verdict:
    """Judge problems of a family until so many rows have been checked, or until its part ends.

    Problems of different parts are different.
    """
    verdict = Verdict()
    numbers = range(part * _NUMBERS, (part + 1) * _NUMBERS)
    if family == EXHAUSTIVE:
        numbers = range(part, n_problems(), EXHAUSTIVE_PARTS)
    for number in numbers:
        if verdict.counts["checks"] >= rows:
            break
        judge(make(family, number), number, verdict)
    return verdict


def run(options: Options) -> None:
    """Check all parts that are not in the CSV yet, and print the counts by family."""
    if options.number is not None:
        for family in options.datasets or DATASETS:
            print(described(family, options.number))
        return
    results = BENCHMARK.run(options)
    print(_summary(results.rows, COUNTS))


def described(family: str, number: int) -> str:
    """Return one problem, the package's answers about it, and the exact truth of every row."""
    instance, verdict = make(family, number), Verdict()
    judge(instance, number, verdict)
    with np.printoptions(precision=17, linewidth=100):
        lines = [
            f"Problem {number} of the family {family!r}: {len(instance.y)} rows.",
            f"y = {instance.y!r}",
            f"costs = {instance.costs!r}",
            f"K = {instance.K!r}",
        ]
    if instance.has_two_classes:
        truth = Truth(instance)
        for p in range(len(instance.y)):
            margin, error = truth.reference.margins[p], truth.reference.errors[p]
            exact = truth.margin(p)
            shown = "unknown" if exact is None else f"{float(exact):.17g}"
            lines.append(f"row {p}: y f = {shown}; reference {margin:.10g} +- {error:.2g}")
    counts = ", ".join(f"{name} {verdict.counts[name]}" for name in COUNTS)
    return "\n".join([*lines, counts, *verdict.cases])


def table() -> str:
    """Return a table of what was checked and what was wrong, with a line for each family."""
    return _summary(BENCHMARK.rows(), _IN_DOCUMENTS)


def _summary(rows: list[dict[str, str]], columns: list[str]) -> str:
    totals: dict[str, Counter[str]] = {}
    for row in rows:
        for name in (row["family"], "all"):
            counts = totals.setdefault(name, Counter())
            counts.update({column: int(row[column]) for column in columns})
    totals["all"] = totals.pop("all")  # the last line
    return markdown_table(
        ["family", *(name.replace("_", " ") for name in columns)],
        [
            [name.replace("_", " "), *(f"{counts[column]:,}" for column in columns)]
            for name, counts in totals.items()
        ],
    )


BENCHMARK = Benchmark("truth.csv", _points, _measure, _COLUMNS)
