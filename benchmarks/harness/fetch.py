"""Data sets from their public addresses, converted once and kept in a cache folder.

The folder is `SPAN_HPO_CACHE`, or ``~/.cache/span_hpo``. What is fetched is checked against the
known numbers of rows, features and classes before it is kept, so that a changed source is an
error and not a different benchmark.

The addresses are those that public code uses; they are not verified by a download. Three things
to know:

- The IDA collection is one MATLAB file with a struct per data set: distinct rows ``x``, classes
  ``t`` and row numbers ``train`` and ``test`` from 1, one line per realisation. That follows its
  README and a public reader. The first ten realisations are kept.
- UCI packs the Parkinson data as RAR inside ZIP, which needs one of the programs `EXTRACTORS`.
- Rows are in the order of the source. Where training rows are drawn, another order gives other
  splits than the project's own files.
"""

import bz2
import csv
import http.client
import io
import os
import shutil
import subprocess
import tempfile
import urllib.request
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.io import loadmat
from sklearn.datasets import load_svmlight_file

Arrays = dict[str, NDArray[Any]]

EXTRACTORS = {"bsdtar": ["-xf"], "7zz": ["e"], "7z": ["e"], "unrar": ["e"]}

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
_LIBSVM_CLASSES = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"
_OPENML = "https://www.openml.org/data/download"
_UCI = "https://archive.ics.uci.edu/static/public"
_IDA = "https://github.com/tdiethe/gunnar_raetsch_benchmark_datasets/raw/master/benchmarks.mat"
_TIMEOUT = 120  # seconds without an answer
_N_REALISATIONS = 10


@dataclass(frozen=True)
class Source:
    """Where a data set comes from and what it must hold.

    Attributes
    ----------
    urls
        Addresses of the files; of two, the first holds the training rows.
    read
        Makes the arrays out of the contents of the files.
    rows, features
        Shape of ``X``.
    classes
        Rows of each class.
    train_rows
        Training rows of each official split, 0 if there is none.
    train_classes
        Training rows of each class in the first split, if known.
    """

    urls: tuple[str, ...]
    read: Callable[[list[bytes]], Arrays]
    rows: int
    features: int
    classes: Mapping[int, int]
    train_rows: int = 0
    train_classes: Mapping[int, int] | None = None


def cache_folder() -> Path:
    """Return the folder of fetched data sets; it may not exist yet."""
    folder = os.environ.get("SPAN_HPO_CACHE", "")
    return Path(folder) if folder else Path.home() / ".cache" / "span_hpo"


def fetch(name: str, source: Source | None = None) -> Path:
    """Return the file of a data set, fetching it if it is not in the cache folder.

    Parameters
    ----------
    name
        Name of the file, without ending.
    source
        Where it comes from; by default the entry of `SOURCES`.

    Raises
    ------
    ConnectionError
        If a download fails.
    ValueError
        If there is no such data set, or if the source holds something else than expected.
    """
    path = cache_folder() / f"{name}.npz"
    if path.exists():
        return path
    if source is None:
        if name not in SOURCES:
            raise ValueError(f"`name` must be one of {sorted(SOURCES)}, got {name!r}.")
        source = SOURCES[name]
    print(f"Fetching {name} from {' and '.join(source.urls)} into {path.parent}")
    arrays = source.read([_download(url) for url in source.urls])
    _check(name, source, arrays)
    _write(path, arrays)
    return path


def read_svmlight(
    files: list[bytes], *, n_features: int, positive: int, training_first: bool = False
) -> Arrays:
    """Return the rows of files in LIBSVM's format, plain or bzip2.

    Parameters
    ----------
    files
        Contents of the files.
    n_features
        Number of columns, also of those that no row uses.
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
    """Return training and test rows in LIBSVM's format; labels are one more than the digit."""
    arrays = read_svmlight(files, n_features=n_features, positive=0, training_first=True)
    labels = [load_svmlight_file(io.BytesIO(_plain(content)))[1] for content in files]
    return arrays | {"y": np.concatenate(labels).astype(np.uint8) - 1}


def _plain(content: bytes) -> bytes:
    """Return the text of a file that may be packed by bzip2."""
    return bz2.decompress(content) if content.startswith(b"BZh") else content


