"""Command line of the benchmarks."""

import argparse
from types import ModuleType

from benchmarks import (
    calibration,
    classes,
    cluster,
    exact,
    figures,
    grid,
    growth,
    large,
    nodes,
    overhead,
    pruning,
    rivals,
    scale,
    search,
    speed,
    startup,
    tables,
)
from benchmarks.runner import QUICK, RESULTS, Options


def _options(given: argparse.Namespace) -> Options:
    folder = QUICK if given.quick else RESULTS
    return Options(given.datasets, given.quick, given.jobs, folder)


def _first_line(module: ModuleType) -> str:
    return (module.__doc__ or "").splitlines()[0]


def main() -> None:
    """Run one benchmark, or make tables and figures from the CSVs."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    measured = {
        "speed": speed,
        "grid": grid,
        "exact": exact,
        "growth": growth,
        "rivals": rivals,
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
    for name, module in measured.items():
        command = commands.add_parser(name, help=_first_line(module))
        command.add_argument(
            "--datasets", nargs="+", metavar="NAME", help=f"default: {' '.join(module.DATASETS)}"
        )
        command.add_argument("--jobs", type=int, default=1, help="number of processes")
        command.add_argument("--quick", action="store_true", help="a small part, in seconds")
        command.set_defaults(run=lambda options, module=module: module.run(_options(options)))
    command = commands.add_parser("tables", help=_first_line(tables))
    command.set_defaults(run=lambda options: tables.write())
    command = commands.add_parser("figures", help=_first_line(figures))
    command.set_defaults(run=lambda options: figures.draw())
    options = parser.parse_args()
    try:
        options.run(options)
    except FileNotFoundError as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    main()
