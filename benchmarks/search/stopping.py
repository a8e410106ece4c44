"""What is saved, and what is lost, when a search ends after so many trials without a lower loss.

Each problem of `benchmarks.harness.distributions` is searched by 150 trials of TPE with the
span-rule. A search with a patience makes the first of these trials, up to the one after which it
has settled, so that one search tells what every patience would have done. The chosen models are
compared on 10,000 new rows.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from optuna import Study
from optuna.trial import FrozenTrial
from scipy.stats import wilcoxon

from benchmarks.harness.distributions import PROBLEMS, drawn_rows
from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, Options, ResultFile, combinations
from span_hpo import SpanObjective
from span_hpo.estimators import fitted_scaler
from span_hpo.integrations.optuna import finished_trials, new_study, params_of, search
from span_hpo.objective import model_rank
from span_hpo.runtime import FloatArray
from span_hpo.selection import PATIENCE, is_settled

DATASETS = list(PROBLEMS)
OPTIONS = ("jobs",)
TRIALS = 150
_PATIENCES = (20, PATIENCE, 60)
_SPLITS = range(5)


def _points(options: Options) -> list[dict[str, Any]]:
    return combinations(dataset=options.datasets or DATASETS, split=_SPLITS)


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    data = drawn_rows(point["dataset"], point["split"])
    scaler = fitted_scaler("minmax", data.X_train)
    X_test = scaler.transform(data.X_test)
    objective = SpanObjective(
        scaler.transform(data.X_train), data.y_train, weighting="uniform", metric="error"
    )
    study = new_study(seed=point["split"])
    search(study, objective, n_trials=TRIALS)
    found: dict[str, Any] = {"rows": len(data.y_train)}
    for patience in (*_PATIENCES, None):
        trials = _until_settled(study, patience)
        params = params_of(min(trials, key=_rank), objective)
        predicted = objective.fit_model(params).predict(X_test)
        name = "all" if patience is None else str(patience)
        found[f"trials_{name}"] = len(trials)
        found[f"test_error_{name}"] = float(np.mean(predicted != data.y_test))
    return found


def _until_settled(study: Study, patience: int | None) -> list[FrozenTrial]:
    """Return the trials that a search with this patience makes, or all of them."""
    trials = finished_trials(study)
    if patience is None:
        return trials
    losses = [trial.value for trial in trials]
    ends = (count for count in range(1, len(trials)) if is_settled(losses[:count], patience))
    return trials[: next(ends, len(trials))]


def _rank(trial: FrozenTrial) -> tuple[float, float, float, int]:
    assert trial.value is not None  # without a pruner all trials are complete
    return *model_rank(trial.value, trial.user_attrs), trial.number


_NAMES = [*map(str, _PATIENCES), "all"]
_COLUMNS = ["rows", *(f"{what}_{name}" for name in _NAMES for what in ("trials", "test_error"))]
_benchmark = Benchmark("stopping.csv", _points, _measure, _COLUMNS)


def run(options: Options) -> ResultFile:
    """Search every problem that is not in the CSV yet."""
    return _benchmark.run(options)


def table() -> str:
    """Return trials and test errors with each patience, compared with all trials."""
    rows = _benchmark.rows()
    whole, lines = _column(rows, "test_error_all"), []
    for name in _NAMES:
        trials, errors = _column(rows, f"trials_{name}"), _column(rows, f"test_error_{name}")
        gap = errors - whole
        versus = "" if not gap.any() else f"{wilcoxon(gap, zero_method='zsplit').pvalue:.2g}"
        lines.append(
            [
                "none" if name == "all" else name,
                f"{trials.mean():.0f}",
                f"{100 * (1 - trials.mean() / TRIALS):.0f}%",
                f"{errors.mean():.4f}",
                f"{np.count_nonzero(gap < 0)}, {np.count_nonzero(gap > 0)}",
                versus,
            ]
        )
    heads = ["patience", "trials", "saved", "test error", "better, worse than all trials", "p"]
    return markdown_table(heads, lines)


def _column(rows: list[dict[str, str]], name: str) -> FloatArray:
    return np.array([float(row[name]) for row in rows])
