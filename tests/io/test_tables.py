import bz2
import gzip

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris
from sklearn.preprocessing import OneHotEncoder

from span_hpo.io.encoding import EncodedColumn, Encoding, read_samples
from span_hpo.io.libsvm_text import read_libsvm
from span_hpo.io.tables import Table, file_format, read_table

CSV = """age,town,trust,clinic,label
31,Ulm,0.5,A,yes
 45 ,"Bad Aibling, Mitte",1,B,no
2.5e1,Ulm,0,A,yes
60,Köln,0.25,B,no
"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text(CSV, encoding="utf-8")
    return file


def test_columns_become_features(path):
    """Numbers stay, texts become one column of 0 and 1 for each; other columns are no features."""
    samples = read_samples(path, target="label", score="trust", group="clinic")
    assert samples.columns.feature_names == [
        "age",
        "town=Bad Aibling, Mitte",
        "town=Köln",
        "town=Ulm",
    ]
    expected = [[31, 0, 0, 1], [45, 1, 0, 0], [25, 0, 0, 1], [60, 0, 1, 0]]
    np.testing.assert_array_equal(samples.X, expected)
    assert samples.y.tolist() == ["yes", "no", "yes", "no"]
    assert samples.scores["trust"].tolist() == [0.5, 1.0, 0.0, 0.25]
    assert samples.groups.tolist() == ["A", "B", "A", "B"]
    assert samples.lines == [2, 3, 4, 5]


def test_one_hot_encoding_is_that_of_scikit_learn():
    """A random table is encoded as `OneHotEncoder` does, unknown categories as zeros."""
    rng = np.random.default_rng(0)
    seen = pd.DataFrame({name: rng.choice(list("abcdef"), 40) for name in ("x", "y")})
    new = pd.DataFrame({name: rng.choice(list("abcdefgh"), 40) for name in ("x", "y")})
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(seen)
    features = [EncodedColumn(name, tuple(sorted(set(seen[name])))) for name in ("x", "y")]
    columns = Encoding("label", tuple(features))
    np.testing.assert_array_equal(columns.encoded(Table.of(seen)), encoder.transform(seen))
    with pytest.warns(UserWarning, match="has categories that were not there in training: g, h"):
        encoded = columns.encoded(Table.of(new))
    np.testing.assert_array_equal(encoded, encoder.transform(new))


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


@pytest.mark.parametrize("share", [0.05, 1.0])
def test_libsvm_files(share, tmp_path):
    """What scikit-learn writes is read back, sparse if most of it is 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 20)) * (rng.random((30, 20)) < share)
    X[0, -1] = 1.0
    y = rng.choice([-1, 1], 30)
    file = tmp_path / "rows"
    dump_svmlight_file(X, y, str(file), zero_based=False, comment="a comment")
    found, labels = read_libsvm(file)
    assert hasattr(found, "toarray") == (share < 0.2)
    np.testing.assert_allclose(found.toarray() if share < 0.2 else found, X)
    assert labels.tolist() == y.tolist()
    same, _ = read_libsvm(file, 7)
    wide, _ = read_libsvm(file, 25)
    assert (same.shape[1], wide.shape[1]) == (20, 25)


def test_format_is_told_by_the_name():
    """Suffixes in any case, compressed or not; LIBSVM's if there is none."""
    names = {"a.csv": "csv", "a.TSV.gz": "csv", "a.pq": "parquet", "a.parquet": "parquet"}
    names |= {"a": "libsvm", "a1a.t": "libsvm", "a.scale.bz2": "libsvm", "x.csv/a": "libsvm"}
    assert {name: file_format(name) for name in names} == names


BAD_CSV = {
    "missing value": (CSV.replace("45", ""), {}, "line 3, column 'age' of .* must have a value"),
    "question mark": (CSV.replace("Ulm,0.5", "?,0.5"), {}, "line 2, column 'town' .* value"),
    "missing label": (CSV.replace("B,no\n2", "B,\n2"), {}, "missing in 1 of 4 rows"),
    "slip": (CSV.replace("60", "6o"), {}, "line 5, column 'age' .* like others .* got '6o'"),
    "infinite": (CSV.replace("60", "1e999"), {}, "line 5, column 'age' .* finite number"),
    "short row": (CSV.replace("B,no\n2", "B\n2"), {}, "line 3 of .* must have 5 cells, .* got 4"),
    "long row": (CSV + "1,2,3,4,5,6\n", {}, "line 6 of .* got 6"),
    "open quote": (CSV + '"1,2,3,4,5\n', {}, "line 6 of .* must be CSV"),
    "no rows": (CSV.splitlines()[0], {}, "must have rows"),
    "empty": ("", {}, "must name the columns, got an empty one"),
    "no header": (CSV.partition("\n")[2].replace("Ulm", "1"), {}, "one of '31', '1'"),
    "numbers for names": ("1,2\n3,4\n", {"target": "1"}, "must name the columns, got numbers"),
    "two of a name": ("a,a,label\n1,2,3\n", {}, "different names, got two 'a'"),
    "one class": (CSV.replace("no", "yes"), {}, "from 2 to 100 classes, got 1"),
    "regression": (
        "a,label\n" + "".join(f"{i},{i / 7}\n" for i in range(150)),
        {},
        "from 2 to 100 classes, got 150",
    ),
    "names": (
        "a,label\n" + "".join(f"x{i},{i % 2}\n" for i in range(150)),
        {},
        "at most 100 categories, got 150 .*`drop`",
    ),
    "only labels": ("label\n1\n2\n", {}, "must have a column for features"),
    "no target": (CSV, {"target": None}, "`target` must name the column .*'age', 'town'"),
    "decimal comma": (
        'a,label\n"0,5",x\n"1,5",y\n',
        {},
        "line 2, column 'a' .* must be a number such as 1234.5, got '0,5'",
    ),
    "percent": ("a,label\n5%,x\n10 %,y\n", {}, "must be a number such as 1234.5, got '5%'"),
    "index": (",a,label\n0,5,x\n1,10,y\n", {}, "must have names, got one without"),
    "score range": (CSV, {"score": "age"}, r"line 2, .* must be a score in \[0, 1\], got 31"),
    "unknown target": (CSV, {"target": "lable"}, "`target` must be a column .* got 'lable'"),
    "unknown score": (CSV, {"score": "x"}, "`score` must be a column"),
    "unknown drop": (CSV, {"drop": ["age", "x"]}, "`drop` must be a column .* got 'x'"),
    "score is text": (CSV, {"score": "town"}, "line 2, column 'town' .* finite number, got 'Ulm'"),
}


