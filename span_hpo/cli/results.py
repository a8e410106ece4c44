"""Collect the results of commands as values that JSON can hold; `output` prints them."""

from pathlib import Path
from typing import Any

import numpy as np

from span_hpo.cli.files import ModelFiles, PredictionTask
from span_hpo.cli.search_engines import Engine
from span_hpo.estimators import SpanSVC, relevance_of_model
from span_hpo.io import EnsemblePredictor, Predictor, Samples
from span_hpo.kernels import ARD
from span_hpo.objective import Evaluation
from span_hpo.runtime import Array, FloatArray, IndexArray
from span_hpo.selection import FEW_TRIALS, HonestEstimate
from span_hpo.solver import is_wrong


def shape_of(samples: Samples) -> dict[str, Any]:
    """Return the numbers of rows, of features and of rows in each class."""
    classes, counts = np.unique(samples.y, return_counts=True)
    return {
        "rows": len(samples.y),
        "features": samples.n_features,
        "classes": {str(label): int(n) for label, n in zip(classes.tolist(), counts, strict=True)},
    }


def scaling_of_rows(name: str | None, defining: IndexArray, count: int) -> dict[str, Any]:
    """Return the name of a scaling, and the number and share of the rows that define it."""
    share = len(defining) / count
    return {"scaling": name, "scaling_rows": len(defining), "scaling_share": share}


def group_errors(evaluation: Evaluation, samples: Samples) -> dict[str, dict[str, Any]] | None:
    """Return the number of rows and the leave-one-out error of every group, or None."""
    if samples.groups is None:
        return None
    wrong = is_wrong(evaluation.loo.y, evaluation.loo.decision_values)
    rows_of: dict[str, list[int]] = {}
    for row, group in enumerate(samples.groups.tolist()):
        rows_of.setdefault(group, []).append(row)
    return {
        str(group): {"rows": len(rows), "error": float(wrong[rows].mean())}
        for group, rows in sorted(rows_of.items())
    }


def places_of(indices: Array, samples: Samples) -> list[int]:
    """Return the lines of rows in a text file; for other files, the row numbers from 1."""
    numbers: list[int] = indices.tolist()
    return [index + 1 if samples.lines is None else samples.lines[index] for index in numbers]


def tuned_result(
    file: Path,
    samples: Samples,
    model: SpanSVC,
    exact: Evaluation,
    saved: ModelFiles,
    engine: Engine,
    seconds: float,
) -> dict[str, Any]:
    """Return the result of the command `tune`.

    Parameters
    ----------
    file, samples
        Path and content of the file of training rows.
    model
        Fitted model.
    exact
        Evaluation of the chosen hyperparameters by the exact method.
    saved
        Files of the model.
    engine
        Engine that has searched the hyperparameters, if there was anything to search.
    seconds
        Running time of the command.
    """
    was_searched = bool(model.objective_.space)
    return {
        **(honest_figures(engine.honest, is_moved=_is_moved(model)) if was_searched else {}),
        "file": str(file),
        **shape_of(samples),
        **scaling_of_rows(model.objective_.scaling, model.scale_rows_, len(samples.y)),
        "scale_inside": model.scale_inside,
        "metric": model.metric,
        "loo_method": model.loo_method_,
        "search": engine.search if was_searched else None,
        "trials": engine.finished() if was_searched else 0,
        "settled": was_searched and engine.settled(),
        "patience": engine.settings.patience,
        **gradient_figures(model, engine),
        "best_params": model.best_params_,
        "feature_relevance": relevance_of(model, samples),
        "legend": model.objective_.legend,
        "best_loss": model.best_loss_,
        "threshold": model.threshold_,
        "threshold_loss": getattr(model, "threshold_loss_", None),
        "loss_at_threshold": "cost" if model.miss_cost is not None else model.metric,
        "loo_error": model.loo_error_,
        "loo_error_bounds": None if model.ensemble else list(model.loo_bounds_),
        "ensemble": _members(model) if model.ensemble else None,
        "exact_error": exact.loo.error,
        "n_support": exact.n_support,
        "n_in_bound": exact.n_in_bound,
        "suspects": places_of(model.suspects_, samples),
        "suspect_probabilities": model.label_error_probability_[model.suspects_].tolist(),
        "expected_label_errors": float(model.label_error_probability_.sum()),
        "groups": group_errors(exact, samples),
        "seconds": seconds,
        "model": str(saved.json),
        "libsvm": None if model.ensemble else str(saved.libsvm),
        "storage": engine.place if was_searched else None,
    }


