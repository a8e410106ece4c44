"""Descriptions of objectives, which keep searches of different objectives apart."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from span_hpo.space import as_dimension


def described(part: Any) -> Any:
    """Return the type and the fixed values of a kernel or a weighting, in a form for JSON."""
    if as_dimension(part) is not None:
        return "searched"
    if part is None or isinstance(part, str | int | float):
        return part
    if isinstance(part, Mapping):
        return {str(name): described(value) for name, value in part.items()}
    if isinstance(part, Sequence):
        return [described(value) for value in part]
    found = {"type": type(part).__name__}
    if is_dataclass(part):
        found |= {field.name: described(getattr(part, field.name)) for field in fields(part)}
    return found


def check_same(owner: str, known: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise if an objective, described by `now`, is not the one that is `known` to `owner`."""
    for name, value in now.items():
        if known.get(name) != value:
            raise ValueError(
                f"{owner} must have the same data and losses in all its trials, but {name} was "
                f"{known.get(name)!r}, got {value!r}. Give the new search another name."
            )
