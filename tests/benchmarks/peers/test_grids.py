"""The comparison of a grid with liquidSVM."""

from dataclasses import replace

from benchmarks.harness.runner import Options
from benchmarks.peers import grids
from benchmarks.peers.libraries import PEERS, importer
from tests.benchmarks.results import lines_of, rows_of


def test_without_liquidsvm_nothing_is_measured(tmp_path, capsys, monkeypatch):
    """The reason is printed, and no row is written."""
    absent = replace(PEERS["liquidsvm"], load=importer("no_such_package_of_anyone"))
    monkeypatch.setitem(PEERS, "liquidsvm", absent)
    assert grids.run(Options(folder=tmp_path)).rows == []
    assert "No grid is measured because liquidSVM is not installed" in capsys.readouterr().out


def test_table_has_the_ratios_of_the_csv():
    """Every data set has a line, whose ratio is that of the two times."""
    lines = lines_of(grids.table())
    assert list(lines) == grids.DATASETS
    for row in rows_of("grids.csv"):
        assert row["points"] == "81"
        ratio = float(row["span_rule_ms"]) / float(row["liquidsvm_ms"])
        assert lines[row["dataset"]][3] == f"{ratio:.2f}"
