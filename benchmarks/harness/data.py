"""Real data sets, loaded from the folder of ``.npz`` files that `SPAN_HPO_DATA` names.

Each file holds ``X``, ``y`` (-1 and +1, or digits) and, where they exist, the rows of its official
splits, ``train_idx`` and ``test_idx``. If the variable is not set, `benchmarks.harness.fetch`
downloads the files once and keeps them.

`PAPER` lists the 14 data sets of the tables of the paper. Four of them have no official split:
their training rows are drawn, with the number of the split as the seed. The training rows of "bank"
have balanced classes: the published test errors, 0.22 to 0.28 with 11.3 % positive rows, and its
251 support vectors among 300 rows do not arise from a plain draw.
"""

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.fetch import fetch
from benchmarks.harness.sources import SOURCES
from span_hpo.runtime import FloatArray

PAPER = (
    "breast_cancer",
    "mushrooms",
    "ida_waveform",
    "ida_banana",
    "skin_nonskin",
    "splice",
    "ida_image",
    "a1a",
    "mnist_2_9",
    "mnist_1_7",
    "mnist_3_6",
    "mnist_0_8",
    "parkinson",
    "bank",
)

_DRAWN = {"breast_cancer": 100, "mushrooms": 200, "skin_nonskin": 500, "bank": 300}
_BALANCED = {"bank"}
_N_DRAWN_SPLITS = 10
_FILES = {"parkinson": "parkinson_speech", "bank": "bank_marketing"}
_PAIR = re.compile(r"mnist_([0-9])_(?!\1)([0-9])")
_MNIST_FEATURES = 780  # the LIBSVM copy ends with the last pixel that is ever used

_BANK_NUMBERS = (
    "age",
    "previous",
    "emp.var.rate",
    "cons.price.idx",
    "cons.conf.idx",
    "euribor3m",
    "nr.employed",
)
_BANK_LEVELS = {"default": "yes", "housing": "yes", "loan": "yes", "marital": "married"}

_Arrays = dict[str, NDArray[Any]]
_Rows = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows of a data set; see `load` for the scale of the features.

    Attributes
    ----------
    n_features
        The d of ``gamma = 1 / d``: the number of columns of X, without MNIST's empty last ones.
    scores_train
        Importance of every training row, in [0, 1], or None if the set has no scores. For
        "parkinson" it is the severity of the disease, and 1 for the healthy; for "bank" it is the
        duration of the call.
    """

    name: str
    X_train: FloatArray
    y_train: FloatArray
    X_test: FloatArray
    y_test: FloatArray
    n_features: int
    scores_train: FloatArray | None = None


def data_folder() -> Path | None:
    """Return the folder of the data sets, or None if there is none."""
    folder = os.environ.get("SPAN_HPO_DATA", "")
    return Path(folder) if folder and Path(folder).is_dir() else None


def n_splits(name: str) -> int:
    """Return the number of official splits of a data set, or of drawn ones if it has none."""
    if name in _DRAWN:
        return _N_DRAWN_SPLITS
    if name == "parkinson":
        return 1
    return len(_official(name)["train_idx"])


def load(name: str, split: int = 0, rows: int | None = None, *, scaled: bool = True) -> Split:
    """Return one split of a data set.

    Parameters
    ----------
    name
        One of `PAPER`, "mnist" with two other digits, or the name of a file with official splits.
        The first of two digits is +1.
    split
        Number of the split, below `n_splits`.
    rows
        Number of training rows, instead of those of the split. They are the first of all rows in
        the order of the split, training rows before test rows; the others are test rows.
    scaled
        Scale the features to [0, 1] on the training rows; otherwise they are as in the file.

    Raises
    ------
    FileNotFoundError
        If the folder or the data set does not exist.
    ValueError
        If the data set has no such split, or not that many rows.
    """
    if not 0 <= split < n_splits(name):
        raise ValueError(
            f"`split` must be between 0 and {n_splits(name) - 1} for {name!r}, got {split!r}."
        )
    arrays = file_arrays(name)
    train, test = _rows(name, arrays, split)
    if rows is not None:
        everyone = np.concatenate([train, test])
        if not 1 <= rows <= len(everyone):
            raise ValueError(
                f"`rows` must be between 1 and {len(everyone)} for {name!r}, got {rows!r}."
            )
        train, test = everyone[:rows], everyone[rows:]
    X, y = _features(name, arrays), _labels(name, arrays)
    X_train, X_test = X[train].astype(float), X[test].astype(float)
    if scaled:
        low, high = X_train.min(axis=0), X_train.max(axis=0)
        width = np.where(high > low, high - low, 1.0)
        X_train, X_test = (X_train - low) / width, (X_test - low) / width
    return Split(
        name,
        X_train,
        y[train].astype(float),
        X_test,
        y[test].astype(float),
        n_features=_MNIST_FEATURES if _file(name) == "mnist" else X.shape[1],
        scores_train=_scores(name, arrays, train),
    )


def load_pair(name: str) -> tuple[FloatArray, FloatArray]:
    """Return the official training rows of a large set, "ijcnn1" or two digits as "mnist_3_6".

    Pixels are scaled to [0, 1]. Unlike in `load`, the second digit is +1.
    """
    arrays = _official(name)
    train, _ = _rows(name, arrays, 0)
    X, y = arrays["X"][train], _labels(name, arrays)[train]
    if _PAIR.fullmatch(name):
        X, y = X / 255.0, -y
    return X.astype(float), y.astype(float)


def _file(name: str) -> str:
    """Return the name of the file that holds a data set."""
    return "mnist" if _PAIR.fullmatch(name) else _FILES.get(name, name)


def file_arrays(name: str) -> _Arrays:
    """Return the arrays of a data set's file, from the folder or else from the cache."""
    if not os.environ.get("SPAN_HPO_DATA"):
        if _file(name) not in SOURCES:
            known = sorted({*SOURCES, *PAPER})
            raise FileNotFoundError(f"`name` must be one of {known}, got {name!r}.")
        path = fetch(_file(name))
    else:
        folder = data_folder()
        if folder is None:
            raise FileNotFoundError(
                "The benchmarks need real data: set SPAN_HPO_DATA to a folder of .npz files, "
                f"or unset it to fetch them, got {os.environ['SPAN_HPO_DATA']!r}."
            )
        path = folder / f"{_file(name)}.npz"
        if not path.exists():
            stems = {file.stem for file in folder.glob("*.npz")}
            known = sorted(stems | {paper for paper in PAPER if _file(paper) in stems})
            raise FileNotFoundError(f"`name` must be one of {known}, got {name!r}.")
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _read(path: Path, changed: int) -> _Arrays:
    """Return all arrays of a file, read-only because they are shared.

    `changed` is the time of its last change: a changed file is read again.
    """
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    for array in arrays.values():
        array.flags.writeable = False
    return arrays


