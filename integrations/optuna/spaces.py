"""Translate the search space, its grids and its starting points into Optuna's terms."""

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
from span_hpo.space import Choice, Dimension, Int, Space


def as_objective(objective: Any) -> SpanObjective:
    """Return a `SpanObjective`, which an adapter may contain.

    Raises
    ------
    TypeError
        If the argument neither is nor contains a `SpanObjective`.
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
        Objective whose hyperparameters are searched.

    Returns
    -------
    Distributions by name. An option of a `Choice` that is not a plain value becomes a category with
    the position and the text of the option as its name.

    Examples
    --------
    >>> from span_hpo import Float, SpanObjective, UniformCost
    >>> from span_hpo.integrations.optuna import search_space
    >>> weighting = UniformCost(Float(1, 8, log=True))
    >>> search_space(SpanObjective([[0], [1]], [0, 1], kernel="linear", weighting=weighting))
    {'C': FloatDistribution(high=8.0, log=True, low=1.0, step=None)}
    """
    return {name: _distribution(part) for name, part in as_objective(objective).space.items()}


def grid_sampler(
    objective: SpanObjective, points: int | Mapping[str, int], *, seed: int | None = None
) -> GridSampler:
    """Return a sampler that visits every point of a grid once, and then stops the study.

    Parameters
    ----------
    objective
        Objective whose hyperparameters are searched.
    points
        Number of values of every hyperparameter: one number for all, or a mapping of names to
        numbers; see `SpanObjective.grid`.
    seed
        Random seed of the order in which the points are visited.

    Returns
    -------
    Sampler of Optuna.

    Examples
    --------
    >>> import optuna
    >>> from span_hpo import SpanObjective, UniformCost
    >>> from span_hpo.integrations.optuna import OptunaObjective, grid_sampler, new_study
    >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
    >>> objective = SpanObjective([[0], [1], [3], [4]], [0, 0, 1, 1], weighting=UniformCost())
    >>> study = new_study(sampler=grid_sampler(objective, {"gamma": 3, "C": 2}))
    >>> study.optimize(OptunaObjective(objective))
    >>> len(study.trials)
    6
    """
    objective = as_objective(objective)
    return GridSampler(written_grid(objective.space, objective.grid(points)), seed=seed)


def enqueue_defaults(study: Study, objective: SpanObjective) -> None:
    """Let a study begin with `SpanObjective.defaults`.

    Points that the study has already are left out, unless their trials have failed, for instance
    because the process was interrupted.

    Parameters
    ----------
    study
        Study that receives the points as its next trials.
    objective
        Objective whose hyperparameters are searched.

    Examples
    --------
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.integrations.optuna import enqueue_defaults, new_study, search_space
    >>> objective, study = SpanObjective([[0], [1]], [0, 1], kernel="linear"), new_study()
    >>> enqueue_defaults(study, objective)
    >>> study.ask(search_space(objective)).params
    {'C_0': 1.0, 'C_1': 1.0}
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
    """Let a trial suggest a value for every hyperparameter that an objective searches.

    The values can be passed to `SpanObjective.evaluate` in an objective function of your own.

    Examples
    --------
    >>> from optuna.trial import FixedTrial
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.integrations.optuna import suggest_params
    >>> objective = SpanObjective([[0], [1]], [0, 1], kernel="linear")
    >>> suggest_params(FixedTrial({"C_0": 2.0, "C_1": 4.0}), objective)
    {'C_0': 2.0, 'C_1': 4.0}
    """
    suggest_all(trial, as_objective(objective).space)
    return params_of(trial, objective)


def suggest_all(trial: BaseTrial, space: Space) -> dict[str, Any]:
    """Return a value for every name of a space, with options in place of their labels."""
    for name, dimension in space.items():
        part = _distribution(dimension)
        if isinstance(part, CategoricalDistribution):
            trial.suggest_categorical(name, part.choices)
        elif isinstance(part, FloatDistribution):
            trial.suggest_float(name, part.low, part.high, step=part.step, log=part.log)
        elif isinstance(part, IntDistribution):
            trial.suggest_int(name, part.low, part.high, step=part.step, log=part.log)
    return read_params(space, trial.params, "trial")


def params_of(trial: BaseTrial | FrozenTrial, objective: SpanObjective) -> dict[str, Any]:
    """Return the hyperparameters of a trial.

    They differ from ``trial.params`` only if a `Choice` has options that are not plain values. A
    trial holds the position and the text of such an option instead.

    Parameters
    ----------
    trial
        Trial of the objective.
    objective
        Objective whose hyperparameters are searched.

    Returns
    -------
    A value for every name in the space of the objective.

    Raises
    ------
    ValueError
        If the trial belongs to another objective.

    Examples
    --------
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.integrations.optuna import new_study, params_of, search_space
    >>> objective = SpanObjective([[0], [1]], [0, 1])
    >>> trial = new_study().ask(search_space(objective))
    >>> sorted(params_of(trial, objective))
    ['C_0', 'C_1', 'gamma']
    """
    return read_params(as_objective(objective).space, trial.params, "trial")


def _distribution(part: Dimension) -> BaseDistribution:
    if isinstance(part, Choice):
        return CategoricalDistribution(option_labels(part))
    if isinstance(part, Int):
        # Optuna warns if no step ends at the upper bound.
        last = part.low + (part.high - part.low) // part.step * part.step
        return IntDistribution(part.low, last, log=part.log, step=part.step)
    if part.step is None:
        return FloatDistribution(part.low, part.high, log=part.log)
    return FloatDistribution(part.low, part.nearest(part.high), step=part.step)
