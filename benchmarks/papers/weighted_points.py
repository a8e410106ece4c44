"""All estimates at all points of the grids of the weighted-SVM span paper, and the test error.

Sarafis, Diou and Delopoulos, "Span error bound for weighted SVM with applications in hyperparameter
selection": twelve data sets with a grid of 33 x 33 class costs, C+ and C- in 2^(k/2 - 6), and two
with importance scores q and 10 x 10 x 17 mappings ``max(C / (1 + exp(-A (q - B))), 0.01)``. RBF
kernel with gamma = 1/d; features scaled to [0, 1] on the training rows. Up to ten splits of a set
are measured; the splits of the paper are known only where a set has a single one.

In addition to the paper, a grid of 9 widths and 11 x 11 class costs is measured on up to five
splits of the eight sets with less than 2,000 rows.

Times are CPU seconds on one BLAS thread. Those of cross-validation do not include the kernel
matrices of its folds, which are computed before the first point.
"""

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold

from benchmarks.harness.data import PAPER, Split, load, n_splits
from benchmarks.harness.runner import Options, ResultFile
from benchmarks.harness.timing import Stopwatch, import_once
from benchmarks.search.studies import WIDTHS
from span_hpo import (
    RBF,
    ClassCosts,
    DualSolution,
    Problem,
    SigmoidScore,
    SpanObjective,
    bounds,
    leave_one_out,
    solve,
    span_exists,
)
from span_hpo.kernels import KernelCache, KernelMatrix, entry_range
from span_hpo.metrics import METRICS
from span_hpo.runtime import FloatArray, IndexArray

DATASETS = list(PAPER)
FOLDS = 5
_LARGE = 2000  # with more rows, an estimate that takes long and that no table shows is left out
_QUICK_ROWS, _QUICK_TEST_ROWS = 200, 1000
_COSTS = ("C_-1", "C_1")
GRIDS: dict[str, dict[str, int]] = {
    "class_costs": dict.fromkeys(_COSTS, 33),
    "scores": {"A": 10, "B": 10, "C": 17},
    # The width varies slowest, so that each kernel matrix is computed once.
    "widths": {"gamma": 9, **dict.fromkeys(_COSTS, 11)},
}
_QUICK_GRIDS: dict[str, dict[str, int]] = {
    "class_costs": dict.fromkeys(_COSTS, 3),
    "scores": {"A": 2, "B": 2, "C": 3},
    "widths": {"gamma": 2, **dict.fromkeys(_COSTS, 2)},
}
_SPLITS = {"class_costs": 10, "scores": 10, "widths": 5}  # the most of a data set
_SCORED = ("parkinson", "bank")
TIMES = ("fit", "span", "exact", "cv5", "bound")
COLUMNS = [
    "test_error",
    "span_error",
    *(f"span_{name}" for name in METRICS if name != "error"),
    "exact_error",
    "cv5_error",
    "cv5_smooth_error",
    "xi_alpha",
    "span_bound",
    "support_vectors",
    "jaakkola_haussler",
    "opper_winther",
    "n_support",
    "n_in_bound",
    "n_empty",
    "n_empty_in_bound",
    "n_refit",
    *(f"{name}_ms" for name in TIMES),
]


def run(options: Options) -> list[ResultFile]:
    """Evaluate every grid point that is not in the CSVs yet, split by split."""
    names = options.datasets or DATASETS
    return [_run(kind, names, options) for kind in GRIDS]


def points_file(kind: str, options: Options) -> ResultFile:
    """Return the CSV of all points of a grid, which is too large for the repository."""
    names = list(grid(kind, quick=options.quick))
    folder = options.folder if options.quick else options.folder.parent / "points"
    return ResultFile(
        folder / f"{kind}.csv", key=["dataset", "split", *names], columns=COLUMNS, stamped=False
    )


def _run(kind: str, names: list[str], options: Options) -> ResultFile:
    results = points_file(kind, options)
    own = [name for name in names if name in datasets_of(kind)]
    values_of = grid(kind, quick=options.quick)
    most = 1 if options.quick else min(options.splits or _SPLITS[kind], _SPLITS[kind])
    splits = {name: min(n_splits(name), most) for name in own}
    points = [
        {"dataset": name, "split": split, **dict(zip(values_of, values, strict=True))}
        for split in range(max(splits.values(), default=0))
        for name in own
        if split < splits[name]
        for values in product(*values_of.values())
    ]
    measure = functools.partial(_measure, quick=options.quick)
    results.complete(points, measure, jobs=options.jobs)
    return results


def grid_size(kind: str, *, quick: bool) -> int:
    """Return the number of points of a grid."""
    return math.prod(len(values) for values in grid(kind, quick=quick).values())


def datasets_of(kind: str) -> list[str]:
    """Return the data sets to which a grid belongs."""
    if kind == "scores":
        return list(_SCORED)
    with_costs = [name for name in DATASETS if name not in _SCORED]
    if kind == "class_costs":
        return with_costs
    return [name for name in with_costs if not name.startswith("mnist")]


@functools.cache
def grid(kind: str, *, quick: bool = False) -> dict[str, list[float]]:
    """Return the values of each hyperparameter."""
    points = (_QUICK_GRIDS if quick else GRIDS)[kind]
    some_rows, y, q = np.eye(4), np.array([-1, 1, -1, 1]), np.linspace(0, 1, 4)
    objective = SpanObjective(
        some_rows,
        y,
        scores=q,
        kernel=RBF(gamma=WIDTHS if "gamma" in points else 1.0),
        weighting=SigmoidScore() if kind == "scores" else ClassCosts(),
    )
    values = objective.grid(points)
    return {name: values[name] for name in points}


