"""Files of rows: CSV, Parquet and LIBSVM's format; columns of text become columns of 0 and 1."""

import bz2
import csv
import gzip
import math
import re
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from io import BytesIO
from numbers import Real
from pathlib import Path
from typing import IO, Any

import numpy as np
from sklearn.datasets import load_svmlight_file

from span_hpo.arrays import Array, FloatArray
from span_hpo.data import is_missing

_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open}
_DELIMITERS = ",;\t|"
_MISSING = frozenset({"", "?", "na", "n/a", "nan", "null"})  # in any case of letters
_MOST_CATEGORIES = 100  # of one column; more are names or numbers with a slip, not categories
_MOST_CLASSES = 100
_MOST_FEATURES = 10**7  # of a LIBSVM file that is believed
_MOST_SHOWN = 40  # characters of a cell in a message
_DENSE_SHARE = 0.25  # of entries that are not 0, from which a LIBSVM file is held as an array
_LARGEST_LABEL = 2**53  # beyond it floats are not whole numbers one by one
_FORMATTED = re.compile(r"[-+]?[\d.,' ]*\d[\d.,' ]*%?")  # 0,5 and 1'000 and 12%
_LIBSVM_LINE = re.compile(r"[^\s:]+(\s+[^\s:]+:[^\s:]+)*\s*$")


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of numbers or text, as they were read.

    Attributes
    ----------
    columns
        Arrays of shape (l,) by name: numbers, or objects of which some may be missing.
    source
        What messages call it.
    lines
        Line of each row in a text file, or None.
    """

    columns: Mapping[str, Array]
    source: str
    lines: Sequence[int] | None = None

    @classmethod
    def of(cls, frame: Any) -> "Table":
        """Take over a DataFrame, or a mapping of names to columns."""
        names = frame.columns if hasattr(frame, "columns") else frame
        return cls({str(name): np.asarray(frame[name]) for name in names}, "`X`")

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def place(self, row: int, name: str) -> str:
        """Return where a cell is, counted as an editor does."""
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
                f"{self.place(row, name)} must be a finite number, got {_shown(cells[row])}."
            )
        return numbers

    def holds_numbers(self, name: str) -> bool:
        """Tell whether a column holds numbers, not text.

        Raises
        ------
        ValueError
            If it holds both, or a cell is missing.
        """
        cells = self._present(name)
        is_number = np.array([not math.isnan(_number(cell)) for cell in cells], dtype=bool)
        if is_number.all() or not is_number.any():
            return bool(is_number.all())
        row = int((~is_number).argmax())
        raise ValueError(
            f"{self.place(row, name)} must be a number like others of its column, got "
            f"{_shown(cells[row])}. If the column holds categories, name it in `category`."
        )

    def labels(self, name: str) -> Array:
        """Return a column as labels: whole numbers, or text."""
        cells = self._present(name)
        numbers = whole_labels(np.array([_number(cell) for cell in cells], dtype=float))
        return numbers if numbers.dtype.kind == "i" else np.array([str(cell) for cell in cells])

    def _present(self, name: str) -> list[Any]:
        """Return the cells of a column, none of which is missing."""
        if name not in self.columns:
            raise ValueError(
                f"{self.source} must have a column {name!r}, got {_listed(self.columns)}."
            )
        column = self.columns[name]
        if column.dtype.kind not in "biufOUT":
            raise TypeError(
                f"column {name!r} of {self.source} must hold numbers or text, got {column.dtype}."
            )
        cells: list[Any] = column.tolist()
        missing = [row for row, cell in enumerate(cells) if _has_no_value(cell)]
        if missing:
            raise ValueError(
                f"{self.place(missing[0], name)} must have a value, got none (missing in "
                f"{len(missing)} of {len(cells)} rows). Fill it in, leave these rows out, or "
                "`drop` the column."
            )
        for row, cell in enumerate(cells):
            if not isinstance(cell, str | Real | Decimal):
                raise TypeError(
                    f"{self.place(row, name)} must be a number or text, got {_shown(cell)}."
                )
        return cells


@dataclass(frozen=True)
class Column:
    """A column of a table that is used as a feature.

    Attributes
    ----------
    name
        Its name.
    categories
        The texts that it may hold, each of which becomes a feature of 0 and 1; None for numbers.
    """

    name: str
    categories: tuple[str, ...] | None = None

    @property
    def feature_names(self) -> list[str]:
        """Names of the features that it becomes."""
        if self.categories is None:
            return [self.name]
        return [f"{self.name}={category}" for category in self.categories]

    def features(self, table: Table) -> FloatArray:
        """Return the features of all rows, shape (l, n); see `Columns.encoded`."""
        if self.categories is None:
            return table.numbers(self.name)[:, None]
        texts = np.array(table.texts(self.name), dtype=object)
        unknown = sorted(set(texts) - set(self.categories))
        if unknown:
            shown = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
            warnings.warn(
                f"column {self.name!r} of {table.source} has categories that were not there in "
                f"training: {shown}.",
                stacklevel=3,
            )
        return np.column_stack([texts == category for category in self.categories]).astype(float)


@dataclass(frozen=True)
class Columns:
    """How the columns of a table become features, and which one is predicted.

    Attributes
    ----------
    target
        Name of the column with the labels.
    features
        The columns that are features, in their order.
    """

    target: str
    features: tuple[Column, ...]

    @property
    def feature_names(self) -> list[str]:
        """Names of the features."""
        return [name for column in self.features for name in column.feature_names]

    def encoded(self, table: Table) -> FloatArray:
        """Return the features of all rows, shape (l, d).

        Categories that were not there in training are 0 in all features of their column, with a
        warning.

        Raises
        ------
        ValueError, TypeError
            If a column or a cell is missing, or is not what it was in training.
        """
        missing = [column.name for column in self.features if column.name not in table.columns]
        if missing:
            raise ValueError(
                f"{table.source} must have the columns {_listed(missing)}, got "
                f"{_listed(table.columns)}."
            )
        return np.hstack([column.features(table) for column in self.features])

    def content(self) -> dict[str, Any]:
        """Return what a JSON file says about them."""
        features = [
            {"name": column.name}
            | ({} if column.categories is None else {"categories": list(column.categories)})
            for column in self.features
        ]
        return {"target": self.target, "features": features}

    @classmethod
    def of_content(cls, content: Mapping[str, Any]) -> "Columns":
        """Return what `content` has written; of anything else, an exception."""
        features = []
        for column in content["features"]:
            categories = column.get("categories")
            if categories is not None:
                if not categories or not all(isinstance(text, str) for text in categories):
                    raise ValueError(f"categories of {column['name']!r} must be texts")
                categories = tuple(categories)
            features.append(Column(str(column["name"]), categories))
        return cls(str(content["target"]), tuple(features))


@dataclass(frozen=True, eq=False)
class Samples:
    """What a file of training rows holds.

    Attributes
    ----------
    X
        Features, shape (l, d), an array or sparse.
    y
        Labels, shape (l,).
    scores
        Scores by name, each of shape (l,), or None.
    groups
        Group of each row, shape (l,), or None.
    columns
        How the features came from a table; None for LIBSVM's format, which has no names.
    lines
        Line of each row in a CSV file, or None.
    """

    X: Any
    y: Array
    scores: dict[str, FloatArray] | None = None
    groups: Array | None = None
    columns: Columns | None = None
    lines: Sequence[int] | None = None


def file_format(path: str | Path) -> str:
    """Return the format that the name of a file tells; LIBSVM's if it tells none."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in _OPENERS:
        suffixes.pop()
    return _SUFFIXES.get(suffixes[-1], "libsvm") if suffixes else "libsvm"


