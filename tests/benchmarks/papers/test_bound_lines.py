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


@pytest.mark.parametrize(("name", "svm", "varied"), LINES)
def test_bounds_are_least_at_the_published_places(name, svm, varied):
    """All 64 minima of bounds are at the printed place, with nearly the printed test error."""
    rows = rows_of("bound_lines.csv", dataset=name, svm=svm, varied=varied)
    for column, printed in zip(
        bound_lines.CURVES[svm], published.LINES[name][svm, varied], strict=True
    ):
        error, place = bound_lines.minimum(rows, column)
        assert error == pytest.approx(printed[0], abs=0.36), column
        if column != bound_lines.TEST:  # which is the same at several places
            assert place == printed[1], column


def test_most_published_errors_come_out_to_the_digit():
    """Of the 80 printed test errors, 72 are those of the CSV at the same place."""
    assert sum(map(agreements, LINES)) == 72


def agreements(line):
    """Return the number of minima of a line that have the printed place and test error."""
    name, svm, varied = line
    rows = rows_of("bound_lines.csv", dataset=name, svm=svm, varied=varied)
    return sum(
        (round(error, 1), place) == (round(printed[0], 1), printed[1])
        for (error, place), printed in zip(
            [bound_lines.minimum(rows, column) for column in bound_lines.CURVES[svm]],
            published.LINES[name][svm, varied],
            strict=True,
        )
    )


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