@dataclass(frozen=True, eq=False)
class _Prepared:
    """What all points of a split with one width have in common."""

    split: Split
    objective: SpanObjective
    K: KernelMatrix
    spread: float
    diameter: float
    folds: list[tuple[IndexArray, IndexArray, KernelMatrix, FloatArray]]
    unseen: "UnseenRows"


class UnseenRows:
    """Distinct test rows, their number in each class, and their kernel with training rows."""

    def __init__(self, split: Split, gamma: float) -> None:
        distinct, which = np.unique(split.X_test, axis=0, return_inverse=True)
        self.positive = np.bincount(which[split.y_test > 0], minlength=len(distinct))
        self.negative = np.bincount(which[split.y_test < 0], minlength=len(distinct))
        self.K = rbf_kernel(split.X_train, distinct, gamma=gamma)

    def error(self, solution: DualSolution) -> float:
        """Return the error of a fit; a value of 0 counts as an error of either class."""
        values = (solution.problem.y * solution.alpha) @ self.K + solution.b
        wrong = self.positive @ (values <= 0) + self.negative @ (values >= 0)
        return float(wrong / (self.positive.sum() + self.negative.sum()))


@functools.lru_cache(maxsize=1)
def _part(name: str, number: int, quick: bool) -> Split:
    """Return a split, or some of its rows in a quick run."""
    split = load(name, number)
    if not quick:
        return split
    # Rows may be sorted by class: draw them from the whole set.
    rows = np.random.default_rng(0).permutation(len(split.y_train))[:_QUICK_ROWS]
    tested = np.random.default_rng(1).permutation(len(split.y_test))[:_QUICK_TEST_ROWS]
    scores = split.scores_train
    return replace(
        split,
        X_train=split.X_train[rows],
        y_train=split.y_train[rows],
        X_test=split.X_test[tested],
        y_test=split.y_test[tested],
        scores_train=None if scores is None else scores[rows],
    )


@functools.lru_cache(maxsize=1)
def _prepared(name: str, number: int, width: float | None, quick: bool) -> _Prepared:
    import_once()
    split = _part(name, number, quick)
    gamma, y = width or 1 / split.n_features, split.y_train
    objective = SpanObjective(
        split.X_train,
        y,
        scores=split.scores_train,
        kernel=RBF(gamma=gamma),
        weighting=ClassCosts() if split.scores_train is None else SigmoidScore(),
    )
    K = KernelCache(RBF(gamma=gamma), split.X_train).matrix({})
    assert isinstance(K, KernelMatrix)
    least, largest = entry_range(K)
    parts = StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(y, y)
    folds = [
        (
            kept,
            held_out,
            KernelMatrix(K.block(kept, kept)),
            np.ascontiguousarray(K.block(kept, held_out)),
        )
        for kept, held_out in parts
    ]
    diameter = bounds.enclosing_ball(K).diameter
    return _Prepared(
        split, objective, K, largest - least, diameter, folds, UnseenRows(split, gamma)
    )


def _measure(point: Mapping[str, Any], *, quick: bool) -> dict[str, Any]:
    prepared = _prepared(point["dataset"], point["split"], point.get("gamma"), quick)
    of_kernel = ("dataset", "split", "gamma")
    params = {name: value for name, value in point.items() if name not in of_kernel}
    y, objective = prepared.split.y_train, prepared.objective
    costs = objective.weighting.costs(objective.data, params)
    watch = Stopwatch()
    with watch("fit"):
        solution = solve(Problem(prepared.K, y, costs))
    with watch("span"):
        span = leave_one_out(solution, certify=False)
    with watch("exact"):
        exact = leave_one_out(solution, "exact")
    with watch("cv5"):
        cv_values = _cross_validated(prepared, costs)
    with watch("bound"):
        bound = bounds.span_bound(solution, diameter=prepared.diameter)
    weight = np.ones(len(y))
    metrics = {
        f"span_{name}": metric(y, span.decision_values, weight) for name, metric in METRICS.items()
    }
    is_empty = ~span_exists(solution)
    found: dict[str, Any] = {
        **metrics,
        "test_error": prepared.unseen.error(solution),
        "exact_error": exact.error,
        "cv5_error": np.mean(y * cv_values <= 0),
        "cv5_smooth_error": METRICS["smooth_error"](y, cv_values, weight),
        "xi_alpha": bounds.xi_alpha(solution, spread=prepared.spread),
        "span_bound": bound,
        "support_vectors": bounds.support_vectors(solution),
        "jaakkola_haussler": bounds.jaakkola_haussler(solution),
    }
    rounded: dict[str, Any] = {name: round(float(value), 9) for name, value in found.items()}
    return {
        **rounded,
        "opper_winther": "" if len(y) > _LARGE else round(bounds.opper_winther(solution), 9),
        "n_support": solution.n_support,
        "n_in_bound": solution.n_in_bound,
        "n_empty": np.count_nonzero(is_empty),
        "n_empty_in_bound": np.count_nonzero(is_empty & solution.in_bound),
        "n_refit": exact.n_refit,
        **watch.milliseconds(),
    }


def _cross_validated(prepared: _Prepared, costs: FloatArray) -> FloatArray:
    """Return the decision values of held-out rows, from the kernel matrices of all folds."""
    y = prepared.split.y_train
    values = np.empty(len(y))
    for kept, held_out, K, K_held_out in prepared.folds:
        fit = solve(Problem(K, y[kept], costs[kept]))
        values[held_out] = (y[kept] * fit.alpha) @ K_held_out + fit.b
    return values