def read_samples(
    path: str | Path,
    *,
    target: str | None = None,
    score: str | None = None,
    group: str | None = None,
    drop: Sequence[str] = (),
    category: Sequence[str] = (),
) -> Samples:
    """Read training rows.

    Parameters
    ----------
    path
        The file, in the format that its name tells.
    target
        Column with the labels; needed for a table.
    score, group
        Columns with a score and with the group of each row, which are then no features.
    drop
        Columns that are not used.
    category
        Columns of categories although they may look like numbers.

    Raises
    ------
    ValueError, TypeError, OSError, ImportError
        If the file cannot be read, or does not hold what is asked for.
    """
    named = {"target": target, "score": score, "group": group, "drop": drop, "category": category}
    if file_format(path) == "libsvm":
        given = [name for name, value in named.items() if value]
        if given:
            raise ValueError(
                f"`{given[0]}` must not be given for a file in LIBSVM's format, which has no named "
                f"columns, got {named[given[0]]!r}. (Tables are called .csv, .tsv or .parquet.)"
            )
        X, y = read_libsvm(path)
        return Samples(X, _checked_labels(y, f"labels of {path}"))
    table = read_table(path)
    if target is None:
        raise ValueError(
            f"`target` must name the column with the labels, one of {_listed(table.columns)}."
        )
    for argument, names in (
        ("target", [target]),
        ("score", [score] if score else []),
        ("group", [group] if group else []),
        ("drop", drop),
        ("category", category),
    ):
        unknown = [name for name in names if name not in table.columns]
        if unknown:
            raise ValueError(
                f"`{argument}` must be a column of {table.source}, one of "
                f"{_listed(table.columns)}, got {unknown[0]!r}."
            )
    if "" in table.columns and "" not in drop:
        raise ValueError(
            f"the columns of {table.source} must have names, got one without (an index?). Give it "
            "a name, or `drop` ''."
        )
    other = [name for name in (target, score, group, *drop) if name is not None]
    y = _checked_labels(table.labels(target), f"column {target!r} of {table.source}")
    features = [
        _fitted_column(table, name, name in category) for name in table.columns if name not in other
    ]
    if not features:
        raise ValueError(
            f"{table.source} must have a column for features, got none but {_listed(other)}."
        )
    columns = Columns(target, tuple(features))
    return Samples(
        columns.encoded(table),
        y,
        {score: _unit_score(table, score)} if score else None,
        np.array(table.texts(group), dtype=object) if group else None,
        columns,
        table.lines,
    )


