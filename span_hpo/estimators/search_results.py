"""The results of a search in the form of scikit-learn's `cv_results_`."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.ma import MaskedArray
from sklearn.exceptions import FitFailedWarning

from span_hpo.errors import SolverError
from span_hpo.estimators.outcomes import Outcome, bootstrap_error
from span_hpo.estimators.scoring import Score
from span_hpo.estimators.shared_objectives import SharedObjectives
from span_hpo.runtime import Array, FloatArray, IndexArray


def search_results(
    outcomes: Sequence[Outcome], scores: Mapping[str, Score], positions: Mapping[str, int]
) -> dict[str, Any]:
    """Return the columns of the results, each with one entry for each candidate.

    Parameters
    ----------
    outcomes
        Outcomes of the candidates.
    scores
        Scores by name.
    positions
        Position of the metric of each score among the losses of an outcome, by name.
    """
    seconds = np.array([outcome.seconds for outcome in outcomes])
    nothing = np.zeros(len(outcomes))
    results: dict[str, Any] = {
        "mean_fit_time": seconds,
        "std_fit_time": nothing.copy(),
        "mean_score_time": nothing.copy(),  # the values come with the fit
        "std_score_time": nothing.copy(),
    }
    results |= _parameter_columns([outcome.params for outcome in outcomes])
    results["params"] = [dict(outcome.params) for outcome in outcomes]
    for name, score in scores.items():
        position = positions[name]
        means = np.array([score.of(outcome.losses[position]) for outcome in outcomes])
        results[f"split0_test_{name}"] = means
        results[f"mean_test_{name}"] = means.copy()
        results[f"std_test_{name}"] = np.array(
            [outcome.standard_errors[position] for outcome in outcomes]
        )
        results[f"rank_test_{name}"] = _ranks([outcome.rank(position) for outcome in outcomes])
    for name in outcomes[0].figures:
        results[name] = np.array([outcome.figures[name] for outcome in outcomes])
    return results


def complete_errors(
    results: dict[str, Any],
    outcomes: Sequence[Outcome],
    shared: SharedObjectives,
    positions: Mapping[str, int],
) -> None:
    """Add the standard error of the best candidate to scores that are no means over rows.

    Parameters
    ----------
    results
        Columns of the results, which are changed.
    outcomes, positions
        See `search_results`.
    shared
        Objectives of the candidates.
    """
    for name, position in positions.items():
        errors, best = results[f"std_test_{name}"], int(results[f"rank_test_{name}"].argmin())
        if np.isnan(errors[best]):
            errors[best] = bootstrap_error(shared, outcomes[best], position)


def check_failures(outcomes: Sequence[Outcome]) -> None:
    """Warn of fits that have failed.

    Raises
    ------
    SolverError, TypeError, ValueError
        If all of them have failed. What is neither a failure of a solver nor a ``TypeError``
        becomes a ``ValueError``, as in scikit-learn's searches.
    """
    failed = [outcome for outcome in outcomes if outcome.failure is not None]
    if len(failed) == len(outcomes):
        error = failed[-1].error or SolverError
        kinds = (one for one in (SolverError, TypeError) if issubclass(error, one))
        raise next(kinds, ValueError)(
            f"No candidate could be fitted. The last failure: {failed[-1].failure}"
        )
    if failed:
        warnings.warn(
            f"{len(failed)} of {len(outcomes)} candidates could not be fitted and have scores of "
            f"NaN. The last one is {dict(failed[-1].params)}: {failed[-1].failure}",
            FitFailedWarning,
            stacklevel=3,
        )


def best_index(
    refit: bool | str | Callable[[dict[str, Any]], int], name: str, results: dict[str, Any]
) -> int:
    """Return the position of the chosen candidate.

    Parameters
    ----------
    refit
        Argument of the search: a function of the results chooses by itself.
    name
        Name of the score that decides otherwise.
    results
        Columns of the results.

    Raises
    ------
    TypeError, IndexError
        If the function returns no position of a candidate.
    """
    if not callable(refit):
        return int(results[f"rank_test_{name}"].argmin())
    chosen, count = refit(results), len(results["params"])
    if not isinstance(chosen, Integral) or isinstance(chosen, bool):
        raise TypeError(f"`refit` must return the position of a candidate, got {chosen!r}.")
    if not 0 <= chosen < count:
        raise IndexError(
            f"`refit` must return a position from 0 to {count - 1}, one for each candidate, got "
            f"{chosen}."
        )
    return int(chosen)


def _ranks(keys: Sequence[tuple[float, ...]]) -> IndexArray:
    """Return the rank of each key, beginning with 1; equal keys have the same rank."""
    found: IndexArray = np.empty(len(keys), dtype=np.int32)
    order = sorted(range(len(keys)), key=keys.__getitem__)
    rank = 0
    for place, number in enumerate(order):
        if place == 0 or keys[number] != keys[order[place - 1]]:
            rank = place + 1
        found[number] = rank
    return found


def _parameter_columns(candidates: Sequence[Mapping[str, Any]]) -> dict[str, MaskedArray[Any, Any]]:
    """Return a masked column for each parameter, masked where a candidate does not have it."""
    columns = {}
    for name in sorted({name for candidate in candidates for name in candidate}):
        given = {i: one[name] for i, one in enumerate(candidates) if name in one}
        kind = _kind_of(list(given.values()))
        column: Any = MaskedArray(np.empty(len(candidates), dtype=kind), mask=True)
        for place, value in given.items():
            column[place] = value
        columns[f"param_{name}"] = column
    return columns


def _kind_of(values: list[Any]) -> Any:
    """Return the type of numbers that hold these values, or object if they are something else."""
    if all(isinstance(value, bool | np.bool_) for value in values):
        return bool
    numbers = (bool, np.bool_)
    if any(isinstance(value, numbers) or not np.isscalar(value) for value in values):
        return object
    kind: Array | FloatArray = np.array(values)
    return kind.dtype if kind.dtype.kind in "iuf" else object
