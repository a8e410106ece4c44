"""Readers of the formats in which the data sets are published: bytes of files to arrays."""

import bz2
import csv
import io
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from sklearn.datasets import load_svmlight_file

Arrays = dict[str, NDArray[Any]]

EXTRACTORS = {"bsdtar": ["-xf"], "7zz": ["e"], "7z": ["e"], "unrar": ["e"]}  # with their arguments

_N_REALISATIONS = 10


def read_svmlight(
    files: list[bytes], *, n_features: int, positive: int, training_first: bool = False
) -> Arrays:
    """Return the rows of files in LIBSVM's format, plain or bzip2.

    Parameters
    ----------
    files
        Contents of the files.
    n_features
        Number of columns, including those that no row uses.
    positive
        Label that becomes +1; all others become -1.
    training_first
        True if the first file holds the training rows and the second the test rows.
    """
    parts = []
    for content in files:
        text = io.BytesIO(_plain(content))
        X, labels = load_svmlight_file(text, n_features=n_features, zero_based=False)
        parts.append((X.toarray(), _signs(labels == positive)))
    arrays = {
        "X": _compact(np.vstack([X for X, _ in parts])),
        "y": np.concatenate([y for _, y in parts]),
    }
    return arrays | (_one_split(len(parts[0][1]), len(arrays["y"])) if training_first else {})


def read_postal_digits(files: list[bytes], *, n_features: int) -> Arrays:
    """Return training and test rows in LIBSVM's format, where labels are the digit plus one."""
    arrays = read_svmlight(files, n_features=n_features, positive=0, training_first=True)
    labels = [load_svmlight_file(io.BytesIO(_plain(content)))[1] for content in files]
    return arrays | {"y": np.concatenate(labels).astype(np.uint8) - 1}


def read_digits(files: list[bytes], *, n_train: int) -> Arrays:
    """Return the rows of one dense ARFF file, whose last column is the digit."""
    lines = iter(io.TextIOWrapper(io.BytesIO(files[0]), encoding="utf-8"))
    for line in lines:
        if line.strip().lower() == "@data":
            break
    values = (line.replace("'", "").replace('"', "") for line in lines)
    table = np.loadtxt(values, delimiter=",", dtype=np.uint8)
    return {"X": table[:, :-1], "y": table[:, -1]} | _one_split(n_train, len(table))


def read_realisations(files: list[bytes], *, name: str) -> Arrays:
    """Return the rows of one struct of the IDA file, in the order of the first realisation.

    The struct holds equal rows once and repeats their numbers in the splits. Here every row has
    a number of its own, so that each split is a partition of all rows.
    """
    struct = loadmat(io.BytesIO(files[0]), variable_names=[name]).get(name)
    if struct is None:
        raise ValueError(f"The IDA file must hold a struct {name!r}.")
    patterns, classes = struct["x"][0, 0], struct["t"][0, 0].ravel()
    train = struct["train"][0, 0][:_N_REALISATIONS].astype(int) - 1
    test = struct["test"][0, 0][:_N_REALISATIONS].astype(int) - 1
    orders = np.hstack([train, test])
    by_pattern = np.argsort(orders, axis=1, kind="stable")
    in_order = np.take_along_axis(orders, by_pattern, axis=1)
    if not (in_order == in_order[0]).all():
        raise ValueError(f"The realisations of {name!r} must be partitions of the same rows.")
    rows = np.empty_like(orders)
    np.put_along_axis(rows, by_pattern, np.broadcast_to(by_pattern[0], rows.shape), axis=1)
    return {
        "X": patterns[orders[0]].astype(np.float32),
        "y": _signs(classes[orders[0]] == 1),
        "train_idx": rows[:, : train.shape[1]],
        "test_idx": rows[:, train.shape[1] :],
        "realisation": np.arange(1, len(rows) + 1, dtype=np.int16),
    }


