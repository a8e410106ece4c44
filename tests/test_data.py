import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from span_hpo.data import as_dataset

X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]])
Y = np.array([0, 1, 0, 1])


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        ([-1, 1, -1, 1], 1),
        ([1.0, 2.0, 1.0, 2.0], 2.0),
        ([False, True, False, True], True),
        (["bad", "good", "bad", "good"], "good"),
        (np.array(["b", "c", "b", "c"], dtype=object), "c"),
        (pd.Series([3, 7, 3, 7]), 7),
        (pd.Categorical(["u", "v", "u", "v"]), "v"),
        (np.array([[0], [1], [0], [1]]), 1),
    ],
)
def test_any_two_labels(labels, positive):
    """The second label in sorted order is +1, whatever the labels are."""
    data = as_dataset(X, labels)
    assert data.y.tolist() == [-1.0, 1.0, -1.0, 1.0]
    assert data.classes[1] == positive


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int8, bool])
def test_features_become_double_precision(kind):
    """Every numeric type is taken, and the user's array is not touched."""
    given = X.astype(kind)
    data = as_dataset(given, Y)
    assert data.X.dtype == np.float64
    np.testing.assert_array_equal(data.X, given.astype(float))
    with pytest.raises(ValueError, match="read-only"):
        data.X[0, 0] = 99.0
    given[0, 0] = 1
    assert data.X[0, 0] == 0.0


def test_nobody_can_change_the_data():
    """Labels, groups and scores are copies that are read-only."""
    y, groups, q = Y.copy(), np.array(["a", "b", "a", "b"]), np.ones(4)
    data = as_dataset(X, y, groups=groups, scores=q)
    y[:], groups[:], q[:] = 7, "z", 0.0
    assert data.labels.tolist() == Y.tolist()
    assert data.groups.tolist() == ["a", "b", "a", "b"]
    assert data.score(None).tolist() == [1.0] * 4
    for array in (data.y, data.labels, data.groups, data.score(None)):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]


def test_data_frame_keeps_its_column_names():
    """A DataFrame, also with nullable columns, gives features and their names."""
    frame = pd.DataFrame({"a": X[:, 0], "b": pd.array([1, 0, 2, 1], dtype="Int64")})
    data = as_dataset(frame, Y)
    np.testing.assert_array_equal(data.X, X)
    assert data.feature_names.tolist() == ["a", "b"]
    assert as_dataset(X, Y).feature_names is None


def test_scores_by_name():
    """One array of scores needs no name; several are a mapping or a DataFrame."""
    q, r = np.linspace(0, 1, 4), np.ones(4)
    assert as_dataset(X, Y, scores=q).score(None).tolist() == q.tolist()
    for scores in ({"q": q, "r": r}, pd.DataFrame({"q": q, "r": r})):
        data = as_dataset(X, Y, scores=scores)
        assert data.score("r").tolist() == r.tolist()
        with pytest.raises(ValueError, match=r"`score` must be one of \['q', 'r'\], because"):
            data.score(None)
        with pytest.raises(ValueError, match="must hold a score called 's' for this weighting"):
            data.score("s")
    with pytest.raises(
        ValueError, match="must hold one score per row for this weighting, got none"
    ):
        as_dataset(X, Y).score(None)


def test_rows_are_taken_from_everything():
    """A subset keeps features, labels, scores and groups together."""
    data = as_dataset(X, Y, scores={"q": np.arange(4.0)}, groups=["u", "v", "w", "x"])
    part = data.take(np.array([3, 1]))
    assert part.X.tolist() == [[3, 1], [1, 0]]
    assert part.labels.tolist() == [1, 1]
    assert part.score("q").tolist() == [3, 1]
    assert part.groups.tolist() == ["x", "v"]


