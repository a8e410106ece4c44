"""CSVs of results: each row is written as soon as it is measured, and a later run continues."""

import contextlib
import csv
import functools
import multiprocessing
import os
import platform
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from itertools import product
from pathlib import Path
from typing import Any

import numpy
import scipy
import sklearn
from threadpoolctl import threadpool_limits
from tqdm import tqdm

import span_hpo

RESULTS = Path(__file__).parents[1] / "results"
QUICK = Path(__file__).parents[1] / "quick"  # not in the repository
_POINTS_AT_ONCE = 4  # most points that a process gets at a time; a killed run may lose them
_SHARES = 100  # a process gets at most one hundredth of the points at a time


@dataclass(frozen=True)
class Options:
    """Options of the command line that a benchmark receives.

    Attributes
    ----------
    datasets
        Names of the data sets; None for all that the benchmark knows.
    quick
        Measure a small part only, to try the code within seconds.
    jobs
        Number of processes.
    folder
        Folder of the CSVs.
    splits
        Largest number of splits of a data set; None for the limit of the benchmark. Only
        `benchmarks.papers.weighted` uses it.
    number
        Print the problem of this number instead of measuring. Only `benchmarks.robustness.truth`
        uses it.
    """

    datasets: list[str] | None = None
    quick: bool = False
    jobs: int = 1
    folder: Path = RESULTS
    splits: int | None = None
    number: int | None = None


def machine() -> str:
    """Return the processor, the operating system and the version of Python."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        if names:
            model = names[0].split(":", 1)[1].strip()
    return f"{model}, {platform.system()}, Python {platform.python_version()}"


def versions() -> str:
    """Return the versions of the packages that affect the figures."""
    return (
        f"span_hpo {span_hpo.__version__}, numpy {numpy.__version__}, scipy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, piqp {metadata.version('piqp')}"
    )


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV, each a mapping from column to text."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def rows_with(rows: Iterable[dict[str, str]], /, **values: str) -> list[dict[str, str]]:
    """Return the rows of a CSV whose columns hold these texts."""
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def combinations(**values: Iterable[Any]) -> list[dict[str, Any]]:
    """Return a point for every combination of the values; the last name varies fastest."""
    return [dict(zip(values, point, strict=True)) for point in product(*values.values())]


class ResultFile:
    """A CSV to which rows are appended; a point that has a row is not measured again.

    Parameters
    ----------
    path
        The file; an existing one is continued.
    key
        Columns that identify a row.
    columns
        The other columns.
    stamped
        Add versions and machine to every row.
    """

    def __init__(
        self, path: Path, *, key: list[str], columns: list[str], stamped: bool = True
    ) -> None:
        self.path = path
        self.key = key
        self.stamp = {"versions": versions(), "machine": machine()} if stamped else {}
        self.columns = [*key, *columns, *self.stamp]
        self.rows = self._read()

    def add(self, row: Mapping[str, Any]) -> None:
        """Append one row; it is on disk when this returns."""
        full = {**row, **self.stamp}
        missing = [name for name in self.columns if name not in full]
        unknown = [name for name in full if name not in self.columns]
        if missing or unknown:
            raise ValueError(f"`row` must have exactly {self.columns}: {missing=}, {unknown=}.")
        written = {name: str(full[name]) for name in self.columns}
        with self.path.open("a", newline="") as file:
            writer = csv.DictWriter(file, self.columns)
            if not self.rows and file.tell() == 0:
                writer.writeheader()
            writer.writerow(written)
        self.rows.append(written)

    def complete(
        self,
        points: Iterable[Mapping[str, Any]],
        measure: Callable[[Mapping[str, Any]], Mapping[str, Any]],
        *,
        jobs: int = 1,
    ) -> None:
        """Measure every point that has no row yet, each on one BLAS thread.

        Parameters
        ----------
        points
            The keys of all rows.
        measure
            Function that returns the other columns of a point. With several jobs it must belong
            to a module, so that other processes can import it.
        jobs
            Number of processes.
        """
        points = list(points)
        done_before = {self._key_of(row) for row in self.rows}
        todo = [point for point in points if self._key_of(point) not in done_before]
        if len(todo) < len(points):
            print(
                f"{self.path.name} already has {len(points) - len(todo)} of {len(points)} points."
            )
        measured = _measured(todo, functools.partial(_on_one_thread, measure), jobs)
        bar = tqdm(total=len(todo), desc=self.path.stem, disable=not todo)
        with bar, contextlib.closing(measured):
            for point, found in zip(todo, measured, strict=True):
                self.add({**point, **found})
                bar.set_postfix_str(" ".join(str(value) for value in point.values()), refresh=False)
                bar.update()

    def _key_of(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in self.key)

    def _read(self) -> list[dict[str, str]]:
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return []
        text = self.path.read_text()
        if text and not text.endswith("\n"):
            # A run that was killed while writing left half a line: drop it, keep the rest.
            self.path.write_text(text[: text.rfind("\n") + 1])
        rows = read_rows(self.path)
        if rows and list(rows[0]) != self.columns:
            raise ValueError(
                f"{self.path} must have the columns {self.columns}, got {list(rows[0])}. "
                "Move it away to start anew."
            )
        return rows


@dataclass(frozen=True)
class Benchmark:
    """What is measured and where it is written.

    Attributes
    ----------
    csv
        Name of the CSV.
    points
        Function from the options to the keys of all rows, at least one.
    measure
        Function that returns the other columns of a point. With several jobs it must belong to a
        module, so that other processes can import it.
    columns
        Names of the other columns.
    """

    csv: str
    points: Callable[[Options], list[dict[str, Any]]]
    measure: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    columns: list[str]

    def run(self, options: Options) -> ResultFile:
        """Measure every point that is not in the CSV yet."""
        path, points = options.folder / self.csv, self.points(options)
        results = ResultFile(path, key=list(points[0]), columns=self.columns)
        results.complete(points, self.measure, jobs=options.jobs)
        return results

    def rows(self) -> list[dict[str, str]]:
        """Return the rows of the committed CSV."""
        return read_rows(RESULTS / self.csv)


def grid_points(**values: Iterable[Any]) -> Callable[[Options], list[dict[str, Any]]]:
    """Return a function from the options to all combinations of the values.

    The first values are the data sets; the options may choose some of them.
    """
    first = next(iter(values))
    return lambda options: combinations(**{**values, first: options.datasets or values[first]})


def _measured(
    points: list[Mapping[str, Any]],
    measure: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    jobs: int,
) -> Generator[Mapping[str, Any], None, None]:
    """Yield the measured columns of each point, in the order of the points."""
    if jobs == 1 or len(points) < 2:
        yield from map(measure, points)
        return
    # New processes: a fork would inherit the threads of BLAS in an unknown state.
    context = multiprocessing.get_context("spawn")
    at_once = max(1, min(_POINTS_AT_ONCE, len(points) // _SHARES))
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_end_with_parent) as pool:
        try:
            yield from pool.map(measure, points, chunksize=at_once)
        finally:
            pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """End this process when its parent has ended, even if the parent was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _on_one_thread(
    measure: Callable[[Mapping[str, Any]], Mapping[str, Any]], point: Mapping[str, Any]
) -> Mapping[str, Any]:
    with threadpool_limits(1):
        return measure(point)
