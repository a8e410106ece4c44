"""Open files that may be compressed, and limit what they unpack to."""

import bz2
import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Any

UNPACK_LIMIT = "SPAN_HPO_UNPACK_LIMIT"  # name of the environment variable with a limit in bytes
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
_ALWAYS_UNPACKED = 2**26  # bytes that a file may unpack to, however small it is
_LARGEST_RATIO = 200  # unpacked bytes for each compressed byte; tables of zeros may come close
_AT_ONCE = 2**20  # bytes that are unpacked before the limit is looked at again


def is_compressed(suffix: str) -> bool:
    """Return whether files with this suffix are decompressed."""
    return suffix.lower() in _OPENERS


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, which are those after decompression.

    Raises
    ------
    ValueError
        If the file is damaged, or if a small file unpacks to a very large one.
    OSError
        If the file cannot be opened.
    """
    with path.open("rb") as file:
        try:
            yield _unpacked(path, file) if is_compressed(path.suffix) else file
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path} must be a whole file, got a damaged one: {error}.") from error


def _unpacked(path: Path, packed: IO[bytes]) -> IO[bytes]:
    """Return what a file unpacks to, in memory, or raise as soon as it is out of proportion.

    What has been unpacked so far is compared with what has been read so far, so that a bomb is
    refused at its beginning, however large the file is.
    """
    content = BytesIO()
    with _OPENERS[path.suffix.lower()](packed) as file:
        while part := file.read(_AT_ONCE):
            content.write(part)
            check_unpacked(path, content.tell(), packed.tell())
    content.seek(0)
    return content


def check_unpacked(path: Path, unpacked: int, packed: int) -> None:
    """Raise if so many unpacked bytes are too many for so many packed ones, or for the user."""
    limit = _given_limit() or max(_ALWAYS_UNPACKED, _LARGEST_RATIO * packed)
    if unpacked > limit:
        raise ValueError(
            f"{path} must unpack to at most {limit} bytes, got at least {unpacked} from {packed} "
            "packed bytes. If the file is right, set the environment variable "
            f"{UNPACK_LIMIT} to the number of bytes that a file may unpack to."
        )


def _given_limit() -> int | None:
    """Return the limit that the environment gives, or None."""
    text = os.environ.get(UNPACK_LIMIT)
    if not text:
        return None
    try:
        limit = int(float(text))
    except (ValueError, OverflowError):
        limit = 0
    if limit < 1:
        raise ValueError(
            f"the environment variable {UNPACK_LIMIT} must be a number of bytes such as 2e9, got "
            f"{text!r}."
        )
    return limit
