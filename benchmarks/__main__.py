"""Measure one benchmark or all of them, or make tables and figures from the CSVs."""

import argparse
import importlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields
from types import ModuleType

from benchmarks import figures, tables
from benchmarks.harness.runner import QUICK, Options

# Every benchmark by its folder, in the order in which `all` measures them: `nodes` reads the CSVs
# of `large`, `scale` and `cluster`.
BENCHMARKS = {
    "cost": (
        "speed",
        "evaluation",
        "gradient_cost",
        "spans",
        "exact",
        "search_points",
        "growth",
        "large",
        "classes",
        "startup",
        "first_fit",
        "scale",
    ),
    "search": (
        "search",
        "spaces",
        "loo_methods",
        "users",
        "drop_in",
        "ard",
        "bound_searches",
        "refine",
        "thresholds",
        "ensembles",
        "honesty",
        "stopping",
        "pruning",
        "overhead",
        "samplers",
        "cluster",
        "nodes",
    ),
    "papers": (
        "weighted",
        "ringnorm",
        "exact_selection",
        "rivals",
        "postal",
        "rescaling",
        "own_spans",
        "radius_margin",
        "bound_lines",
        "bound_contours",
    ),
    "peers": ("calibration", "peers", "grids"),
    "robustness": ("truth", "one_answer", "gradients", "jumps", "mutations", "chaos"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the arguments name, by default those of the command line."""
    modules = load_benchmarks()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in modules.items():
        command = commands.add_parser(name, help=_first_line(module), description=module.__doc__)
        command.formatter_class = argparse.RawDescriptionHelpFormatter
        _add_datasets(command, module)
        _add_options(command, _options_of(module))
        command.set_defaults(run=lambda given, module=module: module.run(_options(given)))
    quick = [module for module in modules.values() if "quick" in _options_of(module)]
    names = ", ".join(name for name, module in modules.items() if module in quick)
    command = commands.add_parser("papers", help=f"Measure what `--quick` can try: {names}.")
    _add_options(command, ("jobs", "quick"))
    command.set_defaults(run=lambda given: _measure(quick, _options(given)))
    command = commands.add_parser(
        "all", help="Measure every benchmark, then write the tables and draw the figures."
    )
    _add_options(command, ("jobs",))
    command.set_defaults(run=lambda given: _measure_all(modules, given.jobs))
    command = commands.add_parser("tables", help=_first_line(tables))
    command.set_defaults(run=lambda given: tables.write())
    command = commands.add_parser("figures", help=_first_line(figures))
    command.set_defaults(run=lambda given: figures.draw())
    given = parser.parse_args(arguments)
    try:
        given.run(given)
    except (FileNotFoundError, ModuleNotFoundError, ConnectionError) as error:
        parser.exit(2, f"{error}\n")
    except subprocess.CalledProcessError as error:
        parser.exit(error.returncode, f"This command has failed: {' '.join(error.cmd)}\n")


def load_benchmarks() -> dict[str, ModuleType]:
    """Return the module of every benchmark by its name, in the order of `BENCHMARKS`."""
    return {
        name: importlib.import_module(f"benchmarks.{folder}.{name}")
        for folder, names in BENCHMARKS.items()
        for name in names
    }


def _measure(modules: Sequence[ModuleType], options: Options) -> None:
    for module in modules:
        module.run(options)


def _measure_all(modules: dict[str, ModuleType], jobs: int) -> None:
    """Measure each benchmark in a new process: `large` reports the memory of its own."""
    for name, module in modules.items():
        command = [sys.executable, "-m", "benchmarks", name]
        if "jobs" in _options_of(module):
            command += ["--jobs", str(jobs)]
        subprocess.run(command, check=True)
    tables.write()
    figures.draw()


def _options_of(module: ModuleType) -> tuple[str, ...]:
    """Return the options that a benchmark takes beside ``--datasets``."""
    options: tuple[str, ...] = getattr(module, "OPTIONS", ())
    return options


def _add_datasets(command: argparse.ArgumentParser, module: ModuleType) -> None:
    names: list[str] = module.DATASETS
    # What a benchmark of numbered problems calls a family is a data set of the others.
    flags = ["--datasets", "--family"] if "number" in _options_of(module) else ["--datasets"]
    command.add_argument(
        *flags, nargs="+", choices=names, metavar="NAME", help=f"default: {' '.join(names)}"
    )


def _add_options(command: argparse.ArgumentParser, names: Sequence[str]) -> None:
    if "jobs" in names:
        command.add_argument("--jobs", type=int, default=1, help="number of processes")
    if "quick" in names:
        command.add_argument(
            "--quick", action="store_true", help="measure a small part, within seconds"
        )
    if "splits" in names:
        command.add_argument("--splits", type=int, help="most splits of a data set")
    if "number" in names:
        command.add_argument(
            "--number", type=int, help="print the problem of this number in detail, and end"
        )


def _options(given: argparse.Namespace) -> Options:
    """Return the options of a benchmark; a quick run begins in an empty folder of its own."""
    names = {field.name for field in fields(Options)}
    asked = {name: value for name, value in vars(given).items() if name in names}
    if asked.get("quick"):
        shutil.rmtree(QUICK, ignore_errors=True)
        asked["folder"] = QUICK
    return Options(**asked)


def _first_line(module: ModuleType) -> str:
    return (module.__doc__ or "").splitlines()[0]


if __name__ == "__main__":
    main()