def gradient_figures(model: SpanSVC, engine: Engine) -> dict[str, Any]:
    """Return what a search by gradients, and gradient steps after a search, have done, or None."""
    found, refined = getattr(engine, "found", None), model.refinement_
    return {
        "gradient_search": None if found is None else found.figures(),
        "refinement": None if refined is None else refined.figures(),
    }


def relevance_of(model: SpanSVC, samples: Samples) -> dict[str, float] | None:
    """Return the relevance of each column, the most relevant first; None without own widths."""
    if not isinstance(model.objective_.kernel, ARD):
        return None
    return relevance_of_model(model, samples.columns)


def _members(model: SpanSVC) -> list[dict[str, Any]]:
    """Return the weight and the hyperparameters of each member of an ensemble."""
    pairs = zip(model.weights_.tolist(), model.members_params_, strict=True)
    return [{"weight": weight, "params": params} for weight, params in pairs]


def _is_moved(model: SpanSVC) -> bool:
    """Return whether gradient steps have found a better point than the search before them."""
    return model.refinement_ is not None and model.refinement_.is_kept


def honest_figures(honest: HonestEstimate | str, *, is_moved: bool = False) -> dict[str, Any]:
    """Return the honest estimate and its interval, or why there is none.

    Parameters
    ----------
    honest
        The estimate, or the reason.
    is_moved
        Whether the model is not that of the best trial, from which gradient steps have led to it.
    """
    if isinstance(honest, str):
        return {"honest_error": None, "honest_interval": None, "honest_note": honest}
    notes = ["of the best trial before the gradient steps"] if is_moved else []
    if honest.is_pessimistic:
        notes.append(f"pessimistic, because there are fewer than {FEW_TRIALS} trials")
    return {
        "honest_error": honest.error,
        "honest_interval": list(honest.interval),
        "honest_note": "; ".join(notes),
    }


def prediction_columns(
    predictor: Predictor | EnsemblePredictor,
    decisions: FloatArray,
    *,
    with_proba: bool,
    with_values: bool,
) -> dict[str, list[Any]]:
    """Return predictions, probabilities and decision values by the names of their columns."""
    columns: dict[str, list[Any]] = {"prediction": predictor.labels_of(decisions).tolist()}
    labels = predictor.labels.tolist()
    if with_proba:
        for label, column in zip(labels, predictor.probabilities_of(decisions).T, strict=True):
            columns[f"probability of {label}"] = column.tolist()
    if with_values and isinstance(predictor, EnsemblePredictor) and decisions.ndim == 2:
        for label, column in zip(labels, decisions.T, strict=True):
            columns[f"log-probability of {label}"] = column.tolist()
    elif with_values:
        values = decisions[:, None] if decisions.ndim == 1 else decisions
        pairs = [(a, b) for i, a in enumerate(labels) for b in labels[i + 1 :]]
        for (first, second), column in zip(pairs, values.T, strict=True):
            columns[f"value of {second} against {first}"] = column.tolist()
    return columns


def error_rate(task: PredictionTask, predictions: list[Any]) -> float | None:
    """Return the share of wrong predictions, or None if the labels are unknown."""
    if task.labels is None:
        return None
    return float(np.mean([a != b for a, b in zip(task.labels, predictions, strict=True)]))
