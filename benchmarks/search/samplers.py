"""Optuna's samplers with 50, 100 and 200 trials, compared with a grid of 1,089 points.

Class costs are searched in 2^-6...2^10. The width gamma is 1/d (the grid of the span paper, 33 x 33
points) or searched in 2^-6...2^4 (9 widths and 11 x 11 costs). Each search uses the first split of
a set, with features scaled to [0, 1]. The test error is that of the model with the least loss;
among several minima the one with the lowest smooth error counts, then the one with the fewest
support vectors. The wall time of the search and of its evaluations and the CPU time of the search
are measured on one thread. TPE and CMA-ES run with three seeds; GP, which needs PyTorch, with one,
because it takes half a minute for 200 trials, evaluations not counted.
"""

import functools
import importlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from statistics import mean, median
from typing import Any

import optuna
from optuna.trial import TrialState

from benchmarks.harness.data import PAPER
from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import RESULTS, Benchmark, Options, ResultFile, read_rows, rows_with
from benchmarks.search.studies import WIDTHS, first_split, model_error, new_objective, new_study
from span_hpo import RBF, SpanObjective
from span_hpo.integrations.optuna import OptunaObjective, best_trial, params_of
from span_hpo.objective import model_rank
from span_hpo.space import Params

DATASETS = list(PAPER[:8])  # with class costs and less than 2,000 training rows
OPTIONS = ("jobs", "quick")
METRICS = ("error", "smooth_error")
FIXED, SEARCHED = SPACES = ("gamma fixed", "gamma searched")
SAMPLERS = ("tpe", "cmaes", "gp")
_FIGURES = ("test_error", "loss", "seconds", "evaluation_s", "cpu_s")


@dataclass(frozen=True)
class Scope:
    """Extent of the comparison.

    Attributes
    ----------
    datasets
        Names of the data sets.
    trials
        Numbers of trials after which a sampler's best model is tested, increasing.
    points
        Number of values of each hyperparameter on the grid, by space.
    seeds
        Seeds of each sampler.
    """

    datasets: list[str]
    trials: tuple[int, ...]
    points: Mapping[str, Mapping[str, int]]
    seeds: Mapping[str, tuple[int, ...]]

    @property
    def stages(self) -> dict[str, list[str]]:
        """Last parts of the names of the columns that each search fills."""
        return {"grid": ["grid"]} | {name: [str(n) for n in self.trials] for name in SAMPLERS}

    def keys(self) -> list[dict[str, Any]]:
        """Return the keys of all rows; a grid has no seed."""
        searches = [("grid", ""), *((name, s) for name in SAMPLERS for s in self.seeds[name])]
        return [
            {"dataset": name, "space": space, "metric": metric, "search": search, "seed": seed}
            for name, space, metric, (search, seed) in product(
                self.datasets, SPACES, METRICS, searches
            )
        ]


FULL = Scope(
    datasets=DATASETS,
    trials=(50, 100, 200),
    points={
        FIXED: {"C_-1": 33, "C_1": 33},
        SEARCHED: {"gamma": 9, "C_-1": 11, "C_1": 11},
    },
    seeds={"tpe": (0, 1, 2), "cmaes": (0, 1, 2), "gp": (0,)},
)
# TPE and GP draw their first ten trials at random.
QUICK = Scope(
    datasets=["breast_cancer"],
    trials=(6, 12),
    points={FIXED: {"C_-1": 5, "C_1": 5}, SEARCHED: {"gamma": 3, "C_-1": 3, "C_1": 3}},
    seeds=dict.fromkeys(SAMPLERS, (0,)),
)


def run(options: Options) -> ResultFile:
    """Measure every search that is not in the CSV yet."""
    scope = QUICK if options.quick else FULL
    if options.datasets:
        scope = Scope(options.datasets, scope.trials, scope.points, scope.seeds)
    columns = [*_columns(scope), "different_points", "optuna"]
    measure = functools.partial(_measure, scope)
    return Benchmark("samplers.csv", lambda _: scope.keys(), measure, columns).run(options)


def table() -> str:
    """Return a table of test errors and times of every search, over all data sets."""
    rows = read_rows(RESULTS / "samplers.csv")
    lines = []
    for space, (search, stages) in product(SPACES, FULL.stages.items()):
        for stage in stages:
            line = [space, search, _count(stage)]
            for metric in METRICS:
                found = _means(rows, stage, space=space, metric=metric, search=search)
                grid = _means(rows, "grid", space=space, metric=metric, search="grid")
                errors = {name: figures["test_error"] for name, figures in found.items()}
                better = sum(error < grid[name]["test_error"] for name, error in errors.items())
                worse = sum(error > grid[name]["test_error"] for name, error in errors.items())
                share = median(one["evaluation_s"] / one["seconds"] for one in found.values())
                line += [
                    f"{mean(errors.values()):.4f}",
                    "" if search == "grid" else f"{better}, {worse}",
                    f"{median(one['cpu_s'] for one in found.values()):.2g} ({share:.0%})",
                ]
            lines.append(line)
    heads = ("test error", "sets better, worse than the grid", "median CPU s (of it evaluations)")
    return markdown_table(
        ["space", "search", "points", *(f"{m}: {head}" for m in METRICS for head in heads)], lines
    )


