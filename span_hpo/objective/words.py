"""Describe an objective in words, for users who print it or look at its study."""

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from span_hpo.data import Dataset
from span_hpo.metrics import Metric, loss_name
from span_hpo.objective.description import described, described_losses
from span_hpo.runtime import FloatArray, Printable, counted
from span_hpo.space import Choice, Dimension, Space, as_dimension

_DESCRIBED = ("loo_method", "solver", "kernel", "weighting")
_METHODS = {
    "span": "estimated by the span-rule",
    "exact": "proven along dual paths",
    "refit": "by refits",
    "stopping": "by fits that stop early",
}


class InWords(Printable):
    """An objective that can say in a few lines, or in one paragraph, what it is."""

    data: Dataset
    kernel: Any
    weighting: Any
    metrics: Sequence[Metric]
    metric_weight: FloatArray
    loo_method: str
    scaling: str | None
    space: Space
    legend: dict[str, str]

    @property
    def loss_names(self) -> list[str]:
        """Names of what is minimised, such as "1 - auc" for the metric "auc"."""
        return [loss_name(metric.name) for metric in self.metrics]

    def description(self) -> dict[str, Any]:
        """Return what distinguishes this objective from others, in a form for JSON."""
        return {
            **described_losses(self.data, self.metrics, self.metric_weight, self.scaling),
            **{name: described(getattr(self, name)) for name in _DESCRIBED},
            "parameters": sorted(self.space),
        }

    def in_words(self) -> str:
        """Return what is minimised, on which rows and over which hyperparameters, in sentences."""
        searched = ", ".join(f"{name} {text}" for name, text in self._searched().items())
        losses = " and ".join(f'"{name}"' for name in self.loss_names)
        return (
            f"The objective is the loss {losses} of the leave-one-out predictions, "
            f"{_METHODS[self.loo_method]}, of a support vector machine with the kernel "
            f"{_shown(self.kernel)} and the weighting {_shown(self.weighting)}. There are "
            f"{counted(len(self.data), 'row')} with "
            f"{counted(self.data.X.shape[1], 'feature')}: {self._classes()}. "
            + (f"The search covers {searched}." if searched else "Nothing is searched.")
        )

    def _summary(self) -> tuple[str, dict[str, str]]:
        rows, features = len(self.data), self.data.X.shape[1]
        title = f"SpanObjective on {counted(rows, 'row')} with {counted(features, 'feature')}"
        return title, {
            "classes": self._classes(),
            "loss": f"{' and '.join(self.loss_names)}, {_METHODS[self.loo_method]}",
            "kernel": _shown(self.kernel),
            "weighting": _shown(self.weighting),
            **self._searched(),
        }

    def _classes(self) -> str:
        counts, labels = np.bincount(self.data.codes).tolist(), self.data.classes.tolist()
        return ", ".join(f"{n:,} of {label}" for n, label in zip(counts, labels, strict=True))

    def _searched(self) -> dict[str, str]:
        """Return the range of each hyperparameter by its name, with the entry of the legend."""
        return {
            name: _range(part) + (f" ({self.legend[name]})" if name in self.legend else "")
            for name, part in self.space.items()
        }


def _range(part: Dimension) -> str:
    if isinstance(part, Choice):
        return f"one of {list(part.options)}"
    return f"from {part.low:.4g} to {part.high:.4g}" + (" on a log scale" if part.log else "")


def _shown(part: Any) -> str:
    """Return the name of a kernel or a weighting with its fixed values."""
    if hasattr(part, "first") and hasattr(part, "second"):
        return f"{_shown(part.first)} * {_shown(part.second)}"
    if hasattr(part, "weighting"):  # multiplied by the weights of rows
        return f"{_shown(part.weighting)} * sample weights"
    name = type(part).__name__
    if not is_dataclass(part):
        return name
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    fixed = [
        f"{field}={value!r}"
        for field, value in values.items()
        if isinstance(value, int | float | str) and as_dimension(value) is None
    ]
    return f"{name}({', '.join(fixed)})" if fixed else name
