"""How far the loss of a chosen model is from that on new rows, and what corrects it.

Each problem of `benchmarks.harness.distributions` is searched by 150 trials of TPE, by the
span-rule and by exact leave-one-out. Then four estimates of the loss of the chosen model are
compared with its loss on 10,000 new rows: the loss by which it was chosen, its exact leave-one-out
loss, its loss by 5-fold cross-validation, and the honest estimate. `estimate_ms` is the time of the
last one after the search, in the process of the search.
"""

import time
from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score

from benchmarks.harness.distributions import PROBLEMS, drawn_rows
from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, Options, ResultFile, combinations, rows_with
from span_hpo import SpanObjective
from span_hpo.estimators import fitted_scaler
from span_hpo.integrations.optuna import best_trial, honest_estimate, new_study, params_of, search
from span_hpo.runtime import FloatArray
from span_hpo.selection import binomial_interval

DATASETS = list(PROBLEMS)
OPTIONS = ("jobs",)
TRIALS = 150
METHODS = ("span", "exact")
_SPLITS = {"error": range(10), "balanced_error": range(5)}
_MANY_ROWS = 150
_LEVEL = 0.9


def _points(options: Options) -> list[dict[str, Any]]:
    return [
        point
        for metric, splits in _SPLITS.items()
        for point in combinations(
            dataset=options.datasets or DATASETS, metric=[metric], method=METHODS, split=splits
        )
    ]


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    data = drawn_rows(point["dataset"], point["split"])
    scaler = fitted_scaler("minmax", data.X_train)
    X, X_test = scaler.transform(data.X_train), scaler.transform(data.X_test)
    metric = point["metric"]
    objective = SpanObjective(X, data.y_train, metric=metric, loo_method=point["method"])
    study = new_study(seed=point["split"])
    search(study, objective, n_trials=TRIALS)
    start = time.perf_counter()
    honest = honest_estimate(study, objective, level=_LEVEL)
    milliseconds = 1e3 * (time.perf_counter() - start)
    params = params_of(best_trial(study), objective)
    predicted = objective.fit_model(params).predict(X_test)
    error = float(np.mean(predicted != data.y_test))
    balanced = 1 - float(balanced_accuracy_score(data.y_test, predicted))
    return {
        "rows": len(X),
        "test_loss": error if metric == "error" else balanced,
        "chosen": honest.optimistic,
        "exact": objective.evaluate(params, loo_method="exact").loss,
        "folds": objective.cross_validate(params).loss,
        "honest": honest.error,
        "low": honest.interval[0],
        "high": honest.interval[1],
        "estimate_ms": round(milliseconds, 2),
    }


_COLUMNS = [
    "rows",
    "test_loss",
    "chosen",
    "exact",
    "folds",
    "honest",
    "low",
    "high",
    "estimate_ms",
]
_benchmark = Benchmark("honesty.csv", _points, _measure, _COLUMNS)


def run(options: Options) -> ResultFile:
    """Search every problem that is not in the CSV yet."""
    return _benchmark.run(options)


_ESTIMATES = {
    "chosen": "loss of the chosen trial",
    "exact": "its exact leave-one-out loss",
    "folds": "its 5-fold cross-validation",
    "honest": "honest estimate",
}


def table() -> str:
    """Return bias, error and coverage of every estimate, by the metric and the method."""
    rows, lines = _benchmark.rows(), []
    for metric, method in product(_SPLITS, METHODS):
        own = rows_with(rows, metric=metric, method=method)
        test, many = _column(own, "test_loss"), _column(own, "rows") >= _MANY_ROWS
        for estimate, title in _ESTIMATES.items():
            if method == estimate:
                continue  # the loss by which the trial was chosen
            gap = _column(own, estimate) - test
            covered = _covered(own, estimate, metric)
            lines.append(
                [
                    metric,
                    method,
                    str(len(own)),
                    title,
                    *(f"{part.mean():+.3f}" for part in (gap, gap[~many], gap[many])),
                    f"{np.sqrt((gap**2).mean()):.3f}",
                    "" if covered is None else f"{covered:.2f}",
                ]
            )
    biases = ["bias", "bias, 60 to 120 rows", "bias, 150 to 400 rows"]
    heads = ["metric", "method", "searches", "estimate", *biases, "RMSE"]
    return markdown_table([*heads, "coverage of 90 % intervals"], lines)


def time_table() -> str:
    """Return the times of the honest estimate."""
    spent = _column(_benchmark.rows(), "estimate_ms")
    quantiles = [float(np.quantile(spent, share)) for share in (0.0, 0.5, 0.95, 1.0)]
    heads = ["least", "median", "95 % within", "most"]
    return markdown_table(
        ["time of an honest estimate of 150 trials, ms", *heads],
        [[f"{len(spent)} searches", *(f"{value:.1f}" for value in quantiles)]],
    )


def _column(rows: list[dict[str, str]], name: str) -> FloatArray:
    return np.array([float(row[name]) for row in rows])


def _covered(rows: list[dict[str, str]], estimate: str, metric: str) -> float | None:
    """Return the share of intervals that hold the loss on new rows, or None if there are none."""
    if estimate == "honest":
        ends = np.column_stack([_column(rows, "low"), _column(rows, "high")])
    elif metric == "error":
        counts, shares = _column(rows, "rows"), _column(rows, estimate)
        ends = np.array(
            [binomial_interval(s * n, int(n), _LEVEL) for s, n in zip(shares, counts, strict=True)]
        )
    else:
        return None
    test = _column(rows, "test_loss")
    return float(np.mean((ends[:, 0] <= test) & (test <= ends[:, 1])))
