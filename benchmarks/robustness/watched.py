"""Read damaged files in a process that is watched: time, memory, and how reading ends."""

import contextlib
import multiprocessing
import resource
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.robustness.targets import TARGETS
from span_hpo.errors import SolverError

_LONGEST = 60.0  # seconds after which a process that reads a file is ended
_MOST_MEMORY = 3 * 2**30  # bytes of address space beyond those of the process at its start
_STATUS = Path("/proc/self/status")
_PEAK = Path("/proc/self/clear_refs")  # writing 5 sets the peak of the memory to its present value


@dataclass(frozen=True)
class Outcome:
    """How the reading of one damaged file has ended.

    Attributes
    ----------
    end
        "accepted"; "refused", by an error that says what is wanted; or "traceback", by any other
        error, the end of the process, or no end.
    reason
        Message of the error, if there was one.
    memory
        Megabytes at the peak, beyond those of the process after it has read whole files.
    seconds
        Time that reading has taken.
    """

    end: str
    reason: str
    memory: float
    seconds: float


def damaged_file(target: str, seed: int, number: int) -> tuple[str, bytes]:
    """Return the name and the content of a damaged file, which are always the same."""
    reader = TARGETS[target]
    rng = np.random.default_rng([seed, number, sorted(TARGETS).index(target)])
    files = reader.files()
    name, content = files[int(rng.integers(len(files)))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return name, reader.damage(name, content, rng)


def outcomes(target: str, seed: int, count: int) -> Iterator[Outcome]:
    """Yield how the reading of each of many damaged files ends.

    The file of a traceback is kept in the folder of temporary files.
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        reader = None
        for number in range(count):
            name, content = damaged_file(target, seed, number)
            path = Path(folder) / name
            path.write_bytes(content)
            if reader is None:
                reader = stack.enter_context(_started(target))
            outcome = _asked(reader, path)
            yield outcome
            path.unlink(missing_ok=True)
            if outcome.end == "traceback":
                kept = Path(tempfile.gettempdir()) / f"damaged-{target}-{seed}-{number}-{name}"
                kept.write_bytes(content)
                stack.close()
                reader = None


@contextlib.contextmanager
def _started(target: str) -> Iterator[Connection]:
    """Start a process that reads files, and yield the connection to it when it is ready."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_read_all, args=(theirs, target))
    process.start()
    theirs.close()
    try:
        ours.recv()
        yield ours
    finally:
        process.kill()
        process.join()


def _asked(reader: Connection, path: Path) -> Outcome:
    """Return what a process reports about a file, and a traceback if it does not report."""
    try:
        reader.send(path)
        if not reader.poll(_LONGEST):
            return Outcome("traceback", "it did not end", 0.0, _LONGEST)
        outcome: Outcome = reader.recv()
    except (EOFError, ConnectionError):
        return Outcome("traceback", "the process has ended", 0.0, 0.0)
    return outcome


def _read_all(connection: Connection, target: str) -> None:
    """Read files one after the other, and report each of them."""
    warnings.simplefilter("ignore")
    read = TARGETS[target].read
    with tempfile.TemporaryDirectory() as folder:
        for name, content in TARGETS[target].files():
            path = Path(folder) / name
            path.write_bytes(content)
            read(path)  # imports what reading needs
    baseline = _megabytes("VmRSS")
    _limit_memory()
    connection.send("ready")
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            connection.send(_outcome(read, connection.recv(), baseline))


def _outcome(read: Any, path: Path, baseline: float) -> Outcome:
    _PEAK.write_text("5")
    start = time.perf_counter()
    end, reason = "accepted", ""
    try:
        read(path)
    except (ValueError, TypeError, OSError, SolverError) as error:
        reason = str(error)
        says_what_is_wanted = " must " in reason or isinstance(error, SolverError)
        end = "refused" if says_what_is_wanted else "traceback"
        if end == "traceback":
            reason = traceback.format_exc()
    except BaseException:  # noqa: BLE001  whatever a file can cause is counted
        end, reason = "traceback", traceback.format_exc()
    seconds = time.perf_counter() - start
    return Outcome(end, reason, max(0.0, _megabytes("VmHWM") - baseline), seconds)


def _megabytes(name: str) -> float:
    """Return an entry about the memory of this process."""
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024 / 1e6


def _limit_memory() -> None:
    """Let this process fail, rather than the machine, if a file takes gigabytes."""
    size = int(_megabytes("VmSize") * 1e6) + _MOST_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
