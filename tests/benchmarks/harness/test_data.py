"""The data sets of the benchmarks: sizes, splits and scores, and how they are fetched."""

import bz2
import io
import threading
import zipfile
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from scipy.io import savemat
from sklearn.datasets import dump_svmlight_file

from benchmarks.harness.data import PAPER, data_folder, load, load_pair, n_splits
from benchmarks.harness.fetch import (
    SOURCES,
    Source,
    cache_folder,
    fetch,
    read_bank,
    read_digits,
    read_parkinson,
    read_realisations,
    read_svmlight,
)

FOLDER = data_folder()
with_data = pytest.mark.skipif(FOLDER is None, reason="SPAN_HPO_DATA names no folder")

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


def stored(name):
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as arrays:
        return dict(arrays)


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
def test_wrong_arguments_are_told():
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


class Files(ThreadingHTTPServer):
    """A server of the files in `contents`; those in `broken` stop half-way."""

    def __init__(self):
        self.contents, self.broken, self.requests = {}, set(), []
        super().__init__(("127.0.0.1", 0), Handler)

    def add(self, path, content):
        self.contents[f"/{path}"] = content
        return f"http://127.0.0.1:{self.server_port}/{path}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests.append(self.path)
        content = self.server.contents.get(self.path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        half = self.path in self.server.broken
        self.wfile.write(content[: len(content) // 2] if half else content)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with Files() as files:
        thread = threading.Thread(target=files.serve_forever, args=(0.01,))
        thread.start()
        yield files
        files.shutdown()
        thread.join()


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.delenv("SPAN_HPO_DATA", raising=False)
    monkeypatch.setenv("SPAN_HPO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def fetched(name, source):
    with np.load(fetch(name, source), allow_pickle=False) as arrays:
        return dict(arrays)


def two_files(server):
    """Three training rows and one test row of three features, the last never used."""
    return Source(
        (
            server.add("tiny", b"2 1:5 2:1.5\n4 2:0.5\n2 1:1\n"),
            server.add("tiny.t.bz2", bz2.compress(b"4 1:2\n")),
        ),
        partial(read_svmlight, n_features=3, positive=4, training_first=True),
        rows=4,
        features=3,
        classes={-1: 2, 1: 2},
        train_rows=3,
        train_classes={-1: 2, 1: 1},
    )


def test_fetched_once(server, cache, capsys):
    """A set is downloaded with a word about it, and a second call makes no request."""
    source = two_files(server)
    arrays = fetched("tiny", source)
    np.testing.assert_array_equal(arrays["X"], [[5, 1.5, 0], [0, 0.5, 0], [1, 0, 0], [2, 0, 0]])
    assert arrays["y"].tolist() == [-1, 1, -1, 1]
    assert arrays["train_idx"].tolist() == [[0, 1, 2]]
    assert arrays["test_idx"].tolist() == [[3]]
    assert f"Fetching tiny from {source.urls[0]} and {source.urls[1]}" in capsys.readouterr().out
    assert server.requests == ["/tiny", "/tiny.t.bz2"]
    fetched("tiny", source)
    assert len(server.requests) == 2
    assert [file.name for file in cache.iterdir()] == ["tiny.npz"]


def test_the_loader_fetches_on_first_use(server, cache, monkeypatch):
    """Without SPAN_HPO_DATA the loader fetches what it needs, once."""
    monkeypatch.setitem(SOURCES, "tiny", two_files(server))
    for _ in range(2):
        split = load("tiny")
        np.testing.assert_array_equal(split.X_train, [[1, 1, 0], [0, 1 / 3, 0], [0.2, 0, 0]])
    assert len(server.requests) == 2
    with pytest.raises(FileNotFoundError, match=r"`name` must be one of .*'bank', .*got 'other'"):
        load("other")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"rows": 5}, "'rows': 5.*got.*'rows': 4"),
        ({"features": 2}, "'features': 2.*got.*'features': 3"),
        ({"classes": {-1: 3, 1: 1}}, r"'classes': {-1: 3, 1: 1}.*got.*{-1: 2, 1: 2}"),
        ({"train_rows": 2}, "'train_rows': 2.*got.*'train_rows': 3"),
        ({"train_classes": {-1: 1, 1: 2}}, r"{-1: 1, 1: 2}.*got.*{-1: 2, 1: 1}"),
    ],
)
def test_other_contents_are_refused(server, cache, wrong, told):
    """Counts that differ are an error that names the source and both counts; nothing is kept."""
    with pytest.raises(ValueError, match=f"'tiny' from http.*/tiny.*must have.*{told}"):
        fetch("tiny", replace(two_files(server), **wrong))
    assert not cache.exists()


def test_an_interrupted_download_leaves_nothing(server, cache):
    """Half a file is an error that names the address, and a later call fetches all of it."""
    source = two_files(server)
    server.broken.add("/tiny.t.bz2")
    with pytest.raises(
        ConnectionError, match=r"/tiny\.t\.bz2 could not be fetched .*SPAN_HPO_DATA"
    ):
        fetch("tiny", source)
    assert not cache.exists()
    server.broken.clear()
    assert len(fetched("tiny", source)["y"]) == 4


