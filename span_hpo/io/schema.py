"""Describe what JSON must hold, and check it: every check returns the value in its final form."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from span_hpo.runtime import Array, FloatArray, IndexArray

Check = Callable[[Any, str], Any]  # from a value and its place to the value in its final form
LONGEST_LABEL = 200  # characters; arrays of labels give every row the space of the longest one
_LARGEST_WHOLE = 2**63 - 1  # largest whole number in an array
_DEEPEST = 20  # largest number of lists or objects inside each other that `plain` accepts
_MOST_SHOWN = 40  # largest number of characters of a value that a message shows


def plain(value: Any, place: str) -> Any:
    """Accept every value whose lists and objects are not nested deeply."""
    inside, depth = [value], 0
    while inside:
        lists = [part for part in inside if isinstance(part, list)]
        objects = [part.values() for part in inside if isinstance(part, dict)]
        inside = list(chain.from_iterable([*lists, *objects]))
        depth += 1
        if depth > _DEEPEST:
            raise wrong(place, f"nested at most {_DEEPEST} times", value)
    return value


def text(value: Any, place: str) -> str:
    """Accept text."""
    if not isinstance(value, str):
        raise wrong(place, "text", value)
    return value


def different_texts(value: Any, place: str) -> tuple[str, ...]:
    """Accept a list of different texts, at least one."""
    values = _listed(value, place)
    if set(map(type, values)) != {str} or len(set(values)) < len(values):
        raise wrong(place, "a list of different texts, at least one", value)
    return tuple(values)


def number(value: Any, place: str) -> float:
    """Accept a finite number."""
    return float(numbers([value], place)[0])


def number_or_text(value: Any, place: str) -> float | str:
    """Accept a finite number or text."""
    return value if isinstance(value, str) else number(value, place)


def whole(at_most: int = _LARGEST_WHOLE) -> Check:
    """Return the check of a whole number from 0 to a limit."""

    def check(value: Any, place: str) -> int:
        if type(value) is not int or not 0 <= value <= at_most:
            raise wrong(place, f"a whole number from 0 to {at_most}", value)
        return value

    return check


def one_of(values: Sequence[Any]) -> Check:
    """Return the check of a value that must be one of a few."""

    def check(value: Any, place: str) -> Any:
        if not any(type(value) is type(known) and value == known for known in values):
            raise wrong(place, f"one of {list(values)}", value)
        return value

    return check


def numbers(value: Any, place: str) -> FloatArray:
    """Accept a list of finite numbers, as an array of shape (n,)."""
    return _finite(_listed(value, place), place, value)


def rows_of_numbers(value: Any, place: str) -> FloatArray:
    """Accept lists of finite numbers that are equally long, as an array of shape (n, d)."""
    rows = _listed(value, place)
    if not all(isinstance(row, list) for row in rows) or len({len(row) for row in rows}) != 1:
        raise wrong(place, "rows of numbers that are equally long", value)
    flat = _finite(list(chain.from_iterable(rows)), place, value)
    return flat.reshape(len(rows), -1) if len(flat) else np.empty((len(rows), 0))


def whole_numbers(value: Any, place: str) -> IndexArray:
    """Accept a list of whole numbers that are not negative, as an array of shape (n,)."""
    values = _listed(value, place)
    if not set(map(type, values)) <= {int}:
        raise wrong(place, "a list of whole numbers", value)
    if values and not 0 <= min(values) <= max(values) <= _LARGEST_WHOLE:
        raise wrong(place, f"a list of whole numbers from 0 to {_LARGEST_WHOLE}", value)
    return np.array(values, dtype=np.int64)


def labels(value: Any, place: str) -> Array:
    """Accept two or more different numbers, texts or truth values, as an array of shape (k,)."""
    values = _listed(value, place)
    kinds = set(map(type, values))
    if kinds == {str}:
        longest = max(map(len, values))
        if longest > LONGEST_LABEL:
            raise wrong(place, f"texts of at most {LONGEST_LABEL} characters", longest)
    elif kinds == {int}:
        if max(map(abs, values)) > _LARGEST_WHOLE:
            raise wrong(place, "whole numbers of 64 bits", value)
    elif kinds != {bool}:
        numbers(value, place)
    if len(set(values)) < max(2, len(values)):
        raise wrong(place, "two or more different labels", value)
    return np.array(values)


def list_of(check: Check, *, at_least: int = 0, at_most: int | None = None) -> Check:
    """Return the check of a list whose entries are checked one by one."""

    def check_all(value: Any, place: str) -> list[Any]:
        count = len(_listed(value, place))
        if count < at_least:
            raise ValueError(f"`{place}` must have at least {at_least} entries, got {count}")
        if at_most is not None and count > at_most:
            raise ValueError(f"`{place}` must have at most {at_most} entries, got {count}")
        return [check(entry, f"{place}[{index}]") for index, entry in enumerate(value)]

    return check_all


def mapping_of(check: Check) -> Check:
    """Return the check of a mapping with any names, whose values are checked one by one."""

    def check_all(value: Any, place: str) -> dict[str, Any]:
        return {name: check(entry, _inside(place, name)) for name, entry in _named(value, place)}

    return check_all


def record(needed: Mapping[str, Check], other: Mapping[str, Check] | None = None) -> Check:
    """Return the check of a mapping with known names.

    Parameters
    ----------
    needed
        Checks of the values that must be there, by name.
    other
        Checks of the values that may be left out, which are then None. All other names are
        ignored.
    """
    may_be_left_out = {} if other is None else dict(other)

    def check_all(value: Any, place: str) -> dict[str, Any]:
        given = dict(_named(value, place))
        for name in needed:
            if name not in given:
                raise ValueError(f"`{_inside(place, name)}` is missing")
        found = {name: check(given[name], _inside(place, name)) for name, check in needed.items()}
        for name, check in may_be_left_out.items():
            is_given = given.get(name) is not None
            found[name] = check(given[name], _inside(place, name)) if is_given else None
        return found

    return check_all


def wrong(place: str, wanted: str, got: Any) -> ValueError:
    """Return the error about a value that is not what is wanted."""
    shown = repr(got) if isinstance(got, str | int | float | None) else f"a {type(got).__name__}"
    shown = shown if len(shown) <= _MOST_SHOWN else shown[:_MOST_SHOWN] + "..."
    return ValueError(f"`{place}` must be {wanted}, got {shown}")


def _listed(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise wrong(place, "a list", value)
    return value


def _named(value: Any, place: str) -> Any:
    if not isinstance(value, dict):
        raise wrong(place, "an object with names", value)
    return value.items()


def _finite(values: list[Any], place: str, whole_value: Any) -> FloatArray:
    """Return numbers as an array; whole numbers may be too large for it."""
    if not set(map(type, values)) <= {int, float}:
        raise wrong(place, "finite numbers", whole_value)
    try:
        found = np.array(values, dtype=float)
    except OverflowError as error:
        raise wrong(place, "finite numbers", whole_value) from error
    if not np.isfinite(found).all():
        raise wrong(place, "finite numbers", whole_value)
    return found


def _inside(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name
