"""Describe how a text file writes a table, and recognise what a user has not said about it."""

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from io import BytesIO, TextIOWrapper
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from span_hpo.io.tables import listed, number_of
from span_hpo.runtime import ArgumentError, Array

HEADER_MISSING = " (header missing?)"  # what messages add if the first line looks like data
_DELIMITERS = ",;\t|"
_NAMED_DELIMITERS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|"}
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")  # of UTF-16
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")  # bytes that no text has
_C1 = re.compile(rb"[\x80-\x9f]")  # control characters in Latin-1
_BLOCK = 2**20  # bytes of a file that are searched at a time
_AROUND = 15  # bytes before and after a wrong one that a message shows
_ROWS_COMPARED = 1000  # rows whose cells are compared with the names of the columns


@dataclass(frozen=True)
class Dialect:
    """How a text file writes a table; None stands for what is usual.

    Attributes
    ----------
    encoding
        Name of the text encoding; by default UTF-8.
    delimiter
        Character between cells, or "tab"; by default the one of comma, semicolon, tab and pipe that
        is most frequent in the first line.
    decimal
        Character before decimal places, "." or ","; by default the point.

    Raises
    ------
    ArgumentError
        If a value is not as described.
    """

    encoding: str | None = None
    delimiter: str | None = None
    decimal: str | None = None

    def __post_init__(self) -> None:
        if self.encoding is not None:
            try:
                TextIOWrapper(BytesIO(), encoding=self.encoding)
            except (LookupError, ValueError):
                raise ArgumentError(
                    "encoding",
                    f"must be the name of a text encoding such as latin-1, got {self.encoding!r}.",
                ) from None
        given = "," if self.delimiter is None else self.delimiter
        delimiter = _NAMED_DELIMITERS.get(given, given)
        if len(delimiter) != 1 or delimiter in '"\r\n':
            raise ArgumentError(
                "delimiter", f"must be one character such as ; or the word tab, got {delimiter!r}."
            )
        if self.decimal not in (None, ".", ","):
            raise ArgumentError("decimal", f"must be '.' or ',', got {self.decimal!r}.")
        if self.decimal == "," and self.delimiter is not None and delimiter == ",":
            raise ArgumentError(
                "delimiter", "must not be the decimal comma of the numbers, got ',' for both."
            )

    @property
    def given(self) -> dict[str, str]:
        """Values that were given, by the name of the argument."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def codec(self) -> str:
        """Name of the codec; UTF-8 may begin with a byte order mark."""
        wanted = self.encoding or "utf-8"
        return "utf-8-sig" if wanted.lower().replace("_", "-") in ("utf-8", "utf8") else wanted

    def delimiter_in(self, first_line: str, path: Path) -> str:
        """Return the character between cells of a file whose first line is given."""
        if self.delimiter is not None:
            return _NAMED_DELIMITERS.get(self.delimiter, self.delimiter)
        if ".tsv" in [suffix.lower() for suffix in path.suffixes]:
            return "\t"
        outside_quotes = re.sub(r'"[^"]*"', "", first_line)
        return max(_DELIMITERS, key=outside_quotes.count)


def wrong_encoding(path: Path, content: IO[bytes], dialect: Dialect) -> ValueError:
    """Return the error about a file that is not text in its encoding, with the likely one."""
    if dialect.codec != "utf-8-sig":
        return ArgumentError(
            "encoding", f"must be the text encoding of {path}, got {dialect.encoding!r}."
        )
    content.seek(0)
    if content.read(2) in _BYTE_ORDER_MARKS:
        return _other_encoding(path, "utf-16", "the byte order mark of UTF-16")
    content.seek(0)
    for number, line in enumerate(content, start=1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError as error:
            if _CONTROL.search(line):
                break
            part = line[max(0, error.start - _AROUND) : error.start + _AROUND].strip()
            # Latin-1 has control characters where the bytes of Windows have dashes and quotes.
            is_windows = _has_c1(content) or _C1.search(line) is not None
            for encoding in ("cp1252",) if is_windows else ("latin-1", "cp1252"):
                text = part.decode(encoding, errors="replace")
                if text.isprintable():
                    got = f"the byte 0x{line[error.start]:02x} in line {number}"
                    return _other_encoding(path, encoding, f"{got}, which may be {text!r}")
            break
    return ValueError(f"{path} must be text in UTF-8, got other bytes.")


def _has_c1(content: IO[bytes]) -> bool:
    """Return whether the rest of a file has a byte that is a control character in Latin-1."""
    return any(_C1.search(block) for block in iter(lambda: content.read(_BLOCK), b""))


def _other_encoding(path: Path, encoding: str, got: str) -> ArgumentError:
    return ArgumentError(
        "encoding", f"{encoding} to read it.", f"{path} must be text in UTF-8, got {got}. Set"
    )


def looks_like_data(names: Sequence[str], cells: Array) -> bool:
    """Return whether the first line of a file looks like a row rather than names.

    That is so if more than half of its cells are numbers or occur in their columns. Numbers that
    count the columns, such as 0, 1, 2, are names.

    Parameters
    ----------
    names
        Cells of the first line.
    cells
        Cells of all other lines, shape (l, d).
    """
    counted = [number_of(name) for name in names if is_number(name)]
    if len(counted) > 1 and all(b - a == 1.0 for a, b in pairwise(counted)):
        return False
    first = cells[:_ROWS_COMPARED]
    count = sum(
        is_number(name) or (name != "" and name in set(first[:, column].tolist()))
        for column, name in enumerate(names)
    )
    return 2 * count > len(names)


def is_number(name: str) -> bool:
    """Return whether a name is a number, so that it may be a cell of data."""
    return math.isfinite(number_of(name))


def check_names(names: Sequence[str], path: Any) -> None:
    """Raise unless the first line of a file can hold names."""
    if not names or not any(names):
        raise ValueError(f"the first line of {path} must name the columns, got an empty one.")
    if all(is_number(name) for name in names):
        raise ValueError(
            f"the first line of {path} must name the columns, got numbers: {listed(names)}"
            f"{HEADER_MISSING}."
        )
