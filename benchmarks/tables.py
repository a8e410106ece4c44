"""Write the tables of the README and the documentation from the CSVs of the benchmarks."""

from pathlib import Path
from statistics import mean, median

from benchmarks import grid, rivals, search, speed
from benchmarks.runner import RESULTS, read_rows

ROOT = Path(__file__).parent.parent


def write(root: Path = ROOT) -> None:
    """Replace what stands between the markers of each table."""
    for file, tables in TABLES.items():
        text = (root / file).read_text()
        for name, table in tables.items():
            text = replaced(text, name, table())
        (root / file).write_text(text)


def replaced(text: str, name: str, table: str) -> str:
    """Return the text with a new table between ``<!-- name -->`` and ``<!-- /name -->``."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, rest = text.split(start)
    after = rest.split(end)[1]
    return f"{before}{start}\n{table}{end}{after}"


def speed_table() -> str:
    """Return the cost of an evaluation, one line for each data set."""
    rows = read_rows(RESULTS / "speed.csv")
    lines = [
        "| data set | rows | evaluation / `SVC.fit`, median (worst) | with a new width | "
        "5-fold CV / evaluation, median (worst) | share of the LOO part, median (worst) |",
        "|---|---|---|---|---|---|",
    ]
    for name in speed.DATASETS:
        own = [row for row in rows if row["dataset"] == name]
        per_cv, share = (
            [float(row[column]) for row in own] for column in ("cv5_per_evaluation", "loo_share")
        )
        lines.append(
            f"| {name} | {own[0]['rows']} | {_median_and_worst(own, 'evaluation_per_fit')} | "
            f"{_median_and_worst(own, 'new_width_per_fit')} | "
            f"{median(per_cv):.1f} ({min(per_cv):.2g}) | "
            f"{median(share):.0%} ({min(1.0, max(share)):.0%}) |"
        )
    return "\n".join(lines) + "\n"


def grid_table() -> str:
    """Return what is selected on the paper's grid, beside what was published."""
    lines = [
        "| data set | span-rule picks (published) | least on grid (published) | "
        "smooth error picks |",
        "|---|---|---|---|",
    ]
    for name in grid.DATASETS:
        rows = read_rows(RESULTS / f"grid_{name}.csv")
        rule, smooth = (
            grid.selected(rows, criterion) for criterion in ("span_error", "smooth_error")
        )
        picked, least = grid.PUBLISHED[name]
        lines.append(
            f"| {name} | {rule['worst_of_ties']:.4f} ({picked:.4f}) | "
            f"{rule['least_on_grid']:.4f} ({least:.4f}) | {smooth['worst_of_ties']:.4f} |"
        )
    return "\n".join(lines) + "\n"


def exact_table() -> str:
    """Return the cost of exact leave-one-out, one line for each data set and one for all."""
    rows = read_rows(RESULTS / "exact.csv")
    lines = [
        "| data set | rows | points that need paths | classes / `SVC.fit` | "
        "all values / `SVC.fit` | classes / 5-fold CV | classes without Numba / `SVC.fit` |",
        "|---|---|---|---|---|---|---|",
    ]
    groups = [
        (name, size, [row for row in rows if (row["dataset"], row["rows"]) == (name, size)])
        for name, size in dict.fromkeys((row["dataset"], row["rows"]) for row in rows)
    ]
    with_paths = [row for row in rows if int(row["n_paths"])]
    groups += [("all", "", rows), ("those that need paths", "", with_paths)]
    for name, size, own in groups:
        ratios = (
            _median_and_worst(own, column)
            for column in (
                "classes_per_fit",
                "values_per_fit",
                "classes_per_cv5",
                "plain_classes_per_fit",
            )
        )
        needed = sum(int(row["n_paths"]) > 0 for row in own)
        lines.append(f"| {name} | {size} | {needed} of {len(own)} | {' | '.join(ratios)} |")
    return "\n".join(lines) + "\n"


def _median_and_worst(rows: list[dict[str, str]], column: str) -> str:
    values = [float(row[column]) for row in rows]
    return f"{median(values):.2f} ({max(values):.2g})"