def test_an_address_that_is_gone_is_told(server, cache):
    """A missing file and a server that is not there are the same kind of error."""
    source = two_files(server)
    del server.contents["/tiny"]
    with pytest.raises(ConnectionError, match=r"/tiny could not be fetched .*404"):
        fetch("tiny", source)
    with pytest.raises(ValueError, match=r"`name` must be one of \['a1a', .*got 'other'"):
        fetch("other")


def test_a_write_that_fails_leaves_nothing(server, cache):
    """A reader's arrays that cannot be written leave no half file."""

    def unwritable(files):
        class Broken:
            def __array__(self, *args, **kwargs):
                raise OSError("no space left")

        return {"X": np.zeros((1, 1)), "y": np.ones(1, dtype=np.int8), "z": Broken()}

    source = Source((server.add("x", b""),), unwritable, 1, 1, {1: 1})
    with pytest.raises(OSError, match="no space left"):
        fetch("x", source)
    assert list(cache.iterdir()) == []


def test_the_folder_can_be_named(monkeypatch, tmp_path):
    """The cache is SPAN_HPO_CACHE, else a folder in the home directory."""
    monkeypatch.setenv("SPAN_HPO_CACHE", str(tmp_path / "there"))
    assert cache_folder() == tmp_path / "there"
    monkeypatch.delenv("SPAN_HPO_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "span_hpo"


def test_digits_from_arff(server, cache):
    """Pixels and digit are read from an ARFF file, quoted or not; training rows come first."""
    text = (
        b"% MNIST\n@RELATION m\n@ATTRIBUTE p1 real\n@ATTRIBUTE class {0,7}\n@DATA\n0,'7'\n255,0\n"
    )
    source = Source(
        (server.add("m", text),), partial(read_digits, n_train=1), 2, 1, {0: 1, 7: 1}, 1
    )
    arrays = fetched("m", source)
    assert (arrays["X"].tolist(), arrays["y"].tolist()) == ([[0], [255]], [7, 0])
    assert (arrays["train_idx"].tolist(), arrays["test_idx"].tolist()) == ([[0]], [[1]])


def matlab(**structs):
    file = io.BytesIO()
    savemat(file, structs, do_compression=True)
    return file.getvalue()


def test_repeated_rows_of_a_realisation(server, cache):
    """Rows that the file holds once get a number each time they occur in a split."""
    struct = {
        "x": np.array([[0.5], [1.5], [2.5]]),
        "t": np.array([[1], [-1], [1]]),
        "train": np.array([[3, 1], [1, 2]]),
        "test": np.array([[1, 2], [3, 1]]),
    }
    url = server.add("b.mat", matlab(other=struct, toy=struct))
    source = Source((url,), partial(read_realisations, name="toy"), 4, 1, {-1: 1, 1: 3}, 2)
    arrays = fetched("toy", source)
    assert arrays["X"].ravel().tolist() == [2.5, 0.5, 0.5, 1.5]
    assert arrays["train_idx"].tolist() == [[0, 1], [1, 3]]
    assert arrays["test_idx"].tolist() == [[2, 3], [0, 2]]
    with pytest.raises(ValueError, match="must hold a struct 'gone'"):
        fetch("gone", replace(source, read=partial(read_realisations, name="gone")))
    struct["test"] = np.array([[1, 2], [3, 3]])
    uneven = replace(source, urls=(server.add("c.mat", matlab(toy=struct)),))
    with pytest.raises(ValueError, match="of 'toy' must be partitions of the same rows"):
        fetch("uneven", uneven)


@with_data
@pytest.mark.parametrize("name", ["ida_titanic", "ida_banana"])
def test_realisations_come_back(server, cache, name):
    """Our own files, packed as the IDA collection packs them, are fetched unchanged."""
    arrays = stored(name)
    table = np.column_stack([arrays["X"], arrays["y"]])
    patterns, number = np.unique(table, axis=0, return_inverse=True)
    struct = {
        "x": patterns[:, :-1],
        "t": patterns[:, -1:],
        "train": number[arrays["train_idx"]] + 1,
        "test": number[arrays["test_idx"]] + 1,
    }
    url = server.add("benchmarks.mat", matlab(**{name.removeprefix("ida_"): struct}))
    again = fetched(name, replace(SOURCES[name], urls=(url,)))
    np.testing.assert_array_equal(again["X"], arrays["X"])
    np.testing.assert_array_equal(again["y"], arrays["y"])
    for part in ("train_idx", "test_idx"):
        for ours, theirs in zip(again[part], arrays[part], strict=True):
            np.testing.assert_array_equal(table[ours], table[theirs])
        assert (
            np.sort(np.hstack([again["train_idx"], again["test_idx"]])) == range(len(table))
        ).all()


@with_data
@pytest.mark.parametrize(("name", "labels"), [("breast_cancer", (2, 4)), ("splice", (-1, 1))])
def test_libsvm_files_come_back(server, cache, name, labels):
    """Our own files, written in LIBSVM's format and labels, pass the checks unchanged."""
    arrays = stored(name)
    everyone = [np.arange(len(arrays["y"]))]
    parts = [arrays["train_idx"][0], arrays["test_idx"][0]] if "train_idx" in arrays else everyone
    urls = []
    for i, rows in enumerate(parts):
        file = io.BytesIO()
        y = np.where(arrays["y"][rows] == 1, labels[1], labels[0])
        dump_svmlight_file(arrays["X"][rows].astype(float), y, file, zero_based=False)
        urls.append(server.add(f"{name}{i}", file.getvalue()))
    again = fetched(name, replace(SOURCES[name], urls=tuple(urls)))
    assert again["X"].dtype == arrays["X"].dtype
    np.testing.assert_array_equal(again["X"], arrays["X"])
    np.testing.assert_array_equal(again["y"], arrays["y"])


@with_data
def test_postal_digits_come_back(server, cache):
    """Labels of LIBSVM's copy are one more than the digit; the files are packed by bzip2."""
    arrays = stored("usps")
    urls = []
    for part in ("train_idx", "test_idx"):
        rows, file = arrays[part][0], io.BytesIO()
        labels = arrays["y"][rows].astype(int) + 1
        dump_svmlight_file(arrays["X"][rows].astype(float), labels, file, zero_based=False)
        urls.append(server.add(f"usps_{part}.bz2", bz2.compress(file.getvalue(), 1)))
    again = fetched("usps", replace(SOURCES["usps"], urls=tuple(urls)))
    order = np.concatenate([arrays["train_idx"][0], arrays["test_idx"][0]])
    np.testing.assert_array_equal(again["X"], arrays["X"][order])
    np.testing.assert_array_equal(again["y"], arrays["y"][order])


def packed(**members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for path, content in members.items():
            archive.writestr(path, content)
    return file.getvalue()


def test_calls_from_nested_archives(server, cache):
    """Numbers stay, categories become indicators and codes, the duration becomes the score."""
    text = (
        '"age";"marital";"duration";"default";"y"\n'
        '56;"married";261;"no";"no"\n'
        '57;"single";149;"unknown";"yes"\n'
        '37;"married";0;"yes";"no"\n'
    )
    inner = packed(**{"bank-additional/bank-additional-full.csv": text})
    url = server.add("bank.zip", packed(**{"bank.zip": b"", "bank-additional.zip": inner}))
    arrays = fetched("bank", Source((url,), read_bank, 3, 6, {-1: 2, 1: 1}))
    assert arrays["feature_names"].tolist() == [
        "age",
        "marital=married",
        "marital=single",
        "default=no",
        "default=unknown",
        "default=yes",
    ]
    assert arrays["X"].tolist() == [[56, 1, 0, 1, 0, 0], [57, 0, 1, 0, 1, 0], [37, 1, 0, 0, 0, 1]]
    assert arrays["cat"].tolist() == [[0, 0], [1, 1], [0, 2]]
    assert arrays["cat_names"].tolist() == ["marital", "default"]
    assert arrays["levels_default"].tolist() == ["no", "unknown", "yes"]
    assert arrays["score"].tolist() == [261, 149, 0]
    assert arrays["y"].tolist() == [-1, 1, -1]
    other = server.add("other.zip", packed(readme=b"hello"))
    with pytest.raises(ValueError, match=r"must hold 'bank-additional.zip', got \['readme'\]"):
        fetch("bank2", Source((other,), read_bank, 3, 6, {-1: 2, 1: 1}))


def test_recordings_from_an_archive(server, cache, monkeypatch):
    """Subject, score and class are taken from their columns; RAR needs a program that is named."""
    text = "1,0.5,2.5,23,1\n1,1.5,3.5,23,1\n21,4.5,5.5,1,0\n"
    url = server.add("p.zip", packed(**{"data/train_data.txt": text}))
    source = Source((url,), read_parkinson, 3, 2, {-1: 1, 1: 2})
    arrays = fetched("p", source)
    assert arrays["X"].tolist() == [[0.5, 2.5], [1.5, 3.5], [4.5, 5.5]]
    assert arrays["y"].tolist() == [1, 1, -1]
    assert arrays["subject"].tolist() == [1, 1, 21]
    assert arrays["score"].tolist() == [23, 23, 1]
    rar = server.add("r.zip", packed(**{"recordings.rar": b"Rar!\x1a\x07"}))
    monkeypatch.setenv("PATH", str(cache))
    with pytest.raises(FileNotFoundError, match=r"packed as RAR: install one of \['bsdtar'"):
        fetch("r", replace(source, urls=(rar,)))