def read_table(path: str | Path) -> Table:
    """Read a CSV or Parquet file.

    Raises
    ------
    ValueError, OSError, ImportError
        If the file cannot be read.
    """
    table = _read_csv(Path(path)) if file_format(path) == "csv" else _read_parquet(Path(path))
    if not table.columns:
        raise ValueError(f"{path} must have columns, got none.")
    if len(table) == 0:
        raise ValueError(f"{path} must have rows, got only the names of the columns.")
    return table


def read_libsvm(path: str | Path, n_features: int | None = None) -> tuple[Any, Array]:
    """Read features and labels in LIBSVM's format.

    Parameters
    ----------
    path
        The file.
    n_features
        Least number of features; there may be more. By default as many as are used.

    Returns
    -------
    Features, sparse or, if a good part of the entries is not 0, an array; labels.

    Raises
    ------
    ValueError, OSError
        If the file cannot be read.
    """
    with _opened(Path(path), "rb") as file:
        content = file.read()
    if not content.strip():
        raise ValueError(f"{path} must hold rows, got an empty file.")
    try:
        X, y = load_svmlight_file(BytesIO(content), zero_based=False)
    except (ValueError, OverflowError, MemoryError) as error:
        raise ValueError(_libsvm_fault(content, path, error)) from error
    if X.shape[1] > _MOST_FEATURES:
        raise ValueError(
            f"{path} must number its features from 1 to at most {_MOST_FEATURES}, got {X.shape[1]}."
        )
    if not (np.isfinite(y).all() and np.isfinite(X.data).all()):
        raise ValueError(_libsvm_fault(content, path, None))
    if n_features is not None:
        X.resize(X.shape[0], max(n_features, X.shape[1]))
    elif X.nnz == 0:
        raise ValueError(f"{path} must have a feature, got only labels.")
    dense = X.nnz >= _DENSE_SHARE * X.shape[0] * X.shape[1]
    return (X.toarray() if dense else X), whole_labels(y)


def whole_labels(numbers: FloatArray) -> Array:
    """Return labels as whole numbers if that is what they are, else as text."""
    whole = np.abs(numbers) < _LARGEST_LABEL
    if whole.all() and (numbers == np.round(numbers)).all():
        return numbers.astype(np.int64)
    return np.array([repr(number) for number in numbers.tolist()])


def _libsvm_fault(content: bytes, path: str | Path, error: Exception | None) -> str:
    """Return which line of a LIBSVM file is wrong."""
    wanted = "must be a label and features such as 3:0.5, numbered from 1"
    for number, line in enumerate(content.splitlines(), start=1):
        text = line.decode("utf-8", "replace").partition("#")[0].strip()
        if text and not _is_libsvm_line(text):
            return f"line {number} of {path} {wanted}, got {_shown(text)}."
    return f"{path} {wanted}, in every line: {error}."


