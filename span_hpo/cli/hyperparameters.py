"""Create the kernel and the weighting of the settings; values that are not given are searched."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from span_hpo.cli.options import ModelSettings
from span_hpo.estimators import default_weighting, kernel_of_columns
from span_hpo.io import Samples, listed
from span_hpo.kernels import ARD, KERNELS
from span_hpo.runtime import ArgumentError, Array, real
from span_hpo.weighting import (
    ROW_RULES,
    WEIGHTINGS,
    ClassCosts,
    ImbalanceCost,
    UniformCost,
)

_OF_SCORES = ("sigmoid", "power", "knots")  # rules that need a score
_RULES: dict[str, Any] = {"uniform": UniformCost, "imbalance": ImbalanceCost, **ROW_RULES}
# The hyperparameters of a rule besides the cost that have an option.
_SHAPES = {
    "imbalance": ("balance",),
    "sigmoid": ("A", "B"),
    "power": ("tau",),
    "confidence": ("tau",),
}


def kernel_of(settings: ModelSettings, samples: Samples) -> Any:
    """Return the kernel, in which the values that are given are fixed.

    A kernel with a width for each column of the samples has hyperparameters of their names.
    """
    name, kernel = settings.kernel, KERNELS[settings.kernel]
    if settings.share_gamma and name != "ard":
        raise ArgumentError(
            "--share-gamma",
            f"must not be given for the kernel {name}, got {settings.share_gamma[0]!r}.",
        )
    values = {option: getattr(settings, option) for option in ("gamma", "degree", "coef0")}
    given = {option: value for option, value in values.items() if value is not None}
    for option, value in given.items():
        if option not in kernel.parameter_names():
            raise ArgumentError(
                f"--{option}", f"must not be given for the kernel {name}, got {value!r}."
            )
    if name != "ard":
        return kernel(**given)
    columns = column_names(samples)
    groups = [_sharing(text, columns) for text in settings.share_gamma] or None
    return kernel_of_columns(ARD(groups=groups, **given), columns, samples.columns)


def column_names(samples: Samples) -> list[str]:
    """Return the names of the columns that are features, or the numbers in LIBSVM's format."""
    if samples.columns is not None:
        return [column.name for column in samples.columns.features]
    numbers = range(samples.X.shape[1])
    if samples.numbering is not None:
        numbers = samples.numbering.features.tolist()
    return [str(number + 1) for number in numbers]


def _sharing(text: str, columns: Sequence[str]) -> list[str]:
    """Return the columns that share a width, by names or patterns that are split at commas."""
    found: list[str] = []
    for pattern in text.split(","):
        own = [name for name in columns if name == pattern]
        own = own or [name for name in columns if fnmatchcase(name, pattern)]
        if not own:
            raise ArgumentError(
                "--share-gamma",
                f"must name columns that are features, among {listed(columns)}, got {pattern!r}.",
            )
        found += own
    return found


def weighting_of(
    settings: ModelSettings, score: str | None, labels: Array, group: str | None = None
) -> Any:
    """Return the weighting, in which the values that are given are fixed.

    Parameters
    ----------
    settings
        Name and values of the weighting. By default the given values choose it: one cost per class
        times the sigmoid of the score if there is one, "imbalance" with an exponent of balance, and
        one cost per class with costs. Without any, the default is that of `SpanSVC`.
    score
        Name of the column with the score of each row, or None.
    labels
        Labels of the rows, which costs of classes must name.
    group
        Name of the column with the group of each row, or None.

    Raises
    ------
    ArgumentError
        If an option does not fit the weighting.
    """
    name = settings.weighting or _default_name(settings, score)
    parts = name.split("*")
    rule = parts[-1]  # the rule for single rows, if the weighting has one
    shape = _given_shape(settings, name, rule)
    _check_score(name, score, is_used=rule in _OF_SCORES)
    if rule == "groups" and not group:
        raise ArgumentError("--group", f"must name a column for the weighting {name}, got none.")
    if "class" not in parts:
        cost = _one_cost(settings.costs)
        of_all = {} if cost is None else {"C": cost}
        return _RULES[rule](**of_all, **shape)
    per_class = _class_costs(settings.costs, labels)
    classes = ClassCosts() if per_class is None else ClassCosts(per_class)
    return classes * ROW_RULES[rule](C=1.0, **shape) if rule in ROW_RULES else classes


def given_params(settings: ModelSettings) -> dict[str, Any]:
    """Return the hyperparameters that are given, in the form that is printed."""
    names = ("gamma", "degree", "coef0", "balance", "A", "B", "tau")
    values = {name: getattr(settings, name) for name in names}
    given = {name: value for name, value in values.items() if value is not None}
    if settings.costs:
        given["C"] = " ".join(settings.costs)
    return given


def _default_name(settings: ModelSettings, score: str | None) -> str:
    if score:
        return "class*sigmoid"
    if settings.balance is not None:
        return "imbalance"
    return "class" if settings.costs else default_weighting(settings.metric)


def _given_shape(settings: ModelSettings, name: str, rule: str) -> dict[str, float]:
    """Return the given hyperparameters of a rule, or raise for those of another rule."""
    values = {option: getattr(settings, option) for option in ("balance", "A", "B", "tau")}
    given = {option: value for option, value in values.items() if value is not None}
    for option, value in given.items():
        if option not in _SHAPES.get(rule, ()):
            raise ArgumentError(
                f"--{option}", f"must not be given for the weighting {name}, got {value!r}."
            )
    return given


def _check_score(name: str, score: str | None, *, is_used: bool) -> None:
    """Raise if a score is given but not used, or used but not given."""
    using_score = [word for word in WEIGHTINGS if word.split("*")[-1] in _OF_SCORES]
    if score and not is_used:
        raise ArgumentError(
            "--score",
            f"must go with a weighting that uses it, one of {using_score}, got {name!r}.",
        )
    if is_used and not score:
        raise ArgumentError("--score", f"must name a column for the weighting {name}, got none.")


def _one_cost(given: Sequence[str]) -> float | None:
    """Return the cost of all rows, or None if it is not given."""
    if any(label is not None for label, _ in _split_costs(given)):
        raise ArgumentError(
            "--C", f"must be one number for a weighting without classes, got {', '.join(given)}."
        )
    return _unlabelled_cost(given)


def _class_costs(given: Sequence[str], labels: Array) -> Any:
    """Return one cost for all classes, one for each label, or None if no cost is given."""
    pairs = _split_costs(given)
    if all(label is None for label, _ in pairs):
        return _unlabelled_cost(given)
    known = {str(label): label for label in np.unique(labels).tolist()}
    by_label = dict(pairs)
    if set(by_label) != set(known) or len(by_label) < len(given):
        raise ArgumentError(
            "--C", f"must name each of the labels {list(known)} once, got {', '.join(given)}."
        )
    return {known[str(label)]: real("--C", cost, above=0) for label, cost in by_label.items()}


def _unlabelled_cost(given: Sequence[str]) -> float | None:
    if len(given) > 1:
        raise ArgumentError("--C", f"must be one number, or LABEL=NUMBER, got {list(given)}.")
    return real("--C", float(given[0]), above=0) if given else None


def _split_costs(given: Sequence[str]) -> list[tuple[str | None, float]]:
    """Return pairs of a label and a cost; the label is None if it is not given."""
    pairs = []
    for text in given:
        label, equals, number = text.rpartition("=")
        try:
            pairs.append((label if equals else None, float(number)))
        except ValueError:
            raise ArgumentError(
                "--C",
                f"must be a number, or a label and a number as in good=2.5, got {text!r}.",
            ) from None
    return pairs
