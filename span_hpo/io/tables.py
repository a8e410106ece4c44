"""Read tables from CSV and Parquet files, and check their cells."""

import csv
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from io import TextIOWrapper
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from span_hpo.data import is_missing
from span_hpo.io.schema import LONGEST_LABEL
from span_hpo.io.unpacking import check_unpacked, is_compressed, opened
from span_hpo.runtime import LARGEST_WHOLE, ArgumentError, Array, FloatArray, rows_of

_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}
_DELIMITERS = ",;\t|"
_MISSING = frozenset({"", "?", "na", "n/a", "nan", "null"})  # texts of missing cells, in lower case
_EMPTY_LINES = frozenset({"\n", "\r\n", "\r"})
_MOST_EMPTY = 10**6  # empty lines that a text file may have, which are skipped
_ROWS_AT_ONCE = 1000  # rows of a text file that are held as lists, which are larger than an array
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
        return _of_each(category_text, self._present(name))

    def numbers(self, name: str) -> FloatArray:
        """Return a column as finite numbers.

        Raises
        ------
        ValueError
            If a cell is missing, not a number or not finite.
        """
        cells = self._present(name)
        numbers = np.array(_of_each(_number, cells), dtype=float)
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
        is_number = ~np.isnan(np.array(_of_each(_number, cells), dtype=float))
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
        numbers = np.array(_of_each(_number, cells), dtype=float)
        if are_whole(numbers):
            return numbers.astype(np.int64)
        texts = _of_each(str, cells)
        longest = max(texts, key=len)
        if len(longest) > LONGEST_LABEL:
            raise ValueError(
                f"{self.place(texts.index(longest), name)} must be a label of at most "
                f"{LONGEST_LABEL} characters, got {len(longest)}: {shown_cell(longest)}."
            )
        return np.array(texts)

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
        missing = rows_of(np.array(_of_each(_has_no_value, cells), dtype=bool)).tolist()
        if missing:
            raise ArgumentError(
                "drop",
                "the column.",
                f"{self.place(missing[0], name)} must have a value, got none (missing in "
                f"{len(missing)} of {len(cells)} rows). Fill it in, leave these rows out, or",
            )
        for kind in set(map(type, cells)):
            if not issubclass(kind, str | Real | Decimal):
                row = next(row for row, cell in enumerate(cells) if type(cell) is kind)
                raise TypeError(
                    f"{self.place(row, name)} must be a number or text, got "
                    f"{shown_cell(cells[row])}."
                )
        return cells


