"""What a user gets from the defaults: `SpanSVC` beside other searches with as many trials.

The problems of `benchmarks.harness.small_sets` need no download beyond those of other benchmarks.
On three splits of each, four classifiers are fitted to the raw training rows:

- `SpanSVC` with its defaults, 50 trials;
- Optuna with 50 trials of TPE, which minimise the error of five folds over the same ranges of C and
  gamma, with the scaling inside the folds (none for sparse features);
- `GridSearchCV` over 7 x 7 values of C and gamma in the same ranges, with the same folds;
- `HistGradientBoostingClassifier` with its defaults.
"""

import time
import warnings
from collections.abc import Callable, Mapping
from statistics import mean
from typing import Any

import numpy as np
import optuna
from scipy.sparse import issparse
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, Options, ResultFile, grid_points, rows_with
from benchmarks.harness.small_sets import SMALL_SETS, Draw, drawn
from span_hpo import SpanObjective, SpanSVC, UniformCost
from span_hpo.space import Float

OPTIONS = ("jobs",)
DATASETS = list(SMALL_SETS)
SEARCHES = ("SpanSVC", "Optuna, 5-fold", "GridSearchCV")
CLASSIFIERS = (*SEARCHES, "gradient boosting")
_SPLITS = (0, 1, 2)
_TRIALS = 50
_GRID_POINTS = 7  # values of each hyperparameter, so that a grid has about as many points
_FOLDS = 5
_ALLOWED = 0.02  # how much worse than Optuna with folds a set may be
_COLUMNS = ["rows", "classes", "estimate", "test_error", "test_balanced_error", "seconds"]

_Fit = Callable[[Draw, int], tuple[Any, float]]


def _span_svc(data: Draw, seed: int) -> tuple[Any, float]:
    model = SpanSVC(n_trials=_TRIALS, random_state=seed).fit(data.X_train, data.y_train)
    return model, model.best_loss_


def _optuna(data: Draw, seed: int) -> tuple[Any, float]:
    ranges, folds = _ranges(data), _folds(seed)

    def cv_error(trial: optuna.Trial) -> float:
        values = {
            name: trial.suggest_float(name, one.low, one.high, log=True)
            for name, one in ranges.items()
        }
        scores = cross_val_score(_svc(data, **values), data.X_train, data.y_train, cv=folds)
        return 1 - float(scores.mean())

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(cv_error, n_trials=_TRIALS)
    return _svc(data, **study.best_params).fit(data.X_train, data.y_train), study.best_value


def _grid(data: Draw, seed: int) -> tuple[Any, float]:
    grid = {
        f"svc__{name}": np.geomspace(one.low, one.high, _GRID_POINTS)
        for name, one in _ranges(data).items()
    }
    found = GridSearchCV(_svc(data), grid, cv=_folds(seed)).fit(data.X_train, data.y_train)
    return found, 1 - found.best_score_


def _boosting(data: Draw, seed: int) -> tuple[Any, float]:
    model = HistGradientBoostingClassifier(random_state=seed)
    return model.fit(_dense(data.X_train), data.y_train), float("nan")


_FITS: dict[str, _Fit] = dict(zip(CLASSIFIERS, (_span_svc, _optuna, _grid, _boosting), strict=True))


def _svc(data: Draw, **values: float) -> Any:
    svc = SVC(**values)
    return make_pipeline(svc) if issparse(data.X_train) else make_pipeline(MinMaxScaler(), svc)


def _ranges(data: Draw) -> dict[str, Float]:
    """Return the ranges of C and gamma that `SpanSVC` searches on the scaled rows."""
    X = data.X_train if issparse(data.X_train) else MinMaxScaler().fit_transform(data.X_train)
    space = SpanObjective(X, data.y_train, weighting=UniformCost()).space
    return {name: one for name, one in space.items() if isinstance(one, Float)}


def _folds(seed: int) -> StratifiedKFold:
    return StratifiedKFold(_FOLDS, shuffle=True, random_state=seed)


def _dense(X: Any) -> Any:
    return X.toarray() if issparse(X) else X


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    data = drawn(point["dataset"], point["split"])
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small classes, and rows that define a scaling
        model, estimate = _FITS[point["classifier"]](data, point["split"])
    seconds = time.process_time() - start
    is_boosting = point["classifier"] == CLASSIFIERS[-1]
    predicted = model.predict(_dense(data.X_test) if is_boosting else data.X_test)
    return {
        "rows": len(data.y_train),
        "classes": len(np.unique(data.y_train)),
        "estimate": "" if np.isnan(estimate) else float(estimate),
        "test_error": float(np.mean(predicted != data.y_test)),
        "test_balanced_error": 1 - balanced_accuracy_score(data.y_test, predicted),
        "seconds": round(seconds, 2),
    }


_benchmark = Benchmark(
    "users.csv",
    grid_points(dataset=DATASETS, split=_SPLITS, classifier=CLASSIFIERS),
    _measure,
    _COLUMNS,
)


def run(options: Options) -> ResultFile:
    """Fit every classifier that is not in the CSV yet."""
    return _benchmark.run(options)


def table() -> str:
    """Return mean test errors, with mean ranks among the searches and times at the end."""
    rows, lines, ranks = _benchmark.rows(), [], []
    for name in DATASETS:
        own = rows_with(rows, dataset=name)
        if not own:
            continue
        errors = [_mean(own, classifier, "test_error") for classifier in CLASSIFIERS]
        ranks.append(rankdata(np.round(errors[: len(SEARCHES)], 6)))
        is_worse = errors[0] > errors[1] + _ALLOWED
        cells = [f"{error:.4f}" for error in errors]
        cells[0] = f"**{cells[0]}**" if is_worse else cells[0]
        lines.append([name, own[0]["rows"], own[0]["classes"], *cells])
    overall = [f"{_mean(rows, classifier, 'test_error'):.4f}" for classifier in CLASSIFIERS]
    seconds = [f"{_mean(rows, classifier, 'seconds'):.2f}" for classifier in CLASSIFIERS]
    lines.append(["mean", "", "", *overall])
    if ranks:
        means = [f"{rank:.2f}" for rank in np.mean(ranks, axis=0)]
        lines.append(["mean rank among the searches", "", "", *means, ""])
    lines.append(["CPU time of a fit, s", "", "", *seconds])
    return markdown_table(["problem", "rows", "classes", *CLASSIFIERS], lines)


def _mean(rows: list[dict[str, str]], classifier: str, column: str) -> float:
    return mean(float(row[column]) for row in rows_with(rows, classifier=classifier))
