"""Which costs of classes a search should look for, by number of classes, balance and metric.

Each problem of `benchmarks.harness.small_sets` is searched in four spaces, with the width of an RBF
kernel in addition: one cost for each class, one cost for all, one cost and an exponent that
balances the classes (`ImbalanceCost`), and one cost and a ratio for each class but the first. TPE
begins with the default points. Losses are exact leave-one-out losses. After 30, 50 and 100 trials
the best model is tested. `wasted` is the share of all 100 trials whose loss is not better than that
of a constant answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import mean
from typing import Any

import numpy as np
from sklearn.metrics import balanced_accuracy_score

from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, Options, ResultFile, grid_points, rows_with
from benchmarks.harness.small_sets import SMALL_SETS, drawn
from span_hpo import ClassCosts, Dataset, Float, ImbalanceCost, SpanObjective, UniformCost
from span_hpo.estimators import fitted_scaler
from span_hpo.integrations.optuna import best_trial, new_study, params_of, search
from span_hpo.runtime import FloatArray
from span_hpo.space import Params, Space
from span_hpo.weighting import COST_RANGE, ComposableWeighting

DATASETS = list(SMALL_SETS)
OPTIONS = ("jobs",)
SPACES = ("class costs", "common", "balance", "ratios")
METRICS = ("error", "balanced_error")
TRIALS = (30, 50, 100)
_SPLITS = (0, 1)
_RATIOS = Float(2.0**-5, 2.0**5, log=True)


@dataclass(frozen=True)
class Ratios(ComposableWeighting):
    """One cost for the first class, and the ratio of the cost of each other class to it."""

    n_classes: int

    @property
    def space(self) -> Space:
        """One cost and all ratios."""
        names = [f"ratio_{number}" for number in range(1, self.n_classes)]
        return {"C": COST_RANGE, **dict.fromkeys(names, _RATIOS)}

    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return for each row the cost of its class."""
        ratios = [1.0, *(float(params[f"ratio_{c}"]) for c in range(1, self.n_classes))]
        return float(params["C"]) * np.array(ratios)[data.codes]

    def starts(self, data: Dataset) -> list[dict[str, Any]]:
        """Return equal costs, and costs whose sum is the same in every class."""
        counts = np.bincount(data.codes)
        shares = len(data) / (len(counts) * counts)
        ratios = (shares / shares[0]).tolist()
        names = [f"ratio_{number}" for number in range(1, self.n_classes)]
        return [
            {"C": 1.0, **dict.fromkeys(names, 1.0)},
            {"C": float(shares[0]), **dict(zip(names, ratios[1:], strict=True))},
        ]


def _weighting(space: str, n_classes: int) -> ComposableWeighting:
    return {
        "class costs": ClassCosts(),
        "common": UniformCost(),
        "balance": ImbalanceCost(),
        "ratios": Ratios(n_classes),
    }[space]


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    data = drawn(point["dataset"], point["split"])
    X, X_test = data.X_train, data.X_test
    if isinstance(X, np.ndarray):
        scaler = fitted_scaler("minmax", X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    counts = np.unique(data.y_train, return_counts=True)[1]
    objective = SpanObjective(
        X,
        data.y_train,
        weighting=_weighting(point["space"], len(counts)),
        metric=point["metric"],
        loo_method="exact",
    )
    study = new_study(seed=point["split"])
    found: dict[str, Any] = {"rows": len(data.y_train), "classes": len(counts)}
    found["imbalance"] = round(float(counts.max() / counts.min()), 1)
    for count in TRIALS:
        search(study, objective, n_trials=count)
        best = best_trial(study)
        model = objective.fit_model(params_of(best, objective))
        predicted = model.predict(X_test)
        found |= {
            f"loss_{count}": best.value,
            f"test_error_{count}": float(np.mean(predicted != data.y_test)),
            f"test_balanced_error_{count}": 1 - balanced_accuracy_score(data.y_test, predicted),
            f"number_{count}": best.number,
        }
    constant = 1 - counts.max() / counts.sum()
    if point["metric"] == "balanced_error":
        constant = 1 - 1 / len(counts)
    losses = np.array([trial.value for trial in study.trials])
    found["wasted"] = round(float(np.mean(losses >= constant - 0.01)), 3)
    return found


_COLUMNS = [
    "rows",
    "classes",
    "imbalance",
    *(
        f"{name}_{count}"
        for count in TRIALS
        for name in ("loss", "test_error", "test_balanced_error", "number")
    ),
    "wasted",
]
_benchmark = Benchmark(
    "spaces.csv",
    grid_points(dataset=DATASETS, split=_SPLITS, metric=METRICS, space=SPACES),
    _measure,
    _COLUMNS,
)


def run(options: Options) -> ResultFile:
    """Search every problem that is not in the CSV yet."""
    return _benchmark.run(options)


def table() -> str:
    """Return the mean test loss of every space, by number of classes, balance and metric."""
    rows, lines = _benchmark.rows(), []
    for kind in _KINDS:
        for metric in METRICS:
            own = [row for row in rows if _kind(row) == kind and row["metric"] == metric]
            for space in SPACES:
                chosen = rows_with(own, space=space)
                losses = [
                    mean(float(row[f"test_{metric}_{count}"]) for row in chosen) for count in TRIALS
                ]
                wasted = mean(float(row["wasted"]) for row in chosen)
                sets = len({row["dataset"] for row in chosen})
                lines.append(
                    [kind, str(sets), metric, space, *(f"{x:.4f}" for x in losses), f"{wasted:.0%}"]
                )
    heads = [f"test loss after {count} trials" for count in TRIALS]
    return markdown_table(
        ["classes", "problems", "metric", "costs", *heads, "wasted trials"], lines
    )


_KINDS = ("two, balanced", "two, imbalanced", "several")


def _kind(row: Mapping[str, str]) -> str:
    if row["classes"] != "2":
        return "several"
    return "two, imbalanced" if float(row["imbalance"]) >= 4 else "two, balanced"
