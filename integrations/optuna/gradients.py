"""Keep the gradient of a trial in its attributes, where samplers of all processes find it.

The attribute `gradient` is a list of the derivatives by the real hyperparameters of the trial, in
the alphabetical order of their names and with nine significant digits. With 1,000 hyperparameters
it takes about 15 kB as text, however long the names are. MySQL allows 64 kB.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from optuna.distributions import FloatDistribution
from optuna.trial import BaseTrial, FrozenTrial

from span_hpo.metrics import SMOOTH_ERROR, Metric
from span_hpo.objective import Evaluation, SpanObjective
from span_hpo.runtime import real
from span_hpo.search import Coordinates, Spread, spread_of
from span_hpo.space import Params

GRADIENT = "gradient"  # attribute of a trial with the derivatives of what a descent minimises
PENALTY = "penalty"  # attribute with the penalty that a descent adds to the loss
NO_GRADIENT = "no_gradient"  # attribute that says why there are no derivatives
ATTRIBUTES = (GRADIENT, PENALTY, NO_GRADIENT)
_DIGITS = 9  # significant digits of a derivative: a fit is less accurate


class Wanted(NamedTuple):
    """What a `GradientSampler` wants to know of a trial.

    Attributes
    ----------
    penalty
        Strength of the penalty on widths that differ; see `minimize`.
    is_step
        Whether the trial is a step of a descent, which needs its gradient on all rows.
    """

    penalty: float
    is_step: bool


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
    trial.set_user_attr(GRADIENT, _shortened(slopes))


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


def real_names(trial: BaseTrial | FrozenTrial) -> list[str]:
    """Return the names of the hyperparameters by which a value has derivatives, sorted."""
    return sorted(
        name
        for name, part in trial.distributions.items()
        if isinstance(part, FloatDistribution) and part.step is None
    )


def has_gradient(objective: SpanObjective) -> bool:
    """Return whether the loss of an objective can be followed by gradients.

    In place of "error", which is constant almost everywhere, a descent follows the "smooth_error".
    Whether the kernel and the weighting have derivatives shows in the first step.
    """
    if objective.loo_method != "span" or len(objective.metrics) > 1:
        return False
    (metric,) = objective.metrics
    return metric.slopes is not None or _is_error(metric)


def evaluated_step(
    objective: SpanObjective, params: dict[str, Any], n_rows: int, penalty: float
) -> tuple[Evaluation, dict[str, Any]]:
    """Return an evaluation, and the attributes of a trial that hold its gradient.

    Parameters
    ----------
    objective
        Objective for which `has_gradient` is true.
    params, n_rows
        Hyperparameters, and the number of rows to use.
    penalty
        Strength of the penalty on widths that differ; see `minimize`.
    """
    metric = SMOOTH_ERROR.name if _is_error(objective.metrics[0]) else None
    try:
        found = objective.value_and_gradient(params, n_rows, metric=metric)
    except ValueError as error:
        # Unless the evaluation itself raises it as well, the kernel or the weighting has none.
        return objective.evaluate(params, n_rows), {NO_GRADIENT: str(error)}
    assert found.evaluation is not None  # that of a bound is the only one without
    if found.gradient is None:
        return found.evaluation, {NO_GRADIENT: found.reason}
    coordinates, spread = _spread(objective, params, penalty, n_rows)
    extra, slopes = spread.at(coordinates.point(params))
    by_name = {name: found.gradient[name] for name in coordinates.names}
    for name, is_log, slope in zip(coordinates.names, coordinates.is_log, slopes, strict=True):
        by_name[name] += slope / params[name] if is_log else slope
    return found.evaluation, {
        GRADIENT: _shortened([by_name[name] for name in sorted(by_name)]),
        **({PENALTY: extra} if spread.places else {}),
    }


def penalty_at(
    objective: SpanObjective, params: Params, penalty: float, n_rows: int | None = None
) -> dict[str, float]:
    """Return the attribute with the penalty at a point, or no attribute if there is no penalty.

    Values outside of their ranges are moved to the nearest ones inside.
    """
    inside = {name: part.nearest(params[name]) for name, part in objective.space.items()}
    coordinates, spread = _spread(objective, inside, penalty, n_rows)
    return {PENALTY: spread.at(coordinates.point(inside))[0]} if spread.places else {}


def _spread(
    objective: SpanObjective, params: Params, penalty: float, n_rows: int | None
) -> tuple[Coordinates, Spread]:
    coordinates = Coordinates.of(objective.space, params)
    return coordinates, spread_of(objective, coordinates, penalty, n_rows)


def _is_error(metric: Metric) -> bool:
    return metric.name == "error" and not metric.own


def _shortened(slopes: list[float]) -> list[float]:
    """Return derivatives with as many digits as are stored."""
    return [float(f"{slope:.{_DIGITS}g}") for slope in slopes]