def _is_libsvm_line(text: str) -> bool:
    if not _LIBSVM_LINE.match(text):
        return False
    label, *entries = text.split()
    pairs = [entry.split(":") for entry in entries if not entry.startswith("qid:")]
    try:
        numbers = [float(label), *(float(value) for _, value in pairs)]
        return min([1, *(int(index) for index, _ in pairs)]) >= 1 and all(
            map(math.isfinite, numbers)
        )
    except ValueError:
        return False


def _fitted_column(table: Table, name: str, is_category: bool) -> Column:
    """Return how a column of training rows becomes features."""
    if not is_category and table.holds_numbers(name):
        return Column(name)
    categories = sorted(set(table.texts(name)))
    if not is_category and all(_FORMATTED.fullmatch(text) for text in categories):
        raise ValueError(
            f"{table.place(0, name)} must be a number such as 1234.5, got "
            f"{_shown(table.texts(name)[0])}. If the column holds categories, name it in "
            "`category`."
        )
    if len(categories) > _MOST_CATEGORIES:
        raise ValueError(
            f"column {name!r} of {table.source} must hold numbers or at most {_MOST_CATEGORIES} "
            f"categories, got {len(categories)} different texts such as {_shown(categories[0])}. "
            "If it tells nothing about the labels, `drop` it."
        )
    return Column(name, tuple(categories))


def _unit_score(table: Table, name: str) -> FloatArray:
    scores = table.numbers(name)
    outside = np.flatnonzero((scores < 0) | (scores > 1))
    if len(outside):
        row = int(outside[0])
        raise ValueError(
            f"{table.place(row, name)} must be a score in [0, 1], got {scores[row]:g}."
        )
    return scores


def _checked_labels(labels: Array, what: str) -> Array:
    classes = np.unique(labels)
    if not 2 <= len(classes) <= _MOST_CLASSES:
        raise ValueError(
            f"{what} must be from 2 to {_MOST_CLASSES} classes, got {len(classes)} different "
            f"values such as {classes.tolist()[0]!r}."
        )
    return labels


def _read_csv(path: Path) -> Table:
    try:
        with _opened(path, "rt", encoding="utf-8-sig", newline="") as file:
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
    with path.open("rb"):  # a missing file is told as any other
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
    """Return the type of array for a column of Parquet: objects where cells may be missing."""
    kind = str(column.type)
    if column.null_count or not re.fullmatch(r"u?int\d+|float|double|halffloat|bool", kind):
        return object
    return None


def _check_names(names: Sequence[str], path: Path) -> None:
    """Raise unless the columns have names that differ."""
    if not names or not any(names):
        raise ValueError(f"the first line of {path} must name the columns, got an empty one.")
    if all(math.isfinite(_number(name)) for name in names):
        raise ValueError(
            f"the first line of {path} must name the columns, got numbers: {_listed(names)}."
        )
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the columns of {path} must have different names, got two {name!r}.")


@contextmanager
def _opened(path: Path, mode: str, **options: Any) -> Iterator[IO[Any]]:
    """Open a file, also a compressed one."""
    opener = _OPENERS.get(path.suffix.lower(), open)
    with opener(path, mode, **options) as file:
        try:
            yield file
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path} must be a whole file: {error}.") from error


def _has_no_value(cell: Any) -> bool:
    return cell.strip().lower() in _MISSING if isinstance(cell, str) else is_missing(cell)


def _number(cell: Any) -> float:
    """Return the number that a cell holds, NaN if it holds none."""
    if isinstance(cell, bool):
        return math.nan
    try:
        return math.nan if isinstance(cell, str) and "_" in cell else float(cell)
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


def category_text(cell: Any) -> str:
    """Return a cell as the text of a category, which 1 and 1.0, or true and TRUE, share.

    A program that reads a CSV file may have turned them into numbers.
    """
    number = _number(cell)
    if math.isfinite(number):
        is_whole = number.is_integer() and abs(number) < _LARGEST_LABEL
        return str(int(number)) if is_whole else repr(number)
    text = str(cell).strip()
    return text.lower() if text.lower() in ("true", "false") else text


def _shown(cell: Any) -> str:
    text = repr(cell)
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "..."


def _listed(names: Any) -> str:
    """Return names as a list of which the end may be left out."""
    shown = [repr(name) for name in names]
    return ", ".join(shown[:20]) + (f" and {len(shown) - 20} more" if len(shown) > 20 else "")
