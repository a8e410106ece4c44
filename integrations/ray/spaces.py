"""The search space in Ray's terms."""

from typing import Any

from ray import tune

from span_hpo import Choice, Int, SpanObjective
from span_hpo.space import Dimension, Params, option_labels, read_params

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
    and text; where a dimension has a step, a trial moves to the nearest one.
    """
    return {name: _domain(part) for name, part in objective.space.items()}


def config_params(objective: SpanObjective, config: Params) -> dict[str, Any]:
    """Return the hyperparameters that the configuration of a trial stands for.

    Raises
    ------
    ValueError
        If it does not name those of the objective.
    """
    params = read_params(objective.space, config, "config")
    for name, part in objective.space.items():
        if not isinstance(part, Choice) and part.step not in (None, 1):
            params[name] = part.nearest(params[name])
    return params


def _domain(part: Dimension) -> Any:
    if isinstance(part, Choice):
        return tune.choice(option_labels(part))
    if isinstance(part, Int):
        kind = tune.lograndint if part.log else tune.randint
        return kind(part.low, part.high + _NEXT)
    return (tune.loguniform if part.log else tune.uniform)(part.low, part.high)
