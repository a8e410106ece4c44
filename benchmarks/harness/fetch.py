"""Data sets from their public addresses, converted once and kept in a cache folder.

The folder is `SPAN_HPO_CACHE`, or ``~/.cache/span_hpo``. Before a data set is kept, its numbers of
rows, features and classes are checked, so that a changed source is an error and not a different
benchmark.
"""

import http.client
import os
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.readers import Arrays
from benchmarks.harness.sources import SOURCES, Source

_TIMEOUT = 120  # seconds without an answer


def cache_folder() -> Path:
    """Return the folder of fetched data sets; it may not exist yet."""
    folder = os.environ.get("SPAN_HPO_CACHE", "")
    return Path(folder) if folder else Path.home() / ".cache" / "span_hpo"


def fetch(name: str, source: Source | None = None) -> Path:
    """Return the file of a data set, fetching it if it is not in the cache folder.

    Parameters
    ----------
    name
        Name of the file, without its ending.
    source
        Where it comes from; by default the entry of `SOURCES`.

    Raises
    ------
    ConnectionError
        If a download fails.
    ValueError
        If there is no such data set, or if the source does not hold what is expected.
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
    """Raise an error if the arrays are not what the source must hold."""
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


def _counts(y: NDArray[Any]) -> dict[int, int]:
    """Return the number of rows of each class."""
    labels, counts = np.unique(y, return_counts=True)
    return dict(zip(labels.tolist(), counts.tolist(), strict=True))
