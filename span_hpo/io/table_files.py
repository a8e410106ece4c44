"""Read tables from CSV and Parquet files."""

import csv
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any

import numpy as np

from span_hpo.io.dialects import (
    HEADER_MISSING,
    Dialect,
    check_names,
    is_number,
    looks_like_data,
    wrong_encoding,
)
from span_hpo.io.tables import Table, check_different
from span_hpo.io.unpacking import check_unpacked, is_compressed, opened
from span_hpo.runtime import ArgumentError, Array

_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}
_EMPTY_LINES = frozenset({"\n", "\r\n", "\r"})
_MOST_EMPTY = 10**6  # empty lines that a text file may have, which are skipped
_ROWS_AT_ONCE = 1000  # rows of a text file that are held as lists, which are larger than an array


def file_format(path: str | Path) -> str:
    """Return the format that the suffix of a file stands for, by default LIBSVM's."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and is_compressed(suffixes[-1]):
        suffixes.pop()
    return _SUFFIXES.get(suffixes[-1], "libsvm") if suffixes else "libsvm"


def read_table(path: str | Path, dialect: Dialect | None = None) -> Table:
    """Read a CSV or Parquet file.

    Parameters
    ----------
    path
        Path of the file.
    dialect
        How a CSV file writes the table, if it is unusual.

    Raises
    ------
    ValueError, OSError, ImportError
        If the file cannot be read, or has no rows.
    """
    dialect = dialect or Dialect()
    if file_format(path) == "csv":
        table = _read_csv(Path(path), dialect)
    else:
        check_no_dialect(dialect, f"the Parquet file {path}")
        table = _read_parquet(Path(path))
    if not table.columns:
        raise ValueError(f"{path} must have columns, got none.")
    if len(table) == 0:
        raise ValueError(f"{path} must have rows, got only the names of the columns.")
    return table


def check_no_dialect(dialect: Dialect, what: str) -> None:
    """Raise if a dialect is given for a file that is no text with delimiters."""
    for argument, value in dialect.given.items():
        raise ArgumentError(
            argument, f"must not be given for {what}, which is no CSV file, got {value!r}."
        )


def _read_csv(path: Path, dialect: Dialect) -> Table:
    with opened(path) as content:
        try:
            return _table_in(content, path, dialect)
        except UnicodeError as error:
            raise wrong_encoding(path, content, dialect) from error


def _table_in(content: IO[bytes], path: Path, dialect: Dialect) -> Table:
    """Return the table that the bytes of a text file hold."""
    file = TextIOWrapper(content, encoding=dialect.codec, newline="")
    try:
        delimiter = dialect.delimiter_in(file.readline(), path)
        file.seek(0)
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            names = [name.strip() for name in next(reader, [])]
        except csv.Error as error:
            raise ValueError(f"line {reader.line_num} of {path} must be CSV: {error}.") from error
        check_names(names, path)
        has_numbers = 2 * sum(map(is_number, names)) > len(names)
        check_different(names, str(path), HEADER_MISSING if has_numbers else "")
        cells, lines = _read_rows(file, path, len(names), delimiter, reader.line_num)
    finally:
        file.detach()  # or it would close the file, which may be read again for a message
    return Table(
        {name: cells[:, j] for j, name in enumerate(names)},
        str(path),
        lines,
        decimal=dialect.decimal or ".",
        headless=looks_like_data(names, cells),
    )


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
    check_names(names, path)
    check_different(names, str(path))
    kinds = dict(zip(map(str, file.schema_arrow.names), file.schema_arrow.types, strict=True))
    return Table(
        dict(zip(names, columns, strict=True)),
        str(path),
        categorical=frozenset(name for name in names if str(kinds[name]).startswith("dictionary")),
    )


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
