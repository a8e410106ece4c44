"""Committed results: rows of the CSVs, and lines of the tables that are made from them."""

from benchmarks.harness.runner import RESULTS, read_rows, rows_with


def lines_of(table):
    """Return the cells of a Markdown table by the first of each line, without the head."""
    cells = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    return {line[0]: line for line in cells}


def rows_of(file, **chosen):
    """Return the rows of a CSV whose columns hold these values."""
    rows = read_rows(RESULTS / file)
    return rows_with(rows, **{name: str(value) for name, value in chosen.items()})
