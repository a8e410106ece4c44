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
    """Dates and lists are neither numbers nor text."""
    dates = Table.of({"day": np.array(["2020-01-01"], dtype="datetime64[D]")})
    with pytest.raises(TypeError, match=r"column 'day' of `X` must hold numbers or text"):
        dates.numbers("day")
    lists = Table.of(pd.DataFrame({"list": [[1], [2]]}))
    with pytest.raises(TypeError, match=r"row 1, column 'list' of `X` must be a number or text"):
        lists.texts("list")


def test_long_labels_are_refused(tmp_path):
    """An array of labels would give every row the space of the longest."""
    file = tmp_path / "rows.csv"
    file.write_text("a,label\n1,x\n2," + "y" * 201 + "\n")
    with pytest.raises(ValueError, match=r"line 3, .* at most 200 characters, got 201"):
        read_samples(file, target="label")
