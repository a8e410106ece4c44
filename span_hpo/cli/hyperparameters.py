"""Kernel, weighting and costs that the settings ask for; what is not given is searched."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from span_hpo.cli.options import WEIGHTINGS, ModelSettings
from span_hpo.kernels import LIBSVM_KERNELS
from span_hpo.runtime import ArgumentError, Array, real
from span_hpo.weighting import ClassCosts, PowerScore, SigmoidScore, UniformCost

_SCORE_RULES = {"sigmoid": SigmoidScore, "power": PowerScore}
_SHAPES = {"sigmoid": ("A", "B"), "power": ("tau",)}  # hyperparameters besides the cost


def kernel_of(settings: ModelSettings) -> Any:
    """Return the kernel with the values that are given."""
    name, kernel = settings.kernel, LIBSVM_KERNELS[settings.kernel]
    values = {option: getattr(settings, option) for option in ("gamma", "degree", "coef0")}
    given = {option: value for option, value in values.items() if value is not None}
    for option, value in given.items():
        if option not in kernel.parameter_names():
            raise ArgumentError(
                f"--{option}", f"must not be given for the kernel {name}, got {value!r}."
            )
    return kernel(**given)


def weighting_of(settings: ModelSettings, score: str | None, labels: Array) -> Any:
    """Return the weighting with the values that are given.

    Parameters
    ----------
    settings
        Its name and values; by default one cost per class, times the sigmoid of a score.
    score
        Column with the score of each row, if there is one.
    labels
        Labels of the rows, for which costs of classes are given.

    Raises
    ------
    ArgumentError
        If an option does not go with the weighting.
    """
    name = settings.weighting or ("class*sigmoid" if score else "class")
    parts = name.split("*")
    rule = parts[-1]  # of a score, if the weighting uses one
    shape = _given_shape(settings, name, rule)
    _check_score(name, score, is_used=rule in _SCORE_RULES)
    if "class" not in parts:
        cost = _one_cost(settings.costs)
        of_all = {} if cost is None else {"C": cost}
        return UniformCost(**of_all) if rule == "uniform" else _SCORE_RULES[rule](**of_all, **shape)
    per_class = _class_costs(settings.costs, labels)
    classes = ClassCosts() if per_class is None else ClassCosts(per_class)
    return classes * _SCORE_RULES[rule](C=1.0, **shape) if rule in _SCORE_RULES else classes


def given_params(settings: ModelSettings) -> dict[str, Any]:
    """Return the hyperparameters that are given, as they are printed."""
    names = ("gamma", "degree", "coef0", "A", "B", "tau")
    values = {name: getattr(settings, name) for name in names}
    given = {name: value for name, value in values.items() if value is not None}
    if settings.costs:
        given["C"] = " ".join(settings.costs)
    return given


def _given_shape(settings: ModelSettings, name: str, rule: str) -> dict[str, float]:
    """Return the hyperparameters of a rule of scores that are given; raise for those of another."""
    values = {option: getattr(settings, option) for option in ("A", "B", "tau")}
    given = {option: value for option, value in values.items() if value is not None}
    for option, value in given.items():
        if option not in _SHAPES.get(rule, ()):
            raise ArgumentError(
                f"--{option}", f"must not be given for the weighting {name}, got {value!r}."
            )
    return given


def _check_score(name: str, score: str | None, *, is_used: bool) -> None:
    """Raise unless there is a score if and only if the weighting uses one."""
    if score and not is_used:
        raise ArgumentError(
            "--score",
            f"must go with a weighting that uses it, one of {list(WEIGHTINGS[2:])}, got {name!r}.",
        )
    if is_used and not score:
        raise ArgumentError("--score", f"must name a column for the weighting {name}, got none.")


def _one_cost(given: Sequence[str]) -> float | None:
    """Return the cost of all rows, if it is given."""
    if any(label is not None for label, _ in _split_costs(given)):
        raise ArgumentError(
            "--C", f"must be one number for a weighting without classes, got {', '.join(given)}."
        )
    return _unlabelled_cost(given)


def _class_costs(given: Sequence[str], labels: Array) -> Any:
    """Return one cost for all classes or one for each label, if any is given."""
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
    """Return labels, None where there is none, and costs."""
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
