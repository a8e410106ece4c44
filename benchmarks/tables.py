"""Write the tables of the README and the documentation from the CSVs of the benchmarks."""

from pathlib import Path
from statistics import mean, median

from benchmarks.cost import scale, speed
from benchmarks.harness.markdown import table
from benchmarks.harness.runner import RESULTS, read_rows
from benchmarks.papers import exact_selection, postal, rivals, weighted
from benchmarks.peers import peers
from benchmarks.search import nodes, samplers, search

ROOT = Path(__file__).parent.parent


def write(root: Path = ROOT) -> None:
    """Replace what stands between the markers of each table."""
    texts = {file: (root / file).read_text() for file in TABLES}
    for file, tables in TABLES.items():
        for name, make in tables.items():
            texts[file] = replaced(texts[file], name, make())
    for file, text in texts.items():  # when all could be made
        (root / file).write_text(text)


def replaced(text: str, name: str, new: str) -> str:
    """Return the text with a new table between ``<!-- name -->`` and ``<!-- /name -->``."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, rest = text.split(start)
    after = rest.split(end)[1]
    return f"{before}{start}\n{new}{end}{after}"


def speed_table() -> str:
    """Return the cost of an evaluation in short, one line for each data set."""
    lines = [[line[0], line[1], line[2], line[4]] for line in _speed_lines()]
    return table(["data set", "rows", "evaluation / `SVC.fit`", "5-fold CV / evaluation"], lines)


def full_speed_table() -> str:
    """Return the cost of an evaluation and of its parts, one line for each data set."""
    return table(
        [
            "data set",
            "rows",
            "evaluation / `SVC.fit`, median (worst)",
            "with a new width",
            "5-fold CV / evaluation, median (worst)",
            "share of the LOO part, median (worst)",
        ],
        _speed_lines(),
    )


def _speed_lines() -> list[list[str]]:
    rows = read_rows(RESULTS / "speed.csv")
    lines = []
    for name in speed.DATASETS:
        own = [row for row in rows if row["dataset"] == name]
        per_cv, share = (
            [float(row[column]) for row in own] for column in ("cv5_per_evaluation", "loo_share")
        )
        lines.append(
            [
                name,
                own[0]["rows"],
                _median_and_worst(own, "evaluation_per_fit"),
                _median_and_worst(own, "new_width_per_fit"),
                f"{median(per_cv):.1f} ({min(per_cv):.2g})",
                f"{median(share):.0%} ({min(1.0, max(share)):.0%})",
            ]
        )
    return lines


def exact_table() -> str:
    """Return the cost of exact leave-one-out, one line for each data set and one for all."""
    rows = read_rows(RESULTS / "exact.csv")
    groups = [
        (name, size, [row for row in rows if (row["dataset"], row["rows"]) == (name, size)])
        for name, size in dict.fromkeys((row["dataset"], row["rows"]) for row in rows)
    ]
    with_paths = [row for row in rows if int(row["n_paths"])]
    groups += [("all", "", rows), ("those that need paths", "", with_paths)]
    ratios = {
        "classes / `SVC.fit`": "classes_per_fit",
        "all values / `SVC.fit`": "values_per_fit",
        "classes / 5-fold CV": "classes_per_cv5",
        "classes without Numba / `SVC.fit`": "plain_classes_per_fit",
    }
    return table(
        ["data set", "rows", "points that need paths", *ratios],
        [
            [
                name,
                size,
                f"{sum(int(row['n_paths']) > 0 for row in own)} of {len(own)}",
                *(_median_and_worst(own, column) for column in ratios.values()),
            ]
            for name, size, own in groups
        ],
    )


def growth_table() -> str:
    """Return how the cost grows, one line for each number of rows and cost."""
    times = {"`SVC.fit`, ms": "svc_fit", "classes, ms": "classes", "all values, ms": "values"}
    return table(
        ["data set", "rows", "C", "support vectors", "in-bound", "paths for classes", *times],
        [
            [
                row["dataset"],
                row["rows"],
                f"{float(row['C']):g}",
                row["n_support"],
                row["n_in_bound"],
                row["n_paths"],
                *(f"{float(row[f'{name}_ms']):.3g}" for name in times.values()),
            ]
            for row in read_rows(RESULTS / "growth.csv")
        ],
    )


def classes_table() -> str:
    """Return the time for the leave-one-out error of several classes, by ours and by refits."""
    return table(
        [
            "data set",
            "rows",
            "classes",
            "C",
            "evaluation, ms",
            "with exact classes, ms",
            "`LeaveOneOut` refits, s",
            "refits / evaluation",
            "error: span-rule, exact, refits",
        ],
        [
            [
                row["dataset"],
                row["rows"],
                row["classes"],
                f"{float(row['C']):g}",
                f"{float(row['evaluation_ms']):.3g}",
                f"{float(row['exact_ms']):.3g}",
                f"{float(row['refits_ms']) / 1e3:.3g}",
                f"{float(row['refits_per_evaluation']):.0f}",
                ", ".join(
                    f"{float(row[f'{one}_error']):.4f}" for one in ("span", "exact", "refits")
                ),
            ]
            for row in read_rows(RESULTS / "classes.csv")
        ],
    )


def large_table() -> str:
    """Return time and memory of evaluations on large data."""
    return table(
        [
            "data set",
            "rows",
            "C⁺, C⁻",
            "support vectors (in-bound)",
            "evaluation, s",
            "with exact classes, s",
            "memory, GB",
            "error: span-rule, exact",
        ],
        [
            [
                row["dataset"],
                row["rows"],
                f"{float(row['C_pos']):g}, {float(row['C_neg']):g}",
                f"{row['n_support']} ({row['n_in_bound']})",
                row["evaluation_s"],
                row["exact_evaluation_s"],
                row["peak_gb"],
                f"{float(row['span_error']):.4f}, {float(row['exact_error']):.4f}",
            ]
            for row in read_rows(RESULTS / "large.csv")
        ],
    )


def search_table() -> str:
    """Return the test error of what searches find, beside grids."""
    rows = read_rows(RESULTS / "search.csv")
    against = {row["dataset"]: row for row in read_rows(RESULTS / "search_rivals.csv")}
    grids = read_rows(RESULTS / "weighted.csv")
    searches = [
        (objective, trials) for objective in search.OBJECTIVES for trials in reversed(search.TRIALS)
    ]
    lines = []
    for name in search.DATASETS:
        errors = [
            _mean_of(rows, f"test_error_{trials}", dataset=name, objective=objective)
            for objective, trials in searches
        ]
        (on_grid,) = (
            float(row["worst_of_ties"])
            for row in grids
            if (row["dataset"], row["split"], row["criterion"]) == (name, "0", "span_error")
        )
        errors += [on_grid, float(against[name]["grid_search_test_error"])]
        lines.append([name, *(f"{error:.4f}" for error in errors)])
    heads = [f"{objective}, {trials} trials" for objective, trials in searches]
    heads += ["span-rule on the grid of 1,089", "`GridSearchCV`, 150 points"]
    return table(["data set", *heads], lines)


def search_time_table() -> str:
    """Return the wall time of a search, beside a grid search and cross-validation."""
    lines = []
    for row in read_rows(RESULTS / "search_rivals.csv"):
        found, on_grid, evaluations, folds = (
            float(row[f"{name}_s"])
            for name in ("search", "grid_search", "visited_evaluation", "visited_cv5")
        )
        lines.append(
            [
                row["dataset"],
                f"{found:.2f}",
                f"{on_grid:.1f}",
                f"1/{on_grid / found:.1f}",
                f"{evaluations:.2f}",
                f"{folds:.1f}",
                f"{folds / evaluations:.1f}",
            ]
        )
    return table(
        [
            "data set",
            "150 trials, s",
            "`GridSearchCV(cv=5)`, 150 points, s",
            "ratio",
            "evaluations at the points visited, s",
            "`cross_val_score(cv=5)` at the same points, s",
            "ratio",
        ],
        lines,
    )


def pruning_table() -> str:
    """Return what budgets save, as means over seeds."""
    rows = read_rows(RESULTS / "pruning.csv")
    columns = {
        "evaluation time with / without pruning": ("pruned_share_of_time", ".2f"),
        "test error with pruning": ("pruned_test_error", ".4f"),
        "test error without pruning": ("test_error", ".4f"),
    }
    groups: dict[str, dict[str, str]] = {name: {"dataset": name} for name in search.DATASETS}
    return table(
        ["data set", *columns],
        [
            [
                name,
                *(
                    f"{_mean_of(rows, column, **chosen):{form}}"
                    for column, form in columns.values()
                ),
            ]
            for name, chosen in (groups | {"mean": {}}).items()
        ],
    )


def overhead_table() -> str:
    """Return what the adapter and a second thread change."""
    row = read_rows(RESULTS / "overhead.csv")[0]
    return table(
        [
            "adapter against a hand-written function",
            "speed-up of two threads",
            "speed-up of two processes of pure computation",
        ],
        [
            [
                f"{float(row['overhead']):+.1%}",
                f"{float(row['speed_up_of_threads']):.2f}",
                f"{float(row['speed_up_of_processes']):.2f}",
            ]
        ],
    )


def calibration_table() -> str:
    """Return how good probabilities are, by two calibrations."""
    measures = {
        "log loss": ("log_loss", ".4f"),
        "Brier score": ("brier", ".4f"),
        "calibration error": ("calibration_error", ".4f"),
        "fit, ms": ("fit_ms", ".3g"),
    }
    return table(
        ["data set", "C", *(f"{title}: leave-one-out, folds" for title in measures)],
        [
            [
                row["dataset"],
                f"{float(row['C']):g}",
                *(
                    ", ".join(f"{float(row[f'{way}_{name}']):{form}}" for way in ("loo", "folds"))
                    for name, form in measures.values()
                ),
            ]
            for row in read_rows(RESULTS / "calibration.csv")
        ],
    )


def evaluation_table() -> str:
    """Return time and memory of an evaluation, one line for each number of rows."""
    rows = read_rows(RESULTS / "scale.csv")
    lines = []
    for count in scale.ROWS:
        own = {
            (int(row["features"]), float(row["C"])): row
            for row in rows
            if int(row["rows"]) == count
        }
        few, many, hard = own[5, 1.0], own[320, 1.0], own[320, 64.0]
        lines.append(
            [
                str(count),
                *(f"{float(row['evaluation_ms']):.3g}" for row in (few, many, hard)),
                *(f"{float(row['new_width_ms']):.3g}" for row in (few, many, hard)),
                f"{max(float(row['peak_mb']) for row in own.values()):.3g}",
                *(f"{row['n_support']} ({row['n_in_bound']})" for row in (few, many, hard)),
            ]
        )
    kinds = ("d = 5, C = 1", "d = 320, C = 1", "d = 320, C = 64")
    return table(
        [
            "rows",
            *(f"evaluation, ms: {kind}" for kind in kinds),
            *(f"with a new width, ms: {kind}" for kind in kinds),
            "peak memory, MB",
            *(f"support vectors (in-bound): {kind}" for kind in kinds),
        ],
        lines,
    )


def cluster_table() -> str:
    """Return what Ray adds and gains, one line for each data set."""
    lines = [
        [
            row["dataset"],
            row["rows"],
            f"{float(row['evaluation_ms']):.1f}",
            f"{float(row['overhead_ms']):.1f}",
            f"{float(row['trivial_ms']):.1f}",
            f"{float(row['overhead_per_trivial']):.2f}",
            f"{float(row['speed_up_of_workers']):.2f}",
            f"{float(row['speed_up_of_processes']):.2f}",
            f"{float(row['asha_share_of_time']):.0%}",
            f"{float(row['asha_test_error']):.4f} ({float(row['full_test_error']):.4f})",
        ]
        for row in read_rows(RESULTS / "cluster.csv")
    ]
    return table(
        [
            "data set",
            "rows",
            "evaluations of a trial, ms",
            "Ray's share of a trial, ms",
            "a trivial trainable, ms",
            "Ray's share / trivial trainable",
            "speed-up of two workers",
            "speed-up of two processes of pure computation",
            "ASHA's share of the evaluation time",
            "test error with ASHA (all trials on all rows)",
        ],
        lines,
    )


def nodes_table() -> str:
    """Return the simulated trials per second, one line for each kind of trial."""
    rows = read_rows(RESULTS / "nodes.csv")
    lines = []
    for count in nodes.ROWS:
        for budgets in nodes.BUDGETS:
            own = [r for r in rows if int(r["rows"]) == count and r["budgets"] == budgets]
            lines.append(
                [
                    str(count),
                    budgets,
                    f"{float(own[0]['evaluation_ms']):.3g}",
                    *(
                        f"{float(r['trials_per_s']):.3g} ({float(r['busy_workers']):.1%})"
                        for r in own
                    ),
                ]
            )
    return table(
        [
            "rows",
            "trials",
            "evaluation of all rows, ms",
            *(f"{number} node{'s' * (number > 1)}" for number in nodes.NODES),
        ],
        lines,
    )


def _median_and_worst(rows: list[dict[str, str]], column: str) -> str:
    values = [float(row[column]) for row in rows]
    return f"{median(values):.2f} ({max(values):.2g})"


def _mean_of(rows: list[dict[str, str]], column: str, **chosen: str) -> float:
    return mean(
        float(row[column])
        for row in rows
        if all(row[name] == value for name, value in chosen.items())
    )


TABLES = {
    "README.md": {"speed": speed_table},
    "docs/scale.md": {
        "speed": full_speed_table,
        "exact": exact_table,
        "evaluation": evaluation_table,
        "growth": growth_table,
        "large": large_table,
        "cluster": cluster_table,
        "nodes": nodes_table,
    },
    "docs/search.md": {
        "search": search_table,
        "search time": search_time_table,
        "pruning": pruning_table,
        "overhead": overhead_table,
        "samplers": samplers.table,
        "samplers by set": samplers.details_table,
    },
    "docs/results.md": {
        "weighted": weighted.summary_table,
        "selection": weighted.selection_table,
        "ties": weighted.ties_table,
        "rmse": weighted.rmse_table,
        "counts": weighted.counts_table,
        "seconds": weighted.seconds_table,
        "criteria": weighted.criteria_table,
        "exact selection": exact_selection.table,
        "exact selection time": exact_selection.time_table,
        "rivals": rivals.table,
        "postal": postal.table,
        "peers": peers.table,
        "classes": classes_table,
        "calibration": calibration_table,
    },
}
