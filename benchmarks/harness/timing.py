"""CPU time of pieces of work and of several tasks measured in turn."""

import functools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from span_hpo import Problem, leave_one_out, solve


class Stopwatch:
    """Sum of the CPU seconds of each named piece of work."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Add the CPU time of a block to its name."""
        start = time.process_time()
        yield
        self.seconds[name] += time.process_time() - start

    def milliseconds(self) -> dict[str, float]:
        """Return the times as columns of a CSV."""
        return {f"{name}_ms": round(1e3 * spent, 3) for name, spent in self.seconds.items()}


@functools.cache
def import_once() -> None:
    """Run all code once, so that no measurement includes the import of compiled modules."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.choice([-1.0, 1.0], 200)
    for cost in (0.1, 10.0):
        solution = solve(Problem(rbf_kernel(X), y, np.full(200, cost)))
        for method in ("exact", "stopping"):
            leave_one_out(solution, method)


def cpu_milliseconds(
    tasks: Mapping[str, Callable[[], Any]], *, repeats: int = 3, in_a_row: int = 3
) -> dict[str, float]:
    """Return the least CPU time of each task, in milliseconds.

    Tasks run in turn, so that a busy moment of the machine affects all of them. Each runs several
    times in a row, as in a search, so that none is slowed by the memory that another has used.
    """
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for name, task in repeats * list(tasks.items()):
        times[name] += [_cpu_seconds(task) for _ in range(in_a_row)]
    return {name: 1e3 * min(values) for name, values in times.items()}


def _cpu_seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
