"""Translate the search space into Ray's terms."""

from typing import Any

from ray import tune

from span_hpo.objective import SpanObjective
from span_hpo.search import option_labels, read_params
from span_hpo.space import Choice, Dimension, Int, Params

WANTED = "wanted"  # entry of a configuration with what a `GradientSampler` wants to know
_NEXT = 1  # added to the upper end of whole numbers, which Ray excludes


def search_space(objective: SpanObjective) -> dict[str, Any]:
    """Return Ray's domain of every searched hyperparameter, for ``Tuner(param_space=...)``.

    An option of a `Choice` that is not a plain value is named by its position and text. A dimension
    with a step becomes a choice of its values.

    Examples
    --------
    >>> from span_hpo import Float, SpanObjective, UniformCost
    >>> from span_hpo.integrations.ray import search_space
    >>> objective = SpanObjective([[0], [1]], [0, 1], weighting=UniformCost(Float(1, 8)))
    >>> search_space(objective)["C"].domain_str
    '(1.0, 8.0)'
    """
    return {name: _domain(part) for name, part in objective.space.items()}


def config_params(objective: SpanObjective, config: Params) -> dict[str, Any]:
    """Return the hyperparameters that the configuration of a trial stands for.

    The entry with what a `GradientSampler` wants to know is left out.

    Raises
    ------
    ValueError
        If the configuration has other names than the space of the objective.
    """
    values = {name: value for name, value in config.items() if name != WANTED}
    return read_params(objective.space, values, "config")


def nearest_config(objective: SpanObjective, config: Params) -> dict[str, Any]:
    """Return a configuration in which every number is moved into its range."""
    return {
        name: config[name] if isinstance(part, Choice) else part.nearest(config[name])
        for name, part in objective.space.items()
    }


def _domain(part: Dimension) -> Any:
    if isinstance(part, Choice):
        return tune.choice(option_labels(part))
    if part.step not in (None, 1):
        return tune.choice(part.steps())
    if isinstance(part, Int):
        kind = tune.lograndint if part.log else tune.randint
        return kind(part.low, part.high + _NEXT)
    return (tune.loguniform if part.log else tune.uniform)(part.low, part.high)