def _official(name: str) -> _Arrays:
    """Return the arrays of a data set that has official splits."""
    arrays = file_arrays(name)
    if "train_idx" not in arrays:
        raise ValueError(
            f"`name` must be a data set with official splits or one of {sorted(PAPER)}, "
            f"got {name!r}."
        )
    return arrays


def _rows(name: str, arrays: _Arrays, split: int) -> tuple[_Rows, _Rows]:
    """Return the training and the test rows of a split."""
    if name in _DRAWN:
        return _draw(arrays["y"], _DRAWN[name], split, balanced=name in _BALANCED)
    if name == "parkinson":
        # Subjects 1 to 20 are patients, 21 to 40 healthy: the first ten of each are for training.
        is_train = (arrays["subject"] - 1) % 20 < 10
        return np.flatnonzero(is_train), np.flatnonzero(~is_train)
    train, test = arrays["train_idx"][split], arrays["test_idx"][split]
    digits = _PAIR.fullmatch(name)
    if digits:
        wanted = np.isin(arrays["y"], [int(digit) for digit in digits.groups()])
        train, test = train[wanted[train]], test[wanted[test]]
    return train, test


def _draw(y: NDArray[Any], n_train: int, seed: int, *, balanced: bool) -> tuple[_Rows, _Rows]:
    """Return drawn training rows of both classes and all other rows."""
    rng = np.random.default_rng(seed)
    if balanced:
        halves = [rng.permutation(np.flatnonzero(y == sign))[: n_train // 2] for sign in (1, -1)]
        train = rng.permutation(np.concatenate(halves))
        return train, rng.permutation(np.setdiff1d(np.arange(len(y)), train))
    while True:
        order = rng.permutation(len(y))
        train, test = order[:n_train], order[n_train:]
        if len(np.unique(y[train])) == 2:
            return train, test


def _features(name: str, arrays: _Arrays) -> NDArray[Any]:
    """Return the features of all rows as stored; for "bank" the eleven of the paper."""
    if name != "bank":
        return arrays["X"]
    names, cat_names = arrays["feature_names"].tolist(), arrays["cat_names"].tolist()
    columns = [arrays["X"][:, names.index(number)] for number in _BANK_NUMBERS]
    for column, level in _BANK_LEVELS.items():
        code = arrays[f"levels_{column}"].tolist().index(level)
        columns.append(arrays["cat"][:, cat_names.index(column)] == code)
    return np.column_stack(columns)


def _labels(name: str, arrays: _Arrays) -> NDArray[Any]:
    """Return the labels of all rows; for a pair of digits +1 is the first."""
    digits = _PAIR.fullmatch(name)
    return np.where(arrays["y"] == int(digits[1]), 1, -1) if digits else arrays["y"]


def _scores(name: str, arrays: _Arrays, train: _Rows) -> FloatArray | None:
    """Return the scores of the training rows, scaled to [0, 1], or None."""
    if name not in ("parkinson", "bank"):
        return None
    scores = arrays["score"][train].astype(float)
    # Every healthy subject has the same UPDRS, outside the range of the patients.
    scaled = arrays["y"][train] == 1 if name == "parkinson" else np.ones(len(train), dtype=bool)
    low, high = scores[scaled].min(), scores[scaled].max()
    return np.where(scaled, (scores - low) / (high - low), 1.0)
