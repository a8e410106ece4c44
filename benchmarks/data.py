"""Real data sets, from a folder of ``.npz`` files that `SPAN_HPO_DATA` names.

Each file holds ``X``, ``y`` (-1 and +1) and the rows of its official splits, ``train_idx`` and
``test_idx``.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from span_hpo.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class Split:
    """Training and test rows; features are scaled to [0, 1] on the training rows."""

    name: str
    X_train: FloatArray
    y_train: FloatArray
    X_test: FloatArray
    y_test: FloatArray


def data_folder() -> Path | None:
    """Return the folder of the data sets, or None if there is none."""
    folder = os.environ.get("SPAN_HPO_DATA", "")
    return Path(folder) if folder and Path(folder).is_dir() else None


def load(name: str, split: int = 0, rows: int | None = None) -> Split:
    """Return one split of a data set.

    Parameters
    ----------
    name
        Name of the file.
    split
        Number of the official split.
    rows
        Take this many training rows instead: all rows in the order of the split, training rows
        first; the others are test rows.

    Raises
    ------
    FileNotFoundError
        If the folder or the data set is not there.
    """
    folder = data_folder()
    if folder is None:
        raise FileNotFoundError(
            "The benchmarks need real data: set SPAN_HPO_DATA to a folder of .npz files, "
            f"got {os.environ.get('SPAN_HPO_DATA', '')!r}."
        )
    path = folder / f"{name}.npz"
    if not path.exists():
        known = sorted(file.stem for file in folder.glob("*.npz"))
        raise FileNotFoundError(f"The data set must be one of {known}, got {name!r}.")
    with np.load(path, allow_pickle=False) as arrays:
        X, y = arrays["X"].astype(float), arrays["y"].astype(float)
        train, test = arrays["train_idx"][split], arrays["test_idx"][split]
    if rows is not None:
        everyone = np.concatenate([train, test])
        train, test = everyone[:rows], everyone[rows:]
    low, high = X[train].min(axis=0), X[train].max(axis=0)
    X = (X - low) / np.where(high > low, high - low, 1.0)
    return Split(name, X[train], y[train], X[test], y[test])


def load_pair(name: str) -> tuple[FloatArray, FloatArray]:
    """Return the official training rows of a large set: "mnist_3_6", pixels in [0, 1]; "ijcnn1"."""
    folder = data_folder()
    if folder is None:
        raise FileNotFoundError("The benchmarks need real data: set SPAN_HPO_DATA to a folder.")
    digits = [int(part) for part in name.split("_")[1:]]
    with np.load(folder / f"{name.split('_')[0]}.npz", allow_pickle=False) as arrays:
        train = arrays["train_idx"][0]
        X, y = arrays["X"][train], arrays["y"][train]
    if digits:
        chosen = np.isin(y, digits)
        X, y = X[chosen] / 255.0, np.where(y[chosen] == digits[1], 1, -1)
    return X.astype(float), y.astype(float)
