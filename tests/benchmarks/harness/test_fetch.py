"""Fetching of data sets: once, checked, and as a whole or not at all."""

import bz2
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from benchmarks.harness.data import load
from benchmarks.harness.fetch import cache_folder, fetch
from benchmarks.harness.readers import read_svmlight
from benchmarks.harness.sources import SOURCES, Source
from tests.benchmarks.data_sets import fetched


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
    """A download is announced, and a second call makes no request."""
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
    ("wrong", "message"),
    [
        ({"rows": 5}, "'rows': 5.*got.*'rows': 4"),
        ({"features": 2}, "'features': 2.*got.*'features': 3"),
        ({"classes": {-1: 3, 1: 1}}, r"'classes': {-1: 3, 1: 1}.*got.*{-1: 2, 1: 2}"),
        ({"train_rows": 2}, "'train_rows': 2.*got.*'train_rows': 3"),
        ({"train_classes": {-1: 1, 1: 2}}, r"{-1: 1, 1: 2}.*got.*{-1: 2, 1: 1}"),
    ],
)
def test_other_contents_are_refused(server, cache, wrong, message):
    """Counts that differ are an error that names the source and both counts; nothing is kept."""
    with pytest.raises(ValueError, match=f"'tiny' from http.*/tiny.*must have.*{message}"):
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


def test_a_missing_address_is_named(server, cache):
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
