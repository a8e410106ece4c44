"""`SpanSearchCV` in the place of `RandomizedSearchCV`, with the same candidates.

On three splits of eight problems of `benchmarks.harness.small_sets`, three searches try 60
candidates, each with one thread:

- `RandomizedSearchCV` with five folds;
- `SpanSearchCV` with search="random", which judges the same candidates by leave-one-out;
- `SpanSearchCV` with its default, the sampler TPE of Optuna.

The estimator is a pipeline of `MinMaxScaler` and `SVC`. C and gamma are log-uniform in the ranges
that `SpanSVC` searches. Times are CPU times of the whole fit, including the model that is fitted to
all rows at the end. The estimate is the best score of the search as an error; the honest one is
corrected for the choice.
"""

import time
import warnings
from collections.abc import Mapping
from statistics import mean
from typing import Any

import numpy as np
from scipy.stats import loguniform
from sklearn.model_selection import RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, Options, ResultFile, grid_points, rows_with
from benchmarks.harness.small_sets import Draw, drawn
from span_hpo import SpanObjective, SpanSearchCV, UniformCost
from span_hpo.space import Float

OPTIONS = ("jobs",)
DATASETS = [
    "heart",
    "banana",
    "german",
    "spambase",
    "cancer",
    "image 1:10",
    "wine",
    "usps 4",
]
SEARCHES = ("RandomizedSearchCV", "SpanSearchCV, random", "SpanSearchCV, TPE")
_SPLITS = (0, 1, 2)
_CANDIDATES = 60
_FOLDS = 5
_NO_TIMES = [""] * (len(SEARCHES) + 1)
_COLUMNS = ["rows", "classes", "estimate", "honest", "test_error", "seconds"]


def _search(name: str, data: Draw, seed: int) -> Any:
    pipeline, space = make_pipeline(MinMaxScaler(), SVC()), _space(data)
    settings: dict[str, Any] = {"n_iter": _CANDIDATES, "random_state": seed}
    if name == "RandomizedSearchCV":
        return RandomizedSearchCV(pipeline, space, cv=_FOLDS, **settings)
    kind = "random" if name.endswith("random") else "tpe"
    return SpanSearchCV(pipeline, space, search=kind, **settings)


def _space(data: Draw) -> dict[str, Any]:
    """Return log-uniform distributions over the ranges that `SpanSVC` searches."""
    X = MinMaxScaler().fit_transform(data.X_train)
    space = SpanObjective(X, data.y_train, weighting=UniformCost()).space
    return {
        f"svc__{name}": loguniform(part.low, part.high)
        for name, part in space.items()
        if isinstance(part, Float)
    }


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    data = drawn(point["dataset"], point["split"])
    search = _search(point["search"], data, point["split"])
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # classes with fewer rows than folds
        search.fit(data.X_train, data.y_train)
    seconds = time.process_time() - start
    honest = search.honest_error_ if isinstance(search, SpanSearchCV) else ""
    return {
        "rows": len(data.y_train),
        "classes": len(np.unique(data.y_train)),
        "estimate": 1 - search.best_score_,
        "honest": honest,
        "test_error": float(np.mean(search.predict(data.X_test) != data.y_test)),
        "seconds": round(seconds, 3),
    }


_benchmark = Benchmark(
    "drop_in.csv",
    grid_points(dataset=DATASETS, split=_SPLITS, search=SEARCHES),
    _measure,
    _COLUMNS,
)


def run(options: Options) -> ResultFile:
    """Run every search that is not in the CSV yet."""
    return _benchmark.run(options)


def table() -> str:
    """Return mean test errors and CPU times, and by what factor the search is faster.

    The last lines have what the searches say about the error of what they have chosen.
    """
    rows, lines = _benchmark.rows(), []
    for name in DATASETS:
        own = rows_with(rows, dataset=name)
        if own:
            lines.append([name, own[0]["rows"], own[0]["classes"], *_cells(own)])
    lines.append(["mean", "", "", *_cells(rows)])
    estimates = [f"{_mean(rows, name, 'estimate'):.4f}" for name in SEARCHES]
    lines.append(["mean error of the best score", "", "", *estimates, *_NO_TIMES])
    honest = [f"{_mean(rows, name, 'honest'):.4f}" for name in SEARCHES[1:]]
    lines.append(["mean honest estimate", "", "", "", *honest, *_NO_TIMES])
    errors = [f"test error: {name}" for name in SEARCHES]
    seconds = [f"s: {name}" for name in SEARCHES]
    return markdown_table(["problem", "rows", "classes", *errors, *seconds, "faster"], lines)


def _cells(rows: list[dict[str, str]]) -> list[str]:
    """Return errors, times, and the ratio of the times for the same candidates."""
    errors = [_mean(rows, name, "test_error") for name in SEARCHES]
    seconds = [_mean(rows, name, "seconds") for name in SEARCHES]
    times = [f"{value:.2f}" for value in seconds]
    return [*(f"{error:.4f}" for error in errors), *times, f"{seconds[0] / seconds[1]:.1f}"]


def _mean(rows: list[dict[str, str]], search: str, column: str) -> float:
    return mean(float(row[column]) for row in rows_with(rows, search=search))
