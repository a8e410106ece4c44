"""The cost of exact leave-one-out at the points of a search, in fits of scikit-learn's SVC.

Optuna's TPE searches 100 points of each data set in the default space of `SpanObjective`: both
class costs and the gamma of an RBF kernel. At every point, the classes and all values of the method
"exact" and a fit on the features with the same hyperparameters are measured in turn within one run
on one BLAS thread; the least CPU time of several repeats counts. The share of certificates is that
of an evaluation by the span-rule whose kernel matrix is kept, as in the benchmark `evaluation`.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import optuna
from sklearn.svm import SVC

from benchmarks.cost.evaluation import DATASETS
from benchmarks.harness.data import load
from benchmarks.harness.markdown import markdown_table, median_and_worst, percent_and_worst
from benchmarks.harness.runner import Benchmark, grid_points, rows_with
from benchmarks.harness.timing import cpu_milliseconds
from span_hpo import SpanObjective, leave_one_out
from span_hpo.integrations.optuna import OptunaObjective
from span_hpo.solver import DualSolution

TRIALS = 100
_SEED = 0
_MANY_ROWS = 1000  # with as many rows a task takes so long that it runs once in a row
_COLUMNS = [
    "seed",
    "C_pos",
    "C_neg",
    "gamma",
    "rows",
    "svc_fit_ms",
    "classes_ms",
    "values_ms",
    "plain_ms",
    "certified_ms",
    "classes_per_fit",
    "values_per_fit",
    "certificate_share",
    "n_support",
    "n_in_bound",
    "n_refit",
    "span_error",
    "exact_error",
]


@functools.lru_cache(maxsize=1)
def searched(name: str) -> tuple[SpanObjective, list[dict[str, float]]]:
    """Return the objective of a data set and the points of its search, in their order."""
    split = load(name)
    objective = SpanObjective(split.X_train, split.y_train)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=_SEED))
    study.optimize(OptunaObjective(objective), n_trials=TRIALS)
    return objective, [trial.params for trial in study.trials]


def table() -> str:
    """Return the cost of classes and of all values, one line for each data set."""
    rows = BENCHMARK.rows()
    groups = [(name, rows_with(rows, dataset=name)) for name in DATASETS]
    return markdown_table(
        [
            "data set",
            "rows",
            "classes / `SVC.fit`",
            "all values / `SVC.fit`",
            "share of certificates",
        ],
        [
            [
                name,
                own[0]["rows"] if name in DATASETS else "",
                median_and_worst(own, "classes_per_fit"),
                median_and_worst(own, "values_per_fit"),
                percent_and_worst(own, "certificate_share"),
            ]
            for name, own in [*groups, ("all", rows)]
        ],
    )


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    objective, points = searched(point["dataset"])
    X, y, params = objective.data.X, objective.data.y, points[point["trial"]]
    svc = SVC(C=1.0, gamma=params["gamma"], class_weight={1: params["C_1"], -1: params["C_-1"]})
    solution = objective.solution(params)
    assert isinstance(solution, DualSolution)
    span, classes = objective.evaluate(params), leave_one_out(solution, "exact")
    tasks: dict[str, Callable[[], Any]] = {
        "svc_fit": lambda: svc.fit(X, y),
        "classes": lambda: leave_one_out(solution, "exact"),
        "values": lambda: leave_one_out(solution, "exact", complete=True),
        "plain": lambda: objective.evaluate(params, certify=False),
        "certified": lambda: objective.evaluate(params),
    }
    least = cpu_milliseconds(tasks, repeats=2, in_a_row=3 if len(y) < _MANY_ROWS else 1)
    return {
        "seed": _SEED,
        "C_pos": params["C_1"],
        "C_neg": params["C_-1"],
        "gamma": params["gamma"],
        "rows": len(y),
        **{f"{name}_ms": round(value, 4) for name, value in least.items()},
        "classes_per_fit": round(least["classes"] / least["svc_fit"], 4),
        "values_per_fit": round(least["values"] / least["svc_fit"], 4),
        "certificate_share": round(1 - least["plain"] / least["certified"], 4),
        "n_support": solution.n_support,
        "n_in_bound": solution.n_in_bound,
        "n_refit": classes.n_refit,
        "span_error": span.loo.error,
        "exact_error": classes.error,
    }


BENCHMARK = Benchmark(
    "search_points.csv", grid_points(dataset=DATASETS, trial=range(TRIALS)), _measure, _COLUMNS
)
run = BENCHMARK.run
