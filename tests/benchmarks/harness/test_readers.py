"""Readers of published files: what they make of small ones, and of our own data packed again."""

import bz2
import io
import zipfile
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.io import savemat
from sklearn.datasets import dump_svmlight_file

from benchmarks.harness.fetch import fetch
from benchmarks.harness.readers import (
    read_bank,
    read_digits,
    read_parkinson,
    read_realisations,
)
from benchmarks.harness.sources import SOURCES, Source
from tests.benchmarks.data_sets import fetched, stored, with_data


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
