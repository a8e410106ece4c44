"""Running other processes, and waiting for them."""

import os
import subprocess
import time
from pathlib import Path

from tests.places import ROOT

ENVIRONMENT_OF_TESTS = {"PYTHONPATH": str(ROOT)}
ENVIRONMENT = {**os.environ, **ENVIRONMENT_OF_TESTS}


def ended(command, folder, **environment):
    """Run a command in a folder, and return what it prints and how it ends."""
    return subprocess.run(
        command,
        cwd=folder,
        # As it is now: a cluster of Ray has put its token into the environment since the import.
        env={**os.environ, **ENVIRONMENT_OF_TESTS, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)


def is_running(process):
    """Tell whether there is such a process, not one that has ended and waits to be asked."""
    status = Path(f"/proc/{process}/stat")
    try:
        return status.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
