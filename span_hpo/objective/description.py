"""Descriptions of objectives, which keep searches of different objectives apart."""

import inspect
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from span_hpo.data import Dataset
from span_hpo.metrics import Metric
from span_hpo.runtime import FloatArray
from span_hpo.space import as_dimension


def described(part: Any) -> Any:
    """Return the type and the fixed values of a kernel or a weighting, in a form for JSON."""
    if as_dimension(part) is not None:
        return "searched"
    if isinstance(part, np.generic):
        part = part.item()
    if part is None or isinstance(part, str | int | float):
        return part
    if isinstance(part, Mapping):
        return {str(name): described(value) for name, value in part.items()}
    if isinstance(part, Sequence):
        return [described(value) for value in part]
    if inspect.isroutine(part):
        return part.__qualname__  # the module of a script has another name in spawned processes
    found = {"type": type(part).__name__}
    if is_dataclass(part):
        found |= {field.name: described(getattr(part, field.name)) for field in fields(part)}
    return found


def described_losses(
    data: Dataset, metrics: Sequence[Metric], weight: FloatArray, scaling: str | None
) -> dict[str, Any]:
    """Return what losses are about in this version of the package, in a form for JSON."""
    from span_hpo import __version__  # the root, which imports this module

    return {
        "version of span_hpo": __version__,
        "dual variables": "least sum of alpha^2 / C",
        "left out": "one row",
        "scaling": scaling,
        **_described_data(data),
        "metrics": [metric.name for metric in metrics],
        **_described_weight(weight),
    }


def _described_data(data: Dataset) -> dict[str, Any]:
    """Return what distinguishes rows from others, in a form for JSON."""
    return {
        "rows": len(data),
        "features": data.X.shape[1],
        # A mean, because the last bits of a scaling may differ between machines.
        "mean size of the features": f"{abs(data.X).mean():.5g}",
        "classes": [str(label) for label in data.classes.tolist()],
        "checksum of the labels": zlib.crc32(data.codes.astype(np.int32).tobytes()),
        "mean of the scores": {
            name: f"{scores.mean():.5g}" for name, scores in data.scores.items()
        },
    }


def _described_weight(weight: FloatArray) -> dict[str, str]:
    """Return what distinguishes metric weights from others; nothing if all of them are 1."""
    if (weight == 1).all():
        return {}
    order = np.arange(1, len(weight) + 1)
    return {"metric weights": f"{weight.mean():.5g}, {weight @ order / weight.sum():.5g}"}


def check_same(owner: str, known: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise if an objective, described by `now`, is not the one that is `known` to `owner`."""
    for name in {**known, **now}:
        if known.get(name) != now.get(name):
            raise ValueError(
                f"{owner} must have the same data and losses in all its trials, but {name} was "
                f"{known.get(name)!r}, got {now.get(name)!r}. Give the new search another name."
            )
