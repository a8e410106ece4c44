"""Evaluation time and test error of a search with each of the named pruners, and without.

The search has 50 trials with the metric "error" and one cost per class, defaults first.
With a pruner, a trial is evaluated on 1/8, 1/4, 1/2 and all of the rows, and the pruner has the
settings that belong to its name. The time is the sum of the wall times of all evaluations,
including those of small budgets.
"""

from collections.abc import Mapping
from typing import Any

from optuna.trial import TrialState

from benchmarks.harness.data import load
from benchmarks.harness.markdown import markdown_table, mean_of
from benchmarks.harness.runner import Benchmark, grid_points
from benchmarks.search import search as searches
from benchmarks.search.studies import new_study
from span_hpo import Evaluation, SpanObjective
from span_hpo.integrations.optuna import best_model, best_trial, search
from span_hpo.search import PRUNERS

LARGE = "mnist_0_8"
LARGE_ROWS = 4000  # training rows of the large data set; the others have those of their first split
DATASETS = [*searches.DATASETS, LARGE]
TRIALS = 50
_COLUMNS = ["n_rows", "evaluation_s", "loss", "test_error", "n_complete", "best_trial"]


def table() -> str:
    """Return a table of times, errors and complete trials, as means over seeds."""
    rows, lines = BENCHMARK.rows(), []
    for name in PRUNERS:
        small = [_figures(rows, dataset, name) for dataset in searches.DATASETS]
        lines.append([name, *_cells(small), *_cells([_figures(rows, LARGE, name)])])
    columns = ("time", "test error", "complete")
    return markdown_table(
        ["pruner", *(f"{column}, {sets}" for sets in ("small", "large") for column in columns)],
        lines,
    )


def _figures(rows: list[dict[str, str]], dataset: str, pruner: str) -> tuple[float, ...]:
    """Return the time relative to a search without pruning, the test error and complete trials."""
    chosen = {"dataset": dataset, "pruner": pruner}
    whole = mean_of(rows, "evaluation_s", dataset=dataset, pruner="none")
    return (
        mean_of(rows, "evaluation_s", **chosen) / whole,
        mean_of(rows, "test_error", **chosen),
        mean_of(rows, "n_complete", **chosen),
    )


def _cells(figures: list[tuple[float, ...]]) -> list[str]:
    means = [sum(column) / len(column) for column in zip(*figures, strict=True)]
    return [f"{value:{form}}" for value, form in zip(means, (".2f", ".4f", ".0f"), strict=True)]


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    name = point["dataset"]
    split = load(name, rows=LARGE_ROWS if name == LARGE else None)
    objective = SpanObjective(split.X_train, split.y_train)
    seconds = _summed_seconds(objective)
    study = new_study(point["seed"], pruner=point["pruner"], study_name=name)
    search(study, objective, n_trials=TRIALS)
    model = best_model(study, objective)
    best = best_trial(study)
    return {
        "n_rows": len(split.y_train),
        "evaluation_s": round(sum(seconds), 3),
        "loss": best.value,
        "test_error": float((model.predict(split.X_test) != split.y_test).mean()),
        "n_complete": len(study.get_trials(states=(TrialState.COMPLETE,))),
        "best_trial": best.number,
    }


def _summed_seconds(objective: SpanObjective) -> list[float]:
    """Return a list that receives the time of each evaluation, including those of few rows."""
    seconds: list[float] = []
    evaluate = objective.evaluate

    def timed(*args: Any, **options: Any) -> Evaluation:
        evaluation = evaluate(*args, **options)
        seconds.append(evaluation.seconds)
        return evaluation

    objective.evaluate = timed  # type: ignore[method-assign]
    return seconds


BENCHMARK = Benchmark(
    "pruning.csv",
    grid_points(dataset=DATASETS, pruner=PRUNERS, seed=searches.SEEDS),
    _measure,
    _COLUMNS,
)
run = BENCHMARK.run
