"""Keep the gradient of a trial in an attribute, where samplers of all processes find it."""

from collections.abc import Mapping
from typing import Any

from optuna.distributions import FloatDistribution
from optuna.trial import BaseTrial, FrozenTrial

from span_hpo.runtime import real
from span_hpo.search import ALIKE, GRADIENT, shortened


def store_gradient(trial: BaseTrial, gradient: Mapping[str, Any]) -> None:
    """Record the gradient of the value of a trial, for a `GradientSampler`.

    `OptunaObjective` does this by itself. In an objective function of your own, compute the
    gradient if `wants_gradient` says so.

    Parameters
    ----------
    trial
        Trial that has suggested all of its hyperparameters.
    gradient
        Derivative by each hyperparameter that is a real number without a step, by name. For a
        hyperparameter t on a logarithmic scale, this is the derivative by t, not by ``ln t``.

    Raises
    ------
    ValueError
        If a derivative is missing or not finite, or a name is not one of the trial.

    Examples
    --------
    >>> from span_hpo.integrations.optuna import gradient_of, new_study, store_gradient
    >>> study = new_study()
    >>> trial = study.ask()
    >>> x = trial.suggest_float("x", -1.0, 1.0)
    >>> store_gradient(trial, {"x": 0.5})
    >>> gradient_of(study.tell(trial, 1.0))
    {'x': 0.5}
    """
    names = real_names(trial)
    if not isinstance(gradient, Mapping) or not set(names) <= set(gradient) <= set(trial.params):
        got = list(gradient) if isinstance(gradient, Mapping) else gradient
        raise ValueError(f"`gradient` must name exactly {names}, got {got!r}.")
    slopes = [real(f"gradient[{name!r}]", gradient[name]) for name in names]
    trial.set_user_attr(GRADIENT, shortened(slopes))


def gradient_of(trial: BaseTrial | FrozenTrial) -> dict[str, float] | None:
    """Return the gradient that was recorded in a trial, by name, or None if there is none.

    For trials of an `OptunaObjective`, it is that of the loss plus the penalty, which a descent
    minimises; see `GradientSampler`.

    Examples
    --------
    >>> from span_hpo.integrations.optuna import gradient_of, new_study
    >>> gradient_of(new_study().ask()) is None
    True
    """
    slopes, names = trial.user_attrs.get(GRADIENT), real_names(trial)
    if not isinstance(slopes, list) or len(slopes) != len(names):
        return None
    return dict(zip(names, slopes, strict=True))


def alike_in(trial: FrozenTrial) -> list[str]:
    """Return the names of those hyperparameters that share the units of their steps."""
    names, places = real_names(trial), trial.user_attrs.get(ALIKE, [])
    return [names[place] for place in places if 0 <= place < len(names)]


def real_names(trial: BaseTrial | FrozenTrial) -> list[str]:
    """Return the names of the hyperparameters by which a value has derivatives, sorted."""
    return sorted(
        name
        for name, part in trial.distributions.items()
        if isinstance(part, FloatDistribution) and part.step is None
    )
