"""Ensembles of the models of a search, compared with its best model on the same trials.

Problems are those of `benchmarks.harness.distributions`, with 10,000 new rows, and the 14 sets of
the paper on weighted SVMs, with up to 1,000 training rows of the MNIST pairs and up to 20,000 test
rows. `SpanSVC` searches in 150 trials, by the error or by the log loss, and its best trial and the
ensemble of the same trials are judged on the test rows. Then the honest estimate of the ensemble is
compared with its test loss. Times are CPU times on one thread.
"""

import time
import warnings
from collections.abc import Mapping
from statistics import mean
from typing import Any

import numpy as np
import optuna
from scipy.stats import wilcoxon
from sklearn.metrics import log_loss

from benchmarks.harness.data import PAPER, load, n_splits
from benchmarks.harness.distributions import PROBLEMS, drawn_rows
from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, Options, combinations, rows_with
from benchmarks.harness.small_sets import Draw
from span_hpo import ScalingWarning, SpanSVC
from span_hpo.integrations.optuna import honest_estimate, ranked_params
from span_hpo.selection import MOST_CANDIDATES

OPTIONS = ("jobs",)
DATASETS = [*PROBLEMS, *PAPER]
_CRITERIA = ("error", "log_loss")
_TRIALS = 150
_SPLITS = 2  # of a drawn problem
_PAPER_SPLITS = 3  # most splits of a set of the paper
_MOST_ROWS = 1000  # of the MNIST pairs
_MOST_TEST_ROWS = 20_000
_LEVEL = 0.9
_COLUMNS = [
    "rows",
    "members",
    "single_log_loss",
    "ensemble_log_loss",
    "single_error",
    "ensemble_error",
    "optimistic",
    "honest",
    "low",
    "high",
    "search_s",
    "ensemble_s",
    "honest_s",
]
_GROUPS = {"drawn": tuple(PROBLEMS), "paper": PAPER}


def _points(options: Options) -> list[dict[str, Any]]:
    chosen = options.datasets or DATASETS
    return [
        point
        for name in chosen
        for point in combinations(
            dataset=[name], split=range(_number_of_splits(name)), criterion=_CRITERIA
        )
    ]


def _number_of_splits(name: str) -> int:
    if name in PROBLEMS:
        return _SPLITS
    return 1 if name.startswith("mnist") else min(_PAPER_SPLITS, n_splits(name))


def _rows(name: str, split: int) -> Draw:
    """Return training and test rows, of which large sets have a part."""
    if name in PROBLEMS:
        return drawn_rows(name, split)
    data = load(name, split)
    trained, tested = len(data.y_train), len(data.y_test)
    if name.startswith("mnist"):
        trained = _MOST_ROWS
    own = np.random.default_rng(split).permutation(len(data.y_train))[:trained]
    new = np.random.default_rng(split + 1).permutation(tested)[:_MOST_TEST_ROWS]
    return Draw(data.X_train[own], data.y_train[own], data.X_test[new], data.y_test[new])


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore", ScalingWarning)
    data = _rows(point["dataset"], point["split"])
    settings: dict[str, Any] = {"metric": point["criterion"], "progress_bar": False}
    start = time.process_time()
    searched = SpanSVC(n_trials=_TRIALS, random_state=point["split"], **settings)
    searched.fit(data.X_train, data.y_train)
    between = time.process_time()
    points = ranked_params(searched.study_, searched.objective_, MOST_CANDIDATES)
    ensemble = SpanSVC(search=lambda _: points, ensemble=True, **settings)
    ensemble.fit(data.X_train, data.y_train)
    end = time.process_time()
    honest = honest_estimate(searched.study_, searched.objective_, level=_LEVEL, ensemble=True)
    last = time.process_time()
    found: dict[str, Any] = {"rows": len(data.y_train), "members": len(ensemble.members_)}
    for name, model in (("single", searched), ("ensemble", ensemble)):
        proba = model.predict_proba(data.X_test)
        found[f"{name}_log_loss"] = log_loss(data.y_test, proba, labels=model.classes_)
        found[f"{name}_error"] = float(np.mean(model.predict(data.X_test) != data.y_test))
    return found | {
        "optimistic": honest.optimistic,
        "honest": honest.error,
        "low": honest.interval[0],
        "high": honest.interval[1],
        "search_s": round(between - start, 3),
        "ensemble_s": round(end - between, 3),
        "honest_s": round(last - end, 3),
    }


BENCHMARK = Benchmark("ensembles.csv", _points, _measure, _COLUMNS)
run = BENCHMARK.run


def table() -> str:
    """Return mean test losses of the best model and the ensemble, with paired tests."""
    lines = []
    for group, names in _GROUPS.items():
        of_group = [row for row in BENCHMARK.rows() if row["dataset"] in names]
        for criterion in _CRITERIA:
            rows = rows_with(of_group, criterion=criterion)
            members = mean(float(row["members"]) for row in rows)
            cells = [group, criterion, str(len(rows)), f"{members:.1f}"]
            for loss in ("log_loss", "error"):
                single, ensemble = (
                    np.array([float(row[f"{name}_{loss}"]) for row in rows])
                    for name in ("single", "ensemble")
                )
                cells += [f"{single.mean():.4f}", f"{ensemble.mean():.4f}"]
                cells.append(_compared(single - ensemble))
            times = [
                sum(float(row[f"{name}_s"]) for row in rows) for name in ("ensemble", "search")
            ]
            lines.append([*cells, f"{times[0] / times[1]:.0%}"])
    heads = ["problems", "search by", "searches", "members"]
    for loss in ("log loss", "error"):
        heads += [f"{loss}: best model", f"{loss}: ensemble", f"{loss}: better, worse"]
    return markdown_table([*heads, "time of the ensemble / search"], lines)


def honest_table() -> str:
    """Return the bias of the honest estimate of an ensemble, and the coverage of its interval."""
    lines = []
    for group, names in _GROUPS.items():
        of_group = [row for row in BENCHMARK.rows() if row["dataset"] in names]
        for criterion in _CRITERIA:
            rows = rows_with(of_group, criterion=criterion)
            columns = [f"ensemble_{criterion}", "optimistic", "honest", "low", "high"]
            test, optimistic, honest, low, high = (
                np.array([float(row[column]) for row in rows]) for column in columns
            )
            inside = (low <= test) & (test <= high)
            seconds = mean(float(row["honest_s"]) for row in rows)
            cells = [group, criterion, str(len(rows)), f"{test.mean():.4f}"]
            for estimate in (optimistic, honest):
                error = estimate - test
                cells += [f"{error.mean():+.4f}", f"{np.sqrt(np.mean(error**2)):.4f}"]
            lines.append([*cells, f"{inside.mean():.2f}", f"{seconds:.2f}"])
    heads = ["problems", "search by", "searches", "test loss"]
    heads += ["bias: leave-one-out", "RMSE: leave-one-out", "bias: honest", "RMSE: honest"]
    return markdown_table([*heads, "coverage of 90 % intervals", "CPU s"], lines)


def _compared(gain: Any) -> str:
    """Return how many searches are better and worse, with the p value of Wilcoxon's test."""
    p = wilcoxon(gain).pvalue if gain.any() else 1.0
    return f"{np.sum(gain > 0)}, {np.sum(gain < 0)} (p = {p:.2g})"
