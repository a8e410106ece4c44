"""The first fit of `SpanSVC` in a new process, in units of the second one.

Each of several new processes imports `SpanSVC`, fits it to 100 rows and fits it once more. A search
has the default 50 trials of Optuna, which the first fit imports; with fixed hyperparameters nothing
is searched. "Empty" caches are those of a new environment: no module has been compiled to bytecode,
whereas "kept" ones have been filled by an earlier process. Medians of CPU time; the median of the
ratios is that of both fits of one process.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, grid_points

_PROCESS = """
import time
start = time.process_time()
from span_hpo import RBF, SpanSVC, UniformCost
imported = time.process_time()
from sklearn.datasets import make_moons
X, y = make_moons(100, noise=0.3, random_state=0)
model = {model}
times = [time.process_time()]
for _ in range(2):
    model.fit(X, y)
    times.append(time.process_time())
print(imported - start, times[1] - times[0], times[2] - times[1])
"""
MODELS = {
    "search": "SpanSVC(random_state=0)",
    "fixed hyperparameters": "SpanSVC(RBF(gamma=1.0), UniformCost(1.0))",
}
DATASETS = list(MODELS)
CACHES = ["empty", "kept"]
_PROCESSES = 3
_ROOT = Path(__file__).parents[2]
_COLUMNS = ["processes", "import_s", "first_fit_s", "second_fit_s", "first_per_second"]


def table() -> str:
    """Return the times of the import and of both fits, one line for each model and cache."""
    return markdown_table(
        [
            "`SpanSVC`",
            "bytecode",
            "import, s",
            "first fit, s",
            "second fit, s",
            "first fit / second fit",
        ],
        [
            [
                row["model"],
                row["caches"],
                f"{float(row['import_s']):.2f}",
                f"{float(row['first_fit_s']):.3f}",
                f"{float(row['second_fit_s']):.3f}",
                f"{float(row['first_per_second']):.1f}",
            ]
            for row in BENCHMARK.rows()
        ],
    )


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    code = _PROCESS.format(model=MODELS[point["model"]])
    with tempfile.TemporaryDirectory() as kept:
        if point["caches"] == "kept":
            _times(code, Path(kept))  # fills the cache
            found = [_times(code, Path(kept)) for _ in range(_PROCESSES)]
        else:
            found = [_times(code, Path(kept) / str(number)) for number in range(_PROCESSES)]
    imported, first, second = zip(*found, strict=True)
    return {
        "processes": _PROCESSES,
        "import_s": round(median(imported), 4),
        "first_fit_s": round(median(first), 4),
        "second_fit_s": round(median(second), 4),
        "first_per_second": round(median(a / b for a, b in zip(first, second, strict=True)), 3),
    }


def _times(code: str, bytecode: Path) -> tuple[float, float, float]:
    """Return the seconds of the import and of both fits in a new process."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(bytecode), "OMP_NUM_THREADS": "1"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, env=environment, cwd=_ROOT
    )
    imported, first, second = map(float, done.stdout.split())
    return imported, first, second


BENCHMARK = Benchmark(
    "first_fit.csv", grid_points(model=DATASETS, caches=CACHES), _measure, _COLUMNS
)
run = BENCHMARK.run
