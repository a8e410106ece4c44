"""Translate hyperparameters for a storage, which knows the options of a `Choice` by labels."""

from collections.abc import Mapping
from typing import Any

from span_hpo.space import Choice, Params, Space

_PLAIN = (bool, int, float, str)  # types that a storage can hold as a category


def option_labels(part: Choice) -> list[Any]:
    """Return the labels of the options in a storage.

    Plain values that a storage can distinguish are their own labels. It cannot distinguish True
    from 1, and NaN is not even equal to itself. In such a case, and for options that are not plain
    values, a label consists of the position and the text of its option.
    """
    options = part.options
    plain = all(option is None or isinstance(option, _PLAIN) for option in options)
    if plain and all(option == option for option in options) and len(set(options)) == len(options):
        return list(options)
    return [f"{index}: {_text(option)}" for index, option in enumerate(options)]


def _text(option: Any) -> str:
    """Return a text of an option that is the same in every process."""
    text = repr(option)
    if " at 0x" in text:
        text = getattr(option, "__qualname__", type(option).__qualname__)
    return text


def written_params(space: Space, params: Params) -> dict[str, Any]:
    """Return hyperparameters as a storage holds them, with options as labels."""
    grid = written_grid(space, {name: [params[name]] for name in space})
    return {name: values[0] for name, values in grid.items()}


def written_grid(space: Space, grid: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Return lists of values by name as a storage holds them, with options as labels."""
    written = {}
    for name, part in space.items():
        written[name] = grid[name]
        if isinstance(part, Choice):
            # Options are found by identity, because arrays and NaN cannot be compared.
            positions = {id(option): i for i, option in reversed([*enumerate(part.options)])}
            labels = option_labels(part)
            written[name] = [labels[positions[id(value)]] for value in grid[name]]
    return written


def read_params(space: Space, written: Params, owner: str) -> dict[str, Any]:
    """Return the hyperparameters that a storage holds, with labels replaced by options.

    Parameters
    ----------
    space
        Search space of the objective.
    written
        Value or label of every hyperparameter, by name.
    owner
        Name of the argument that holds the hyperparameters, for messages.

    Raises
    ------
    ValueError
        If the names or the options are not those of the space.
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
