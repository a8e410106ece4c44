"""Read tables from CSV and Parquet files, and check their cells."""

import bz2
import csv
import gzip
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from pathlib import Path
from typing import IO, Any

import numpy as np

from span_hpo.data import is_missing
from span_hpo.runtime import LARGEST_WHOLE, ArgumentError, Array, FloatArray

_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
_DELIMITERS = ",;\t|"
_MISSING = frozenset({"", "?", "na", "n/a", "nan", "null"})  # texts of missing cells, in lower case
_MOST_SHOWN = 40  # largest number of characters of a cell that a message shows


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of numbers or text, as they were read from a file.

    Attributes
    ----------
    columns
        Arrays of shape (l,) by name: numbers, or objects, some of which may be missing values.
    source
        Name of the table in messages.
    lines
        Line number of each row in a text file, or None.
    """

    columns: Mapping[str, Array]
    source: str
    lines: Sequence[int] | None = None

    @classmethod
    def of(cls, frame: Any) -> "Table":
        """Return the table of a DataFrame, or of a mapping of names to columns."""
        names = frame.columns if hasattr(frame, "columns") else frame
        return cls({str(name): np.asarray(frame[name]) for name in names}, "`X`")

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def place(self, row: int, name: str) -> str:
        """Return where a cell is, with lines and rows counted from 1."""
        where = f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"
        return f"{where}, column {name!r} of {self.source}"

    def texts(self, name: str) -> list[str]:
        """Return a column as text.

        Raises
        ------
        ValueError
            If a cell is missing.
        """
        return [category_text(cell) for cell in self._present(name)]

    def numbers(self, name: str) -> FloatArray:
        """Return a column as finite numbers.

        Raises
        ------
        ValueError
            If a cell is missing, not a number or not finite.
        """
        cells = self._present(name)
        numbers = np.array([_number(cell) for cell in cells], dtype=float)
        wrong = np.flatnonzero(~np.isfinite(numbers))
        if len(wrong):
            row = int(wrong[0])
            raise ValueError(
                f"{self.place(row, name)} must be a finite number, got {shown_cell(cells[row])}."
            )
        return numbers

    def holds_numbers(self, name: str) -> bool:
        """Return whether a column holds numbers rather than text.

        Raises
        ------
        ValueError
            If the column holds both, or a cell is missing.
        """
        cells = self._present(name)
        is_number = np.array([not math.isnan(_number(cell)) for cell in cells], dtype=bool)
        if is_number.all() or not is_number.any():
            return bool(is_number.all())
        row = int((~is_number).argmax())
        raise ArgumentError(
            "category",
            "if it holds categories.",
            f"{self.place(row, name)} must be a number like the others of its column, got "
            f"{shown_cell(cells[row])}. Name the column in",
        )

    def labels(self, name: str) -> Array:
        """Return a column as labels: whole numbers if all of them are, and text otherwise."""
        cells = self._present(name)
        numbers = whole_labels(np.array([_number(cell) for cell in cells], dtype=float))
        return numbers if numbers.dtype.kind == "i" else np.array([str(cell) for cell in cells])

    def _present(self, name: str) -> list[Any]:
        """Return the cells of a column, or raise if one of them is missing."""
        if name not in self.columns:
            raise ValueError(
                f"{self.source} must have a column {name!r}, got {listed(self.columns)}."
            )
        column = self.columns[name]
        if column.dtype.kind not in "biufOUT":
            raise TypeError(
                f"column {name!r} of {self.source} must hold numbers or text, got {column.dtype}."
            )
        cells: list[Any] = column.tolist()
        missing = [row for row, cell in enumerate(cells) if _has_no_value(cell)]
        if missing:
            raise ArgumentError(
                "drop",
                "the column.",
                f"{self.place(missing[0], name)} must have a value, got none (missing in "
                f"{len(missing)} of {len(cells)} rows). Fill it in, leave these rows out, or",
            )
        for row, cell in enumerate(cells):
            if not isinstance(cell, str | Real | Decimal):
                raise TypeError(
                    f"{self.place(row, name)} must be a number or text, got {shown_cell(cell)}."
                )
        return cells


def file_format(path: str | Path) -> str:
    """Return the format that the suffix of a file stands for, by default LIBSVM's."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in _OPENERS:
        suffixes.pop()
    return _SUFFIXES.get(suffixes[-1], "libsvm") if suffixes else "libsvm"


def read_table(path: str | Path) -> Table:
    """Read a CSV or Parquet file.

    Raises
    ------
    ValueError, OSError, ImportError
        If the file cannot be read, or has no rows.
    """
    table = _read_csv(Path(path)) if file_format(path) == "csv" else _read_parquet(Path(path))
    if not table.columns:
        raise ValueError(f"{path} must have columns, got none.")
    if len(table) == 0:
        raise ValueError(f"{path} must have rows, got only the names of the columns.")
    return table


