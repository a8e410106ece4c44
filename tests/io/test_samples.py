import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris

from span_hpo.io.dialects import Dialect
from span_hpo.io.samples import read_samples
from tests.io.files import CSV


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


BAD_CSV = {
    "missing value": (
        CSV.replace("45", ""),
        {},
        r"must have a value in every cell, got none in 'age' \(1 of 4 rows, the first of which is "
        r"line 3\)\. Fill them in with `impute` median, leave these rows out with `drop_rows`, or "
        r"these columns with `drop`\.$",
    ),
    "question mark": (CSV.replace("Ulm,0.5", "?,0.5"), {}, "none in 'town' .* is line 2"),
    "several columns": (
        CSV.replace("45", "NA").replace("Ulm", ""),
        {},
        r"none in 'age' \(1 of 4 rows, .* line 3\), 'town' \(2 of 4 rows, .* line 2\)\. Fill",
    ),
    "empty column": (
        "a,b,c,label\n,1,,x\n,2,,y\n",
        {"impute": "median"},
        "must have a value in some row of each column, got none in 'a', 'c'. Use `drop` for these",
    ),
    "missing label": (
        CSV.replace("B,no\n2", "B,\n2"),
        {"impute": "median"},
        r"got none in 'label' \(1 of 4 rows, the first of which is line 3\)\. Use `drop_rows` to "
        r"leave these rows out\.$",
    ),
    "missing label and feature": (
        CSV.replace("B,no\n2", "B,\n2").replace("31", ""),
        {},
        "none in 'label' .*, 'age' .* `drop_rows` to leave these rows out, and fill in features "
        "with `impute`",
    ),
    "missing score": (CSV.replace("0.25", ""), {"score": "trust"}, "none in 'trust' .* line 5"),
    "no complete row": (
        "a,b,label\n,1,x\n2,,y\n",
        {"drop_rows": True},
        "must have a row without missing values, got none of 2: values are missing in 'a' .*, 'b' "
        ".*Use `impute` instead of `drop_rows`",
    ),
    "impute": (CSV, {"impute": "mean"}, "`impute` must be one of .*'median'.*, got 'mean'"),
    "slip": (CSV.replace("60", "6o"), {}, "line 5, column 'age' .* like the others .* got '6o'"),
    "infinite": (CSV.replace("60", "1e999"), {}, "line 5, column 'age' .* finite number"),
    "short row": (CSV.replace("B,no\n2", "B\n2"), {}, "line 3 of .* must have 5 cells, .* got 4"),
    "long row": (CSV + "1,2,3,4,5,6\n", {}, "line 6 of .* got 6"),
    "open quote": (CSV + '"1,2,3,4,5\n', {}, "line 6 of .* must be CSV"),
    "no rows": (CSV.splitlines()[0], {}, "must have rows"),
    "empty": ("", {}, "must name the columns, got an empty one"),
    "no header": (
        CSV.partition("\n")[2].replace("Ulm", "1"),
        {},
        r"got 'label' \(header missing\?\)\.$",
    ),
    "numbers for names": (
        "1,2\n3,4\n",
        {"target": "1"},
        r"got numbers: '1', '2' \(header missing\?\)",
    ),
    "two of a name": ("a,a,label\n1,2,3\n", {}, "different names, got 'a' twice"),
    "two of a number": ("1,1,x\n1,2,y\n", {}, r"got '1' twice\. \(header missing\?\)"),
    "one class": (CSV.replace("no", "yes"), {}, "must hold two classes or more, got only 'yes'"),
    "regression": (
        "a,label\n" + "".join(f"{i},{i / 7}\n" for i in range(150)),
        {},
        "got 150 different numbers from 0 to 21.2857 in 150 rows, which look like a quantity",
    ),
    "names": (
        "a,label\n" + "".join(f"x{i},{i % 2}\n" for i in range(150)),
        {},
        "at most 100 categories, got 150 .*`drop`",
    ),
    "only labels": ("label\n1\n2\n", {}, "must have a column for features"),
    "delimiter": (
        "a b label\n1 2 3\n",
        {"target": "a b label"},
        "must have a column for features, .* Give the character between cells in `delimiter`",
    ),
    "no target": (CSV, {"target": None}, "`target` must name the column .*'age', 'town'"),
    "no target, no header": (
        "1.5,x,a\n2.5,x,b\n",
        {"target": None},
        r"one of '1.5', 'x', 'a' \(header missing\?\)\.$",
    ),
    "decimal comma": (
        'a,label\n"0,5",x\n"1,5",y\n',
        {},
        "line 2, column 'a' .* must be a number such as 1234.5, got '0,5': the column looks like "
        "numbers with decimal commas. Set `decimal` ',' to read them, or name the column in "
        "`category` if",
    ),
    "one decimal comma": (
        'a,label\n1,x\n"1,5",y\n',
        {},
        "line 3, .* got '1,5' with a comma. Set `decimal` ',' if it is a decimal comma",
    ),
    "decimal point": (
        "a;label\n1,5;x\n1.5;y\n",
        {"dialect": Dialect(decimal=",")},
        "line 3, column 'a' .* like the others of its column, got '1.5'",
    ),
    "timestamps": (
        "a,label\n2020-01-31 12:00,x\n2020-02-01,y\n",
        {},
        "column 'a' .* got timestamps such as '2020-01-31 12:00'. Replace them by numbers, such as "
        "the hour, .* Leave the column out with `drop` or name it in `category` if every",
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


def test_missing_values_are_filled_in(tmp_path):
    """Values by hand; a label, a score or a group is never filled in."""
    file = tmp_path / "rows.csv"
    file.write_text("a,b,c,label\n1,u,true,x\n,v,true,y\n9,v,,x\n9,,false,y\n4,w,false,x\n")
    found = {}
    for impute in ("median", "most_frequent", "indicator"):
        samples = read_samples(file, target="label", impute=impute)
        found[impute] = samples.X.tolist()
        assert (len(samples.y), samples.n_dropped) == (5, 0)
    assert found["median"] == [
        [1.0, 1.0, 0.0, 0.0, 1.0],
        [6.5, 0.0, 1.0, 0.0, 1.0],
        [9.0, 0.0, 1.0, 0.0, 0.0],
        [9.0, 0.0, 1.0, 0.0, 0.0],
        [4.0, 0.0, 0.0, 1.0, 0.0],
    ]
    assert [row[0] for row in found["most_frequent"]] == [1.0, 9.0, 9.0, 9.0, 4.0]
    names = ["a", "a is missing", "b=u", "b=v", "b=w", "b is missing", "c", "c is missing"]
    assert samples.columns.feature_names == names
    flags = [[row[names.index(f"{name} is missing")] for row in samples.X] for name in "abc"]
    assert flags == [[0, 1, 0, 0, 0], [0, 0, 0, 1, 0], [0, 0, 1, 0, 0]]


def test_rows_with_missing_values_are_left_out(tmp_path):
    """Only rows that cannot be used are left out, and columns that are not used do not matter."""
    text = "a,b,id,label\n1,u,,x\n,v,3,y\n9,v,4,\n4,w,5,x\n5,w,5,y\n"
    file = tmp_path / "rows.csv"
    file.write_text(text)
    samples = read_samples(file, target="label", drop=["id"], drop_rows=True)
    assert (samples.y.tolist(), samples.lines, samples.n_dropped) == (["x", "x", "y"], [2, 5, 6], 2)
    both = read_samples(file, target="label", drop=["id"], drop_rows=True, impute="median")
    assert (both.lines, both.n_dropped) == ([2, 3, 5, 6], 1)
    assert both.X[1, 0] == 4.0  # median of the rows that are kept
    file.write_text("a,label\n1,x\n2,y\n")
    assert read_samples(file, target="label", drop_rows=True).n_dropped == 0


def test_a_first_line_that_looks_like_data(tmp_path):
    """The rows are read, but the user is asked whether the names of the columns are missing."""
    file = tmp_path / "rows.csv"
    file.write_text("5.1,x,label\n4.9,x,a\n6.2,y,b\n")
    with pytest.warns(UserWarning, match=r"looks like data, got '5.1', 'x', .*\(header missing\?"):
        samples = read_samples(file, target="label")
    assert samples.y.tolist() == ["a", "b"]


def test_many_classes_are_counted(tmp_path):
    """Text labels of more than 20 classes are read with a warning."""
    file = tmp_path / "rows.csv"
    file.write_text("a,label\n" + "".join(f"{i},c{i % 25}\n" for i in range(60)))
    with pytest.warns(UserWarning, match=r"column 'label' of .* holds 25 classes with 2 rows"):
        assert len(set(read_samples(file, target="label").y)) == 25


def test_another_delimiter_is_suspected_if_there_is_one_column(tmp_path):
    """Where all names stand in one cell, the message asks for the delimiter."""
    file = tmp_path / "rows.csv"
    file.write_text("a,b,label\n1,2,u\n3,4,v\n")
    message = r"must have a column 'label', got only one column, .* Give the character between"
    with pytest.raises(ValueError, match=message):
        read_samples(file, target="label", dialect=Dialect(delimiter=";"))


def test_numbers_with_decimal_commas(tmp_path):
    """Features, scores and labels are read as those with points."""
    text = "a,trust,b,label\n0.5,0.25,1.0,1.5\n-1e1,.5,2,2.5\n3,1,3,1.5\n"
    point, comma = tmp_path / "point.csv", tmp_path / "comma.csv"
    point.write_text(text)
    comma.write_text(text.replace(",", ";").replace(".", ","))
    settings = {"target": "label", "score": "trust", "category": ["b"]}
    one = read_samples(point, **settings)
    other = read_samples(comma, **settings, dialect=Dialect(decimal=","))
    np.testing.assert_array_equal(one.X, other.X)
    np.testing.assert_array_equal(one.scores["trust"], other.scores["trust"])
    assert one.columns == other.columns
    assert other.y.tolist() == one.y.tolist() == ["1.5", "2.5", "1.5"]


def test_libsvm_files_have_no_columns(tmp_path):
    """Columns cannot be named where there are none."""
    file = tmp_path / "rows"
    dump_svmlight_file(*load_iris(return_X_y=True), str(file), zero_based=False)
    for name, value in (("target", "label"), ("drop", ["a"])):
        with pytest.raises(ValueError, match=f"`{name}` must not be given for a file in LIBSVM's"):
            read_samples(file, **{name: value})
    for name, value in (("impute", "median"), ("drop_rows", True)):
        with pytest.raises(ValueError, match=f"`{name}` must not be given .* are 0, got {value!r}"):
            read_samples(file, **{name: value})
    for name, value in (("encoding", "latin-1"), ("delimiter", ";"), ("decimal", ",")):
        with pytest.raises(ValueError, match=f"`{name}` must not be given .* no CSV file, got"):
            read_samples(file, dialect=Dialect(**{name: value}))
    assert read_samples(file).X.shape == (150, 4)


def test_long_texts_of_digits_are_read(tmp_path):
    """A long text that almost looks like a formatted number is told apart in linear time."""
    file = tmp_path / "rows.csv"
    file.write_text("a,label\n" + "1.8 " * 30_000 + "x,u\ny,v\n")
    assert len(read_samples(file, target="label").columns.feature_names) == 2
    file.write_text("a,label\n" + "1.8 " * 30_000 + "%,u\n0'5,v\n")
    with pytest.raises(ValueError, match="must be a number such as"):
        read_samples(file, target="label")


def test_features_that_no_row_uses_have_no_column(tmp_path):
    """Sparse rows keep the used columns, and a numbering that says which these are."""
    file = tmp_path / "rows"
    file.write_text("1 2:1 9999999:2\n-1 5:1\n1 2:3\n")
    samples = read_samples(file)
    assert (samples.X.shape, samples.n_features) == ((3, 3), 9_999_999)
    assert samples.numbering.features.tolist() == [1, 4, 9_999_998]
    np.testing.assert_array_equal(samples.X.toarray(), [[1, 0, 2], [0, 1, 0], [3, 0, 0]])
    file.write_text("1 1:1 2:2\n-1 1:3\n")
    assert (read_samples(file).numbering, read_samples(file).n_features) == (None, 2)
