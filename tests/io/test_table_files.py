import bz2
import csv
import gzip
import tracemalloc

import numpy as np
import pandas as pd
import pytest

from span_hpo.io.samples import read_samples
from span_hpo.io.table_files import file_format, read_table
from span_hpo.io.tables import Table
from span_hpo.io.unpacking import UNPACK_LIMIT
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


class Counted(str):
    """A name that counts how often it is compared with another object."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other):
        Counted.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__

    def strip(self):
        return self


@pytest.mark.parametrize("cells", ["1 2 3", "x y z"])
def test_names_are_compared_in_linear_time(cells, tmp_path, monkeypatch):
    """The number of comparisons grows with the number of columns, not with its square."""
    real = csv.reader

    def reader(*arguments, **options):
        rows = real(*arguments, **options)
        return NamedRows(rows)

    class NamedRows:
        def __init__(self, rows):
            self.rows = rows

        line_num = property(lambda self: self.rows.line_num)

        def __iter__(self):
            return self

        def __next__(self):
            row = next(self.rows)
            return [Counted(cell) for cell in row] if row[0] == "c0" else row

    monkeypatch.setattr("csv.reader", reader)
    counts = []
    for width in (500, 2000):
        file = tmp_path / "rows.csv"
        names = [f"c{j}" for j in range(width)]
        rows = [",".join([cell] * width) for cell in cells.split()]
        labels = zip(rows, "aba", strict=True)
        file.write_text(
            "\n".join([",".join([*names, "label"]), *(f"{row},{y}" for row, y in labels)])
        )
        Counted.comparisons = 0
        drop = [f"c{j}" for j in range(1, width, 2)]
        samples = read_samples(file, target="label", drop=drop, category=["c0", "c2"])
        assert len(samples.columns.features) == width // 2
        samples.columns.encoded(read_table(file))
        counts.append(Counted.comparisons)
    assert 0 < counts[1] <= 4.5 * counts[0]


@pytest.mark.slow
@pytest.mark.parametrize("width", [40_000, 200_000])
def test_very_wide_tables(width, tmp_path):
    """Tables of numbers and of texts with 200,000 columns are read, also from Parquet."""
    names = [f"c{j}" for j in range(width)]
    for cells in ("123", "xyz"):
        file = tmp_path / "rows.csv"
        rows = [",".join([cell] * width + [y]) for cell, y in zip(cells, "aba", strict=True)]
        file.write_text("\n".join([",".join([*names, "label"]), *rows]))
        samples = read_samples(file, target="label")
        assert samples.X.shape == (3, width if cells == "123" else 3 * width)
    with pytest.raises(ValueError, match=f"and {width - 19} more, got 'c'"):
        read_samples(file, target="c")


def test_long_lines_are_refused_before_they_are_split(tmp_path):
    """A row with too many cells is named; cells in quotes may hold line ends and separators."""
    file = tmp_path / "rows.csv"
    file.write_text("a,label\n1,x\n" + "0," * 1_000_000 + "\n")
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"line 3 of .* must have 2 cells, .* got 1000001"):
        read_samples(file, target="label")
    assert tracemalloc.get_traced_memory()[1] < 10_000_000  # a list of cells takes more
    tracemalloc.stop()
    file.write_text('a,label\n"x\n1,2,3,4,5\ny",u\nz,v\n')
    samples = read_samples(file, target="label")
    assert samples.columns.feature_names == ["a=x\n1,2,3,4,5\ny", "a=z"]
    assert samples.lines == [4, 5]


def test_millions_of_empty_lines_are_refused(tmp_path):
    """Empty lines are skipped, but not without end."""
    file = tmp_path / "rows.csv"
    file.write_text("a,label\n1,x\n" + "\n" * 1000 + "2,y\n")
    assert read_samples(file, target="label").lines == [2, 1003]
    file.write_text("a,label\n1,x\n" + "\n" * 1_000_001)
    with pytest.raises(ValueError, match="must hold rows, got more than 1000000 empty lines"):
        read_samples(file, target="label")


def test_equal_rows_of_parquet_are_limited(tmp_path):
    """A small file whose rows repeat is refused if they need gigabytes, and read otherwise."""
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    file = tmp_path / "rows.parquet"
    count = 5_000_000
    zeros = pa.array(np.zeros(count, dtype=np.int8))
    parquet.write_table(pa.table({"a": zeros, "label": zeros}), file)
    assert file.stat().st_size < 50_000
    with pytest.raises(ValueError, match=f"unpack to at most .*{UNPACK_LIMIT}"):
        read_table(file)
    text = pa.DictionaryArray.from_arrays(zeros[:10_000], pa.array(["x" * 100_000]))
    parquet.write_table(pa.table({"a": text, "label": zeros[:10_000]}), file)
    tracemalloc.start()
    assert set(read_table(file).texts("a")) == {"x" * 100_000}  # 1 GB if each row had its own
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_missing_values_of_parquet(tmp_path):
    """Columns with missing texts or numbers are read, and the row without a value is named."""
    pytest.importorskip("pyarrow")
    file = tmp_path / "rows.parquet"
    frame = pd.DataFrame({"a": ["x", None, "y"], "b": [1.0, 2.0, None], "label": [0, 1, 0]})
    frame.to_parquet(file)
    table = read_table(file)
    for name, row in (("a", 2), ("b", 3)):
        with pytest.raises(ValueError, match=f"row {row}, column '{name}' .* must have a value"):
            table.texts(name)