def read_digits(files: list[bytes], *, n_train: int) -> Arrays:
    """Return the rows of one dense ARFF file; the last column is the digit."""
    lines = iter(io.TextIOWrapper(io.BytesIO(files[0]), encoding="utf-8"))
    for line in lines:
        if line.strip().lower() == "@data":
            break
    values = (line.replace("'", "").replace('"', "") for line in lines)
    table = np.loadtxt(values, delimiter=",", dtype=np.uint8)
    return {"X": table[:, :-1], "y": table[:, -1]} | _one_split(n_train, len(table))


def read_realisations(files: list[bytes], *, name: str) -> Arrays:
    """Return one struct of the IDA file, as rows in the order of the first realisation.

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
    """Return the recordings of 40 subjects: subject, features, UPDRS and class in each line."""
    text = _unpack(files[0], "train_data.txt").decode()
    table = np.loadtxt(io.StringIO(text), delimiter=",", ndmin=2)
    return {
        "X": table[:, 1:-2].astype(np.float32),
        "y": _signs(table[:, -1] == 1),
        "score": table[:, -2].astype(np.float32),
        "subject": table[:, 0].astype(np.int16),
    }


def read_bank(files: list[bytes]) -> Arrays:
    """Return the calls: numbers, indicators of the levels, and the duration as score."""
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


def _download(url: str) -> bytes:
    """Return the content of an address."""
    request = urllib.request.Request(url, headers={"User-Agent": "span_hpo benchmarks"})
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:
            content: bytes = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionError(
            f"{url} could not be fetched ({error!r}): try again, or set SPAN_HPO_DATA to a folder "
            "that holds the data sets."
        ) from error
    return content


def _check(name: str, source: Source, arrays: Arrays) -> None:
    """Raise if the arrays are not what the source must hold."""
    wanted: dict[str, Any] = {
        "rows": source.rows,
        "features": source.features,
        "classes": dict(source.classes),
        "train_rows": source.train_rows,
    }
    X, y = arrays["X"], arrays["y"]
    has_split = "train_idx" in arrays
    received: dict[str, Any] = {
        "rows": len(X),
        "features": X.shape[1],
        "classes": _counts(y),
        "train_rows": arrays["train_idx"].shape[1] if has_split else 0,
    }
    if source.train_classes is not None:
        wanted["train_classes"] = dict(source.train_classes)
        received["train_classes"] = _counts(y[arrays["train_idx"][0]]) if has_split else {}
    if wanted != received:
        raise ValueError(
            f"{name!r} from {' and '.join(source.urls)} must have {wanted}, got {received}."
        )


def _write(path: Path, arrays: dict[str, Any]) -> None:
    """Write the file as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".fetch-") as folder:
        half = Path(folder) / path.name
        np.savez_compressed(half, **arrays)
        half.replace(path)


def _unpack(content: bytes, wanted: str) -> bytes:
    """Return one member of an archive, wherever it lies in it; ZIP, RAR, or RAR inside ZIP."""
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
    """Return one member of a RAR archive, by the first program that is there."""
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
    """Return +1 and -1."""
    return np.where(is_positive, 1, -1).astype(np.int8)


def _counts(y: NDArray[Any]) -> dict[int, int]:
    """Return the rows of each class."""
    labels, counts = np.unique(y, return_counts=True)
    return dict(zip(labels.tolist(), counts.tolist(), strict=True))


def _compact(X: NDArray[np.float64]) -> NDArray[Any]:
    """Return bytes if all values are integers from 0 to 255, single precision otherwise."""
    small = X.astype(np.uint8) if X.min() >= 0 and X.max() <= 255 else None
    return small if small is not None and (small == X).all() else X.astype(np.float32)


def _one_split(n_train: int, n_rows: int) -> Arrays:
    """Return the split whose training rows come first."""
    rows = np.arange(n_rows, dtype=np.int32)[None]
    return {"train_idx": rows[:, :n_train], "test_idx": rows[:, n_train:]}