def details_table(metric: str = "smooth_error") -> str:
    """Return a table of test error and time after all trials, with a line for each data set."""
    rows = read_rows(RESULTS / "samplers.csv")
    last = {search: stages[-1] for search, stages in FULL.stages.items()}
    found = {
        (space, search): _means(rows, stage, space=space, metric=metric, search=search)
        for space, (search, stage) in product(SPACES, last.items())
    }
    lines = [
        [
            name,
            *(f"{one[name]['test_error']:.4f}" for one in found.values()),
            *(
                ", ".join(f"{found[space, search][name]['cpu_s']:.2g}" for search in last)
                for space in SPACES
            ),
        ]
        for name in DATASETS
    ]
    titles = [f"{space}: {search}, {_count(last[search])}" for space, search in found]
    times = [f"{space}: CPU s of {', '.join(last)}" for space in SPACES]
    return markdown_table(["data set", *titles, *times], lines)


def _columns(scope: Scope) -> list[str]:
    stages = dict.fromkeys(stage for own in scope.stages.values() for stage in own)
    return [f"{figure}_{stage}" for stage in stages for figure in _FIGURES]


def _measure(scope: Scope, point: Mapping[str, Any]) -> dict[str, Any]:
    name, space = point["dataset"], point["space"]
    measured = {"optuna": optuna.__version__}
    if point["search"] == "grid":
        points = tuple(scope.points[space].items())
        found = _grid_figures(name, space, points)[point["metric"]]
    else:
        found = _search_figures(scope.trials, point)
    return dict.fromkeys(_columns(scope), "") | measured | found


def space_objective(name: str, space: str, metric: Any) -> SpanObjective:
    """Return the objective of a data set in one of the two spaces."""
    gamma = 1 / first_split(name).n_features if space == FIXED else WIDTHS
    return new_objective(name, kernel=RBF(gamma=gamma), metric=metric)


@functools.lru_cache(maxsize=1)
def _grid_figures(
    name: str, space: str, points: tuple[tuple[str, int], ...]
) -> dict[str, dict[str, Any]]:
    """Evaluate a grid once, and return the figures of the point that each metric picks."""
    objective = _warm(space_objective(name, space, METRICS))
    values = objective.grid(dict(points))
    start, cpu_start = time.perf_counter(), time.process_time()
    # Costs vary faster than gamma, so that a kernel matrix serves for all its costs.
    evaluations = [
        objective.evaluate(dict(zip(values, one, strict=True))) for one in product(*values.values())
    ]
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    figures = {}
    for metric in METRICS:
        best = min(evaluations, key=lambda e: model_rank(e.losses[metric], e.figures()))
        figures[metric] = {
            "test_error_grid": model_error(name, objective.fit_model(best.params)),
            "loss_grid": best.losses[metric],
            "seconds_grid": round(seconds, 3),
            "evaluation_s_grid": round(sum(e.seconds for e in evaluations), 3),
            "cpu_s_grid": round(cpu_seconds, 3),
            "different_points": len(evaluations),
        }
    return figures


def _search_figures(trials: tuple[int, ...], point: Mapping[str, Any]) -> dict[str, Any]:
    """Search, and return the figures after each number of trials."""
    if point["search"] == "gp":
        # Optuna imports PyTorch late, when the threads of all libraries are already limited.
        importlib.import_module("torch").set_num_threads(1)
    name = point["dataset"]
    objective = _warm(space_objective(name, point["space"], point["metric"]))
    study = new_study(point["seed"], sampler=point["search"])
    function = OptunaObjective(objective)
    figures: dict[str, Any] = {}
    seconds = cpu_seconds = 0.0
    test_errors: dict[int, float] = {}
    for count in trials:
        start, cpu_start = time.perf_counter(), time.process_time()
        study.optimize(function, n_trials=count - len(study.trials))
        seconds += time.perf_counter() - start
        cpu_seconds += time.process_time() - cpu_start
        best = best_trial(study)
        if best.number not in test_errors:
            model = objective.fit_model(params_of(best, objective))
            test_errors[best.number] = model_error(name, model)
        evaluations = _evaluation_seconds(study)
        figures |= {
            f"test_error_{count}": test_errors[best.number],
            f"loss_{count}": best.value,
            f"seconds_{count}": round(seconds, 3),
            f"evaluation_s_{count}": round(sum(evaluations.values()), 3),
            f"cpu_s_{count}": round(cpu_seconds, 3),
        }
    return figures | {"different_points": len(evaluations)}


def _warm(objective: SpanObjective) -> SpanObjective:
    """Evaluate the middle of the space, so that all code is imported."""
    middle: Params = {name: part.grid(1)[0] for name, part in objective.space.items()}
    objective.evaluate(middle)
    return objective


def _evaluation_seconds(study: optuna.Study) -> dict[tuple[Any, ...], float]:
    """Return the time of each evaluation by its point; equal points are evaluated once."""
    return {
        tuple(trial.params.values()): trial.user_attrs["seconds"]
        for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    }


def _means(rows: list[dict[str, str]], stage: str, **chosen: str) -> dict[str, dict[str, float]]:
    """Return the mean over seeds of every figure, for each data set."""
    own = rows_with(rows, **chosen)
    return {
        dataset: {
            figure: mean(
                float(row[f"{figure}_{stage}"]) for row in own if row["dataset"] == dataset
            )
            for figure in _FIGURES
        }
        for dataset in DATASETS
    }


def _count(stage: str) -> str:
    return "1,089" if stage == "grid" else stage
