import bz2
import gzip

import numpy as np
import pandas as pd
import pytest

from span_hpo.io.encoding import read_samples
from span_hpo.io.tables import Table, file_format, read_table
from tests.io.files import CSV


@pytest.mark.parametrize("kind", ["tsv", "semicolons", "gz", "bz2", "bom", "windows", "blank"])
def test_dialects_of_csv(kind, tmp_path):
    """Separators, compression, byte order mark, line ends and blank lines do not matter."""
    text = "a,b,label\n1,x,1\n2,y,2\n"
    file = tmp_path / "rows.csv"
    if kind == "tsv":
        file = tmp_path / "rows.tsv"
        file.write_text(text.replace(",", "\t"))
    elif kind in ("gz", "bz2"):
        file = tmp_path / f"rows.csv.{kind}"
        file.write_bytes((gzip if kind == "gz" else bz2).compress(text.encode()))
    elif kind == "bom":
        file.write_bytes(b"\xef\xbb\xbf" + text.encode())
    elif kind == "windows":
        file.write_bytes(text.replace("\n", "\r\n").encode())
    elif kind == "blank":
        file.write_text(text.replace("\n", "\n\n"))
    else:
        file.write_text(text.replace(",", ";").replace("a", '"a, in cm"', 1))
    samples = read_samples(file, target="label")
    assert samples.y.tolist() == [1, 2]
    np.testing.assert_array_equal(samples.X, [[1, 1, 0], [2, 0, 1]])
    if kind == "blank":
        assert samples.lines == [3, 5]


def test_parquet_and_csv_hold_the_same(tmp_path, path):
    """The same table gives the same samples from both formats, and from a DataFrame."""
    pytest.importorskip("pyarrow")
    frame = pd.read_csv(path, skipinitialspace=True)
    frame["whole"], frame["flag"] = [3, 1, 2, 3], [True, False, True, True]
    frame["kind"] = pd.Categorical(["u", "v", "u", "u"])
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_csv(path, index=False)
    settings = {"target": "label", "category": ["whole", "flag"]}
    one = read_samples(path, **settings)
    other = read_samples(tmp_path / "rows.parquet", **settings)
    assert one.columns == other.columns
    np.testing.assert_array_equal(one.X, other.X)
    np.testing.assert_array_equal(one.y, other.y)
    np.testing.assert_array_equal(one.columns.encoded(Table.of(frame)), one.X)


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


def test_format_is_told_by_the_name():
    """Suffixes in any case, compressed or not; LIBSVM's if there is none."""
    names = {"a.csv": "csv", "a.TSV.gz": "csv", "a.pq": "parquet", "a.parquet": "parquet"}
    names |= {"a": "libsvm", "a1a.t": "libsvm", "a.scale.bz2": "libsvm", "x.csv/a": "libsvm"}
    assert {name: file_format(name) for name in names} == names


def test_bytes_that_are_no_text(tmp_path):
    """Files that are something else are refused."""
    for name, content, message in (
        ("rows.csv", b"a,b\n\xff\xfe,1\n", "must be text in UTF-8"),
        ("rows.csv.gz", gzip.compress(CSV.encode())[:30], "must be a whole file"),
        ("rows.csv.gz", b"a,b\n1,2\n", "must be a whole file"),
        ("rows.csv.gz", b"".join([gzip.compress(CSV.encode())[:40], b"x" * 90]), "a whole file"),
        ("rows.csv.bz2", bz2.compress(CSV.encode())[:40] + b"x" * 90, "must be a whole file"),
        ("rows.parquet", b"PAR1 or so", "must be a Parquet file, got a damaged one"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=message):
            read_samples(tmp_path / name, target="label")


def test_tables_of_other_types_are_refused():
    """Dates and lists are neither numbers nor text."""
    dates = Table.of({"day": np.array(["2020-01-01"], dtype="datetime64[D]")})
    with pytest.raises(TypeError, match=r"column 'day' of `X` must hold numbers or text"):
        dates.numbers("day")
    lists = Table.of(pd.DataFrame({"list": [[1], [2]]}))
    with pytest.raises(TypeError, match=r"row 1, column 'list' of `X` must be a number or text"):
        lists.texts("list")


def test_read_table_reads_what_is_there(path):
    """A table keeps every column in its order."""
    table = read_table(path)
    assert list(table.columns) == ["age", "town", "trust", "clinic", "label"]
    assert len(table) == 4


def test_index_of_pandas_is_no_feature(tmp_path):
    """The index that pandas keeps in a Parquet file is left out."""
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "label": [0, 1, 0, 1]})
    frame[frame["a"] > 1].to_parquet(tmp_path / "rows.parquet")
    assert read_samples(tmp_path / "rows.parquet", target="label").columns.feature_names == ["a"]
