"""What gradient steps add to a search by TPE, with one width and with one for each feature.

The rows are those of the benchmark `ard`: up to three official splits of a set, with features
scaled to [0, 1] on the training rows. All methods minimise the smooth error, TPE with seed 0.

- "TPE 50", "TPE 70" and "TPE 150" search one width and a cost for each class;
- "TPE 50, refined" is followed by `refine` with 20 steps from the best trial;
- "ARD, GradientSampler" has 60 trials of a `GradientSampler` with its defaults, on one width for
  each feature and one cost; its model is that of the trial with the least loss;
- "ARD, minimize" is `span_hpo.minimize` with its defaults, 60 evaluations;
- "ARD, TPE 150" draws all of these widths.

`evaluations` counts trials. `loss` is the smooth error of the chosen model by leave-one-out, which
is optimistic, because the model was chosen by it. `seconds` is CPU time on one thread, from the
scaled rows to the chosen hyperparameters.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import optuna

from benchmarks.harness.markdown import markdown_table, mean_of
from benchmarks.harness.runner import Benchmark, Options, ResultFile, combinations, rows_with
from benchmarks.harness.timing import import_once
from benchmarks.search import ard
from span_hpo import ARD, SpanObjective, minimize
from span_hpo.integrations.optuna import best_trial, new_study, params_of, refine, search
from span_hpo.space import Params

DATASETS = ard.DATASETS
ISOTROPIC = ("TPE 50", "TPE 50, refined", "TPE 70", "TPE 150")
PER_FEATURE = ("ARD, GradientSampler", "ARD, minimize", "ARD, TPE 150")
_STEPS = 20  # of `refine`
_TRIALS = 60  # of a GradientSampler, as many as `minimize` has evaluations
_COLUMNS = ["n_train", "n_features", "evaluations", "loss", "test_error", "seconds"]

Found = tuple[Params, int]  # chosen hyperparameters, and the number of evaluations


def _searched(sampler: str, trials: int, steps: int = 0) -> Callable[[SpanObjective], Found]:
    """Return a search with so many trials and gradient steps."""

    def found(objective: SpanObjective) -> Found:
        study = new_study(sampler=sampler, seed=0)
        search(study, objective, n_trials=trials)
        best = refine(study, objective, n_steps=steps) if steps else best_trial(study)
        return params_of(best, objective), len(study.trials)

    return found


def _minimized(objective: Any) -> Found:
    found = minimize(objective)
    return found.params, found.n_evaluations


METHODS: dict[str, Callable[[SpanObjective], Found]] = {
    "TPE 50": _searched("tpe", 50),
    "TPE 50, refined": _searched("tpe", 50, _STEPS),
    "TPE 70": _searched("tpe", 70),
    "TPE 150": _searched("tpe", 150),
    "ARD, GradientSampler": _searched("gradient", _TRIALS),
    "ARD, minimize": _minimized,
    "ARD, TPE 150": _searched("tpe", 150),
}


def _points(options: Options) -> list[dict[str, Any]]:
    return [
        point
        for name in options.datasets or DATASETS
        for point in combinations(dataset=[name], split=range(ard.splits_of(name)), method=METHODS)
    ]


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    import_once()
    rows = ard.rows_of(point["dataset"], point["split"])
    start = time.process_time()
    objective = _objective(rows, point["method"])
    params, evaluations = METHODS[point["method"]](objective)
    seconds = time.process_time() - start
    model = objective.fit_model(params)
    return {
        "n_train": len(rows.y_train),
        "n_features": len(rows.names),
        "evaluations": evaluations,
        "loss": objective(params),
        "test_error": float(np.mean(model.predict(rows.X_test) != rows.y_test)),
        "seconds": round(seconds, 2),
    }


def _objective(rows: ard.Rows, method: str) -> SpanObjective:
    if method in ISOTROPIC:
        return SpanObjective(rows.X_train, rows.y_train, metric="smooth_error")
    return SpanObjective(
        rows.X_train, rows.y_train, kernel=ARD(), weighting="uniform", metric="smooth_error"
    )


_benchmark = Benchmark("refine.csv", _points, _measure, _COLUMNS)


def run(options: Options) -> ResultFile:
    """Measure every search that is not in the CSV yet."""
    return _benchmark.run(options)


def table() -> str:
    """Return mean losses and test errors over the splits, with means over the sets."""
    rows, lines, means = _benchmark.rows(), [], []
    for name in DATASETS:
        own = rows_with(rows, dataset=name)
        figures = [
            (mean_of(own, "loss", method=method), mean_of(own, "test_error", method=method))
            for method in METHODS
        ]
        means.append(figures)
        splits = len({row["split"] for row in own})
        lines.append([name, own[0]["n_features"], str(splits), *map(_shown, figures)])
    overall = np.array(means).mean(axis=0).tolist()
    seconds = [f"{mean_of(rows, 'seconds', method=method):.2f}" for method in METHODS]
    lines.append(["mean over the sets", "", "", *map(_shown, overall)])
    lines.append(["CPU time, mean, s", "", "", *seconds])
    return markdown_table(["data set", "features", "splits", *METHODS], lines)


def _shown(figures: Sequence[float]) -> str:
    loss, test_error = figures
    return f"{loss:.4f} / {test_error:.4f}"
