"""Command line of the benchmarks."""

import argparse
import shutil
from dataclasses import fields
from types import ModuleType

from benchmarks import figures, tables
from benchmarks.cost import classes, exact, growth, large, scale, speed, startup
from benchmarks.harness.runner import QUICK, Options
from benchmarks.papers import exact_selection, postal, ringnorm, rivals, weighted
from benchmarks.peers import calibration, peers
from benchmarks.search import cluster, nodes, overhead, pruning, samplers, search

MEASURED = {
    "speed": speed,
    "exact": exact,
    "growth": growth,
    "large": large,
    "classes": classes,
    "startup": startup,
    "search": search,
    "pruning": pruning,
    "overhead": overhead,
    "calibration": calibration,
    "cluster": cluster,
    "scale": scale,
    "nodes": nodes,
}
PAPERS = {
    "weighted": weighted,
    "ringnorm": ringnorm,
    "exact_selection": exact_selection,
    "rivals": rivals,
    "postal": postal,
    "samplers": samplers,
    "peers": peers,
}


def _add_datasets(command: argparse.ArgumentParser, names: list[str]) -> None:
    command.add_argument(
        "--datasets", nargs="+", choices=names, metavar="NAME", help=f"default: {' '.join(names)}"
    )


def _add_extent(command: argparse.ArgumentParser) -> None:
    command.add_argument("--jobs", type=int, default=1, help="number of processes")
    command.add_argument("--quick", action="store_true", help="a small part, in seconds")


def _options(given: argparse.Namespace) -> Options:
    """Return what was asked for; a quick run begins in an empty folder of its own."""
    names = {field.name for field in fields(Options)}
    asked = {name: value for name, value in vars(given).items() if name in names}
    if asked.get("quick"):
        shutil.rmtree(QUICK, ignore_errors=True)
        asked["folder"] = QUICK
    return Options(**asked)


def _run_papers(given: argparse.Namespace) -> None:
    options = _options(given)
    for module in PAPERS.values():
        module.run(options)


def _first_line(module: ModuleType) -> str:
    return (module.__doc__ or "").splitlines()[0]


def main() -> None:
    """Run one benchmark, or make tables and figures from the CSVs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, module in (MEASURED | PAPERS).items():
        command = commands.add_parser(name, help=_first_line(module))
        _add_datasets(command, module.DATASETS)
        if name in PAPERS:
            _add_extent(command)
        if module is weighted:
            command.add_argument("--splits", type=int, help="at most so many of a data set")
        command.set_defaults(run=lambda given, module=module: module.run(_options(given)))
    command = commands.add_parser("papers", help=f"All of {', '.join(PAPERS)}.")
    _add_extent(command)
    command.set_defaults(run=_run_papers)
    command = commands.add_parser("tables", help=_first_line(tables))
    command.set_defaults(run=lambda options: tables.write())
    command = commands.add_parser("figures", help=_first_line(figures))
    command.set_defaults(run=lambda options: figures.draw())
    options = parser.parse_args()
    try:
        options.run(options)
    except (FileNotFoundError, ConnectionError) as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    main()
