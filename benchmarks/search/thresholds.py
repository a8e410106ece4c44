"""Thresholds from leave-one-out values, compared with those that scikit-learn finds by folds.

The problems are drawn from the distributions of `benchmarks.harness.fresh_draws`, with 5 % of the
rows in the second class and 20,000 test rows. `SpanSVC` searches C and gamma in 50 trials, by the
error or by the log loss. With the chosen values, three classifiers are fitted:

- no threshold: scikit-learn's `SVC`;
- leave-one-out: `SpanSVC` with `threshold="loo"` and the metric "balanced_error", or with
  `miss_cost=10`;
- `TunedThresholdClassifierCV` of `SVC`, by the balanced accuracy or the mean cost, in five folds.

The cost of a row is 10 for a missed one of the second class and 1 for a false alarm. Times are CPU
times of `fit` on one thread, the least of three, without the search.
"""

from collections.abc import Mapping
from functools import partial
from statistics import mean, median
from typing import Any

import numpy as np
import optuna
from scipy.stats import wilcoxon
from sklearn.metrics import balanced_accuracy_score, make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.svm import SVC

from benchmarks.harness.fresh_draws import DISTRIBUTIONS, fresh_draw
from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, grid_points, rows_with
from benchmarks.harness.timing import cpu_milliseconds
from span_hpo import RBF, SpanSVC, UniformCost
from span_hpo.runtime import Array

OPTIONS = ("jobs",)
DATASETS = list(DISTRIBUTIONS)
_ROWS = (200, 600)
_DRAWS = (0, 1)
_CRITERIA = ("error", "log_loss")
_ARMS = ("none", "loo", "tuned")
_TRIALS = 50
_SHARE = 0.05
_COST = 10.0  # of a missed row of the second class; a false alarm costs 1
_REPEATS = 3
_LOSSES = {"balanced error": "balanced", "mean cost": "cost"}
_COLUMNS = [
    *(f"{arm}_{loss}" for loss in _LOSSES.values() for arm in _ARMS),
    *("none_ms", "loo_balanced_ms", "tuned_balanced_ms", "loo_cost_ms", "tuned_cost_ms"),
]


def _balanced_error(y: Array, predicted: Array) -> float:
    return 1 - float(balanced_accuracy_score(y, predicted))


def _cost(y: Array, predicted: Array) -> float:
    return float(np.mean(np.where(y == 1, _COST, 1.0) * (y != predicted)))


_FUNCTIONS = {"balanced": _balanced_error, "cost": _cost}


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    data = fresh_draw(point["dataset"], point["rows"], point["draw"], share=_SHARE)
    search = SpanSVC(
        weighting="uniform",
        metric=point["criterion"],
        n_trials=_TRIALS,
        scale=None,
        random_state=point["draw"],
    ).fit(data.X_train, data.y_train)
    C, gamma = (search.best_params_[name] for name in ("C", "gamma"))
    svc = SVC(C=C, gamma=gamma)
    fixed: dict[str, Any] = {"kernel": RBF(gamma=gamma), "weighting": UniformCost(C), "scale": None}
    scorer = make_scorer(_cost, greater_is_better=False)
    models = {
        "none": svc,
        "loo_balanced": SpanSVC(**fixed, metric="balanced_error", threshold="loo"),
        "tuned_balanced": TunedThresholdClassifierCV(svc, scoring="balanced_accuracy"),
        "loo_cost": SpanSVC(**fixed, miss_cost=_COST),
        "tuned_cost": TunedThresholdClassifierCV(svc, scoring=scorer),
    }
    fits = {name: partial(model.fit, data.X_train, data.y_train) for name, model in models.items()}
    times = cpu_milliseconds(fits, repeats=_REPEATS, in_a_row=1)
    found: dict[str, Any] = {f"{name}_ms": round(spent, 3) for name, spent in times.items()}
    predicted = {name: model.predict(data.X_test) for name, model in models.items()}
    for arm in _ARMS:
        for loss, function in _FUNCTIONS.items():
            own = predicted[arm if arm == "none" else f"{arm}_{loss}"]
            found[f"{arm}_{loss}"] = function(data.y_test, own)
    return found


BENCHMARK = Benchmark(
    "thresholds.csv",
    grid_points(dataset=DATASETS, rows=_ROWS, draw=_DRAWS, criterion=_CRITERIA),
    _measure,
    _COLUMNS,
)
run = BENCHMARK.run


def table() -> str:
    """Return mean test losses, wins against scikit-learn with their p value, and times."""
    lines = []
    for criterion in _CRITERIA:
        rows = rows_with(BENCHMARK.rows(), criterion=criterion)
        for title, loss in _LOSSES.items():
            of_arm = {arm: [float(row[f"{arm}_{loss}"]) for row in rows] for arm in _ARMS}
            gain = np.array(of_arm["tuned"]) - np.array(of_arm["loo"])
            times = [median(float(row[f"{arm}_{loss}_ms"]) for row in rows) for arm in _ARMS[1:]]
            lines.append(
                [
                    criterion,
                    title,
                    str(len(rows)),
                    *(f"{mean(values):.3f}" for values in of_arm.values()),
                    f"{np.sum(gain > 0)}, {np.sum(gain < 0)} (p = {wilcoxon(gain).pvalue:.2g})",
                    *(f"{one:.1f}" for one in times),
                ]
            )
    heads = ["C and gamma chosen by", "test loss", "problems", "no threshold", "leave-one-out"]
    heads += ["TunedThresholdClassifierCV", "better, worse than it"]
    heads += ["fit, ms: leave-one-out", "fit, ms: TunedThresholdClassifierCV"]
    return markdown_table(heads, lines)
