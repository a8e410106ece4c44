"""`SpanSearchCV` beside `RandomizedSearchCV`: a short run, and the committed figures."""

import re

import pytest

from benchmarks.harness.runner import RESULTS, Options, read_rows
from benchmarks.search import drop_in


@pytest.mark.slow
def test_a_run_has_every_search(tmp_path):
    """Wine comes with scikit-learn: the errors are shares of its test rows, and times are real."""
    rows = drop_in.run(Options(datasets=["wine"], folder=tmp_path)).rows
    assert len(rows) == 3 * len(drop_in.SEARCHES)
    for row in rows:
        assert 0 <= float(row["test_error"]) < 0.2
        assert 0 <= float(row["estimate"]) < 0.2
        assert float(row["seconds"]) > 0
        assert (row["honest"] == "") == (row["search"] == "RandomizedSearchCV")


def test_the_table_follows_from_the_csv():
    """Means over problems and splits, and the ratio of times, are those of the rows."""
    rows = read_rows(RESULTS / "drop_in.csv")
    (line,) = re.findall(r"^\| mean \|  \|  \|(.*)\|$", drop_in.table(), re.MULTILINE)
    cells = [float(cell) for cell in line.split("|")]
    for place, search in enumerate(drop_in.SEARCHES):
        own = [row for row in rows if row["search"] == search]
        assert len(own) == 24
        error = sum(float(row["test_error"]) for row in own) / 24
        assert cells[place] == pytest.approx(error, abs=1e-4)
    times = [
        sum(float(row["seconds"]) for row in rows if row["search"] == search)
        for search in drop_in.SEARCHES[:2]
    ]
    assert cells[-1] == pytest.approx(times[0] / times[1], abs=0.06)
