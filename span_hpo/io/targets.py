"""Check that labels are classes rather than quantities, which an SVM of classes cannot learn."""

import math
import warnings
from typing import Any

import numpy as np

from span_hpo.io.tables import number_of, shown_cell
from span_hpo.runtime import ArgumentError, Array, IndexArray, counted

_MOST_CLASSES = 100  # largest number of classes, unless the user insists
_FEW_CLASSES = 20  # more classes than these are unusual
_SHARE = 0.1  # share of rows above which different numbers look like a quantity


def checked_labels(labels: Array, what: str, *, classify: bool = False) -> Array:
    """Return labels, or raise if they are not classes.

    Numbers are a quantity if more than a tenth of the rows have different ones, and there are more
    than 20 different whole numbers or more than 2 others. More than 20 numbers with decimal places
    are always a quantity.

    Parameters
    ----------
    labels
        Label of each row, shape (l,): whole numbers or texts, some of which may be numbers.
    what
        Name of the labels in messages.
    classify
        Accept labels that look like a quantity, and any number of classes.

    Raises
    ------
    ValueError
        If there is only one class, or the labels look like a quantity.
    """
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) < 2:
        shown = shown_cell(classes.tolist()[0])
        raise ValueError(f"{what} must hold two classes or more, got only {shown}.")
    if not classify:
        _check_no_quantity(classes, len(labels), what)
        if len(classes) > _MOST_CLASSES:
            raise ArgumentError(
                "classify",
                "to insist.",
                f"{what} must hold from 2 to {_MOST_CLASSES} classes, got {len(classes)}, the "
                f"first of which is {shown_cell(classes.tolist()[0])}. Name another column, or use",
            )
    if len(classes) > _FEW_CLASSES:
        warnings.warn(
            f"{what} holds {len(classes)} classes {_shown_counts(classes, counts)}. Each trial "
            f"makes a fit for each of the {len(classes) * (len(classes) - 1) // 2} pairs of "
            "classes.",
            stacklevel=3,
        )
    return labels


def _shown_counts(classes: Array, counts: IndexArray) -> str:
    """Return the numbers of rows of the smallest and of the largest class, in words."""
    least, most = int(counts.argmin()), int(counts.argmax())
    if counts[least] == counts[most]:
        return f"with {counted(int(counts[least]), 'row')} each"
    smallest, largest = (shown_cell(classes.tolist()[k]) for k in (least, most))
    return (
        f"with {counted(int(counts[least]), 'row')} of {smallest} to "
        f"{counted(int(counts[most]), 'row')} of {largest}"
    )


def _check_no_quantity(classes: Array, n_rows: int, what: str) -> None:
    """Raise if the different labels look like numbers of a quantity."""
    numbers = [_number_of(label) for label in classes.tolist()]
    if not all(map(math.isfinite, numbers)):
        return
    is_whole = all(number.is_integer() for number in numbers)
    share = _SHARE * n_rows
    allowed = max(_FEW_CLASSES, share) if is_whole else min(_FEW_CLASSES, max(2, share))
    if len(classes) > allowed:
        raise ArgumentError(
            "classify",
            "if each number is a class.",
            f"{what} must hold classes, got {len(classes)} different numbers from "
            f"{min(numbers):g} to {max(numbers):g} in {n_rows} rows, which look like a quantity. "
            "An SVM of classes cannot predict quantities: name another column, divide the numbers "
            "into classes, or use",
        )


def _number_of(label: Any) -> float:
    """Return the number that a label is, also with a decimal comma, or NaN."""
    number = number_of(label)
    return number_of(label, decimal=",") if math.isnan(number) else number
