"""What damaged files do to each reader: errors without a message, memory and time.

Whole files are damaged in one to three ways: bytes, words, lines, numbers and line ends, every node
of JSON, the description of Parquet, and compressed bombs. A process reads them one after the other
and uses what it accepts: models predict and are written again, rows are scaled, and the command
line predicts and evaluates. A traceback is any end but an answer or an error that says what is
wanted. Memory is the peak beyond that of the process after it has read whole files, in megabytes.
"""

from collections.abc import Mapping
from typing import Any

from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, Options, combinations, rows_with
from benchmarks.robustness.targets import TARGETS
from benchmarks.robustness.watched import Outcome, outcomes

DATASETS = list(TARGETS)
OPTIONS = ("jobs", "quick")
MUTATIONS = 10_000  # of each reader
MOST_MEMORY, LONGEST = 200.0, 5.0  # megabytes and seconds that no file may exceed
_OF_SEED = 1000  # mutations with one seed, which is one row of the CSV
_OF_QUICK = 30  # mutations of each reader in a quick run
_COLUMNS = [
    *("accepted", "refused", "tracebacks", "over_memory", "over_time"),
    *("largest_memory", "longest_seconds"),
]


def _points(options: Options) -> list[dict[str, Any]]:
    seeds, count = range(MUTATIONS // _OF_SEED), _OF_SEED
    if options.quick:
        seeds, count = range(1), _OF_QUICK
    return combinations(reader=options.datasets or DATASETS, seed=seeds, mutations=[count])


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    return summary(list(outcomes(point["reader"], point["seed"], point["mutations"])))


def summary(found: list[Outcome]) -> dict[str, Any]:
    """Return the columns of the CSV for the outcomes of some damaged files."""
    ends = [outcome.end for outcome in found]
    return {
        "accepted": ends.count("accepted"),
        "refused": ends.count("refused"),
        "tracebacks": ends.count("traceback"),
        "over_memory": sum(outcome.memory > MOST_MEMORY for outcome in found),
        "over_time": sum(outcome.seconds > LONGEST for outcome in found),
        "largest_memory": round(max(outcome.memory for outcome in found), 1),
        "longest_seconds": round(max(outcome.seconds for outcome in found), 3),
    }


def table() -> str:
    """Return what damaged files have done to each reader, as Markdown."""
    rows = BENCHMARK.rows()
    lines = []
    for reader in DATASETS:
        own = rows_with(rows, reader=reader)
        counts = [
            sum(int(row[name]) for row in own)
            for name in ("mutations", "accepted", "refused", "tracebacks")
        ]
        memory = max(float(row["largest_memory"]) for row in own)
        seconds = max(float(row["longest_seconds"]) for row in own)
        cells = [f"{count:,}" for count in counts]
        lines.append([reader, *cells, f"{memory:.0f} MB", f"{seconds:.1f} s"])
    heads = ["damaged", "files", "accepted", "refused", "tracebacks", "most memory", "longest"]
    return markdown_table(heads, lines)


BENCHMARK = Benchmark("mutations.csv", _points, _measure, _COLUMNS)
run = BENCHMARK.run
