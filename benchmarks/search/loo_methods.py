"""Where a search by exact leave-one-out selects better models than one by the span-rule.

Each problem of `benchmarks.harness.small_sets`, some of them also with fewer and with more rows, is
searched with 50 trials of TPE by both methods, on three splits (ten up to 80 rows, where results
differ more). The space is the width of an RBF kernel and one cost for all rows. The metric is the
error and, for two classes, the area under the ROC curve. `undefined` and `support` are the shares
of rows with an undefined span, and of support vectors, at the first default point. `seconds` is the
CPU time of the search, with what Optuna needs.
"""

import time
from collections.abc import Callable, Mapping
from statistics import mean
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, Options, ResultFile, rows_with
from benchmarks.harness.small_sets import SMALL_SETS, drawn
from span_hpo import SpanObjective, UniformCost
from span_hpo.estimators import fitted_scaler
from span_hpo.integrations.optuna import best_trial, new_study, params_of, search

OPTIONS = ("jobs",)
DATASETS = list(SMALL_SETS)
METHODS = ("span", "exact")
_SMALL = (20, 30, 40, 60, 80)
_OTHER_SIZES: dict[str, tuple[int, ...]] = {
    "heart": _SMALL,
    "banana": (*_SMALL, 1000),
    "waveform": (*_SMALL, 1000),
    "german": _SMALL,
    "diabetis": _SMALL,
    "splice": (*_SMALL, 1000),
    "spambase": (*_SMALL, 1000),
    "cancer": _SMALL,
    "iris": (30, 60),
    "wine": (30, 60),
    "crabs": (40, 80),
}
_SEVERAL = {"iris", "wine", "crabs", "glass", "usps 4", "digits", "usps", "digits 1:5"}
_SEVERAL |= {"usps 1:10", "docstrings"}
_SPLITS, _SPLITS_OF_SMALL = 3, 10
_TRIALS = 50
_COLUMNS = ["classes", "support", "undefined", "loss", "exact_loss", "test_loss", "seconds"]


def _points(options: Options) -> list[dict[str, Any]]:
    return [
        {"dataset": name, "rows": rows, "metric": metric, "split": split, "method": method}
        for name in options.datasets or DATASETS
        for rows in (SMALL_SETS[name].rows, *_OTHER_SIZES.get(name, ()))
        for metric in (("error",) if name in _SEVERAL else ("error", "auc"))
        for split in range(_SPLITS_OF_SMALL if rows <= _SMALL[-1] else _SPLITS)
        for method in METHODS
    ]


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    data = drawn(point["dataset"], point["split"], point["rows"])
    X, X_test = data.X_train, data.X_test
    if isinstance(X, np.ndarray):
        scaler = fitted_scaler("minmax", X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    objective = SpanObjective(
        X, data.y_train, weighting=UniformCost(), metric=point["metric"], loo_method="span"
    )
    first = objective.evaluate(objective.defaults()[0])
    objective.loo_method = point["method"]
    study = new_study(seed=point["split"])
    start = time.process_time()
    search(study, objective, n_trials=_TRIALS)
    seconds = time.process_time() - start
    best = best_trial(study)
    params = params_of(best, objective)
    model = objective.fit_model(params)
    if point["metric"] == "auc":
        test_loss = 1 - roc_auc_score(data.y_test, model.decision_function(X_test))
    else:
        test_loss = np.mean(model.predict(X_test) != data.y_test)
    return {
        "classes": len(objective.data.classes),
        "support": round(first.n_support / len(data.y_train), 3),
        "undefined": round(first.loo.n_undefined / len(data.y_train), 3),
        "loss": best.value,
        "exact_loss": objective.evaluate(params, loo_method="exact").loss,
        "test_loss": float(test_loss),
        "seconds": round(seconds, 3),
    }


BENCHMARK = Benchmark("loo_methods.csv", _points, _measure, _COLUMNS)


def run(options: Options) -> ResultFile:
    """Search every problem that is not in the CSV yet."""
    return BENCHMARK.run(options)


def table() -> str:
    """Return mean test losses, optimism and times of both methods, by kind of problem."""
    rows, lines = BENCHMARK.rows(), []
    for kind, belongs in _KINDS.items():
        for metric in ("error", "auc"):
            own = [row for row in rows_with(rows, metric=metric) if belongs(row)]
            if not own:
                continue
            parts = [rows_with(own, method=method) for method in METHODS]
            tests, found, seconds = (
                [mean(float(row[column]) for row in part) for part in parts]
                for column in ("test_loss", "loss", "seconds")
            )
            lines.append(
                [kind, str(len(parts[0])), metric]
                + [f"{loss:.4f}" for loss in tests]
                + [f"{test - loss:.3f}" for test, loss in zip(tests, found, strict=True)]
                + [f"{time:.2f}" for time in seconds]
            )
    columns = [f"{name}: {method}" for name in _SHOWN for method in ("span-rule", "exact")]
    return markdown_table(["problems", "searches", "metric", *columns], lines)


_SHOWN = ("test loss", "optimism", "search, s")
_KINDS: dict[str, Callable[[Mapping[str, str]], bool]] = {
    "two classes, up to 60 rows": lambda row: _has(row, several=False, least=0, most=60),
    "two classes, 80 rows": lambda row: _has(row, several=False, least=61, most=99),
    "two classes, 100 to 500 rows": lambda row: _has(row, several=False, least=100, most=999),
    "two classes, 1,000 rows": lambda row: _has(row, several=False, least=1000, most=1000),
    "several classes, up to 60 rows": lambda row: _has(row, several=True, least=0, most=60),
    "several classes, 80 to 500 rows": lambda row: _has(row, several=True, least=61, most=999),
}


def _has(row: Mapping[str, str], *, several: bool, least: int, most: int) -> bool:
    return (int(row["classes"]) > 2) == several and least <= int(row["rows"]) <= most
