"""What an objective is about, so that searches of different objectives are told apart."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from span_hpo.space import as_dimension


def described(part: Any) -> Any:
    """Return the type and the fixed values of what has hyperparameters, as JSON can hold them."""
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
    """Raise if two descriptions of objectives differ; `owner` has the first."""
    for name, value in now.items():
        if known.get(name) != value:
            raise ValueError(
                f"{owner} must be about the same data and losses in all its trials: {name} was "
                f"{known.get(name)!r}, got {value!r}. Use another one."
            )
