"""Quality of probabilities from leave-one-out values and from scikit-learn's five folds.

RBF kernel with gamma = 1/d, C = 1 and 100, on the first split with features scaled to [0, 1]. The
same fixed model is calibrated by `SpanSVC.predict_proba` (Platt's sigmoid of the leave-one-out
decision values) and by ``CalibratedClassifierCV(ensemble=False, cv=5)``. CPU time of `fit` on one
BLAS thread.
"""

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.svm import SVC

from benchmarks.harness.data import load
from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, grid_points
from benchmarks.harness.timing import cpu_milliseconds
from span_hpo import RBF, SpanSVC, UniformCost
from span_hpo.runtime import FloatArray

DATASETS = ["ida_banana", "ida_waveform", "ida_image", "ida_german", "splice", "a1a"]
COSTS = (1.0, 100.0)
_BINS = 10
_COLUMNS = [
    f"{way}_{what}"
    for way in ("loo", "folds")
    for what in ("log_loss", "brier", "calibration_error", "fit_ms")
]


def table() -> str:
    """Return a table of losses and times of both calibrations."""
    measures = {
        "log loss": ("log_loss", ".4f"),
        "Brier score": ("brier", ".4f"),
        "calibration error": ("calibration_error", ".4f"),
        "fit, ms": ("fit_ms", ".3g"),
    }
    return markdown_table(
        ["data set", "C", *(f"{title}: leave-one-out, folds" for title in measures)],
        [
            [
                row["dataset"],
                f"{float(row['C']):g}",
                *(
                    ", ".join(f"{float(row[f'{way}_{name}']):{form}}" for way in ("loo", "folds"))
                    for name, form in measures.values()
                ),
            ]
            for row in BENCHMARK.rows()
        ],
    )


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    split = load(point["dataset"])
    X, y, gamma = split.X_train, split.y_train, 1 / split.X_train.shape[1]
    models = {
        "loo": SpanSVC(RBF(gamma=gamma), UniformCost(point["C"]), scale=None),
        "folds": CalibratedClassifierCV(SVC(C=point["C"], gamma=gamma), ensemble=False, cv=5),
    }
    fits = {way: functools.partial(model.fit, X, y) for way, model in models.items()}
    times = cpu_milliseconds(fits)
    row: dict[str, Any] = {}
    for way, model in models.items():
        p = model.predict_proba(split.X_test)[:, 1]
        row[f"{way}_log_loss"] = round(log_loss(split.y_test, p), 5)
        row[f"{way}_brier"] = round(brier_score_loss(split.y_test, p), 5)
        row[f"{way}_calibration_error"] = round(_calibration_error(split.y_test > 0, p), 5)
        row[f"{way}_fit_ms"] = round(times[way], 3)
    return row


def _calibration_error(positive: Any, p: FloatArray) -> float:
    """Return the mean distance of probability and frequency over bins of equal width."""
    bins = np.minimum((p * _BINS).astype(int), _BINS - 1)
    gaps = [abs(np.sum(positive[bins == one]) - np.sum(p[bins == one])) for one in range(_BINS)]
    return float(np.sum(gaps)) / len(p)


BENCHMARK = Benchmark("calibration.csv", grid_points(dataset=DATASETS, C=COSTS), _measure, _COLUMNS)
run = BENCHMARK.run