def test_nested_order_keeps_the_share_of_each_class():
    """Every prefix of the fixed order has each class in proportion, up to one row."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1], [90, 30]))
    data = as_dataset(rng.normal(size=(120, 2)), y)
    assert sorted(data.nested_order) == list(range(120))
    share = np.cumsum(y[data.nested_order] == 1)
    assert (np.abs(share - 0.25 * np.arange(1, 121)) <= 1).all()
    again = as_dataset(data.X, y)
    assert data.nested_order.tolist() == again.nested_order.tolist()


BAD = [
    ({"X": X[0]}, ValueError, "`X` must have two dimensions (rows, features), got shape (2,)"),
    ({"X": X[:1], "y": Y[:1]}, ValueError, "`X` must have at least two rows and one feature"),
    ({"X": X[:, :0]}, ValueError, "`X` must have at least two rows and one feature"),
    ({"X": [["a", "b"]] * 4}, TypeError, "`X` must hold real numbers, got dtype <U1"),
    ({"X": X * 1j}, TypeError, "`X` must hold real numbers, got dtype complex128"),
    ({"X": sparse.csr_matrix(np.array(X) * np.nan)}, ValueError, "`X` must be finite, got nan"),
    ({"X": sparse.csr_matrix((1, 3))}, ValueError, "`X` must have at least two rows"),
    ({"X": np.where(X == 2, np.nan, X)}, ValueError, "`X` must be finite, got nan in row 2, col"),
    ({"X": np.where(X == 3, np.inf, X)}, ValueError, "`X` must be finite, got inf in row 3, col"),
    ({"y": Y[:3]}, ValueError, "`y` must hold one value for each of the 4 rows, got shape (3,)"),
    ({"y": [0, 0, 0, 0]}, ValueError, "`y` must have two classes or more, got only 0"),
    ({"y": [0, 1, np.nan, 1]}, ValueError, "`y` must have a label in every row, got nan in row 2"),
    ({"y": [0, 1, np.inf, 1]}, ValueError, "`y` must have a label in every row, got inf in row 2"),
    ({"y": ["a", None, "b", "a"]}, ValueError, "`y` must have a label in every row, got None"),
    ({"y": pd.array([0, 1, None, 1])}, ValueError, "`y` must be complete, got a masked array"),
    (
        {"y": np.array([0, "a", 0, "a"], dtype=object)},
        TypeError,
        "`y` must hold labels of one type",
    ),
    ({"scores": [0.1, 0.2]}, ValueError, "`scores` must hold one value for each of the 4 rows"),
    ({"scores": {"q": [0, 1, np.nan, 1]}}, ValueError, "`scores['q']` must be finite, got nan in"),
    ({"scores": ["a"] * 4}, TypeError, "`scores` must hold real numbers, got dtype <U1"),
    ({"X": np.ma.masked_equal(X, 2.0)}, ValueError, "`X` must be complete, got a masked array"),
    ({"X": X.astype("U4")}, TypeError, "`X` must hold real numbers, got dtype <U4"),
    ({"X": X.astype("U4").astype(object)}, TypeError, "got text. Encode categories, or"),
    ({"X": X.astype("m8[s]")}, TypeError, "`X` must hold real numbers, got dtype timedelta64"),
    ({"groups": [1, 2]}, ValueError, "`groups` must hold one value for each of the 4 rows"),
    ({"groups": [1, None, 2, 2]}, ValueError, "`groups` must have a label in every row, got None"),
]


@pytest.mark.parametrize(("change", "kind", "message"), BAD)
def test_wrong_data_are_named(change, kind, message):
    """Wrong data raise before anything is computed and say which argument is wrong."""
    given = {"X": X, "y": Y, **change}
    with pytest.raises(kind) as caught:
        as_dataset(given.pop("X"), given.pop("y"), **given)
    assert message in str(caught.value)


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.csc_array, sparse.coo_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_sparse_features_become_compressed_rows(form, dtype):
    """Any sparse form is copied, in double precision, and nobody can change it."""
    dense = np.array([[0, 1, 0], [2, 0, 0], [0, 0, 3], [0, 0, 0]])
    given = form(dense.astype(dtype))
    data = as_dataset(given, [0, 1, 0, 1])
    assert data.X.format == "csr"
    assert data.X.dtype == np.float64
    np.testing.assert_array_equal(data.X.toarray(), dense)
    given.data[:] = 9
    np.testing.assert_array_equal(data.X.toarray(), dense)
    with pytest.raises(ValueError, match="read-only"):
        data.X.data[0] = 5.0
    np.testing.assert_array_equal(data.take(np.array([2, 0])).X.toarray(), dense[[2, 0]])
