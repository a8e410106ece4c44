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

from span_hpo.objective import SpanObjective
from span_hpo.search import option_labels, read_params, written_grid, written_params
from span_hpo.space import Choice, Dimension, Int


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
    return GridSampler(written_grid(objective.space, objective.grid(points)), seed=seed)


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
        written = written_params(objective.space, params)
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
    return read_params(as_objective(objective).space, trial.params, "trial")


def _distribution(part: Dimension) -> BaseDistribution:
    if isinstance(part, Choice):
        return CategoricalDistribution(option_labels(part))
    if isinstance(part, Int):
        # Optuna warns of an end that is no step.
        last = part.low + (part.high - part.low) // part.step * part.step
        return IntDistribution(part.low, last, log=part.log, step=part.step)
    if part.step is None:
        return FloatDistribution(part.low, part.high, log=part.log)
    return FloatDistribution(part.low, part.nearest(part.high), step=part.step)
