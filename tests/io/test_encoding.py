import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_iris
from sklearn.preprocessing import OneHotEncoder

from span_hpo.io.encoding import EncodedColumn, Encoding, read_samples
from span_hpo.io.tables import Table
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


def test_one_hot_encoding_is_that_of_scikit_learn():
    """A random table is encoded as `OneHotEncoder` does, unknown categories as zeros."""
    rng = np.random.default_rng(0)
    seen = pd.DataFrame({name: rng.choice(list("abcdef"), 40) for name in ("x", "y")})
    new = pd.DataFrame({name: rng.choice(list("abcdefgh"), 40) for name in ("x", "y")})
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(seen)
    features = [EncodedColumn(name, tuple(sorted(set(seen[name])))) for name in ("x", "y")]
    columns = Encoding("label", tuple(features))
    np.testing.assert_array_equal(columns.encoded(Table.of(seen)), encoder.transform(seen))
    with pytest.warns(
        UserWarning, match="has categories that do not occur in the training rows: g, h"
    ):
        encoded = columns.encoded(Table.of(new))
    np.testing.assert_array_equal(encoded, encoder.transform(new))


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


def test_libsvm_files_have_no_columns(tmp_path):
    """Columns cannot be named where there are none."""
    file = tmp_path / "rows"
    dump_svmlight_file(*load_iris(return_X_y=True), str(file), zero_based=False)
    for name, value in (("target", "label"), ("drop", ["a"])):
        with pytest.raises(ValueError, match=f"`{name}` must not be given for a file in LIBSVM's"):
            read_samples(file, **{name: value})
    assert read_samples(file).X.shape == (150, 4)


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


def test_large_encodings_are_sparse(tmp_path):
    """Features that would be a large array of zeros are sparse, with the same entries."""
    rng = np.random.default_rng(0)
    cells = rng.integers(80, size=(3500, 70)).astype(str)
    names = [f"c{j}" for j in range(70)]
    table = Table({name: cells[:, j].astype(object) for j, name in enumerate(names)}, "rows")
    known = tuple(str(j) for j in range(75))  # five categories are unknown
    columns = Encoding("label", tuple(EncodedColumn(name, known) for name in names))
    few = Table({name: column[:40] for name, column in table.columns.items()}, "rows")
    with pytest.warns(UserWarning, match="do not occur in the training rows"):
        found, dense = columns.encoded(table), columns.encoded(few)
    assert sparse.issparse(found)
    assert isinstance(dense, np.ndarray)
    assert found.nnz == np.count_nonzero(np.isin(cells, known))
    np.testing.assert_array_equal(found[:40].toarray(), dense)


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
