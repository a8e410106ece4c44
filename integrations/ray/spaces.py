"""The search space in Ray's terms."""

from typing import Any

from ray import tune

from span_hpo.objective import SpanObjective
from span_hpo.search import option_labels, read_params
from span_hpo.space import Choice, Dimension, Int, Params

_NEXT = 1  # Ray leaves the upper end of whole numbers out


def search_space(objective: SpanObjective) -> dict[str, Any]:
    """Return Ray's domain of every searched hyperparameter, for ``Tuner(param_space=...)``.

    Parameters
    ----------
    objective
        What is searched.

    Returns
    -------
    Domains by name. Options of a `Choice` that are not plain values are called by their position
    and text; a dimension with a step is a choice of its values.
    """
    return {name: _domain(part) for name, part in objective.space.items()}


def config_params(objective: SpanObjective, config: Params) -> dict[str, Any]:
    """Return the hyperparameters that the configuration of a trial stands for.

    Raises
    ------
    ValueError
        If it does not name those of the objective.
    """
    return read_params(objective.space, config, "config")


def nearest_config(objective: SpanObjective, config: Params) -> dict[str, Any]:
    """Return a configuration with every number moved into its range."""
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
