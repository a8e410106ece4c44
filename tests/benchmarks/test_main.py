"""The command line of the benchmarks."""

import re
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("ray")  # which one of the benchmarks measures
from benchmarks import __main__ as command_line
from benchmarks import figures, tables
from benchmarks.harness import runner
from tests.benchmarks.data_sets import with_data
from tests.places import ROOT

NAMES = [name for names in command_line.BENCHMARKS.values() for name in names]


def has_run(path):
    return re.search(r"^(def run\(|run = )", path.read_text(), flags=re.MULTILINE)


def test_every_benchmark_is_listed_where_it_stands():
    """The one list has every module with a `run`; `weighted_points` is a part of `weighted`."""
    folder = ROOT / "benchmarks"
    found = {
        place.name: {path.stem for path in place.glob("*.py") if has_run(path)}
        for place in folder.iterdir()
        if (place / "__init__.py").exists()
    }
    found["papers"].remove("weighted_points")
    assert found.pop("harness") == set()
    assert found == {folder: set(names) for folder, names in command_line.BENCHMARKS.items()}


def test_the_readme_lists_every_benchmark_and_csv():
    """Commands stand in the order of `all`, and every committed CSV is named."""
    text = (ROOT / "benchmarks" / "README.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|.*\|.*\|$", text, flags=re.MULTILINE) == NAMES
    assert set(re.findall(r"`(\w+\.csv)`", text)) == {
        path.name for path in runner.RESULTS.glob("*.csv")
    }
    assert all(len(line) <= 100 for line in text.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_has_what_a_command_needs(name):
    """Each module says in one line what it measures, names its data sets and has a CSV."""
    module = command_line.load_benchmarks()[name]
    assert module.__doc__.splitlines()[0].endswith(".")
    assert module.DATASETS
    assert callable(module.run)
    assert (runner.RESULTS / f"{name}.csv").exists()


@with_data
@pytest.mark.parametrize("name", sorted({*NAMES} - {"weighted"}))  # its points are not committed
def test_committed_csvs_have_every_point(name, monkeypatch, tmp_path):
    """A run on the committed CSVs adds no row, so their keys and columns are those of the code."""

    def refuse(file, row):
        raise AssertionError(f"{file.path.name} has no row {row}")

    monkeypatch.setattr(runner.ResultFile, "add", refuse)
    shutil.copytree(runner.RESULTS, tmp_path / "results")
    command_line.load_benchmarks()[name].run(runner.Options(folder=tmp_path / "results"))


def test_all_measures_everything_in_order(monkeypatch):
    """Each benchmark runs once in a new process, with jobs if it takes them; pages come last."""
    done = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: done.append(command))
    monkeypatch.setattr(tables, "write", lambda: done.append("tables"))
    monkeypatch.setattr(figures, "draw", lambda: done.append("figures"))
    command_line.main(["all", "--jobs", "2"])
    *commands, before_last, last = done
    assert all(command[:3] == [sys.executable, "-m", "benchmarks"] for command in commands)
    assert [command[3] for command in commands] == NAMES
    assert {command[3] for command in commands if command[4:] == ["--jobs", "2"]} == {
        "spaces",
        "loo_methods",
        "users",
        "drop_in",
        "bound_searches",
        "thresholds",
        "ensembles",
        "honesty",
        "stopping",
        "samplers",
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
        "peers",
        "truth",
        "gradients",
        "jumps",
        "mutations",
    }
    assert (before_last, last) == ("tables", "figures")


def test_a_benchmark_that_fails_ends_the_run(monkeypatch, capsys):
    """The command that failed is named, and nothing is measured after it."""

    def fail(command, check):
        raise subprocess.CalledProcessError(3, command)

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(SystemExit) as ended:
        command_line.main(["all"])
    assert ended.value.code == 3
    assert "This command has failed" in capsys.readouterr().err


def test_families_and_numbers_reach_the_benchmark(monkeypatch):
    """A benchmark of numbered problems calls its data sets families."""
    asked = []
    monkeypatch.setattr(command_line.load_benchmarks()["truth"], "run", asked.append)
    command_line.main(["truth", "--family", "norms", "--number", "7"])
    assert asked == [runner.Options(datasets=["norms"], number=7)]


def test_options_reach_the_benchmark(monkeypatch, tmp_path):
    """Data sets, splits and jobs are passed on; a quick run begins in an empty folder."""
    asked = []
    weighted = command_line.load_benchmarks()["weighted"]
    monkeypatch.setattr(weighted, "run", asked.append)
    quick = tmp_path / "quick"
    quick.mkdir()
    monkeypatch.setattr(command_line, "QUICK", quick)
    command_line.main(["weighted", "--datasets", "bank", "--splits", "3", "--jobs", "2"])
    assert asked.pop() == runner.Options(datasets=["bank"], splits=3, jobs=2)
    assert quick.exists()
    command_line.main(["weighted", "--quick"])
    assert asked.pop() == runner.Options(quick=True, folder=quick)
    assert not quick.exists()
