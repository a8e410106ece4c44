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
from optuna.trial import BaseTrial

from span_hpo import Choice, Float, Int, SpanObjective
from span_hpo.space import Dimension, Space

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
        study.enqueue_trial(written_params(objective.space, params), skip_if_exists=True)


def suggested(trial: BaseTrial, space: Space) -> dict[str, Any]:
    """Let a trial suggest a value for every name of a space."""
    for name, part in space.items():
        distribution = _distribution(part)
        if isinstance(distribution, CategoricalDistribution):
            trial.suggest_categorical(name, distribution.choices)
        elif isinstance(distribution, FloatDistribution):
            trial.suggest_float(
                name,
                distribution.low,
                distribution.high,
                step=distribution.step,
                log=distribution.log,
            )
        elif isinstance(distribution, IntDistribution):
            trial.suggest_int(
                name,
                distribution.low,
                distribution.high,
                step=distribution.step,
                log=distribution.log,
            )
    return params_of(space, trial.params)


def params_of(space: Space, written: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hyperparameters of a space that the parameters of a trial stand for."""
    return {
        name: part.options[_labels(part).index(written[name])]
        if isinstance(part, Choice)
        else written[name]
        for name, part in space.items()
    }


def written_params(space: Space, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return hyperparameters as a trial has them."""
    return {name: _written(part, [params[name]])[0] for name, part in space.items()}


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
