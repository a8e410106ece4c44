"""Whether a width for each feature is worth it, and when to stay with another classifier.

Every method is given the same training rows, with features scaled to [0, 1], and is tested on the
same test rows: those of up to three official splits of a set. Of "spambase", which has none, 1,000
training rows are drawn three times with the shares of the classes. "banana_noise" is banana with 40
more features that are standard normal.

- "widths": `minimize` with the kernel `ARD` and its defaults, which are 60 evaluations of the
  smooth error with its gradient, of one width for each feature and a cost for each class;
- "isotropic, smooth error" and "isotropic, error": 150 trials of TPE on a `SpanObjective` with one
  width and a cost for each class, by either metric;
- "GridSearchCV": 7 x 7 values of C and gamma in the same ranges, by the error of five folds;
- "bbai": logistic regression, whose one penalty bbai tunes by an approximation of leave-one-out;
- "gradient boosting" and "random forest": `HistGradientBoostingClassifier` and
  `RandomForestClassifier` of scikit-learn with their defaults.

`evaluations` counts the points whose loss was computed, if the method reports them. `estimate` is
the error that the method itself expects of its model, by the leave-one-out values or by the folds
that it has selected by, whatever the metric. `seconds` is CPU time on one thread, from the scaled
rows to a fitted model; it includes the process in which bbai computes.

TabPFN is not measured: the wheel of version 9.2.0 has no weights. They are fetched from a hub when
a model is fitted first, most of them after a licence is accepted in an account.
"""

import functools
import importlib
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import optuna
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.svm import SVC

from benchmarks.harness.data import file_arrays, load
from benchmarks.harness.markdown import least_in_bold, markdown_table, mean_of
from benchmarks.harness.runner import Benchmark, Options, ResultFile, combinations, rows_with
from benchmarks.harness.timing import import_once
from span_hpo import ARD, SpanObjective, UniformCost, minimize
from span_hpo.estimators import fitted_scaler
from span_hpo.integrations.optuna import best_trial, new_study, params_of, search
from span_hpo.runtime import FloatArray
from span_hpo.space import Float

NOISE, DRAWN = "banana_noise", "spambase"
SPLITS = {  # of each set, at most the number of its official splits
    "splice": 1,
    "ida_image": 3,
    NOISE: 3,
    "ida_waveform": 3,
    "ida_german": 3,
    "ida_heart": 3,
    "ida_ringnorm": 3,
    DRAWN: 3,
    "a1a": 1,
    "ida_diabetis": 1,
    "ida_thyroid": 1,
}
DATASETS = list(SPLITS)
_NOISE_FEATURES = 40
_DRAWN_ROWS = 1000
_TRIALS = 150
_GRID_POINTS = 7  # values of each hyperparameter
_FOLDS = 5
_SEED = 0  # of TPE, the folds and the trees; what differs between splits are the rows
_COLUMNS = ["n_train", "n_features", "evaluations", "estimate", "test_error", "seconds"]


@dataclass(frozen=True, eq=False)
class Rows:
    """Training and test rows of a split, scaled to [0, 1] on the former.

    Attributes
    ----------
    names
        Names of the features.
    """

    X_train: FloatArray
    y_train: FloatArray
    X_test: FloatArray
    y_test: FloatArray
    names: list[str]


@dataclass(frozen=True, eq=False)
class Found:
    """The result of a method.

    Attributes
    ----------
    predict
        Function from features to labels.
    estimate
        The error that the method expects of its model; None if it does not estimate one.
    evaluations
        Number of points whose loss was computed; None if the method does not report it.
    """

    predict: Callable[[FloatArray], FloatArray]
    estimate: float | None = None
    evaluations: int | None = None


Method = Callable[[FloatArray, FloatArray, Sequence[str]], Found]


def _widths(X: FloatArray, y: FloatArray, names: Sequence[str]) -> Found:
    objective = SpanObjective(X, y, kernel=ARD(), metric="smooth_error")
    found = minimize(objective)
    expected = SpanObjective(X, y, kernel=ARD(), metric="error").evaluate(found.params).loss
    return Found(objective.fit_model(found.params).predict, expected, found.n_evaluations)


def _isotropic(metric: str) -> Method:
    """Return a search for one width and the class costs by TPE."""

    def found(X: FloatArray, y: FloatArray, names: Sequence[str]) -> Found:
        objective = SpanObjective(X, y, metric=metric)
        study = new_study(seed=_SEED)
        search(study, objective, n_trials=_TRIALS)
        params = params_of(best_trial(study), objective)
        expected = SpanObjective(X, y, metric="error").evaluate(params).loss
        return Found(objective.fit_model(params).predict, expected, len(study.trials))

    return found


def _grid_search(X: FloatArray, y: FloatArray, names: Sequence[str]) -> Found:
    space = SpanObjective(X, y, weighting=UniformCost()).space
    grid = {
        name: np.geomspace(one.low, one.high, _GRID_POINTS)
        for name, one in space.items()
        if isinstance(one, Float)
    }
    folds = StratifiedKFold(_FOLDS, shuffle=True, random_state=_SEED)
    grid_search = GridSearchCV(SVC(), grid, cv=folds).fit(X, y)
    points = len(grid_search.cv_results_["params"])
    return Found(grid_search.predict, 1 - float(grid_search.best_score_), points)


