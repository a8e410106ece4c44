"""The search space, its grids and its starting points in Optuna's terms."""

from collections.abc import Mapping
from typing import Any

from optuna import Study
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import GridSampler
from optuna.trial import BaseTrial, FrozenTrial, TrialState

from span_hpo import Choice, Int, SpanObjective
from span_hpo.space import Dimension

_PLAIN = (bool, int, float, str)  # what a storage can hold as a category


def as_objective(objective: Any) -> SpanObjective:
    """Return a `SpanObjective`, also if it is inside an adapter.

    Raises
    ------
    TypeError
        If there is none.
    """
    found = getattr(objective, "objective", objective)
    if not isinstance(found, SpanObjective):
        raise TypeError(f"`objective` must be a SpanObjective, got {type(objective).__name__}.")
    return found


def search_space(objective: SpanObjective) -> dict[str, BaseDistribution]:
    """Return the distribution of every searched hyperparameter, for ``study.ask``.

    Parameters
    ----------
    objective
        What is searched.

    Returns
    -------
    Distributions by name. Options of a `Choice` that are not plain values are categories called
    by their position and text.
    """
    return {name: _distribution(part) for name, part in as_objective(objective).space.items()}


def grid_sampler(
    objective: SpanObjective, points: int | Mapping[str, int], *, seed: int | None = None
) -> GridSampler:
    """Return a sampler that visits every point of a grid once, and then stops the study.

    Parameters
    ----------
    objective
        What is searched.
    points
        Number of values: one number for all names, or a mapping that names every one; see
        `SpanObjective.grid`.
    seed
        Seed of the order.

    Returns
    -------
    The sampler.
    """
    objective = as_objective(objective)
    values = objective.grid(points)
    return GridSampler(
        {name: _written(part, values[name]) for name, part in objective.space.items()}, seed=seed
    )


def enqueue_defaults(study: Study, objective: SpanObjective) -> None:
    """Let a study begin with `SpanObjective.defaults`.

    Those that it has already are left out, unless they failed, for instance because the process
    was interrupted.

    Parameters
    ----------
    study
        The study.
    objective
        What is searched.
    """
    objective = as_objective(objective)
    known = [
        trial.params or trial.system_attrs.get("fixed_params")
        for trial in study.get_trials(deepcopy=False)
        if trial.state != TrialState.FAIL
    ]
    for params in objective.defaults():
        written = {
            name: _written(part, [params[name]])[0] for name, part in objective.space.items()
        }
        if written not in known:
            study.enqueue_trial(written)


def suggest_params(trial: BaseTrial, objective: SpanObjective) -> dict[str, Any]:
    """Let a trial suggest hyperparameters, for a function of your own.

    Parameters
    ----------
    trial
        The trial.
    objective
        What is searched.

    Returns
    -------
    A value for every name in the space of the objective.
    """
    for name, part in search_space(objective).items():
        if isinstance(part, CategoricalDistribution):
            trial.suggest_categorical(name, part.choices)
        elif isinstance(part, FloatDistribution):
            trial.suggest_float(name, part.low, part.high, step=part.step, log=part.log)
        elif isinstance(part, IntDistribution):
            trial.suggest_int(name, part.low, part.high, step=part.step, log=part.log)
    return params_of(trial, objective)


def params_of(trial: BaseTrial | FrozenTrial, objective: SpanObjective) -> dict[str, Any]:
    """Return the hyperparameters of a trial.

    They differ from ``trial.params`` only where a `Choice` has options that are not plain values,
    which a trial knows by their position and text.

    Parameters
    ----------
    trial
        The trial.
    objective
        What is searched.

    Returns
    -------
    A value for every name in the space of the objective.

    Raises
    ------
    ValueError
        If the trial is not one of this objective.
    """
    space, written = as_objective(objective).space, trial.params
    if set(written) != set(space):
        raise ValueError(f"`trial` must have the parameters {list(space)}, got {list(written)}.")
    return {name: _option(name, part, written[name]) for name, part in space.items()}


def _distribution(part: Dimension) -> BaseDistribution:
    if isinstance(part, Choice):
        return CategoricalDistribution(_labels(part))
    if isinstance(part, Int):
        # Optuna warns of an end that is no step.
        last = part.low + (part.high - part.low) // part.step * part.step
        return IntDistribution(part.low, last, log=part.log, step=part.step)
    if part.step is None:
        return FloatDistribution(part.low, part.high, log=part.log)
    return FloatDistribution(part.low, part.nearest(part.high), step=part.step)


def _labels(part: Choice) -> list[Any]:
    """Return what the options are called in a trial: themselves, if a storage can tell them apart.

    True and 1 are the same to it, and NaN is not even equal to itself.
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


def _option(name: str, part: Dimension, written: Any) -> Any:
    """Return the value that a parameter of a trial stands for."""
    if not isinstance(part, Choice):
        return written
    labels = _labels(part)
    if written not in labels:
        raise ValueError(f"`trial` must have one of {labels} as `{name}`, got {written!r}.")
    return part.options[labels.index(written)]


def _written(part: Dimension, values: list[Any]) -> list[Any]:
    """Return how a trial calls some values of a dimension."""
    if not isinstance(part, Choice):
        return values
    # Options are found by identity: arrays and NaN do not compare.
    positions = {id(option): index for index, option in reversed([*enumerate(part.options)])}
    labels = _labels(part)
    return [labels[positions[id(value)]] for value in values]
