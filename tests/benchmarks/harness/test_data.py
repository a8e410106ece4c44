"""The loader of the data sets: sizes, splits and scores."""

import numpy as np
import pytest

from benchmarks.harness.data import PAPER, load, load_pair, n_splits
from tests.benchmarks.data_sets import stored, with_data

# Table 1 of the paper: training rows, test rows, features. It prints 783 for the 583 test rows of
# breast cancer, which has 683 rows in all.
TABLE = {
    "breast_cancer": (100, 583, 10),
    "mushrooms": (200, 7924, 112),
    "ida_waveform": (400, 4600, 21),
    "ida_banana": (400, 4900, 2),
    "skin_nonskin": (500, 244557, 3),
    "splice": (1000, 2175, 60),
    "ida_image": (1300, 1010, 18),
    "a1a": (1605, 30956, 123),
    "mnist_2_9": (11907, 2041, 780),
    "mnist_1_7": (13007, 2163, 780),
    "mnist_3_6": (12049, 1968, 780),
    "mnist_0_8": (11774, 1954, 780),
    "parkinson": (520, 520, 26),
    "bank": (300, 40888, 11),
}
POSITIVE = {"breast_cancer": 239, "mushrooms": 3916, "skin_nonskin": 50859, "bank": 4640}


def test_all_data_sets_of_the_paper_are_known():
    """The names are those of Table 1, in its order."""
    assert list(TABLE) == list(PAPER)


@with_data
@pytest.mark.parametrize("name", TABLE)
def test_sizes_are_those_of_the_paper(name):
    """Rows and features agree with Table 1; training rows fill [0, 1] and have both classes."""
    split = load(name)
    assert (len(split.y_train), len(split.y_test), split.n_features) == TABLE[name]
    assert split.X_train.shape[1] == split.X_test.shape[1] >= split.n_features
    assert (split.X_train.min(), split.X_train.max()) == (0, 1)
    assert set(split.y_train) == set(split.y_test) == {-1, 1}


@with_data
def test_columns_that_do_not_count_are_empty():
    """The pixels of MNIST beyond the 780 of the LIBSVM copy are 0 in every training row."""
    X = stored("mnist")["X"][:60000]
    assert not X[:, 780:].any()
    assert X[:, 779].any()


@with_data
@pytest.mark.parametrize("name", POSITIVE)
def test_drawn_splits_repeat(name):
    """The same number gives the same rows, another number others; no row is lost."""
    one, again, other = load(name), load(name), load(name, split=1)
    np.testing.assert_array_equal(one.X_train, again.X_train)
    np.testing.assert_array_equal(one.y_test, again.y_test)
    assert not np.array_equal(one.X_train, other.X_train)
    for split in (one, other):
        y = np.concatenate([split.y_train, split.y_test])
        assert (y == 1).sum() == POSITIVE[name]
    assert n_splits(name) == 10


@with_data
def test_numbers_of_official_splits():
    """The official splits of a file are counted; a single one is 1."""
    assert {name: n_splits(name) for name in ("ida_banana", "ida_image", "a1a", "parkinson")} == {
        "ida_banana": 10,
        "ida_image": 9,
        "a1a": 1,
        "parkinson": 1,
    }
    assert n_splits("mnist_2_9") == 1


@with_data
def test_official_rows_are_taken():
    """An official split holds the rows of the file, in their order."""
    arrays = stored("ida_heart")
    split = load("ida_heart", split=3)
    np.testing.assert_array_equal(split.y_train, arrays["y"][arrays["train_idx"][3]])
    np.testing.assert_array_equal(split.y_test, arrays["y"][arrays["test_idx"][3]])


@with_data
def test_subjects_of_parkinson_are_disjoint():
    """No subject is in both parts; each part has ten patients and ten healthy subjects."""
    arrays = stored("parkinson_speech")
    split = load("parkinson")
    wanted = {"train": [*range(1, 11), *range(21, 31)], "test": [*range(11, 21), *range(31, 41)]}
    train = arrays["X"][np.isin(arrays["subject"], wanted["train"])]
    low, high = train.min(axis=0), train.max(axis=0)
    for X, y, part in (
        (split.X_train, split.y_train, "train"),
        (split.X_test, split.y_test, "test"),
    ):
        members = np.isin(arrays["subject"], wanted[part])
        expected = (arrays["X"][members].astype(float) - low) / (high - low).astype(float)
        np.testing.assert_allclose(X, expected, atol=1e-5)
        np.testing.assert_array_equal(y, arrays["y"][members])
        subjects = {
            label: len(set(arrays["subject"][members & (arrays["y"] == label)]))
            for label in (-1, 1)
        }
        assert subjects == {-1: 10, 1: 10}


