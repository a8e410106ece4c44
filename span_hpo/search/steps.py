"""Steps along gradients as trials of another search, such as a study of Optuna.

Such a trial reports the gradient of what a descent minimises, which is the loss plus the penalty,
as a list of the derivatives by the real hyperparameters in the alphabetical order of their names,
with nine significant digits. With 1,000 hyperparameters it takes about 15 kB as text, however long
the names are; MySQL allows 64 kB.
"""

from typing import Any, NamedTuple

from span_hpo.errors import NoDerivativeError
from span_hpo.objective import Evaluation, SpanObjective, followed_metric
from span_hpo.search.coordinates import Coordinates
from span_hpo.search.spread import Spread, spread_of
from span_hpo.space import Params

GRADIENT = "gradient"  # attribute of a trial with the derivatives of what a descent minimises
PENALTY = "penalty"  # attribute with the penalty that a descent adds to the loss
ALIKE = "alike"  # attribute with the positions of the derivatives that share units, by `Descent`
NO_GRADIENT = "no_gradient"  # attribute that says why there are no derivatives
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


def has_gradient(objective: SpanObjective) -> bool:
    """Return whether the loss of an objective can be followed by gradients.

    In place of "error", which is constant almost everywhere, a descent follows the "smooth_error".
    Whether the kernel and the weighting have derivatives shows in the first step.
    """
    if objective.loo_method != "span" or len(objective.metrics) > 1:
        return False
    return followed_metric(objective.metrics[0]) is not None


def check_gradient(objective: SpanObjective) -> None:
    """Raise ``ValueError`` if the loss of an objective cannot be followed by gradients."""
    count = len(objective.metrics)
    if count > 1:
        raise ValueError(f"`objective` must have one metric to follow its gradient, got {count}.")
    if objective.loo_method != "span":
        raise ValueError(
            f"`loo_method` must be 'span' to follow gradients, got {objective.loo_method!r}."
        )
    if not has_gradient(objective):
        raise objective.metrics[0].without_derivative()


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
    metric = followed_metric(objective.metrics[0])
    assert metric is not None  # because the objective has a gradient
    other = None if metric is objective.metrics[0] else metric.name
    try:
        found = objective.value_and_gradient(params, n_rows, metric=other)
    except NoDerivativeError as error:  # of the kernel or the weighting
        return objective.evaluate(params, n_rows), {NO_GRADIENT: str(error)}
    assert found.evaluation is not None  # that of a bound is the only one without
    if found.gradient is None:
        return found.evaluation, {NO_GRADIENT: found.reason}
    coordinates, spread = _spread(objective, params, penalty, n_rows)
    extra, slopes = spread.at(coordinates.point(params))
    by_name = {name: found.gradient[name] for name in coordinates.names}
    for name, is_log, slope in zip(coordinates.names, coordinates.is_log, slopes, strict=True):
        by_name[name] += slope / params[name] if is_log else slope
    names = sorted(by_name)
    alike = sorted(names.index(coordinates.names[place]) for place in spread.places)
    return found.evaluation, {
        GRADIENT: shortened([by_name[name] for name in names]),
        **({PENALTY: extra, ALIKE: alike} if alike else {}),
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


def shortened(slopes: list[float]) -> list[float]:
    """Return derivatives with as many digits as are stored."""
    return [float(f"{slope:.{_DIGITS}g}") for slope in slopes]
