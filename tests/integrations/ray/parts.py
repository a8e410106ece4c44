"""What tests send to Ray's workers, and a process that runs a tuner until it is killed.

``python -m tests.integrations.ray.parts FOLDER`` runs trials that take their time.
"""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

from span_hpo import SpanObjective
from tests.problems import two_moons

SAMPLES = 10
BUDGETS = (40, 80, 120)


def error(y, f):
    """Return the share of wrong signs."""
    return float((y * f <= 0).mean())


class Logged:
    """The error, which notes every call in a file, may take its time, and may kill its process."""

    def __init__(self, folder, seconds=0.0, kill_at=None):
        self.folder = folder
        self.seconds = seconds
        self.kill_at = kill_at

    def __call__(self, y, f):
        """Return the error; at `kill_at` rows the first process that comes by dies."""
        marker = Path(self.folder) / "killed"
        if len(y) == self.kill_at and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self.seconds)
        with (Path(self.folder) / "calls").open("a") as file:
            file.write(f"{len(y)} {np.abs(f).sum():.12g} {os.getpid()}\n")
        return error(y, f)


class FailsFrom:
    """The error, which fails where the decision values add up to more (or less) than a limit."""

    def __init__(self, limit, above):
        self.limit = limit
        self.above = above

    def __call__(self, y, f):
        """Return the error, or raise."""
        if (np.abs(f).sum() > self.limit) == self.above:
            raise RuntimeError("too narrow")
        return error(y, f)


def calls(folder):
    """Return what was noted: rows, a mark of the decision values, the process."""
    lines = (Path(folder) / "calls").read_text().splitlines()
    return [(int(rows), mark, int(pid)) for rows, mark, pid in map(str.split, lines)]


def blas_threads(y, f):
    """Return how many threads BLAS may use here, as a loss."""
    return float(max(library["num_threads"] for library in threadpool_info()))


def moons(**settings):
    """Return an objective of 120 rows."""
    return SpanObjective(*two_moons(120), **settings)


def slow_objective(folder):
    """Return an objective whose evaluations take a while."""
    return moons(metric=Logged(str(folder), seconds=0.3))


def main(folder):
    """Run trials in a cluster of this process."""
    import ray

    from span_hpo.integrations.ray import tuner

    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    tuner(
        slow_objective(folder),
        num_samples=SAMPLES,
        scheduler=None,
        budgets=BUDGETS,
        seed=0,
        storage_path=folder,
        name="run",
    ).fit()


if __name__ == "__main__":
    main(sys.argv[1])
