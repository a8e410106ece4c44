"""CPU time of several tasks, measured in turn."""

import time
from collections.abc import Callable, Mapping
from typing import Any


def cpu_milliseconds(
    tasks: Mapping[str, Callable[[], Any]], *, repeats: int = 3, in_a_row: int = 3
) -> dict[str, float]:
    """Return the least CPU time of each task, in milliseconds.

    In turn, so that a busy moment of the machine meets all of them; each several times in a row,
    as in a search, so that none pays for the memory that another has used.
    """
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for name, task in repeats * list(tasks.items()):
        times[name] += [_cpu_seconds(task) for _ in range(in_a_row)]
    return {name: 1e3 * min(values) for name, values in times.items()}


def _cpu_seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
