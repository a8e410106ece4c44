"""Exact leave-one-out compared with brute force and with fits that a stopping rule ends.

Table 3 of Franc, Laskov and Mueller, "Stopping conditions for exact computation of leave-one-out
error in support vector machines", 2008, on the first realisation of its sets and on its grids,
which are those of `benchmarks.papers.exact_selection`. "Standard" is its Algorithm 1: rows whose
class follows from the fit of all rows need no fit, and every other row is left out in a fit that
starts from the dual variables of all rows.

These fits take long: on the paper's machine 13 hours for german and 32 hours for image with the
linear kernel. Therefore their time is extrapolated from up to 20 randomly drawn rows that need a
fit, and the time of brute force from ten of all rows. As in the paper, the stopping rule is given
up after ten rows if it stops few fits, here less than half of the sampled ones. The exact error is
always computed and timed for all rows.
"""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.harness.data import load
from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, Options, rows_with
from benchmarks.harness.timing import Stopwatch, cpu_milliseconds, import_once
from benchmarks.papers import published
from benchmarks.papers.exact_selection import GRIDS, KERNELS, kernel_of
from span_hpo import Problem, leave_one_out, solve
from span_hpo.kernels import KernelCache
from span_hpo.loo import TRIED, stopped_rows, upper_bounds

DATASETS = list(published.EXACT_SECONDS)
OPTIONS = ("jobs", "quick")
METHODS = ("brute_force", "standard", "stopping", "exact")
SAMPLED = 2 * TRIED  # rows that "standard" and "stopping" fit
REFITTED = 10  # rows that brute force fits
_QUICK_DATASETS = ["ida_titanic", "ida_thyroid"]
_COLUMNS = [
    "rows",
    *(f"{method}_ms" for method in METHODS),
    "n_support",
    "n_in_bound",
    "n_open",
    "sampled",
    "stopped",
    "exact_error",
    "differ",
]


def _points(options: Options) -> list[dict[str, Any]]:
    names = options.datasets or (_QUICK_DATASETS if options.quick else DATASETS)
    few = slice(1) if options.quick else slice(None)
    return [
        {"dataset": name, "kernel": kernel, "C": C, "gamma": gamma}
        for name in names
        for kernel in KERNELS
        for C, gamma in GRIDS[kernel][few]
    ]


def table() -> str:
    """Return a table of the time that four methods take for each grid."""
    rows = BENCHMARK.rows()
    lines = []
    for at, (kernel, title) in enumerate(zip(KERNELS, ("linear", "RBF"), strict=True)):
        for name, printed in published.EXACT_SECONDS.items():
            _, speed_up, stopped = printed[at]
            own = rows_with(rows, dataset=name, kernel=kernel)
            seconds = [sum(float(row[f"{method}_ms"]) for row in own) / 1e3 for method in METHODS]
            brute, standard, stopping, exact = seconds
            lines.append(
                [
                    f"{name}, {title}",
                    own[0]["rows"],
                    *(f"{time:.3g}" for time in seconds),
                    f"{standard / stopping:.1f} ({speed_up:.1f})",
                    f"{_stopped_share(own):.0%} ({stopped:.0f}%)",
                    f"{standard / exact:.0f}",
                    f"{brute / exact:.0f}",
                ]
            )
    times = [f"{method.replace('_', ' ')}, s" for method in METHODS]
    compared = [
        "standard / stopping (published)",
        "stopped (published)",
        "standard / exact",
        "brute force / exact",
    ]
    return markdown_table(["data set, kernel", "rows", *times, *compared], lines)


def _stopped_share(rows: list[dict[str, str]]) -> float:
    """Return the share of the needed fits that the rule stops, over all points."""
    still_open = sum(int(row["n_open"]) for row in rows)
    stopped = sum(
        int(row["n_open"]) * int(row["stopped"]) / int(row["sampled"])
        for row in rows
        if int(row["sampled"])
    )
    return stopped / still_open if still_open else 0.0


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    import_once()
    split = load(point["dataset"], scaled=False)
    y = split.y_train
    K = KernelCache(kernel_of(point["kernel"], point["gamma"]), split.X_train).matrix({})
    solution = solve(Problem(K, y, np.full(len(y), point["C"])))
    exact = leave_one_out(solution, "exact")
    rng = np.random.default_rng(0)
    support = np.flatnonzero(solution.alpha)
    still_open = support[upper_bounds(solution, support) > 0]
    sample = rng.permutation(still_open)[:SAMPLED]
    watch = Stopwatch()
    with watch("stopping"):
        # In parts as large as the number of rows after which the rule may be given up.
        proofs = [stopped_rows(solution, few, complete=False) for few in np.split(sample, [TRIED])]
    with watch("standard"):
        stopped_rows(solution, sample, complete=True)
    with watch("brute_force"), warnings.catch_warnings():
        # On near-singular kernels LIBSVM gives up after `max_iter` steps: even that takes long.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for p in rng.permutation(len(y))[:REFITTED]:
            solve(solution.problem.without(p), polish=False)
    exact_ms = cpu_milliseconds({"exact": lambda: leave_one_out(solution, "exact")})["exact"]
    margin, is_proven, is_solved = (
        np.concatenate([getattr(part, name) for part in proofs])
        for name in ("margin", "proven", "exact")
    )
    stopped = np.count_nonzero(is_proven & ~is_solved)
    differ = is_proven & ((margin > 0) != ((y * exact.decision_values)[sample] > 0))
    each = {name: 1e3 * spent / max(len(sample), 1) for name, spent in watch.seconds.items()}
    tried = len(still_open) if 2 * stopped >= len(sample) else min(TRIED, len(still_open))
    milliseconds = {
        "brute_force": 1e3 * watch.seconds["brute_force"] / REFITTED * len(y),
        "standard": each["standard"] * len(still_open),
        "stopping": each["stopping"] * tried + each["standard"] * (len(still_open) - tried),
        "exact": exact_ms,
    }
    return {
        "rows": len(y),
        **{f"{method}_ms": round(milliseconds[method], 4) for method in METHODS},
        "n_support": solution.n_support,
        "n_in_bound": solution.n_in_bound,
        "n_open": len(still_open),
        "sampled": len(sample),
        "stopped": stopped,
        "exact_error": round(exact.error, 6),
        "differ": np.count_nonzero(differ),
    }


BENCHMARK = Benchmark("rivals.csv", _points, _measure, _COLUMNS)
run = BENCHMARK.run