def read_parkinson(files: list[bytes]) -> Arrays:
    """Return recordings; each line has the subject, the features, the UPDRS and the class."""
    text = _unpack(files[0], "train_data.txt").decode()
    table = np.loadtxt(io.StringIO(text), delimiter=",", ndmin=2)
    return {
        "X": table[:, 1:-2].astype(np.float32),
        "y": _signs(table[:, -1] == 1),
        "score": table[:, -2].astype(np.float32),
        "subject": table[:, 0].astype(np.int16),
    }


def read_bank(files: list[bytes]) -> Arrays:
    """Return calls, with numbers and indicators of levels as features and the duration as score."""
    inner = _unpack(files[0], "bank-additional.zip")
    text = _unpack(inner, "bank-additional-full.csv").decode()
    header, *rows = csv.reader(io.StringIO(text), delimiter=";")
    table = dict(zip(header, np.array(rows).T, strict=True))
    arrays = {
        "y": _signs(table.pop("y") == "yes"),
        "score": table.pop("duration").astype(np.float32),
    }
    blocks, names, codes, cat_names = [], [], [], []
    for column, values in table.items():
        try:
            blocks.append(values.astype(np.float32)[:, None])
            names.append(column)
        except ValueError:
            levels, code = np.unique(values, return_inverse=True)
            arrays[f"levels_{column}"] = levels
            blocks.append(np.eye(len(levels), dtype=np.float32)[code])
            names += [f"{column}={level}" for level in levels]
            codes.append(code.astype(np.uint8))
            cat_names.append(column)
    return arrays | {
        "X": np.hstack(blocks),
        "feature_names": np.array(names),
        "cat": np.column_stack(codes),
        "cat_names": np.array(cat_names),
    }


def _plain(content: bytes) -> bytes:
    """Return the text of a file that may be packed by bzip2."""
    return bz2.decompress(content) if content.startswith(b"BZh") else content


def _unpack(content: bytes, wanted: str) -> bytes:
    """Return one member of any folder of an archive: ZIP, RAR, or RAR inside ZIP."""
    if content.startswith(b"Rar!"):
        return _unpack_rar(content, wanted)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.namelist()
        for member in members:
            if Path(member).name == wanted:
                return archive.read(member)
        for member in members:
            if member.lower().endswith(".rar"):
                return _unpack_rar(archive.read(member), wanted)
    raise ValueError(f"The archive must hold {wanted!r}, got {members}.")


def _unpack_rar(content: bytes, wanted: str) -> bytes:
    """Return one member of a RAR archive, unpacked by the first program that is installed."""
    program = next((name for name in EXTRACTORS if shutil.which(name)), None)
    if program is None:
        raise FileNotFoundError(
            f"{wanted!r} is packed as RAR: install one of {list(EXTRACTORS)}, or set "
            "SPAN_HPO_DATA to a folder that holds the data sets."
        )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "archive.rar").write_bytes(content)
        subprocess.run(
            [program, *EXTRACTORS[program], "archive.rar"],
            cwd=folder,
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
        )
        for file in Path(folder).rglob(wanted):
            return file.read_bytes()
    raise ValueError(f"The archive must hold {wanted!r}.")


def _signs(is_positive: NDArray[np.bool_]) -> NDArray[np.int8]:
    """Return +1 where the condition holds and -1 elsewhere."""
    return np.where(is_positive, 1, -1).astype(np.int8)


def _compact(X: NDArray[np.float64]) -> NDArray[Any]:
    """Return the values as bytes if all are integers from 0 to 255, else in single precision."""
    small = X.astype(np.uint8) if X.min() >= 0 and X.max() <= 255 else None
    return small if small is not None and (small == X).all() else X.astype(np.float32)


def _one_split(n_train: int, n_rows: int) -> Arrays:
    """Return the split whose training rows come first."""
    rows = np.arange(n_rows, dtype=np.int32)[None]
    return {"train_idx": rows[:, :n_train], "test_idx": rows[:, n_train:]}