def growth_table() -> str:
    """Return how the cost grows, one line for each number of rows and cost."""
    lines = [
        "| data set | rows | C | support vectors | in-bound | paths for classes | `SVC.fit`, ms | "
        "classes, ms | all values, ms |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in read_rows(RESULTS / "growth.csv"):
        times = (f"{float(row[f'{name}_ms']):.3g}" for name in ("svc_fit", "classes", "values"))
        lines.append(
            f"| {row['dataset']} | {row['rows']} | {float(row['C']):g} | {row['n_support']} | "
            f"{row['n_in_bound']} | {row['n_paths']} | {' | '.join(times)} |"
        )
    return "\n".join(lines) + "\n"


def rivals_table() -> str:
    """Return the time for a leave-one-out error by four methods, summed over a grid."""
    lines = [
        "| data set | rows | brute force, s | standard, s | stopping, s | exact, s | "
        "standard / stopping (published) | standard / exact | brute force / exact |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    rows = read_rows(RESULTS / "rivals.csv")
    for name in rivals.DATASETS:
        own = [row for row in rows if row["dataset"] == name]
        brute, standard, stopping, ours = (
            sum(float(row[f"{method}_ms"]) for row in own) / 1e3
            for method in ("brute_force", "standard", "stopping", "exact")
        )
        lines.append(
            f"| {name} | {own[0]['rows']} | {brute:.3g} | {standard:.3g} | {stopping:.3g} | "
            f"{ours:.3g} | {standard / stopping:.1f} ({rivals.PUBLISHED[name]:.1f}) | "
            f"{standard / ours:.0f} | {brute / ours:.0f} |"
        )
    return "\n".join(lines) + "\n"


def classes_table() -> str:
    """Return the time for the leave-one-out error of several classes, by ours and by refits."""
    lines = [
        "| data set | rows | classes | evaluation, ms | with exact classes, ms | "
        "`LeaveOneOut` refits, s | refits / evaluation | error: span-rule, exact, refits |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['dataset']} | {row['rows']} | {row['classes']} | "
        f"{float(row['evaluation_ms']):.3g} | {float(row['exact_ms']):.3g} | "
        f"{float(row['refits_ms']) / 1e3:.3g} | {float(row['refits_per_evaluation']):.0f} | "
        f"{float(row['span_error']):.4f}, {float(row['exact_error']):.4f}, "
        f"{float(row['refits_error']):.4f} |"
        for row in read_rows(RESULTS / "classes.csv")
    ]
    return "\n".join(lines) + "\n"


def large_table() -> str:
    """Return time and memory of evaluations on large data."""
    lines = [
        "| data set | rows | C⁺, C⁻ | support vectors (in-bound) | evaluation, s | "
        "with exact classes, s | memory, GB | error: span-rule, exact |",
        "|---|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['dataset']} | {row['rows']} | {float(row['C_pos']):g}, "
        f"{float(row['C_neg']):g} | {row['n_support']} ({row['n_in_bound']}) | "
        f"{row['evaluation_s']} | {row['exact_evaluation_s']} | {row['peak_gb']} | "
        f"{float(row['span_error']):.4f}, {float(row['exact_error']):.4f} |"
        for row in read_rows(RESULTS / "large.csv")
    ]
    return "\n".join(lines) + "\n"


def search_table() -> str:
    """Return the test error of what searches find, beside grids."""
    rows = read_rows(RESULTS / "search.csv")
    against = {row["dataset"]: row for row in read_rows(RESULTS / "search_rivals.csv")}
    columns = [
        (objective, trials) for objective in search.OBJECTIVES for trials in reversed(search.TRIALS)
    ]
    heads = " | ".join(f"{objective}, {trials} trials" for objective, trials in columns)
    lines = [
        f"| data set | {heads} | span-rule on the grid of 1,089 | `GridSearchCV`, 150 points |",
        "|---" * (len(columns) + 3) + "|",
    ]
    for name in search.DATASETS:
        cells = [
            f"{_mean_of(rows, f'test_error_{trials}', dataset=name, objective=objective):.4f}"
            for objective, trials in columns
        ]
        on_grid = grid.selected(read_rows(RESULTS / f"grid_{name}.csv"), "span_error")
        cells.append(f"{on_grid['worst_of_ties']:.4f}")
        cells.append(f"{float(against[name]['grid_search_test_error']):.4f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def search_time_table() -> str:
    """Return the wall time of a search, beside a grid search and cross-validation."""
    lines = [
        "| data set | 150 trials, s | `GridSearchCV(cv=5)`, 150 points, s | ratio | "
        "evaluations at the points visited, s | `cross_val_score(cv=5)` there, s | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in read_rows(RESULTS / "search_rivals.csv"):
        found, on_grid, evaluations, folds = (
            float(row[f"{name}_s"])
            for name in ("search", "grid_search", "visited_evaluation", "visited_cv5")
        )
        lines.append(
            f"| {row['dataset']} | {found:.2f} | {on_grid:.1f} | 1/{on_grid / found:.1f} | "
            f"{evaluations:.2f} | {folds:.1f} | {folds / evaluations:.1f} |"
        )
    return "\n".join(lines) + "\n"


def pruning_table() -> str:
    """Return what budgets save, as means over seeds."""
    rows = read_rows(RESULTS / "pruning.csv")
    lines = [
        "| data set | evaluation time with / without pruning | test error with | without |",
        "|---|---|---|---|",
    ]
    names = {name: {"dataset": name} for name in search.DATASETS}
    for name, chosen in (names | {"mean": {}}).items():
        share, pruned, plain = (
            _mean_of(rows, column, **chosen)
            for column in ("pruned_share_of_time", "pruned_test_error", "test_error")
        )
        lines.append(f"| {name} | {share:.2f} | {pruned:.4f} | {plain:.4f} |")
    return "\n".join(lines) + "\n"


def overhead_table() -> str:
    """Return what the adapter and a second thread change."""
    row = read_rows(RESULTS / "overhead.csv")[0]
    return (
        "| | |\n|---|---|\n"
        f"| adapter against a hand-written function | {float(row['overhead']):+.1%} |\n"
        f"| speed-up of two threads | {float(row['speed_up_of_threads']):.2f} |\n"
        f"| speed-up of two processes of pure computation | "
        f"{float(row['speed_up_of_processes']):.2f} |\n"
    )


def _mean_of(rows: list[dict[str, str]], column: str, **chosen: str) -> float:
    return mean(
        float(row[column])
        for row in rows
        if all(row[name] == value for name, value in chosen.items())
    )


TABLES = {
    "README.md": {"speed": speed_table, "grid": grid_table, "exact": exact_table},
    "docs/scale.md": {"growth": growth_table, "large": large_table},
    "docs/search.md": {
        "search": search_table,
        "search time": search_time_table,
        "pruning": pruning_table,
        "overhead": overhead_table,
    },
    "docs/results.md": {"rivals": rivals_table, "classes": classes_table},
}
