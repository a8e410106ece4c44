"""Evaluation time and test error of a search with budgets and a pruner, and without.

The search is that of `benchmarks.search.search` with the metric "error". With budgets, a trial is
evaluated on 1/8, 1/4, 1/2 and all of the rows, and only the best tenth of the trials passes a
budget. The time is the sum of the wall times of all evaluations, including those of small budgets.
"""

from collections.abc import Mapping
from typing import Any

import optuna
from optuna.trial import TrialState

from benchmarks.harness.markdown import markdown_table, mean_of
from benchmarks.harness.runner import Benchmark, grid_points
from benchmarks.search.search import DATASETS, SEEDS, TRIALS
from benchmarks.search.studies import error_on_test_rows, new_objective, new_study
from span_hpo import Evaluation, SpanObjective
from span_hpo.integrations.optuna import OptunaObjective

BUDGETS = (0.125, 0.25, 0.5, 1.0)
KEPT = 10.0  # percent of the trials that pass a budget
_COLUMNS = [
    "evaluation_s",
    "pruned_evaluation_s",
    "pruned_share_of_time",
    "test_error",
    "pruned_test_error",
    "n_complete",
]


def table() -> str:
    """Return a table of times and test errors, as means over seeds."""
    rows = BENCHMARK.rows()
    columns = {
        "evaluation time with / without pruning": ("pruned_share_of_time", ".2f"),
        "test error with pruning": ("pruned_test_error", ".4f"),
        "test error without pruning": ("test_error", ".4f"),
    }
    groups: dict[str, dict[str, str]] = {name: {"dataset": name} for name in DATASETS}
    return markdown_table(
        ["data set", *columns],
        [
            [
                name,
                *(f"{mean_of(rows, column, **chosen):{form}}" for column, form in columns.values()),
            ]
            for name, chosen in (groups | {"mean": {}}).items()
        ],
    )


class _Timed(OptunaObjective):
    """An objective that sums the times of all evaluations, including those of small budgets."""

    def __init__(self, objective: SpanObjective, **settings: Any) -> None:
        super().__init__(objective, **settings)
        self.seconds = 0.0
        evaluate = objective.evaluate

        def timed(*args: Any, **options: Any) -> Evaluation:
            evaluation = evaluate(*args, **options)
            self.seconds += evaluation.seconds
            return evaluation

        objective.evaluate = timed  # type: ignore[method-assign]


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    name, seed = point["dataset"], point["seed"]
    row: dict[str, Any] = {}
    for prefix, budgets in (("", (1.0,)), ("pruned_", BUDGETS)):
        objective = new_objective(name)
        timed = _Timed(objective, budgets=budgets)
        pruner = optuna.pruners.PercentilePruner(KEPT, n_startup_trials=10)
        study = new_study(seed, pruner=pruner)
        study.optimize(timed, n_trials=max(TRIALS))
        row[f"{prefix}evaluation_s"] = round(timed.seconds, 3)
        row[f"{prefix}test_error"] = error_on_test_rows(name, study, objective)
    row["pruned_share_of_time"] = round(row["pruned_evaluation_s"] / row["evaluation_s"], 4)
    row["n_complete"] = len(study.get_trials(states=(TrialState.COMPLETE,)))
    return row


BENCHMARK = Benchmark("pruning.csv", grid_points(dataset=DATASETS, seed=SEEDS), _measure, _COLUMNS)
run = BENCHMARK.run
