"""The command line as users run it: a process with files, pipes or a terminal."""

import hashlib
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from span_hpo.cli import main
from tests.problems import two_moons
from tests.processes import ENVIRONMENT, ended

PROGRAM = [sys.executable, "-m", "span_hpo"]
NOT_FEATURES = ("--drop", "trust", "--drop", "clinic")


def run(*arguments, folder, code=0):
    """Run the command in a process and return what it prints, if it ends as it should."""
    found = ended([*PROGRAM, *map(str, arguments)], folder)
    assert found.returncode == code, found.stderr
    assert "Traceback" not in found.stderr
    if code:
        assert found.stdout == ""
        assert len(found.stderr.splitlines()) == 1, found.stderr
        return found.stderr
    return found.stdout


def heeds_ctrl_c():
    """Let a new process heed Ctrl-C, even if this one was started in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def started(*arguments, folder):
    """Run the command in a process, and see that it ends with the test."""
    with subprocess.Popen(
        [*PROGRAM, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heeds_ctrl_c,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def call(*arguments, capsys, code=0):
    """Run the command in this process, which is faster."""
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert stopped.value.code == code, printed.err
    if code:
        assert len(printed.err.splitlines()) == 1, printed.err
        return printed.err
    return printed.out


def hashes(folder):
    """Return what every file of a folder holds."""
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def moons_table(rows=120):
    """Return a table of numbers, a category that matters, and labels with names."""
    X, y = two_moons(rows)
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "x": X[:, 0],
            "z": X[:, 1] * 40 + 7,
            "town": np.where(rng.random(rows) < 0.2, rng.choice(["a", "b"], rows), "c"),
            "trust": rng.random(rows).round(3),
            "clinic": rng.choice(["north", "south"], rows),
            "label": np.where(y > 0, "good", "bad"),
        }
    )


def wait_for_trials(path, size=20_000):
    """Wait until a storage has grown to some trials."""
    deadline = time.monotonic() + 120  # the first fit after an installation compiles
    while time.monotonic() < deadline:
        if path.exists() and path.stat().st_size > size + (150_000 if path.suffix == ".db" else 0):
            return
        time.sleep(0.005)
    raise AssertionError(f"{path} does not grow")
