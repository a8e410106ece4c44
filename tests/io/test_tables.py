from datetime import date

import numpy as np
import pandas as pd
import pytest

from span_hpo.io.samples import read_samples
from span_hpo.io.tables import Table


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["0", "1"], [0, 1]),
        (["1.0", "-1"], [1, -1]),
        (["0.5", "1.5"], ["0.5", "1.5"]),
        (["1", "one"], ["1", "one"]),
        (["1e300", "0"], ["1e300", "0"]),
        (["TRUE", "FALSE"], ["TRUE", "FALSE"]),
    ],
)
def test_labels_are_numbers_where_they_can_be(cells, labels, tmp_path):
    """Whole numbers if all labels are, else text."""
    file = tmp_path / "rows.csv"
    file.write_text("a,label\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells)))
    found = read_samples(file, target="label").y
    assert found.tolist() == labels
    assert {type(label) for label in found.tolist()} == {type(label) for label in labels}


def test_tables_of_other_types_are_refused():
    """Dates and lists are neither numbers nor text; the message says what to do about them."""
    dates = Table.of({"day": np.array(["2020-01-01"], dtype="datetime64[D]")})
    advice = "Replace timestamps by numbers, such as the hour.*. Or leave the column out"
    with pytest.raises(ValueError, match=rf"column 'day' of `X` must hold numbers or .* {advice}"):
        dates.numbers("day")
    lists = Table.of(pd.DataFrame({"list": [[1], [2]]}))
    with pytest.raises(
        ValueError, match=r"row 1, column 'list' of `X` .* got \[1\]. Convert it, or leave"
    ):
        lists.texts("list")
    days = Table({"day": np.array([date(2020, 1, 1)], dtype=object)}, "rows.parquet")
    with pytest.raises(ValueError, match=r"row 1, column 'day' of rows.parquet .* `drop` the col"):
        days.texts("day")


@pytest.mark.parametrize(
    ("text", "is_time"),
    [
        ("2020-01-31", True),
        ("2020-01-31T12:30:05.250Z", True),
        ("31.01.2020", True),
        ("1/31/20 5:07 pm", True),
        ("12:30", True),
        ("2020-01", False),
        ("12:30 or so", False),
        ("1.2.3", False),
    ],
)
def test_timestamps_are_recognised(text, is_time):
    """Dates and times of day in the usual ways of writing, and nothing else."""
    table = Table.of({"a": [text, text]})
    if not is_time:
        table.check_no_timestamps("a", [text])
        return
    with pytest.raises(ValueError, match=r"got timestamps such as .* dtype \"category\" if every"):
        table.check_no_timestamps("a", [text])


def test_kinds_of_columns():
    """Numbers, truth values and texts, in files and in DataFrames; a slip is named."""
    table = Table.of(
        pd.DataFrame(
            {
                "number": ["1", "2.5"],
                "truth": ["TRUE", "false"],
                "flag": [True, False],
                "text": ["true", "maybe"],
                "mixed": ["1", "maybe"],
            }
        )
    )
    kinds = {name: table.kind_of(name) for name in ("number", "truth", "flag", "text")}
    assert kinds == {"number": "number", "truth": "truth", "flag": "truth", "text": "text"}
    assert table.numbers("truth").tolist() == [1.0, 0.0]
    with pytest.raises(ValueError, match=r"row 2, column 'mixed' .* 'maybe'. Give the column the"):
        table.kind_of("mixed")


def test_missing_values_are_counted():
    """The texts of files and the objects of DataFrames that stand for no value."""
    frame = pd.DataFrame({"a": ["?", "x", None], "b": [np.nan, 1.0, 2.0], "c": [1, 2, 3]})
    table = Table.of(frame.assign(d=pd.array([1, None, None], dtype="Int64")))
    counts = table.missing_counts(table.columns)
    assert counts == {"a": 2, "b": 1, "d": 2}
    assert table.about_missing({"b": 1, "d": 2}) == (
        "'b' (1 of 3 rows, the first of which is row 1), "
        "'d' (2 of 3 rows, the first of which is row 2)"
    )
    wide = Table.of({f"c{j}": [np.nan] for j in range(103)})
    assert wide.about_missing(wide.missing_counts(wide.columns)).endswith("and 3 more columns")


def test_columns_of_equal_names_are_refused():
    """Names that are equal as text would hide a column."""
    frame = pd.DataFrame([[1, 2]], columns=[1, "1"])
    with pytest.raises(
        ValueError, match=r"columns of `X` must have different names, got '1' twice"
    ):
        Table.of(frame)


def test_long_labels_are_refused(tmp_path):
    """An array of labels would give every row the space of the longest."""
    file = tmp_path / "rows.csv"
    file.write_text("a,label\n1,x\n2," + "y" * 201 + "\n")
    with pytest.raises(ValueError, match=r"line 3, .* at most 200 characters, got 201"):
        read_samples(file, target="label")
