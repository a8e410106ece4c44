import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris

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
    "missing value": (CSV.replace("45", ""), {}, "line 3, column 'age' of .* must have a value"),
    "question mark": (CSV.replace("Ulm,0.5", "?,0.5"), {}, "line 2, column 'town' .* value"),
    "missing label": (CSV.replace("B,no\n2", "B,\n2"), {}, "missing in 1 of 4 rows"),
    "slip": (CSV.replace("60", "6o"), {}, "line 5, column 'age' .* like the others .* got '6o'"),
    "infinite": (CSV.replace("60", "1e999"), {}, "line 5, column 'age' .* finite number"),
    "short row": (CSV.replace("B,no\n2", "B\n2"), {}, "line 3 of .* must have 5 cells, .* got 4"),
    "long row": (CSV + "1,2,3,4,5,6\n", {}, "line 6 of .* got 6"),
    "open quote": (CSV + '"1,2,3,4,5\n', {}, "line 6 of .* must be CSV"),
    "no rows": (CSV.splitlines()[0], {}, "must have rows"),
    "empty": ("", {}, "must name the columns, got an empty one"),
    "no header": (CSV.partition("\n")[2].replace("Ulm", "1"), {}, "one of '31', '1'"),
    "numbers for names": ("1,2\n3,4\n", {"target": "1"}, "must name the columns, got numbers"),
    "two of a name": ("a,a,label\n1,2,3\n", {}, "different names, got 'a' twice"),
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


def test_libsvm_files_have_no_columns(tmp_path):
    """Columns cannot be named where there are none."""
    file = tmp_path / "rows"
    dump_svmlight_file(*load_iris(return_X_y=True), str(file), zero_based=False)
    for name, value in (("target", "label"), ("drop", ["a"])):
        with pytest.raises(ValueError, match=f"`{name}` must not be given for a file in LIBSVM's"):
            read_samples(file, **{name: value})
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


def test_many_classes_are_counted(tmp_path):
    """Text labels of more than 20 classes are read with a warning."""
    file = tmp_path / "rows.csv"
    file.write_text("a,label\n" + "".join(f"{i},c{i % 25}\n" for i in range(60)))
    with pytest.warns(UserWarning, match=r"column 'label' of .* holds 25 classes, from 2 rows of"):
        assert len(set(read_samples(file, target="label").y)) == 25
