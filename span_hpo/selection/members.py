"""Ensembles of fitted models, and how they are made of the trials of a search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from span_hpo.calibration import PlattSigmoid, calibrated, loo_sigmoids
from span_hpo.objective import Evaluation, SpanObjective, pair_values
from span_hpo.runtime import Array, FloatArray, Printable, counted
from span_hpo.selection.ensembles import (
    MOST_CANDIDATES,
    class_errors,
    decision_values,
    greedy_counts,
    log_loss_of,
    mean_probabilities,
    members_of,
    own_probabilities,
)
from span_hpo.space import Params

# The calibration of the decision values of two classes, which are log-odds.
LOG_ODDS = PlattSigmoid(slope=1.0, offset=0.0)


@dataclass(frozen=True, eq=False, repr=False)
class Ensemble(Printable):
    """Several fitted models whose calibrated probabilities are averaged.

    The class with the largest mean probability is predicted. No error bounds are proven for an
    ensemble.

    Attributes
    ----------
    members
        Fitted ``SVC`` of each member.
    weights
        Weight of each member, shape (members,); they add up to 1.
    params
        Hyperparameters of each member.
    sigmoids
        Calibration of every pair of classes, for each member.
    classes_
        Labels of the classes, in their order.
    loo_probabilities
        Leave-one-out probabilities of the training rows, shape (l, k).
    loo_error
        Leave-one-out error, which is optimistic, because the members were chosen by the same
        values.
    loo_log_loss
        Leave-one-out log loss, which is optimistic for the same reason.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.integrations.optuna import best_ensemble, new_study, search
    >>> X, y = make_moons(60, noise=0.3, random_state=0)
    >>> objective = SpanObjective(X, y)
    >>> study = new_study(seed=0)
    >>> search(study, objective, n_trials=10)
    >>> ensemble = best_ensemble(study, objective)
    >>> len(ensemble.members) == len(ensemble.weights) == len(ensemble.params)
    True
    >>> ensemble.predict([[0, 1], [1, -0.5]]).tolist()
    [0, 1]
    """

    members: tuple[Any, ...]
    weights: FloatArray
    params: tuple[dict[str, Any], ...]
    sigmoids: tuple[tuple[PlattSigmoid, ...], ...]
    classes_: Array
    loo_probabilities: FloatArray
    loo_error: float
    loo_log_loss: float

    @property
    def loo_decision_values(self) -> FloatArray:
        """Leave-one-out decision values; see `decision_function`."""
        return decision_values(self.loo_probabilities)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the mean of the members' probabilities of every class, shape (m, k)."""
        pairs = zip(self.members, self.sigmoids, strict=True)
        found = [calibrated(sigmoids, pair_values(svc, X)) for svc, sigmoids in pairs]
        return mean_probabilities(np.stack(found), self.weights)

    def decision_function(self, X: Any) -> FloatArray:
        """Return the log-odds of the second of two classes, or the logarithms of probabilities."""
        return decision_values(self.predict_proba(X))

    def predict(self, X: Any) -> Array:
        """Return the most probable label of each row."""
        values = self.decision_function(X)
        codes = (values >= 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
        labels: Array = self.classes_[codes]
        return labels

    def _summary(self) -> tuple[str, Mapping[str, str]]:
        lines = {
            "leave-one-out error": f"{self.loo_error:.4f}, which is optimistic",
            "leave-one-out log loss": f"{self.loo_log_loss:.4f}, which is optimistic",
        }
        pairs = zip(self.weights, self.params, strict=True)
        for number, (weight, params) in enumerate(pairs, start=1):
            shown = [f"{name} {_shown(value)}" for name, value in params.items()]
            lines[f"member {number}"] = ", ".join([f"weight {weight:.1f}", *shown])
        return f"Ensemble of {counted(len(self.members), 'model')}", lines


def ensemble_of(objective: SpanObjective, points: Sequence[Params]) -> Ensemble:
    """Return the fitted ensemble of the best of some points.

    The points are evaluated, their leave-one-out values are calibrated, and members are chosen
    greedily by the log loss of the mean leave-one-out probability; see `greedy_counts`.

    Parameters
    ----------
    objective
        Objective of the rows.
    points
        Hyperparameters, the best first. The first 30 different ones may become members.

    Raises
    ------
    ValueError
        If there are no points, or one is not valid.

    Examples
    --------
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.selection import ensemble_of
    >>> objective = SpanObjective([[0], [1], [3], [4]], [0, 0, 1, 1], kernel="linear")
    >>> ensemble_of(objective, [{"C_0": C, "C_1": C} for C in (0.2, 1.0)]).weights.tolist()
    [1.0]
    """
    if len(points) == 0:
        raise ValueError("`points` must hold at least one trial on all rows, got none.")
    candidates = _different(points)[:MOST_CANDIDATES]
    evaluations, sigmoids = evaluated(objective, candidates)
    found = loo_probabilities(evaluations, sigmoids)
    codes, weight = objective.data.codes, objective.metric_weight
    counts = greedy_counts(own_probabilities(found, codes), weight)
    members, weights = members_of(counts)
    mean = mean_probabilities(found[members], weights)
    return Ensemble(
        members=tuple(objective.fit_model(candidates[number]) for number in members),
        weights=weights,
        params=tuple(evaluations[number].params for number in members),
        sigmoids=tuple(sigmoids[number] for number in members),
        classes_=objective.data.classes.copy(),
        loo_probabilities=mean,
        loo_error=float(class_errors(mean, codes).mean()),
        loo_log_loss=log_loss_of(own_probabilities(mean, codes), weight),
    )


def evaluated(
    objective: SpanObjective, points: Sequence[Params]
) -> tuple[list[Evaluation], list[tuple[PlattSigmoid, ...]]]:
    """Return evaluations with complete leave-one-out values, and their calibrations."""
    evaluations = objective.evaluate_all(points, complete=True, certify=False)
    return evaluations, [loo_sigmoids(one.loo, one.metric_weight) for one in evaluations]


def loo_probabilities(
    evaluations: Sequence[Evaluation], sigmoids: Sequence[Sequence[PlattSigmoid]]
) -> FloatArray:
    """Return the leave-one-out probabilities of all classes by each model, shape (T, n, k)."""
    pairs = zip(evaluations, sigmoids, strict=True)
    return np.stack([calibrated(own, one.loo.decision_values) for one, own in pairs])


def _different(points: Sequence[Params]) -> list[Params]:
    """Return the points without those that repeat an earlier one."""
    found: dict[str, Params] = {}
    for point in points:
        found.setdefault(repr(sorted(point.items())), point)
    return list(found.values())


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
