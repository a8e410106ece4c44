"""Compute estimates and bounds of the leave-one-out error at one set of hyperparameters."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from span_hpo import bounds
from span_hpo.cli.files import samples_of
from span_hpo.cli.hyperparameters import given_params, kernel_of, weighting_of
from span_hpo.cli.options import MOST_REFITS, ModelSettings, RowSettings
from span_hpo.cli.output import print_note
from span_hpo.cli.results import group_errors, scaling_of_rows, shape_of
from span_hpo.errors import SolverError
from span_hpo.estimators import ScaledRows
from span_hpo.io import Samples
from span_hpo.kernels import is_held
from span_hpo.loo import METHODS
from span_hpo.objective import Evaluation, SpanObjective
from span_hpo.runtime import counted
from span_hpo.solver import DualSolution, PairwiseSolution

_MOST_SUPPORT = 2000  # largest number of support vectors whose matrix is factored
_FEW_ROWS = 20  # rows of a first estimate, which imports what is timed afterwards
_MOST_FOLDS = 5  # number of folds by default


@dataclass(frozen=True, eq=False)
class Point:
    """One set of hyperparameters for the rows of a file.

    Attributes
    ----------
    samples
        Rows of the file.
    objective
        Objective that is evaluated.
    params
        Values of all hyperparameters that are not given.
    about
        Entries of a result that describe the rows and the point.
    """

    samples: Samples
    objective: SpanObjective
    params: dict[str, Any]
    about: dict[str, Any]

    def evaluated(self, method: str, **options: Any) -> Evaluation:
        """Return the evaluation by one method of `leave_one_out`."""
        return self.objective.evaluate(self.params, loo_method=method, **options)

    def warm_up(self, *, stopping: bool = False) -> None:
        """Evaluate once, so that later times include neither kernel matrix nor compilation."""
        self.evaluated("exact", complete=True)
        if not stopping:
            return
        few = min(len(self.objective.data), max(_FEW_ROWS, self.objective.data.least_rows))
        self.evaluated("stopping", complete=True, rows=few)  # a few rows compile its code


def one_point(row_settings: RowSettings, model_settings: ModelSettings) -> Point:
    """Read the rows and return a point, with defaults for hyperparameters that are not given."""
    samples = samples_of(row_settings)
    scaling = ScaledRows.of(row_settings.scale, samples.X, samples.y)
    if scaling.leak is not None:
        print_note(
            f"{scaling.leak} `span-hpo tune --scale-inside` refits them with a scaling of the "
            "other rows, and --scale none does not scale."
        )
    objective = SpanObjective(
        scaling.features,
        samples.y,
        kernel=kernel_of(model_settings, samples),
        weighting=weighting_of(model_settings, row_settings.score, samples.y, row_settings.group),
        metric=model_settings.metric,
        solver=model_settings.solver,
        scores=samples.scores,
        groups=samples.groups,
    )
    params = objective.defaults()[0] if objective.space else {}
    about = {
        "file": str(row_settings.file),
        **shape_of(samples),
        **scaling_of_rows(scaling.name, scaling.defining, len(samples.y)),
        "metric": model_settings.metric,
        "params": {**given_params(model_settings), **params},
        "legend": objective.legend,
    }
    return Point(samples, objective, params, about)


def loo_result(point: Point, refit: bool | None, *, stopping: bool = False) -> dict[str, Any]:
    """Return every leave-one-out estimate and bound of a point.

    Parameters
    ----------
    point
        Rows and hyperparameters.
    refit
        Refit without each row; None does so for up to `MOST_REFITS` rows.
    stopping
        Also use the method "stopping", which may take much longer than the others.
    """
    point.warm_up(stopping=stopping)
    left_out = {"refit": not _wants_refits(point, refit), "stopping": not stopping}
    methods = [method for method in METHODS if not left_out.get(method, False)]
    evaluations = {method: point.evaluated(method, complete=True) for method in methods}
    last = evaluations[methods[-1]]
    estimates = [_loo_estimate(method, found) for method, found in evaluations.items()]
    return {
        **point.about,
        "n_support": last.n_support,
        "n_in_bound": last.n_in_bound,
        "groups": group_errors(last, point.samples),
        "estimates": [*estimates, *_bounds(point.objective.solution(point.params))],
    }


def comparison(point: Point, refit: bool | None, folds: int | None) -> dict[str, Any]:
    """Return losses and times of the span-rule, exact leave-one-out, cross-validation and refits.

    Parameters
    ----------
    point
        Rows and hyperparameters.
    refit
        Refit without each row; None does so for up to `MOST_REFITS` rows.
    folds
        Number of folds. By default five, or fewer if a class has fewer rows; if a class has only
        one row, cross-validation is left out.

    Raises
    ------
    ArgumentError
        If a class has fewer rows than there are folds.
    """
    point.warm_up()
    span, exact = (point.evaluated(method, certify=False) for method in ("span", "exact"))
    estimates = [_timed_loss("span-rule", span), _timed_loss("exact", exact)]
    fewest = int(np.unique(point.samples.y, return_counts=True)[1].min())
    if folds is not None or fewest > 1:
        wanted = min(_MOST_FOLDS, fewest) if folds is None else folds
        found = point.objective.cross_validate(point.params, wanted)
        estimates.append(_timed_loss(f"{found.folds}-fold", found))
    if _wants_refits(point, refit):
        estimates.append(_timed_loss("refit", point.evaluated("refit", certify=False)))
    groups = group_errors(exact, point.samples)
    return {**point.about, "groups": groups, "estimates": estimates}


def _wants_refits(point: Point, refit: bool | None) -> bool:
    return len(point.samples.y) <= MOST_REFITS if refit is None else refit


def _timed_loss(title: str, found: Any) -> dict[str, Any]:
    return {"estimate": title, "loss": found.loss, "seconds": found.seconds}


def _loo_estimate(method: str, evaluation: Evaluation) -> dict[str, Any]:
    low, high = evaluation.loo.error_bounds
    return {
        "estimate": method,
        "loss": evaluation.loss,
        "error": evaluation.loo.error,
        "at_least": low,
        "at_most": high,
        "undefined": evaluation.loo.n_undefined,
        "refitted": evaluation.loo.n_refit,
        "seconds": evaluation.seconds,
    }


def _bounds(solution: DualSolution | PairwiseSolution) -> list[dict[str, Any]]:
    """Return the classical bounds of a fit; several classes have only that of support vectors."""
    share = solution.n_support / len(solution.decision_values)
    found: list[dict[str, Any]] = [{"estimate": "support vectors / rows", "at_most": share}]
    if isinstance(solution, PairwiseSolution):
        return found
    for title, function, column, remark in _classical(solution):
        start = time.perf_counter()
        try:
            value = function(solution)
        except SolverError as reason:
            print_note(f"{title} cannot be computed. {reason}")
            continue
        seconds = time.perf_counter() - start
        found.append({"estimate": title, column: value, "seconds": seconds, "remark": remark})
    return found


def _classical(
    solution: DualSolution,
) -> Iterator[tuple[str, Callable[[DualSolution], float], str, str | None]]:
    """Yield title, function, column and remark of each bound or estimate that can be computed."""
    costs, n_bounded = solution.problem.costs, int(np.count_nonzero(solution.bounded))
    is_plain = bool((costs == costs[0]).all()) and solution.n_in_bound > 0
    of_equal_costs = None if is_plain else "proven only for equal costs and an in-bound row"
    yield "xi-alpha", bounds.xi_alpha, "at_most", of_equal_costs
    without_offset = "proven only for fits without an offset"
    yield "Jaakkola-Haussler", bounds.jaakkola_haussler, "at_most", without_offset
    if is_held(solution.problem.K):  # the enclosing ball needs the whole matrix
        in_bound = "proven only if fits without a row have in-bound rows"
        yield "span bound", bounds.span_bound, "at_most", in_bound
    if solution.n_support <= _MOST_SUPPORT:
        rows = counted(n_bounded, "bounded row")
        remark = (
            f"not an estimate for the {rows}, which it treats as in-bound" if n_bounded else None
        )
        yield "Opper-Winther", bounds.opper_winther, "error", remark
