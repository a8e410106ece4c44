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
from optuna.trial import BaseTrial, FrozenTrial

from span_hpo import Choice, Float, Int, SpanObjective
from span_hpo.space import Dimension

_PLAIN = (bool, int, float, str)  # what a storage can hold as a category


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
    return {name: _distribution(part) for name, part in objective.space.items()}


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
    """
    values = objective.grid(points)
    return GridSampler(
        {name: _written(part, values[name]) for name, part in objective.space.items()}, seed=seed
    )


def enqueue_defaults(study: Study, objective: SpanObjective) -> None:
    """Let a study begin with `SpanObjective.defaults`; those that it has already are left out.

    Parameters
    ----------
    study
        The study.
    objective
        What is searched.
    """
    for params in objective.defaults():
        written = {
            name: _written(part, [params[name]])[0] for name, part in objective.space.items()
        }
        study.enqueue_trial(written, skip_if_exists=True)


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

    They differ from ``trial.params`` only where a `Choice` has options that are not plain values.

    Parameters
    ----------
    trial
        The trial.
    objective
        What is searched.
    """
    written = trial.params
    return {
        name: part.options[_labels(part).index(written[name])]
        if isinstance(part, Choice)
        else written[name]
        for name, part in objective.space.items()
    }


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
    if all(option is None or isinstance(option, _PLAIN) for option in part.options):
        return list(part.options)
    return [f"{index}: {option!r}" for index, option in enumerate(part.options)]


def _written(part: Dimension, values: list[Any]) -> list[Any]:
    if isinstance(part, Float | Int):
        return values
    labels = _labels(part)
    return [labels[part.options.index(value)] for value in values]
