import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.preprocessing import OneHotEncoder

from span_hpo.io.encoding import EncodedColumn, Encoding
from span_hpo.io.samples import read_samples
from span_hpo.io.tables import Table


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
