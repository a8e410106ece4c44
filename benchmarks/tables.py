"""Write the README's tables from the CSVs of the benchmarks."""

from pathlib import Path
from statistics import median

from benchmarks import grid, speed
from benchmarks.runner import RESULTS, read_rows

README = Path(__file__).parent.parent / "README.md"


def write(readme: Path = README) -> None:
    """Replace what stands between the markers of each table."""
    text = readme.read_text()
    for name, table in (("speed", speed_table()), ("grid", grid_table())):
        text = replaced(text, name, table)
    readme.write_text(text)


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
        "| data set | rows | evaluation / `SVC.fit`, median (worst) | "
        "5-fold CV / evaluation, median (worst) | share of the LOO part, median (worst) |",
        "|---|---|---|---|---|",
    ]
    for name in speed.DATASETS:
        own = [row for row in rows if row["dataset"] == name]
        per_fit, per_cv, share = (
            [float(row[column]) for row in own]
            for column in ("evaluation_per_fit", "cv5_per_evaluation", "loo_share")
        )
        lines.append(
            f"| {name} | {own[0]['rows']} | {median(per_fit):.2f} ({max(per_fit):.3g}) | "
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