def _libsvm(
    *files: str,
    rows: int,
    features: int,
    classes: Mapping[int, int],
    positive: int = 1,
    train_classes: Mapping[int, int] | None = None,
) -> Source:
    """Return a data set of the LIBSVM page; with two files the first is for training."""
    return Source(
        tuple(f"{_LIBSVM}/{file}" for file in files),
        partial(
            read_svmlight,
            n_features=features,
            positive=positive,
            training_first=train_classes is not None,
        ),
        rows,
        features,
        classes,
        sum(train_classes.values()) if train_classes else 0,
        train_classes,
    )


def _ida(name: str, rows: int, train_rows: int, features: int, positive: int) -> Source:
    """Return a data set of the IDA collection."""
    return Source(
        (_IDA,),
        partial(read_realisations, name=name),
        rows,
        features,
        {-1: rows - positive, 1: positive},
        train_rows,
    )


_DIGITS = (6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958)
_TRAINING_DIGITS = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)

_POSTAL_DIGITS = (1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821)
_TRAINING_POSTAL_DIGITS = (1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644)

SOURCES: dict[str, Source] = {
    "breast_cancer": _libsvm(
        "breast-cancer", rows=683, features=10, classes={-1: 444, 1: 239}, positive=4
    ),
    "mushrooms": _libsvm("mushrooms", rows=8124, features=112, classes={-1: 4208, 1: 3916}),
    "skin_nonskin": _libsvm(
        "skin_nonskin", rows=245057, features=3, classes={-1: 194198, 1: 50859}
    ),
    "splice": _libsvm(
        "splice",
        "splice.t",
        rows=3175,
        features=60,
        classes={-1: 1527, 1: 1648},
        train_classes={-1: 483, 1: 517},
    ),
    "a1a": _libsvm(
        "a1a",
        "a1a.t",
        rows=32561,
        features=123,
        classes={-1: 24720, 1: 7841},
        train_classes={-1: 1210, 1: 395},
    ),
    "ijcnn1": _libsvm(
        "ijcnn1.bz2",
        "ijcnn1.t.bz2",
        rows=141691,
        features=22,
        classes={-1: 128126, 1: 13565},
        train_classes={-1: 45137, 1: 4853},
    ),
    "mnist": Source(
        (f"{_OPENML}/52667/mnist_784.arff",),
        partial(read_digits, n_train=60000),
        70000,
        784,
        dict(enumerate(_DIGITS)),
        60000,
        dict(enumerate(_TRAINING_DIGITS)),
    ),
    "usps": Source(
        (f"{_LIBSVM_CLASSES}/usps.bz2", f"{_LIBSVM_CLASSES}/usps.t.bz2"),
        partial(read_postal_digits, n_features=256),
        9298,
        256,
        dict(enumerate(_POSTAL_DIGITS)),
        7291,
        dict(enumerate(_TRAINING_POSTAL_DIGITS)),
    ),
    "parkinson_speech": Source(
        (f"{_UCI}/301/parkinson+speech+dataset+with+multiple+types+of+sound+recordings.zip",),
        read_parkinson,
        1040,
        26,
        {-1: 520, 1: 520},
    ),
    "bank_marketing": Source(
        (f"{_UCI}/222/bank+marketing.zip",), read_bank, 41188, 62, {-1: 36548, 1: 4640}
    ),
    "ida_banana": _ida("banana", 5300, 400, 2, 2376),
    "ida_breast_cancer": _ida("breast_cancer", 277, 200, 9, 81),
    "ida_diabetis": _ida("diabetis", 768, 468, 8, 268),
    "ida_flare_solar": _ida("flare_solar", 1066, 666, 9, 589),
    "ida_german": _ida("german", 1000, 700, 20, 300),
    "ida_heart": _ida("heart", 270, 170, 13, 120),
    "ida_image": _ida("image", 2310, 1300, 18, 1320),
    "ida_ringnorm": _ida("ringnorm", 7400, 400, 20, 3664),
    "ida_thyroid": _ida("thyroid", 215, 140, 5, 65),
    "ida_titanic": _ida("titanic", 2201, 150, 3, 711),
    "ida_twonorm": _ida("twonorm", 7400, 400, 20, 3703),
    "ida_waveform": _ida("waveform", 5000, 400, 21, 1647),
}
