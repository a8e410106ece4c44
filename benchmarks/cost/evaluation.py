"""The cost of a call of the objective at random costs, in fits of scikit-learn's SVC.

At 20 pairs of class costs, both log-uniform in the range that is searched by default and the same
for all data sets, a call and a fit on the features with the same costs are measured in turn within
one run on one BLAS thread; the least CPU time of several repeats counts. The kernel has
gamma = 1/d, and its matrix is kept. The share of certificates is what `SpanObjective.evaluate`
takes longer with ``certify=True``, as in a search with Optuna, divided by the whole.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.svm import SVC

from benchmarks.harness.data import load
from benchmarks.harness.markdown import markdown_table, median_and_worst, percent_and_worst
from benchmarks.harness.runner import Benchmark, grid_points, rows_with
from benchmarks.harness.timing import cpu_milliseconds
from span_hpo import RBF, SpanObjective
from span_hpo.weighting import COST_RANGE

DATASETS = ["ida_banana", "ida_waveform", "ida_heart", "ida_breast_cancer", "splice", "a1a"]
PAIRS = 20
_SEED = 0
_COLUMNS = [
    "seed",
    "C_pos",
    "C_neg",
    "rows",
    "features",
    "call_ms",
    "plain_ms",
    "certified_ms",
    "svc_fit_ms",
    "call_per_fit",
    "certificate_share",
    "n_support",
    "n_in_bound",
    "n_undefined",
]


def random_costs() -> list[tuple[float, float]]:
    """Return the pairs of costs, of class +1 and of class -1."""
    low, high = np.log2([COST_RANGE.low, COST_RANGE.high])
    exponents = np.random.default_rng(_SEED).uniform(low, high, size=(PAIRS, 2))
    return [(float(positive), float(negative)) for positive, negative in 2.0**exponents]


def table() -> str:
    """Return the cost of a call and the share of certificates, one line for each data set."""
    rows = BENCHMARK.rows()
    lines = []
    for name in DATASETS:
        own = rows_with(rows, dataset=name)
        lines.append(
            [
                name,
                own[0]["rows"],
                median_and_worst(own, "call_per_fit"),
                percent_and_worst(own, "certificate_share"),
            ]
        )
    titles = ["data set", "rows", "call / `SVC.fit`", "share of certificates"]
    return markdown_table(titles, lines)


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    split = load(point["dataset"])
    X, y = split.X_train, split.y_train
    C_pos, C_neg = random_costs()[point["pair"]]
    gamma = 1 / X.shape[1]
    params = {"C_1": C_pos, "C_-1": C_neg}
    objective = SpanObjective(X, y, kernel=RBF(gamma=gamma))
    evaluation = objective.evaluate(params)  # builds the kernel matrix, which is kept
    svc = SVC(C=1.0, gamma=gamma, class_weight={1: C_pos, -1: C_neg})
    tasks: dict[str, Callable[[], Any]] = {
        "call": lambda: objective(params),
        "plain": lambda: objective.evaluate(params, certify=False),
        "certified": lambda: objective.evaluate(params),
        "svc_fit": lambda: svc.fit(X, y),
    }
    least = cpu_milliseconds(tasks, repeats=10)
    return {
        "seed": _SEED,
        "C_pos": C_pos,
        "C_neg": C_neg,
        "rows": len(y),
        "features": X.shape[1],
        **{f"{name}_ms": round(value, 4) for name, value in least.items()},
        "call_per_fit": round(least["call"] / least["svc_fit"], 4),
        "certificate_share": round(1 - least["plain"] / least["certified"], 4),
        "n_support": evaluation.n_support,
        "n_in_bound": evaluation.n_in_bound,
        "n_undefined": evaluation.loo.n_undefined,
    }


BENCHMARK = Benchmark(
    "evaluation.csv", grid_points(dataset=DATASETS, pair=range(PAIRS)), _measure, _COLUMNS
)
run = BENCHMARK.run