def whole_labels(numbers: FloatArray) -> Array:
    """Return labels as integers if all of them are whole numbers, and as text otherwise."""
    whole = np.abs(numbers) < LARGEST_WHOLE
    if whole.all() and (numbers == np.round(numbers)).all():
        return numbers.astype(np.int64)
    return np.array([repr(number) for number in numbers.tolist()])


def _read_csv(path: Path) -> Table:
    try:
        with opened(path, "rt", encoding="utf-8-sig", newline="") as file:
            first = re.sub(r'"[^"]*"', "", file.readline())
            file.seek(0)
            delimiter = "\t" if ".tsv" in path.suffixes else max(_DELIMITERS, key=first.count)
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            names = [name.strip() for name in next(reader, [])]
            _check_names(names, path)
            lines, rows = [], []
            for row in reader:
                if not row:
                    continue
                if len(row) != len(names):
                    raise ValueError(
                        f"line {reader.line_num} of {path} must have {len(names)} cells, one for "
                        f"each column, got {len(row)}."
                    )
                lines.append(reader.line_num)
                rows.append(row)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be text in UTF-8, got other bytes ({error}).") from error
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num} of {path} must be CSV: {error}.") from error
    cells = np.empty((len(rows), len(names)), dtype=object)
    for i, row in enumerate(rows):
        cells[i] = [cell.strip() for cell in row]
    return Table({name: cells[:, j] for j, name in enumerate(names)}, str(path), lines)


def _read_parquet(path: Path) -> Table:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install 'span-hpo[parquet]'.") from error
    with path.open("rb"):  # a missing file raises the same error as in other formats
        pass
    try:
        table = parquet.ParquetFile(path).read()
        stored = (table.schema.pandas_metadata or {}).get("index_columns", [])
        table = table.drop_columns([name for name in stored if name in table.column_names])
        names = [str(name) for name in table.column_names]
        _check_names(names, path)
        columns = [np.asarray(column.to_pylist(), dtype=_kind(column)) for column in table.columns]
    except (ArrowException, OSError, UnicodeDecodeError, OverflowError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"{path} must be a Parquet file, got a damaged one: {reason}") from error
    return Table(dict(zip(names, columns, strict=True)), str(path))


def _kind(column: Any) -> Any:
    """Return the array type of a column of Parquet: objects where cells may be missing."""
    kind = str(column.type)
    if column.null_count or not re.fullmatch(r"u?int\d+|float|double|halffloat|bool", kind):
        return object
    return None


def _check_names(names: Sequence[str], path: Path) -> None:
    """Raise unless the first line holds names, each of them once."""
    if not names or not any(names):
        raise ValueError(f"the first line of {path} must name the columns, got an empty one.")
    if all(math.isfinite(_number(name)) for name in names):
        raise ValueError(
            f"the first line of {path} must name the columns, got numbers: {listed(names)}."
        )
    for name, count in Counter(names).items():
        if count > 1:
            raise ValueError(
                f"the columns of {path} must have different names, got {name!r} twice."
            )


@contextmanager
def opened(path: Path, mode: str, **options: Any) -> Iterator[IO[Any]]:
    """Open a file, which may be compressed."""
    opener = _OPENERS.get(path.suffix.lower(), open)
    with opener(path, mode, **options) as file:
        try:
            yield file
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path} must be a whole file, got a damaged one: {error}.") from error


def _has_no_value(cell: Any) -> bool:
    return cell.strip().lower() in _MISSING if isinstance(cell, str) else is_missing(cell)


def _number(cell: Any) -> float:
    """Return the number that a cell holds, or NaN if it holds none."""
    if isinstance(cell, bool):
        return math.nan
    try:
        return math.nan if isinstance(cell, str) and "_" in cell else float(cell)
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


def category_text(cell: Any) -> str:
    """Return a cell as the text of a category; 1 and 1.0, or true and TRUE, are the same category.

    A program that has read a CSV file may have turned its categories into numbers.
    """
    number = _number(cell)
    if math.isfinite(number):
        is_whole = number.is_integer() and abs(number) < LARGEST_WHOLE
        return str(int(number)) if is_whole else repr(number)
    text = str(cell).strip()
    return text.lower() if text.lower() in ("true", "false") else text


def shown_cell(cell: Any) -> str:
    """Return a cell as messages show it: only its beginning if it is long."""
    text = repr(cell)
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "..."


def listed(names: Any) -> str:
    """Return names as a list, which is cut off after 20 of them."""
    shown = [repr(name) for name in names]
    return ", ".join(shown[:20]) + (f" and {len(shown) - 20} more" if len(shown) > 20 else "")