def file_format(path: str | Path) -> str:
    """Return the format that the suffix of a file stands for, by default LIBSVM's."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and is_compressed(suffixes[-1]):
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
    if are_whole(numbers):
        return numbers.astype(np.int64)
    return np.array([repr(number) for number in numbers.tolist()])


def are_whole(numbers: FloatArray) -> bool:
    """Return whether all numbers are whole and exact."""
    is_exact = np.abs(numbers) < LARGEST_WHOLE
    return bool(is_exact.all() and (numbers == np.round(numbers)).all())


def _of_each(function: Callable[[Any], Any], cells: list[Any]) -> list[Any]:
    """Return a function of every cell, which is called once for equal texts."""
    if set(map(type, cells)) != {str}:
        return [function(cell) for cell in cells]
    known = {text: function(text) for text in set(cells)}
    return [known[text] for text in cells]


def _read_csv(path: Path) -> Table:
    try:
        with opened(path) as content:
            file = TextIOWrapper(content, encoding="utf-8-sig", newline="")
            first = re.sub(r'"[^"]*"', "", file.readline())
            file.seek(0)
            delimiter = "\t" if ".tsv" in path.suffixes else max(_DELIMITERS, key=first.count)
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            names = [name.strip() for name in next(reader, [])]
            _check_names(names, path)
            cells, lines = _read_rows(file, path, len(names), delimiter, reader.line_num)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be text in UTF-8, got other bytes ({error}).") from error
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num} of {path} must be CSV: {error}.") from error
    return Table({name: cells[:, j] for j, name in enumerate(names)}, str(path), lines)


def _read_rows(
    file: Iterable[str], path: Path, count: int, delimiter: str, before: int
) -> tuple[Array, list[int]]:
    """Return the cells of all rows, shape (l, count), and the line numbers of the rows.

    Parameters
    ----------
    file
        Lines after those with the names of the columns, of which there are `before`.
    path
        Path of the file, for messages.
    count
        Number of columns.
    delimiter
        Character between cells.
    """
    reader = csv.reader(
        _short_lines(file, path, count, delimiter, before), delimiter=delimiter, strict=True
    )
    lines: list[int] = []
    blocks = [np.empty((0, count), dtype=object)]
    rows: list[list[str]] = []
    try:
        for row in reader:
            if not row:
                continue
            if len(row) != count:
                raise _wrong_count(before + reader.line_num, path, count, len(row))
            lines.append(before + reader.line_num)
            rows.append([cell.strip() for cell in row])
            if len(rows) == _ROWS_AT_ONCE:
                blocks.append(np.array(rows, dtype=object))
                rows = []
    except csv.Error as error:
        line = before + reader.line_num
        raise ValueError(f"line {line} of {path} must be CSV: {error}.") from error
    if rows:
        blocks.append(np.array(rows, dtype=object))
    return np.concatenate(blocks), lines


def _short_lines(
    file: Iterable[str], path: Path, count: int, delimiter: str, before: int
) -> Iterator[str]:
    """Yield lines, but raise before a line with too many cells is split into them."""
    quotes = 0  # an odd number of them is followed by the rest of a cell
    empty = 0
    for number, line in enumerate(file, start=before + 1):
        if line in _EMPTY_LINES:
            empty += 1
            if empty > _MOST_EMPTY:
                raise ValueError(
                    f"{path} must hold rows, got more than {_MOST_EMPTY} empty lines before line "
                    f"{number}."
                )
        here = line.count('"')
        if here == 0 and quotes % 2 == 0:
            cells = line.count(delimiter) + 1
            if cells > count:
                raise _wrong_count(number, path, count, cells)
        quotes += here
        yield line


def _wrong_count(line: int, path: Path, wanted: int, got: int) -> ValueError:
    return ValueError(
        f"line {line} of {path} must have {wanted} cells, one for each column, got {got}."
    )


def _read_parquet(path: Path) -> Table:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow: pip install 'span-hpo[parquet]'.") from error
    with path.open("rb") as content:
        with _as_damaged(path):
            size = content.seek(0, 2)
            # No list or text of the description can have more entries than the file has bytes.
            limits = {"thrift_string_size_limit": size, "thrift_container_size_limit": size}
            file = parquet.ParquetFile(content, **limits)
            unpacked, texts = _unpacked_size(file.metadata), _texts_of(file.schema_arrow)
        check_unpacked(path, unpacked, size)
        with _as_damaged(path):
            known = {"metadata": file.metadata, "read_dictionary": texts}
            # Threads of pyarrow would call the file in Python from outside of Python.
            whole = parquet.ParquetFile(content, **known, **limits, pre_buffer=False)
            table = whole.read(use_threads=False)
            index = _index_columns(table.schema)
            table = table.drop_columns([name for name in table.column_names if name in index])
            columns = [_cells(column) for column in table.columns]
    names = [str(name) for name in table.column_names]
    _check_names(names, path)
    return Table(dict(zip(names, columns, strict=True)), str(path))


@contextmanager
def _as_damaged(path: Path) -> Iterator[None]:
    """Report what pyarrow raises as damage of the file: errors of its own, and Python's."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, ValueError, TypeError, OverflowError) as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise ValueError(f"{path} must be a Parquet file, got a damaged one: {reason}.") from error


def _index_columns(schema: Any) -> set[str]:
    """Return the columns in which pandas has kept the index of a DataFrame."""
    about = schema.pandas_metadata
    stored = about.get("index_columns") if isinstance(about, dict) else None
    return {name for name in stored if isinstance(name, str)} if isinstance(stored, list) else set()


def _texts_of(schema: Any) -> list[str]:
    """Return the names of the columns of text, which are read as codes of different texts.

    A text that occurs in many rows would otherwise be copied into each of them.
    """
    kinds = zip(schema.names, schema.types, strict=True)
    return [name for name, kind in kinds if str(kind) in ("string", "large_string", "binary")]


def _unpacked_size(about: Any) -> int:
    """Return the bytes that the content of a Parquet file needs at least: 8 for each cell.

    Rows that repeat take no space in the file.
    """
    groups = [about.row_group(index) for index in range(about.num_row_groups)]
    rows = max(about.num_rows, sum(group.num_rows for group in groups))
    stored = sum(group.total_byte_size for group in groups)
    return int(max(8 * rows * about.num_columns, stored))


def _cells(column: Any) -> Array:
    """Return a column of Parquet: numbers, or objects where there is text or no value."""
    kind = str(column.type)
    if not column.null_count and re.fullmatch(r"u?int\d+|float|double|halffloat|bool", kind):
        numbers: Array = column.to_numpy()
        return numbers
    cells: list[Any] = []
    for chunk in column.chunks:
        if kind.startswith("dictionary"):
            known = chunk.dictionary.to_pylist()
            codes = chunk.indices.to_pylist()
            cells += [None if code is None else known[code] for code in codes]
        else:
            cells += chunk.to_pylist()
    found = np.empty(len(cells), dtype=object)
    found[:] = cells
    return found


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