def _bbai(X: FloatArray, y: FloatArray, names: Sequence[str]) -> Found:
    model = importlib.import_module("bbai.glm").LogisticRegression().fit(X, y)
    # Its values are the log losses of single rows: a row is an error if its probability is < 1/2.
    return Found(model.predict, float(np.mean(np.asarray(model.aloocvs_) > math.log(2))))


def _boosting(X: FloatArray, y: FloatArray, names: Sequence[str]) -> Found:
    return Found(HistGradientBoostingClassifier(random_state=_SEED).fit(X, y).predict)


def _forest(X: FloatArray, y: FloatArray, names: Sequence[str]) -> Found:
    return Found(RandomForestClassifier(random_state=_SEED).fit(X, y).predict)


METHODS: dict[str, Method] = {
    "widths": _widths,
    "isotropic, smooth error": _isotropic("smooth_error"),
    "isotropic, error": _isotropic("error"),
    "GridSearchCV": _grid_search,
    "bbai": _bbai,
    "gradient boosting": _boosting,
    "random forest": _forest,
}


def installed() -> list[str]:
    """Return the names of the methods that can be measured; print why bbai cannot."""
    try:
        importlib.import_module("bbai.glm")
    except ImportError as error:
        print(f"bbai is left out because it is not installed: {error}")
        return [name for name in METHODS if name != "bbai"]
    return list(METHODS)


def splits_of(name: str) -> int:
    """Return the number of splits of a data set that are measured."""
    return SPLITS[name]


@functools.lru_cache(maxsize=1)
def rows_of(name: str, split: int) -> Rows:
    """Return the rows of a split of a data set; those returned last are kept in memory."""
    if name == DRAWN:
        arrays = file_arrays(name)
        X_train, X_test, y_train, y_test = train_test_split(
            arrays["X"].astype(float),
            arrays["y"].astype(float),
            train_size=_DRAWN_ROWS,
            stratify=arrays["y"],
            random_state=split,
        )
    else:
        data = load("ida_banana" if name == NOISE else name, split, scaled=False)
        X_train, X_test, y_train, y_test = data.X_train, data.X_test, data.y_train, data.y_test
    names = [f"x{number}" for number in range(X_train.shape[1])]
    if name == NOISE:
        rng = np.random.default_rng(split)
        X_train, X_test = (
            np.hstack([X, rng.standard_normal((len(X), _NOISE_FEATURES))])
            for X in (X_train, X_test)
        )
        names += [f"noise{number}" for number in range(_NOISE_FEATURES)]
    scaler = fitted_scaler("minmax", X_train)
    return Rows(scaler.transform(X_train), y_train, scaler.transform(X_test), y_test, names)


def _points(options: Options) -> list[dict[str, Any]]:
    methods = installed()
    return [
        point
        for name in options.datasets or DATASETS
        for point in combinations(dataset=[name], split=range(SPLITS[name]), method=methods)
    ]


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    import_once()
    rows = rows_of(point["dataset"], point["split"])
    start = _cpu_seconds()
    found = METHODS[point["method"]](rows.X_train, rows.y_train, rows.names)
    seconds = _cpu_seconds() - start
    return {
        "n_train": len(rows.y_train),
        "n_features": len(rows.names),
        "evaluations": "" if found.evaluations is None else found.evaluations,
        "estimate": "" if found.estimate is None else found.estimate,
        "test_error": float(np.mean(found.predict(rows.X_test) != rows.y_test)),
        "seconds": round(seconds, 2),
    }


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of those that it has started, which still run."""
    children = [
        pid for task in Path("/proc/self/task").glob("*/children") for pid in _text(task).split()
    ]
    # The name of a program, which is in brackets, may contain blanks. User and system time follow
    # as the 12th and 13th number after it.
    fields = [_text(Path("/proc", pid, "stat")).rpartition(")")[2].split() for pid in children]
    ticks = sum(int(tick) for field in fields for tick in field[11:13])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # the process has ended
        return ""


_benchmark = Benchmark("ard.csv", _points, _measure, _COLUMNS)


def run(options: Options) -> ResultFile:
    """Measure every installed method that is not in the CSV yet."""
    return _benchmark.run(options)


def table() -> str:
    """Return mean test errors over the splits, the least in bold, with means over the sets."""
    rows, lines, means = _benchmark.rows(), [], []
    for name in DATASETS:
        own = rows_with(rows, dataset=name)
        errors = [mean_of(own, "test_error", method=method) for method in METHODS]
        means.append(errors)
        cells = least_in_bold(errors)
        splits = len({row["split"] for row in own})
        lines.append([name, own[0]["n_train"], own[0]["n_features"], str(splits), *cells])
    overall = [f"{mean(errors):.4f}" for errors in zip(*means, strict=True)]
    seconds = [f"{mean_of(rows, 'seconds', method=method):.2f}" for method in METHODS]
    lines.append(["mean over the sets", "", "", "", *overall])
    lines.append(["CPU time, mean, s", "", "", "", *seconds])
    return markdown_table(["data set", "rows", "features", "splits", *METHODS], lines)
