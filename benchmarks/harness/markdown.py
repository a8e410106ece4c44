"""Tables in Markdown, and what stands in their cells."""

from collections.abc import Iterable
from statistics import mean, median

from benchmarks.harness.runner import rows_with


def markdown_table(columns: list[str], lines: list[list[str]]) -> str:
    """Return a table in Markdown."""
    head = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    return "\n".join([*head, *(f"| {' | '.join(line)} |" for line in lines)]) + "\n"


def least_in_bold(values: Iterable[float]) -> list[str]:
    """Return numbers with four decimals, those that look like the least one in bold."""
    cells = [f"{value:.4f}" for value in values]
    least = min(cells, key=float)
    return [f"**{cell}**" if cell == least else cell for cell in cells]


def median_and_worst(rows: Iterable[dict[str, str]], column: str) -> str:
    """Return the median of a column, and its largest value in brackets."""
    values = [float(row[column]) for row in rows]
    return f"{median(values):.2f} ({max(values):.2g})"


def percent_and_worst(rows: Iterable[dict[str, str]], column: str) -> str:
    """Return the median of a column of shares in percent, and its largest value in brackets."""
    values = [float(row[column]) for row in rows]
    return f"{median(values):.0%} ({max(values):.0%})"


def mean_of(rows: Iterable[dict[str, str]], column: str, /, **values: str) -> float:
    """Return the mean of a column over the rows whose other columns hold these texts."""
    return mean(float(row[column]) for row in rows_with(rows, **values))
