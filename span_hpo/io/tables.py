"""Hold a table of numbers and text, and check its cells."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from span_hpo.data import is_missing
from span_hpo.io.schema import LONGEST_LABEL
from span_hpo.runtime import LARGEST_WHOLE, ArgumentError, Array, FloatArray, rows_of

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
        return _of_each(category_text, self._present(name))

    def numbers(self, name: str) -> FloatArray:
        """Return a column as finite numbers.

        Raises
        ------
        ValueError
            If a cell is missing, not a number or not finite.
        """
        cells = self._present(name)
        numbers = np.array(_of_each(number_of, cells), dtype=float)
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
        is_number = ~np.isnan(np.array(_of_each(number_of, cells), dtype=float))
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
        numbers = np.array(_of_each(number_of, cells), dtype=float)
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


def number_of(cell: Any) -> float:
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
    number = number_of(cell)
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
