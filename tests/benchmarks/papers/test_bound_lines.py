"""Minima of radius-margin bounds along lines, beside what was published."""

import pytest

from benchmarks.harness.runner import Options
from benchmarks.papers import bound_lines, published
from tests.benchmarks.data_sets import with_data
from tests.benchmarks.results import rows_of

LINES = [
    (name, svm, varied)
    for name in bound_lines.DATASETS
    for svm in bound_lines.CURVES
    for varied in bound_lines.VARIED
]


@with_data
def test_quick_lines_are_the_committed_ones(tmp_path):
    """A quick run measures six points of each line of banana, which are in the CSV."""
    rows = bound_lines.run(Options(quick=True, folder=tmp_path)).rows
    assert len(rows) == 4 * 6
    for row in rows:
        names = ("dataset", "varied", "svm", "x")
        (committed,) = rows_of("bound_lines.csv", **{name: row[name] for name in names})
        for column in bound_lines.CURVES[row["svm"]]:
            expected = pytest.approx(float(committed[column]), rel=1e-5)
            assert float(row[column]) == expected, (row["x"], column)


@pytest.mark.parametrize(("name", "svm", "varied"), LINES)
def test_lines_are_complete_and_cross_each_other(name, svm, varied):
    """Each line has all points, and a value for every curve of its SVM."""
    rows = rows_of("bound_lines.csv", dataset=name, svm=svm, varied=varied)
    assert [float(row["x"]) for row in rows] == bound_lines.GRID
    for row in rows:
        filled = {column for column in bound_lines.CURVES[svm] if row[column]}
        assert filled == set(bound_lines.CURVES[svm])


def agreements(svm):
    """Return for every published minimum of a bound whether place and error come out."""
    found = []
    for name, one, varied in LINES:
        if one != svm:
            continue
        rows = rows_of("bound_lines.csv", dataset=name, svm=svm, varied=varied)
        columns = list(bound_lines.CURVES[svm])[1:]
        for column, printed in zip(columns, published.LINES[name][svm, varied][1:], strict=True):
            error, place = bound_lines.minimum(rows, column)
            found.append(abs(error - printed[0]) < 0.25 and abs(place - printed[1]) < 0.15)
    return found


@pytest.mark.parametrize(("svm", "count"), [("l1", 40), ("l2", 24)])
def test_most_published_minima_come_out(svm, count):
    """Nine of ten minima are at the published place, with the published test error."""
    found = agreements(svm)
    assert len(found) == count
    assert sum(found) >= 0.85 * count


def test_bounds_of_the_l2_svm_are_ordered():
    """Eq. 2.7 is below eq. 2.5 at every point, and that below the radius-margin bound mostly."""
    for name in bound_lines.DATASETS:
        rows = rows_of("bound_lines.csv", dataset=name, svm="l2")
        assert all(float(row["l2_slack"]) <= float(row["l2_distance"]) for row in rows)
        lower = [float(row["l2_distance"]) <= float(row["l2"]) for row in rows]
        assert sum(lower) > 0.5 * len(lower)


def test_the_table_has_a_line_for_each_curve():
    """Both kinds of lines have six curves of the L1-SVM and four of the L2-SVM."""
    assert len(bound_lines.table().splitlines()) == 2 + 2 * (6 + 4)