@with_data
def test_scores_of_parkinson():
    """Patients are scored by severity from 0 to 1, the healthy by 1."""
    arrays = stored("parkinson_speech")
    members = np.isin(arrays["subject"], [*range(1, 11), *range(21, 31)])
    split = load("parkinson")
    patients = split.y_train == 1
    severity = arrays["score"][members][patients]  # from 5 to 46 among the training patients
    np.testing.assert_allclose(split.scores_train[patients], (severity - 5) / 41, atol=1e-6)
    assert (split.scores_train[~patients] == 1).all()


@with_data
def test_bank_is_balanced_and_scored():
    """Half of the training rows are positive; the shortest call scores 0, the longest 1."""
    split = load("bank", split=2)
    assert split.y_train.sum() == 0
    assert (split.scores_train.min(), split.scores_train.max()) == (0, 1)
    assert split.y_test.mean() < -0.7
    booleans = split.X_train[:, 7:]
    assert set(np.unique(booleans)) <= {0, 1}
    assert 0.5 < split.X_test[:, 10].mean() < 0.7  # 24928 of the 41188 are married
    assert load("a1a").scores_train is None


@with_data
def test_pairs_agree_with_the_digits():
    """The first digit is +1 in a split and -1 in a pair."""
    _, y = load_pair("mnist_1_7")
    split = load("mnist_1_7")
    np.testing.assert_array_equal(split.y_train, -y)
    assert (y == -1).sum() == 6742  # ones among the training digits


@with_data
def test_wrong_arguments_are_named():
    """A split, a number of rows or a name that is not there is named with what is."""
    with pytest.raises(ValueError, match=r"`split` must be between 0 and 9 for 'bank', got 10"):
        load("bank", split=10)
    with pytest.raises(ValueError, match=r"`split` must be between 0 and 0 for 'splice', got -1"):
        load("splice", split=-1)
    with pytest.raises(ValueError, match=r"`rows` must be between 1 and 3175 .*, got 4000"):
        load("splice", rows=4000)
    with pytest.raises(ValueError, match=r"official splits or one of .*, got 'spambase'"):
        load("spambase")
    with pytest.raises(FileNotFoundError, match=r"`name` must be one of \['a1a', .*'mnist_3_3'"):
        load("mnist_3_3")


@with_data
def test_rows_go_on_from_the_drawn_ones():
    """More rows than the split has begin with those of the split."""
    few, many = load("mushrooms"), load("mushrooms", rows=300)
    np.testing.assert_array_equal(many.y_train[:200], few.y_train)
    assert len(many.y_test) == 7824


def test_missing_data_are_named(monkeypatch, tmp_path):
    """Without the folder, or with a wrong name, the loader says what it needs."""
    monkeypatch.setenv("SPAN_HPO_DATA", str(tmp_path / "nothing"))
    with pytest.raises(FileNotFoundError, match="set SPAN_HPO_DATA to a folder"):
        load("splice")
    monkeypatch.setenv("SPAN_HPO_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"must be one of \[\], got 'splice'"):
        load("splice")


def test_loader_scales_on_the_training_rows(monkeypatch, tmp_path):
    """Features are scaled to [0, 1] by the training rows only; constant ones become 0."""
    monkeypatch.setenv("SPAN_HPO_DATA", str(tmp_path))
    X = np.array([[0, 7], [4, 7], [8, 7], [2, 9]], dtype=np.float32)
    np.savez(
        tmp_path / "tiny.npz",
        X=X,
        y=np.array([-1, 1, -1, 1], dtype=np.int8),
        train_idx=[[0, 1], [0, 2]],
        test_idx=[[2, 3], [1, 3]],
    )
    split = load("tiny")
    np.testing.assert_array_equal(split.X_train, [[0, 0], [1, 0]])
    np.testing.assert_array_equal(split.X_test, [[2, 0], [0.5, 2]])
    assert load("tiny", split=1).y_test.tolist() == [1, 1]
