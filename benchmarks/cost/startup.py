"""Time that a new process needs for imports and for the first evaluation.

Least wall time of several new processes.
"""

import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from benchmarks.harness.runner import Benchmark, grid_points

_TIMED = """
import time
start = time.perf_counter()
{code}
print(time.perf_counter() - start)
"""
TASKS = {
    "import sklearn.svm": "import sklearn.svm",
    "import span_hpo": "import sklearn.svm\nstart = time.perf_counter()\nimport span_hpo",
    "first evaluation": """
from sklearn.datasets import make_moons
from span_hpo import SpanObjective
objective = SpanObjective(*make_moons(100, noise=0.3, random_state=0))
params = {name: part.grid(1)[0] for name, part in objective.space.items()}
start = time.perf_counter()
objective(params)
""",
}
DATASETS = list(TASKS)
_REPEATS = 5


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    command = [sys.executable, "-c", _TIMED.format(code=TASKS[point["task"]])]
    seconds = [
        float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for _ in range(_REPEATS + 1)
    ]
    return {"seconds": round(min(seconds[1:]), 4)}


BENCHMARK = Benchmark("startup.csv", grid_points(task=DATASETS), _measure, ["seconds"])
run = BENCHMARK.run
