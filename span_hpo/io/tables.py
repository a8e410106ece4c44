"""Hold a table of numbers and text, and check its cells."""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any

import numpy as np

from span_hpo.data import is_missing
from span_hpo.io.schema import LONGEST_LABEL
from span_hpo.runtime import LARGEST_WHOLE, ArgumentError, Array, FloatArray, IndexArray, rows_of

_FRAME = "`X`"  # source of tables that are DataFrames
_MISSING = frozenset({"", "?", "na", "n/a", "nan", "null"})  # texts of missing cells, in lower case
_TRUTH = {"false": 0.0, "true": 1.0}  # numbers of truth values, in lower case
_MOST_SHOWN = 40  # largest number of characters of a cell that a message shows
_MOST_NAMED = 100  # largest number of columns with missing values that a message names
_DECIMAL_COMMA = re.compile(r"[-+]?(\d+,\d*|,\d+)([eE][-+]?\d+)?")
_TIME = r"\d{1,2}:\d{2}(:\d{2}([.,]\d{1,9})?)? ?([ap]\.?m\.?|z|utc|[-+]\d{2}:?\d{2})?"
_DAY = r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))"
_TIMESTAMP = re.compile(f"{_DAY}([t ]{_TIME})?|{_TIME}", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of numbers or text, as they were read from a file or given as a DataFrame.

    Attributes
    ----------
    columns
        Arrays of shape (l,) by name: numbers, or objects, some of which may be missing values.
    source
        Name of the table in messages.
    lines
        Line number of each row in a text file, or None.
    decimal
        Character before the decimal places in texts, "." or ",".
    categorical
        Names of the columns whose type says that they hold categories, even if these are numbers.
    headless
        Whether the first line of a text file looks like data rather than names.
    """

    columns: Mapping[str, Array]
    source: str
    lines: Sequence[int] | None = None
    decimal: str = "."
    categorical: frozenset[str] = frozenset()
    headless: bool = False

    @classmethod
    def of(cls, frame: Any) -> "Table":
        """Return the table of a DataFrame, or of a mapping of names to columns."""
        names = list(frame.columns if hasattr(frame, "columns") else frame)
        check_different(map(str, names), _FRAME)
        columns = {str(name): frame[name] for name in names}
        kinds = {name: str(getattr(column, "dtype", "")) for name, column in columns.items()}
        return cls(
            {name: np.asarray(column) for name, column in columns.items()},
            _FRAME,
            categorical=frozenset(
                name for name, kind in kinds.items() if kind.lower().startswith(("categor", "enum"))
            ),
        )

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def take(self, rows: IndexArray) -> "Table":
        """Return the table of the given rows."""
        return replace(
            self,
            columns={name: column[rows] for name, column in self.columns.items()},
            lines=None if self.lines is None else [self.lines[row] for row in rows.tolist()],
        )

    def without(self, names: Collection[str]) -> "Table":
        """Return the table without the columns of these names."""
        left_out = set(names)
        kept = {name: cells for name, cells in self.columns.items() if name not in left_out}
        return replace(self, columns=kept)

    def place(self, row: int, name: str) -> str:
        """Return where a cell is, with lines and rows counted from 1."""
        return f"{self._row(row)}, column {name!r} of {self.source}"

    def _row(self, row: int) -> str:
        return f"row {row + 1}" if self.lines is None else f"line {self.lines[row]}"

    def missing(self, name: str) -> Array:
        """Return for each row whether a column has no value there, as truth values."""
        column = self.columns[name]
        if column.dtype.kind in "biu":
            return np.zeros(len(column), dtype=bool)
        if column.dtype.kind == "f":
            return np.isnan(column)
        return np.array(_of_each(_has_no_value, column.tolist()), dtype=bool)

    def missing_counts(self, names: Iterable[str]) -> dict[str, int]:
        """Return the number of missing values in each of the columns that have any."""
        counts = {name: int(np.count_nonzero(self.missing(name))) for name in names}
        return {name: count for name, count in counts.items() if count}

    def about_missing(self, counts: Mapping[str, int]) -> str:
        """Return a description of all columns with missing values, from `missing_counts`."""
        shown = [
            f"{name!r} ({count} of {len(self)} rows, the first of which is "
            f"{self._row(int(self.missing(name).argmax()))})"
            for name, count in list(counts.items())[:_MOST_NAMED]
        ]
        more = len(counts) - len(shown)
        return ", ".join(shown) + (f" and {more} more columns" if more else "")

    def present(self, name: str) -> "Table":
        """Return the table of one column and of the rows that have a value there."""
        only = replace(self, columns={name: self.columns[name]})
        missing = self.missing(name)
        return only.take(rows_of(~missing)) if missing.any() else only

    def texts(self, name: str) -> list[str]:
        """Return a column as text.

        Raises
        ------
        ValueError
            If a cell is missing.
        """
        return _of_each(partial(category_text, decimal=self.decimal), self._present(name).tolist())

    def numbers(self, name: str) -> FloatArray:
        """Return a column as finite numbers; truth values become 0 and 1.

        Raises
        ------
        ValueError
            If a cell is missing, not a number or not finite.
        """
        column = self._present(name)
        numbers = self._numbers(column)
        if np.isnan(numbers).any():
            truth = np.array(_of_each(_truth_of, column.tolist()), dtype=float)
            numbers = np.where(np.isnan(numbers), truth, numbers)
        wrong = np.flatnonzero(~np.isfinite(numbers))
        if len(wrong):
            row = int(wrong[0])
            fault = f"{self.place(row, name)} must be a finite number"
            raise self._not_a_number(column.tolist()[row], fault)
        return numbers

    def kind_of(self, name: str) -> str:
        """Return what a column holds: "number", "truth" (true and false) or "text".

        Raises
        ------
        ValueError
            If the column holds numbers and text, or a cell is missing.
        """
        column = self._present(name)
        is_number = ~np.isnan(self._numbers(column))
        if is_number.all():
            return "number"
        cells = column.tolist()
        if not is_number.any():
            is_truth = not any(math.isnan(value) for value in _of_each(_truth_of, cells))
            return "truth" if is_truth else "text"
        row = int((~is_number).argmax())
        fault = f"{self.place(row, name)} must be a number like the others of its column"
        raise self._not_a_number(cells[row], fault)

    def _numbers(self, column: Array) -> FloatArray:
        """Return the numbers that the cells of a column hold, and NaN where they hold none."""
        if column.dtype.kind in "iuf":
            return column.astype(float)
        found = _of_each(partial(number_of, decimal=self.decimal), column.tolist())
        return np.array(found, dtype=float)

    def _not_a_number(self, cell: Any, fault: str) -> ValueError:
        """Return the error about a cell that is not a number, with a remedy."""
        if self.has_decimal_comma([cell]):
            return ArgumentError(
                "decimal",
                "',' if it is a decimal comma.",
                f"{fault}, got {shown_cell(cell)} with a comma. Set",
            )
        return self.refused(
            f"{fault}, got {shown_cell(cell)}.",
            ("category", "if it holds categories.", "Name the column in"),
            'Give the column the dtype "category" if it holds categories.',
        )

    def has_decimal_comma(self, cells: Collection[Any]) -> bool:
        """Return whether all cells of a text file look like numbers with a decimal comma."""
        return (
            self.lines is not None
            and self.decimal == "."
            and all(isinstance(cell, str) and _DECIMAL_COMMA.fullmatch(cell) for cell in cells)
        )

    def check_no_timestamps(self, name: str, texts: Collection[str]) -> None:
        """Raise with advice if all texts of a column are dates or times of day."""
        if all(_TIMESTAMP.fullmatch(text) for text in texts):
            raise self.refused(
                f"column {name!r} of {self.source} must hold numbers or categories, got timestamps "
                f"such as {shown_cell(min(texts))}. Replace them by numbers, such as the hour, the "
                "weekday or the days since a date.",
                (
                    "drop",
                    "or name it in `category` if every timestamp is a category.",
                    "Leave the column out with",
                ),
                'Leave the column out, or give it the dtype "category" if every timestamp is a '
                "category.",
            )

    def refused(self, fault: str, remedy: tuple[str, str, str], in_frame: str) -> ValueError:
        """Return an error about this table, with a remedy for its kind of table.

        Parameters
        ----------
        fault
            What is wrong, as a sentence.
        remedy
            For files, the argument that helps, and the texts after and before its name.
        in_frame
            For DataFrames, a sentence that says what helps.
        """
        if self.source == _FRAME:
            return ValueError(f"{fault} {in_frame}".rstrip())
        argument, after, before = remedy
        return ArgumentError(argument, after, f"{fault} {before}".rstrip())

    def labels(self, name: str) -> Array:
        """Return a column as labels: whole numbers if all of them are, and text otherwise."""
        column = self._present(name)
        numbers = self._numbers(column)
        if are_whole(numbers):
            return numbers.astype(np.int64)
        texts = _of_each(str, column.tolist())
        if self.decimal == "," and np.isfinite(numbers).all():
            texts = [text.replace(",", ".") for text in texts]
        longest = max(texts, key=len)
        if len(longest) > LONGEST_LABEL:
            raise ValueError(
                f"{self.place(texts.index(longest), name)} must be a label of at most "
                f"{LONGEST_LABEL} characters, got {len(longest)}: {shown_cell(longest)}."
            )
        return np.array(texts)

    def _present(self, name: str) -> Array:
        """Return a column, or raise if a cell of it is missing or of another type."""
        if name not in self.columns:
            raise ValueError(
                f"{self.source} must have a column {name!r}, got {listed(self.columns)}."
            )
        column = self.columns[name]
        if column.dtype.kind not in "biufOUT":
            place = f"column {name!r} of {self.source}"
            raise self._wrong_type(place, str(column.dtype), column.dtype.kind in "mM")
        missing = rows_of(self.missing(name)).tolist()
        if missing:
            raise ValueError(
                f"{self.place(missing[0], name)} must have a value, got none (missing in "
                f"{len(missing)} of {len(column)} rows)."
            )
        if column.dtype.kind == "O":
            for kind in set(map(type, column.tolist())):
                if not issubclass(kind, str | Real | Decimal | np.bool_):
                    cells = enumerate(column.tolist())
                    row, cell = next((row, cell) for row, cell in cells if type(cell) is kind)
                    is_time = isinstance(cell, date | time | timedelta)
                    raise self._wrong_type(self.place(row, name), shown_cell(cell), is_time)
        return column

    def _wrong_type(self, place: str, got: str, is_time: bool) -> ValueError:
        """Return the error about a column that holds something else than numbers and texts."""
        fault = f"{place} must hold numbers or text, got {got}."
        if is_time:
            fault += (
                " Replace timestamps by numbers, such as the hour, the weekday or the days since a "
                "date."
            )
        remedy = ("drop", "the column.", "Or" if is_time else "Convert it, or")
        return self.refused(fault, remedy, f"{remedy[2]} leave the column out.")


def check_different(names: Iterable[str], source: str, hint: str = "") -> None:
    """Raise if two columns of a table have the same name."""
    for name, count in Counter(names).items():
        if count > 1:
            raise ValueError(
                f"the columns of {source} must have different names, got {name!r} twice.{hint}"
            )


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


def _has_no_value(cell: Any) -> bool:
    return cell.strip().lower() in _MISSING if isinstance(cell, str) else is_missing(cell)


def number_of(cell: Any, decimal: str = ".") -> float:
    """Return the number that a cell holds, or NaN if it holds none."""
    if isinstance(cell, bool | np.bool_):
        return math.nan
    if isinstance(cell, str):
        if "_" in cell or (decimal == "," and "." in cell):
            return math.nan
        cell = cell.replace(decimal, ".")
    try:
        return float(cell)
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


def _truth_of(cell: Any) -> float:
    """Return 0 or 1 for a truth value, and NaN for other cells."""
    return _TRUTH.get(str(cell).strip().lower(), math.nan)


def category_text(cell: Any, decimal: str = ".") -> str:
    """Return a cell as the text of a category; 1 and 1.0, or true and TRUE, are the same category.

    A program that has read a CSV file may have turned its categories into numbers.
    """
    number = number_of(cell, decimal)
    if math.isfinite(number):
        is_whole = number.is_integer() and abs(number) < LARGEST_WHOLE
        return str(int(number)) if is_whole else repr(number)
    text = str(cell).strip()
    return text.lower() if text.lower() in _TRUTH else text


def shown_cell(cell: Any) -> str:
    """Return a cell as messages show it: only its beginning if it is long."""
    text = repr(cell)
    return text if len(text) <= _MOST_SHOWN else text[:_MOST_SHOWN] + "..."


def listed(names: Any) -> str:
    """Return names as a list, which is cut off after 20 of them."""
    shown = [repr(name) for name in names]
    return ", ".join(shown[:20]) + (f" and {len(shown) - 20} more" if len(shown) > 20 else "")
