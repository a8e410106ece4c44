"""The options about how the tuned model predicts, and the values that they stand for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from span_hpo.cli.options import gathered
from span_hpo.runtime import ArgumentError, Array


@dataclass(frozen=True)
class DecisionSettings:
    """Where the prediction of two classes switches."""

    threshold: str | float | None
    miss_cost: tuple[str, ...]

    def miss_costs(self, labels: Array) -> dict[Any, float] | None:
        """Return the cost of missing a row of each class, or None if no cost is given.

        Parameters
        ----------
        labels
            Labels of the rows, which the costs must name.

        Raises
        ------
        ArgumentError
            If a cost is no number, or a label is unknown or named twice.
        """
        pairs = [_label_and_cost(part) for text in self.miss_cost for part in text.split(",")]
        if not pairs:
            return None
        known = {str(label): label for label in np.unique(labels).tolist()}
        named = [label for label, _ in pairs]
        if len(set(named)) < len(named) or not set(named) <= set(known):
            raise ArgumentError(
                "--miss-cost", f"must name each of the labels {list(known)} once, got {named}."
            )
        return {known[label]: cost for label, cost in pairs}


def _label_and_cost(text: str) -> tuple[str, float]:
    label, _, number = text.rpartition("=")
    try:
        return label.strip(), float(number)
    except ValueError:
        raise ArgumentError(
            "--miss-cost",
            f"must be labels with costs, as in good=1,bad=10, got {text!r}.",
        ) from None


def _loo_or_number(
    _: click.Context, option: click.Parameter, text: str | None
) -> str | float | None:
    if text is None or text == "loo":
        return text
    try:
        return float(text)
    except ValueError:
        raise ArgumentError(
            option.opts[0], f"must be loo or a probability, got {text!r}."
        ) from None


_OPTIONS: Sequence[Any] = (
    click.option(
        "--threshold",
        metavar="loo|NUMBER",
        callback=_loo_or_number,
        help="Predict the second of two classes from this probability on, or where the metric is "
        "least by leave-one-out.  [default: by the sign of the decision value]",
    ),
    click.option(
        "--miss-cost",
        metavar="LABEL=NUMBER,...",
        multiple=True,
        help="Cost of missing a row of each of two classes, as in good=1,bad=10; the class with "
        "the lower expected cost is predicted.",
    ),
)
decision_options = gathered("decision_settings", DecisionSettings, *_OPTIONS)
