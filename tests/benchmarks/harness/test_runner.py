"""The CSVs of results: rows are on disk at once, and a later run goes on."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.harness import runner
from benchmarks.harness.runner import (
    Benchmark,
    Options,
    ResultFile,
    combinations,
    grid_points,
    read_rows,
    rows_with,
)
from tests.places import ROOT
from tests.processes import is_running, wait_for


def results(path):
    return ResultFile(path, key=["name", "C"], columns=["value"])


def test_a_row_is_on_disk_as_soon_as_it_is_known(tmp_path):
    """Another reader sees each row at once, with versions and machine."""
    path = tmp_path / "new" / "x.csv"
    file = results(path)
    file.add({"name": "a", "C": 0.5, "value": 1.25})
    (row,) = read_rows(path)
    assert (row["name"], row["C"], row["value"]) == ("a", "0.5", "1.25")
    assert "scikit-learn" in row["versions"]
    assert "Python" in row["machine"]


def test_a_later_run_goes_on(tmp_path, capsys):
    """Points that are in the file are not measured again, even after a crash."""
    path = tmp_path / "x.csv"
    points = [{"name": name, "C": C} for name in "ab" for C in (0.1, 2.0**-6)]
    measured = []

    def measure(point):
        measured.append((point["name"], point["C"]))
        if len(measured) == 3:
            raise KeyboardInterrupt
        return {"value": len(measured)}

    with pytest.raises(KeyboardInterrupt):
        results(path).complete(points, measure)
    results(path).complete(points, measure)
    assert len(measured) == 5  # the third was begun twice
    assert [row["name"] + row["C"] for row in read_rows(path)] == [
        "a0.1",
        "a0.015625",
        "b0.1",
        "b0.015625",
    ]
    assert "x.csv already has 2 of 4 points" in capsys.readouterr().out


def test_points_are_all_combinations():
    """The last name varies fastest, and points are the key of their CSV."""
    assert combinations(name="ab", C=(1, 2)) == [
        {"name": "a", "C": 1},
        {"name": "a", "C": 2},
        {"name": "b", "C": 1},
        {"name": "b", "C": 2},
    ]


def test_rows_are_chosen_by_their_columns():
    """All given columns must agree, also one that is called `rows`."""
    rows = [{"rows": "1", "C": "2"}, {"rows": "1", "C": "4"}, {"rows": "3", "C": "2"}]
    assert rows_with(rows, rows="1", C="2") == rows[:1]
    assert rows_with(rows) == rows


def test_data_sets_of_a_grid_can_be_chosen():
    """Without a choice all values of the first name are points; the other values always are."""
    points = grid_points(dataset=("a", "b"), C=(1, 2))
    assert points(Options()) == combinations(dataset="ab", C=(1, 2))
    assert points(Options(datasets=["b"])) == [{"dataset": "b", "C": 1}, {"dataset": "b", "C": 2}]


def test_a_benchmark_completes_its_csv(tmp_path, monkeypatch):
    """The columns are the key, what is measured and the stamp; a second run measures nothing."""
    points, options = grid_points(name="a", C=(1, 2)), Options(folder=tmp_path)
    ten_times = Benchmark("x.csv", points, lambda point: {"value": 10 * point["C"]}, ["value"])
    file = ten_times.run(options)
    assert (file.key, file.columns[2:]) == (["name", "C"], ["value", "versions", "machine"])
    again = Benchmark("x.csv", points, lambda point: {}, ["value"]).run(options)
    assert [row["value"] for row in again.rows] == ["10", "20"]
    monkeypatch.setattr(runner, "RESULTS", tmp_path)
    assert ten_times.rows() == again.rows


def own_process(point):
    """Return the number of the process that measures; several jobs need a function of a module."""
    return {"value": os.getpid()}


def test_several_processes_keep_the_order(tmp_path):
    """With two jobs rows come in the order of the points, and none from this process."""
    points = [{"name": "a", "C": C} for C in range(12)]
    file = results(tmp_path / "x.csv")
    file.complete(points, own_process, jobs=2)
    assert [row["C"] for row in file.rows] == [str(C) for C in range(12)]
    assert str(os.getpid()) not in {row["value"] for row in file.rows}


def report_and_sleep(point):
    """Create a file named by the number of this process, then sleep."""
    (Path(point["name"]) / str(os.getpid())).touch()
    time.sleep(600)


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are looked up in /proc")
def test_workers_of_a_killed_run_end(tmp_path):
    """When the process that started them is killed, no worker is left."""
    run = f"""
from tests.benchmarks.harness.test_runner import report_and_sleep, results
from pathlib import Path
points = [{{"name": {str(tmp_path)!r}, "C": C}} for C in range(2)]
if __name__ == "__main__":
    results(Path({str(tmp_path / "x.csv")!r})).complete(points, report_and_sleep, jobs=2)
"""
    script = tmp_path / "run.py"
    script.write_text(run)
    started = subprocess.Popen(
        [sys.executable, script],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
    )

    def workers():
        return [int(file.name) for file in tmp_path.iterdir() if file.name.isdigit()]

    try:
        wait_for(lambda: len(workers()) == 2, seconds=120)
    finally:
        started.kill()
        started.wait()
    wait_for(lambda: not any(is_running(worker) for worker in workers()), seconds=120)


def test_a_half_written_line_is_dropped(tmp_path):
    """A run that was killed while it wrote loses that row only."""
    path = tmp_path / "x.csv"
    file = results(path)
    file.add({"name": "a", "C": 1, "value": 1})
    file.add({"name": "b", "C": 1, "value": 2})
    path.write_bytes(path.read_bytes()[:-40])
    again = results(path)
    assert [row["name"] for row in again.rows] == ["a"]
    again.add({"name": "b", "C": 1, "value": 3})
    assert [row["value"] for row in read_rows(path)] == ["1", "3"]


def test_other_columns_are_not_mixed(tmp_path):
    """A file of another benchmark, and a row with other columns, are refused."""
    path = tmp_path / "x.csv"
    results(path).add({"name": "a", "C": 1, "value": 1})
    with pytest.raises(ValueError, match="must have the columns"):
        ResultFile(path, key=["name"], columns=["other"])
    with pytest.raises(ValueError, match=r"missing=\['value'\]"):
        results(path).add({"name": "b", "C": 1})
