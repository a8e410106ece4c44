"""One CSV per benchmark: a row is written as soon as it is known, and a later run goes on."""

import csv
import platform
import time
from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy
import scipy
import sklearn
from threadpoolctl import threadpool_limits

import span_hpo

RESULTS = Path(__file__).parent / "results"


def machine() -> str:
    """Return what the figures were measured on."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        if names:
            model = names[0].split(":", 1)[1].strip()
    return f"{model}, {platform.system()}, Python {platform.python_version()}"


def versions() -> str:
    """Return the versions that decide the figures."""
    return (
        f"span_hpo {span_hpo.__version__}, numpy {numpy.__version__}, scipy {scipy.__version__}, "
        f"scikit-learn {sklearn.__version__}, piqp {metadata.version('piqp')}"
    )


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV, each a mapping from column to text."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


class ResultFile:
    """A CSV that grows row by row and knows what it holds.

    Parameters
    ----------
    path
        The file; an existing one is continued.
    key
        Columns that identify a row.
    columns
        The other columns. Versions and machine are added to every row.
    """

    def __init__(self, path: Path, *, key: list[str], columns: list[str]) -> None:
        self.path = path
        self.key = key
        self.columns = [*key, *columns, "versions", "machine"]
        self.rows = self._read()

    def add(self, row: Mapping[str, Any]) -> None:
        """Append one row; it is on disk when this returns."""
        full = {**row, "versions": versions(), "machine": machine()}
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
    ) -> None:
        """Measure every point that is not there yet, on one BLAS thread."""
        points = list(points)
        done_before = {self._key_of(row) for row in self.rows}
        todo = [point for point in points if self._key_of(point) not in done_before]
        if len(todo) < len(points):
            print(f"{self.path.name}: {len(points) - len(todo)} of {len(points)} points are there.")
        start = time.monotonic()
        for done, point in enumerate(todo, start=1):
            with threadpool_limits(1):
                self.add({**point, **measure(point)})
            left = (time.monotonic() - start) / done * (len(todo) - done)
            shown = ", ".join(f"{name} {value}" for name, value in point.items())
            print(f"[{done}/{len(todo)}, {left:.0f} s left] {shown}", flush=True)

    def _key_of(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in self.key)

    def _read(self) -> list[dict[str, str]]:
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return []
        text = self.path.read_text()
        if text and not text.endswith("\n"):
            # A run that was killed while it wrote: drop the half line, keep the rest.
            self.path.write_text(text[: text.rfind("\n") + 1])
        rows = read_rows(self.path)
        if rows and list(rows[0]) != self.columns:
            raise ValueError(
                f"{self.path} must have the columns {self.columns}, got {list(rows[0])}. "
                "Move it away to start anew."
            )
        return rows
