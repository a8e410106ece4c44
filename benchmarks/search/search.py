"""What a search with Optuna finds and costs, compared with cross-validated grid search.

TPE searches both class costs, 2^-6...2^10, and gamma, 2^-6...2^4, on the first split of each set
with features scaled to [0, 1]. The test error is that of the model that `best_model` picks after 50
and 150 trials. Wall time on one BLAS thread; `GridSearchCV` has 5 x 5 x 6 points of the same space.
"""

import functools
import time
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC

from benchmarks.harness.markdown import markdown_table, mean_of
from benchmarks.harness.runner import RESULTS, Benchmark, Options, grid_points, read_rows, rows_with
from benchmarks.search.studies import error_on_test_rows, first_split, new_objective, new_study
from span_hpo.integrations.optuna import OptunaObjective

DATASETS = ["ida_image", "ida_banana", "splice", "a1a", "ida_waveform"]
SEEDS = (0, 1, 2)
TRIALS = (50, 150)
OBJECTIVES: dict[str, dict[str, Any]] = {
    "error": {"metric": "error"},
    "smooth_error": {"metric": "smooth_error"},
    "exact error": {"metric": "error", "loo_method": "exact"},
}
_SEARCH_COLUMNS = [
    *(f"{name}_{trials}" for trials in TRIALS for name in ("test_error", "loss")),
    "search_s",
    "evaluation_s",
]
_RIVAL_COLUMNS = [
    "search_s",
    "grid_search_s",
    "search_per_grid_search",
    "grid_search_test_error",
    "visited_evaluation_s",
    "visited_cv5_s",
    "cv5_per_evaluation",
]


def run(options: Options) -> None:
    """Measure the searches, then the grid searches, that are not in the CSVs yet."""
    SEARCHES.run(options)
    RIVALS.run(options)


def table() -> str:
    """Return a table of the test errors after searches and on grids."""
    rows = SEARCHES.rows()
    against = {row["dataset"]: row for row in RIVALS.rows()}
    grids = read_rows(RESULTS / "weighted.csv")
    searches = [(objective, trials) for objective in OBJECTIVES for trials in reversed(TRIALS)]
    lines = []
    for name in DATASETS:
        errors = [
            mean_of(rows, f"test_error_{trials}", dataset=name, objective=objective)
            for objective, trials in searches
        ]
        (on_grid,) = rows_with(grids, dataset=name, split="0", criterion="span_error")
        errors += [float(on_grid["worst_of_ties"]), float(against[name]["grid_search_test_error"])]
        lines.append([name, *(f"{error:.4f}" for error in errors)])
    heads = [f"{objective}, {trials} trials" for objective, trials in searches]
    heads += ["span-rule on the grid of 1,089", "`GridSearchCV`, 150 points"]
    return markdown_table(["data set", *heads], lines)


def time_table() -> str:
    """Return a table of the wall times of a search, a grid search and cross-validation."""
    lines = []
    for row in RIVALS.rows():
        found, on_grid, evaluations, folds = (
            float(row[f"{name}_s"])
            for name in ("search", "grid_search", "visited_evaluation", "visited_cv5")
        )
        lines.append(
            [
                row["dataset"],
                f"{found:.2f}",
                f"{on_grid:.1f}",
                f"1/{on_grid / found:.1f}",
                f"{evaluations:.2f}",
                f"{folds:.1f}",
                f"{folds / evaluations:.1f}",
            ]
        )
    return markdown_table(
        [
            "data set",
            "150 trials, s",
            "`GridSearchCV(cv=5)`, 150 points, s",
            "ratio",
            "evaluations at the points visited, s",
            "`cross_val_score(cv=5)` at the same points, s",
            "ratio",
        ],
        lines,
    )


def _measure_search(point: Mapping[str, Any]) -> dict[str, Any]:
    objective = new_objective(point["dataset"], **OBJECTIVES[point["objective"]])
    study = new_study(point["seed"])
    function = OptunaObjective(objective)
    row: dict[str, Any] = {}
    seconds = 0.0
    for trials in TRIALS:
        more = functools.partial(study.optimize, function, n_trials=trials - len(study.trials))
        seconds += _wall_seconds(more)
        row[f"test_error_{trials}"] = error_on_test_rows(point["dataset"], study, objective)
        row[f"loss_{trials}"] = study.best_value
    row["search_s"] = round(seconds, 3)
    row["evaluation_s"] = round(sum(trial.user_attrs["seconds"] for trial in study.trials), 3)
    return row


def _measure_rivals(point: Mapping[str, Any]) -> dict[str, Any]:
    """Run a grid search of the same space, and cross-validate the points that Optuna visited."""
    name = point["dataset"]
    split, objective, study = first_split(name), new_objective(name), new_study(SEEDS[0])
    search = _wall_seconds(lambda: study.optimize(OptunaObjective(objective), n_trials=max(TRIALS)))
    values = objective.grid({"gamma": 6, "C_-1": 5, "C_1": 5})
    weights = [{-1: low, 1: high} for low, high in product(values["C_-1"], values["C_1"])]
    grid_search = GridSearchCV(SVC(), {"gamma": values["gamma"], "class_weight": weights}, cv=5)
    grid_seconds = _wall_seconds(lambda: grid_search.fit(split.X_train, split.y_train))
    visited = [trial.params for trial in study.trials]
    evaluations = sum(_wall_seconds(functools.partial(objective, params)) for params in visited)
    cross_validations = 0.0
    for params in visited:
        weight = {-1: params["C_-1"], 1: params["C_1"]}
        svc = SVC(gamma=params["gamma"], class_weight=weight)
        cross_validations += _wall_seconds(
            functools.partial(cross_val_score, svc, split.X_train, split.y_train, cv=5)
        )
    return {
        "search_s": round(search, 3),
        "grid_search_s": round(grid_seconds, 3),
        "search_per_grid_search": round(search / grid_seconds, 4),
        "grid_search_test_error": float(np.mean(grid_search.predict(split.X_test) != split.y_test)),
        "visited_evaluation_s": round(evaluations, 3),
        "visited_cv5_s": round(cross_validations, 3),
        "cv5_per_evaluation": round(cross_validations / evaluations, 2),
    }


def _wall_seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


SEARCHES = Benchmark(
    "search.csv",
    grid_points(dataset=DATASETS, objective=OBJECTIVES, seed=SEEDS),
    _measure_search,
    _SEARCH_COLUMNS,
)
RIVALS = Benchmark(
    "search_rivals.csv", grid_points(dataset=DATASETS), _measure_rivals, _RIVAL_COLUMNS
)
