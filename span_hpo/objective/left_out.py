"""Evaluations in which some rows are left out of the preparation of the features as well."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from span_hpo.data import as_features
from span_hpo.kernels import KernelCache
from span_hpo.loo import RowValues, left_out_row, replaced_rows
from span_hpo.metrics import judged_by
from span_hpo.objective.evaluation import Evaluation
from span_hpo.objective.span_objective import SpanObjective
from span_hpo.runtime import IndexArray
from span_hpo.solver import checked_costs


def left_out_rows(
    objective: SpanObjective,
    params: dict[str, Any],
    rows: IndexArray,
    features_without: Callable[[int], Any],
) -> RowValues | None:
    """Fit without each of some rows, on features that were prepared without the row.

    The hyperparameters and the costs of the other rows stay as they are.

    Parameters
    ----------
    objective
        Objective of all rows.
    params
        Hyperparameters.
    rows
        Rows that are left out, one at a time.
    features_without
        Function that takes a row and returns the features of all rows, prepared without that row.

    Returns
    -------
    The leave-one-out values of the rows, or None if there are no rows.
    """
    data, kernel = objective.data, objective.kernel
    costs = checked_costs(objective.weighting.costs(data, params), data.codes, data.classes)
    found = []
    for row in rows.tolist():
        features = as_features(features_without(row))
        K = KernelCache(kernel, features, objective.memory_limit).matrix(params)
        found.append(
            left_out_row(
                K,
                data.codes,
                costs,
                row,
                tol=objective.tol,
                max_iter=objective.max_iter,
                solver=objective.solver,
            )
        )
    return RowValues.joined(found) if found else None


def with_values(
    objective: SpanObjective, evaluation: Evaluation, new: RowValues | None
) -> Evaluation:
    """Return an evaluation in which some rows have other leave-one-out values.

    Parameters
    ----------
    objective
        Objective of all rows.
    evaluation
        An evaluation by the objective, on all rows.
    new
        The other values, or None if there are none.
    """
    if new is None:
        return evaluation
    start, proven = time.perf_counter(), evaluation.loo
    if proven.method == "span":  # an estimate may have another sign than the proof
        proven = objective.evaluate(evaluation.params, loo_method="exact").loo
    loo = replaced_rows(evaluation.loo, proven, new)
    weight = evaluation.metric_weight
    losses, row_losses = judged_by(objective.metrics, loo.y, loo.decision_values, weight)
    return replace(
        evaluation,
        loss=losses[objective.metrics[0].name],
        losses=losses,
        loo=loo,
        row_losses=row_losses,
        seconds=evaluation.seconds + time.perf_counter() - start,
    )
