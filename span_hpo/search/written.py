"""Hyperparameters in the words of a storage: options of a `Choice` by their labels."""

from collections.abc import Mapping
from typing import Any

from span_hpo.space import Choice, Params, Space

_PLAIN = (bool, int, float, str)  # what a storage can hold as a category


def option_labels(part: Choice) -> list[Any]:
    """Return what options are called outside: themselves, if a storage can tell them apart.

    True and 1 are the same to it, and NaN is not even equal to itself. Otherwise, and if they are
    not plain values, they are called by their position and text.
    """
    options = part.options
    plain = all(option is None or isinstance(option, _PLAIN) for option in options)
    if plain and all(option == option for option in options) and len(set(options)) == len(options):
        return list(options)
    return [f"{index}: {_text(option)}" for index, option in enumerate(options)]


def _text(option: Any) -> str:
    """Return the same text for an option in every process."""
    text = repr(option)
    if " at 0x" in text:
        text = getattr(option, "__qualname__", type(option).__qualname__)
    return text


def written_params(space: Space, params: Params) -> dict[str, Any]:
    """Return parameters in the words of a storage: options by their labels."""
    grid = written_grid(space, {name: [params[name]] for name in space})
    return {name: values[0] for name, values in grid.items()}


def written_grid(space: Space, grid: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Return lists of values by name in the words of a storage."""
    written = {}
    for name, part in space.items():
        written[name] = grid[name]
        if isinstance(part, Choice):
            # Options are found by identity: arrays and NaN do not compare.
            positions = {id(option): i for i, option in reversed([*enumerate(part.options)])}
            labels = option_labels(part)
            written[name] = [labels[positions[id(value)]] for value in grid[name]]
    return written


def read_params(space: Space, written: Params, owner: str) -> dict[str, Any]:
    """Return the parameters that a storage has in its words.

    Parameters
    ----------
    space
        What is searched.
    written
        A value or label for every name.
    owner
        Argument that has them, for messages.

    Raises
    ------
    ValueError
        If names or options are not those of the space.
    """
    if set(written) != set(space):
        raise ValueError(f"`{owner}` must have the parameters {list(space)}, got {list(written)}.")
    params = {}
    for name, part in space.items():
        params[name] = written[name]
        if isinstance(part, Choice):
            labels = option_labels(part)
            if written[name] not in labels:
                raise ValueError(
                    f"`{owner}` must have one of {labels} as `{name}`, got {written[name]!r}."
                )
            params[name] = part.options[labels.index(written[name])]
    return params
