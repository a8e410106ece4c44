"""Checks for single numbers from users; arrays are checked in `span_hpo.data`."""

import math
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

LARGEST_WHOLE = 2**53  # all whole numbers up to this one are exact as floats


class ArgumentError(ValueError):
    """A wrong argument, in a message that can call it by another name.

    The argument `score` is called --score on the command line, which prints
    ``error.message("--score")`` instead of the text of the error.

    Parameters
    ----------
    argument
        Name of the argument in Python.
    fault
        What the message says after the name, such as "must be positive, got -1."
    before
        Text in front of the name; empty if the message begins with the name.
    """

    def __init__(self, argument: str, fault: str, before: str = "") -> None:
        super().__init__(argument, fault, before)  # pickle rebuilds the error from these
        self.argument = argument
        self.fault = fault
        self.before = before

    def message(self, name: str) -> str:
        """Return the message with this name of the argument."""
        return " ".join(part for part in (self.before, name, self.fault) if part)

    def __str__(self) -> str:
        return self.message(f"`{self.argument}`")


def plain(value: Any) -> Any:
    """Return a number of NumPy as a number of Python, also in a list, a tuple or a dictionary.

    What holds no such number is returned as it is, because options are found by their identity.
    """
    if type(value) in (list, tuple):
        parts = [plain(part) for part in value]
        is_same = all(new is old for new, old in zip(parts, value, strict=True))
        return value if is_same else type(value)(parts)
    if type(value) is dict:
        values = list(value.values())
        parts = plain(values)
        return value if parts is values else dict(zip(plain(list(value)), parts, strict=True))
    return value.item() if getattr(value, "ndim", None) == 0 else value


def make_plain(instance: Any) -> None:
    """Replace numbers of NumPy in the fields of a frozen dataclass by numbers of Python."""
    for field in fields(instance):
        given = getattr(instance, field.name)
        found = plain(given)
        if found is not given:
            object.__setattr__(instance, field.name, found)


def real(
    name: str,
    value: Any,
    *,
    above: float = -math.inf,
    at_least: float = -math.inf,
    at_most: float = math.inf,
) -> float:
    """Return a number as a float if it is finite and in its range.

    Raises
    ------
    ArgumentError
        If the value is not such a number. The message names the argument and its range.
    """
    if type(value) is float and above < value < math.inf and at_least <= value <= at_most:
        return value  # what follows takes much longer, and there may be thousands of numbers
    value = plain(value)
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number) and number > above and at_least <= number <= at_most:
            return number
    limits = ""
    if above > -math.inf:
        limits = f" above {above:g}"
    elif at_least > -math.inf:
        limits = f" of at least {at_least:g}"
    if at_most < math.inf:
        limits += f"{' and' if limits else ' of'} at most {at_most:g}"
    raise ArgumentError(name, f"must be a finite number{limits}, got {value!r}.")


def whole(name: str, value: Any, *, at_least: int | None = None, at_most: int | None = None) -> int:
    """Return a number as an int if it is whole and in its range.

    Raises
    ------
    ArgumentError
        If the value is not such a number. The message names the argument and its range.
    """
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        if (at_least is None or number >= at_least) and (at_most is None or number <= at_most):
            return number
    limits = ""
    if at_least is not None:
        limits = f" of at least {at_least}" if at_most is None else f" from {at_least} to {at_most}"
    raise ArgumentError(name, f"must be a whole number{limits}, got {plain(value)!r}.")