@pytest.mark.parametrize("case", BAD_CSV)
def test_bad_tables_are_named(case, tmp_path):
    """Messages tell the line, the column and what is wanted."""
    text, settings, message = BAD_CSV[case]
    file = tmp_path / "rows.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_samples(file, **{"target": "label", **settings})


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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty file"),
        ("1 1:2\n-1 1:x\n", "line 2 of .* got '-1 1:x'"),
        ("1 1:2\n\n-1 0:1\n", "line 3 of .* numbered from 1, got '-1 0:1'"),
        ("1 1:2\n-1 1:inf\n", "line 2 of .*"),
        ("1 1:2\nnan 1:1\n", "line 2 of .*"),
        ("1 1:2\n1 1\n", "line 2 of .*"),
        ("1 1:2\n1 99999999999999999999:1\n", "must .* numbered from 1"),
        ("1 1:2\n1 100000000:1\n", "from 1 to at most 10000000, got 100000000"),
        ("1\n-1\n", "must have a feature"),
        ("a,b\n1,2\n", "line 1 of .*"),
    ],
)
def test_bad_libsvm_files_are_named(text, message, tmp_path):
    """Messages tell the line."""
    file = tmp_path / "rows"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_libsvm(file)


def test_libsvm_files_have_no_columns(tmp_path):
    """Columns cannot be named where there are none."""
    file = tmp_path / "rows"
    dump_svmlight_file(*load_iris(return_X_y=True), str(file), zero_based=False)
    for name, value in (("target", "label"), ("drop", ["a"])):
        with pytest.raises(ValueError, match=f"`{name}` must not be given for a file in LIBSVM's"):
            read_samples(file, **{name: value})
    assert read_samples(file).X.shape == (150, 4)


def test_tables_of_other_types_are_refused():
    """Dates and lists are neither numbers nor text."""
    dates = Table.of({"day": np.array(["2020-01-01"], dtype="datetime64[D]")})
    with pytest.raises(TypeError, match=r"column 'day' of `X` must hold numbers or text"):
        dates.numbers("day")
    lists = Table.of(pd.DataFrame({"list": [[1], [2]]}))
    with pytest.raises(TypeError, match=r"row 1, column 'list' of `X` must be a number or text"):
        lists.texts("list")


def test_columns_of_new_rows_are_those_of_training(path):
    """A table without a column, or with text for numbers, cannot be encoded; the order is free."""
    samples = read_samples(path, target="label")
    frame = pd.read_csv(path, skipinitialspace=True)
    np.testing.assert_array_equal(
        samples.columns.encoded(Table.of(frame[frame.columns[::-1]])), samples.X
    )
    with pytest.raises(ValueError, match=r"must have the columns 'town', got 'age', 'trust'"):
        samples.columns.encoded(Table.of(frame.drop(columns="town")))
    with pytest.raises(ValueError, match=r"row 1, column 'age' of `X` must be a finite number"):
        samples.columns.encoded(Table.of(frame.assign(age="old")))


def test_content_round_trip(path):
    """What a file says about columns is read back; damage is noticed."""
    columns = read_samples(path, target="label").columns
    assert Encoding.of_content(columns.content()) == columns
    for damage in (
        {},
        {"target": "x"},
        {"target": "x", "features": [{"name": "a", "categories": 3}]},
    ):
        with pytest.raises((KeyError, TypeError, ValueError)):
            Encoding.of_content(damage)


def test_read_table_reads_what_is_there(path):
    """A table keeps every column in its order."""
    table = read_table(path)
    assert list(table.columns) == ["age", "town", "trust", "clinic", "label"]
    assert len(table) == 4


@pytest.mark.parametrize(
    "cells", [["TRUE", "FALSE"], ["01234", "01300"], ["1.0", "2.0"], ["1e3", "1.50"], ["x", "Y"]]
)
def test_categories_survive_programs_that_read_csv(cells, tmp_path):
    """What pandas makes of a column of categories is encoded as the text of the file."""
    file = tmp_path / "rows.csv"
    file.write_text("a,label\n" + "".join(f"{cell},{i % 2}\n" for i, cell in enumerate(cells * 3)))
    samples = read_samples(file, target="label", category=["a"])
    frame = pd.read_csv(file)
    np.testing.assert_array_equal(samples.columns.encoded(Table.of(frame)), samples.X)
    assert samples.X.sum() == 6


def test_index_of_pandas_is_no_feature(tmp_path):
    """The index that pandas keeps in a Parquet file is left out."""
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "label": [0, 1, 0, 1]})
    frame[frame["a"] > 1].to_parquet(tmp_path / "rows.parquet")
    assert read_samples(tmp_path / "rows.parquet", target="label").columns.feature_names == ["a"]
