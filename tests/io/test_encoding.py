import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from span_hpo.io.encoding import IMPUTE, EncodedColumn, Encoding, as_impute, learned_encoding
from span_hpo.io.samples import read_samples
from span_hpo.io.tables import Table

FRAME = pd.DataFrame(
    {
        "a": [1.0, np.nan, 4.0, 9.0],
        "b": [7.0, 7.0, 3.0, np.nan],
        "t": ["u", None, "v", "v"],
        "k": pd.Categorical([1, 2, None, 2]),
        "f": [True, False, None, True],
    }
)


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
    filled = learned_encoding(Table.of(FRAME), list("abtkf"), target="y", impute="indicator")
    assert Encoding.of_content(json.loads(json.dumps(filled.content()))) == filled
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


def test_filling_is_that_of_scikit_learn():
    """Medians and most frequent values are those of `SimpleImputer`, flags its indicator."""
    rng = np.random.default_rng(0)
    rows = rng.integers(5, size=(60, 3)).astype(float)
    rows[rng.random(rows.shape) < 0.2] = np.nan
    table, names = Table.of(dict(zip("abc", rows.T, strict=True))), list("abc")
    for impute in ("median", "most_frequent"):
        theirs = SimpleImputer(strategy=impute).fit_transform(rows)
        ours = learned_encoding(table, names, impute=impute).encoded(table)
        np.testing.assert_array_equal(ours, theirs)
    theirs = SimpleImputer(strategy="median", add_indicator=True).fit_transform(rows)
    ours = learned_encoding(table, names, impute="indicator").encoded(table)
    np.testing.assert_array_equal(ours, theirs[:, [0, 3, 1, 4, 2, 5]])


def test_new_rows_are_filled_with_values_of_the_training_rows():
    """All columns of new rows may have missing values, also those that had none in training."""
    table = Table.of(FRAME.iloc[[0, 2, 3]].assign(b=[7.0, 7.0, 3.0], k=pd.Categorical([1, 2, 2])))
    encoding = learned_encoding(table, list("abtkf"), impute="indicator")
    assert encoding.feature_names == [
        *("a", "b", "t=u", "t=v", "k=1", "k=2", "f", "f is missing"),
    ]
    empty = Table.of({name: np.array([None], dtype=object) for name in "abtkf"})
    assert encoding.encoded(empty).tolist() == [[4.0, 7.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0]]


def test_missing_values_without_filling_are_named():
    """Training rows and new rows: all columns at once, with their rows and the way out."""
    with pytest.raises(ValueError, match=r"every cell, got none in 'a' \(1 of .*'f'.*NaN and None"):
        learned_encoding(Table.of(FRAME), list("abtkf"))
    encoding = learned_encoding(Table.of(FRAME.iloc[[0]]), list("abtkf"))
    message = (
        r"`X` must have a value in every cell that the model uses, got none in 'a' \(1 of 4 rows, "
        r"the first of which is row 2\), 'b' .*, 't' .*, 'k' .*, 'f' .*\. Fill them in, or fit "
        r"with `impute` if such rows are to be predicted\.$"
    )
    with pytest.raises(ValueError, match=message):
        encoding.encoded(Table.of(FRAME))
    with pytest.raises(ValueError, match=r"some row of each column, got none in 'a'. Leave these"):
        learned_encoding(Table.of(FRAME.iloc[[1]]), ["a"], impute="median")


def test_columns_that_cannot_be_features_of_a_frame():
    """Advice about DataFrames speaks of their types, not of options of the command line."""
    frame = pd.DataFrame({"day": ["2020-01-01", "2020-01-02"], "share": ["5%", "7%"]})
    with pytest.raises(ValueError, match=r"got timestamps .*Leave the column out, or give it the"):
        learned_encoding(Table.of(frame), ["day"])
    with pytest.raises(ValueError, match=r"a number such as 1234.5, got '5%'. Give the column the"):
        learned_encoding(Table.of(frame), ["share"])
    learned_encoding(Table.of(frame.astype("category")), ["day", "share"])
    names = pd.DataFrame({"name": [f"n{i}" for i in range(101)]})
    with pytest.raises(
        ValueError, match=r"at most 100 categories, got 101 .* labels, leave it out"
    ):
        learned_encoding(Table.of(names), ["name"])


def test_impute_must_be_known():
    """A wrong rule is named with those that exist."""
    with pytest.raises(ValueError, match=r"`impute` must be one of \['median', .* got 'mean'"):
        as_impute("mean")
    assert [as_impute(name) for name in (*IMPUTE, None)] == [*IMPUTE, None]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fill": "u"}, "`fill` of column 'a' must be a number, got 'u'"),
        ({"categories": ("u",), "fill": 1.0}, "must be one of its categories, got 1.0"),
        ({"categories": ("u",), "fill": "v"}, "must be one of its categories, got 'v'"),
        ({"has_flag": True}, "`fill` of column 'a' must be given, because it has a flag"),
    ],
)
def test_fillings_must_suit_their_columns(settings, message):
    """A model file cannot fill numbers with text, or with an unknown category."""
    with pytest.raises(ValueError, match=message):
        EncodedColumn("a", **settings)


def test_large_encodings_with_missing_values_are_sparse():
    """Filled categories and flags are the same in sparse rows as in an array."""
    rng = np.random.default_rng(0)
    cells = rng.integers(80, size=(3500, 70)).astype(str).astype(object)
    cells[rng.random(cells.shape) < 0.1] = None
    names = [f"c{j}" for j in range(70)]
    table = Table.of(dict(zip(names, cells.T, strict=True)))
    encoding = learned_encoding(table, names, category=names, impute="indicator")
    found = encoding.encoded(table)
    assert sparse.issparse(found)
    few = encoding.encoded(table.take(np.arange(40)))
    np.testing.assert_array_equal(found[:40].toarray(), few)
    flags = [encoding.feature_names.index(f"{name} is missing") for name in names]
    np.testing.assert_array_equal(few[:, flags], cells[:40] == None)  # noqa: E711  # each cell
