"""The comparison with other packages: who is measured, and what the table shows."""

from dataclasses import replace

import pytest

from benchmarks.harness.runner import RESULTS, Options, read_rows
from benchmarks.peers import peers
from benchmarks.peers.libraries import PEERS, importer
from tests.benchmarks.data_sets import with_data


@with_data
def test_quick_run_has_a_row_for_every_installed_peer(tmp_path, capsys, monkeypatch):
    """Installed peers are measured; for others the reason is printed, and they have no row."""
    absent = replace(PEERS["dlib"], title="Absent", load=importer("no_such_package_of_anyone"))
    monkeypatch.setitem(PEERS, "absent", absent)
    found = peers.run(Options(quick=True, folder=tmp_path))
    printed = capsys.readouterr().out
    assert "Absent is left out because dlib is not installed: No module named 'no_such" in printed
    measured = [row["peer"] for row in found.rows]
    for key, peer in PEERS.items():
        assert (key in measured) != (f"{peer.title} is left out" in printed), key
    assert {"span_rule", "span_smooth", "span_exact", "grid_search", "halving"} <= set(measured)
    assert {row["dataset"] for row in found.rows} == {peers.DATASETS[0]}
    for row in found.rows:
        assert int(row["points"]) == 9
        assert 0 < float(row["test_error"]) < 1


def test_table_has_what_the_csv_has(tmp_path):
    """Cells are figures of the CSV by the fit of the grid's or of own points; no row, no figure."""
    path = tmp_path / "peers.csv"
    path.write_text(
        "dataset,peer,cpu_per_point_ms,svc_fit_ms,test_error\n"
        "one,grid_search,21.0,2.0,0.25\n"
        "one,libsvm,1.5,4.0,0.12345\n"
        "one,liquidsvm,1.5,100.0,0.75\n"
        "two,libsvm,10.0,10.0,0.5\n"
    )
    lines = peers.table(path).splitlines()
    assert lines[0] == "| point / `SVC.fit` (test error) | one | two |"
    cells = {line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ")[1:] for line in lines}
    assert cells["`GridSearchCV`"] == ["7.00 (0.2500)", "not installed"]
    assert cells["LIBSVM `-v 5`"] == ["0.50 (0.1235)", "1.00 (0.5000)"]
    assert cells["liquidSVM"] == ["0.01 (0.7500)", "not installed"]
    assert cells["dlib"] == ["not installed", "not installed"]
    assert cells["`SVC.fit`, median, ms"] == ["3", "10"]
    assert len(lines) == 2 + len(PEERS) + 1


def test_committed_figures_belong_together():
    """The CSV has all data sets, known peers only, and ratios that follow from its times."""
    rows = read_rows(RESULTS / "peers.csv")
    assert {row["dataset"] for row in rows} == set(peers.DATASETS)
    assert {row["peer"] for row in rows} <= set(PEERS)
    for row in rows:
        number = {name: float(row[name]) for name in row if row[name].replace(".", "", 1).isdigit()}
        assert number["points"] == len(peers.COSTS) ** 2
        per_point = 1e3 * number["cpu_seconds"] / number["points"]
        assert number["cpu_per_point_ms"] == pytest.approx(per_point, rel=1e-3)
        assert number["ratio_to_fit"] == pytest.approx(per_point / number["svc_fit_ms"], rel=2e-3)
        fits = number["cpu_seconds"] / number["fits_seconds"]
        assert number["ratio_to_fits"] == pytest.approx(fits, rel=2e-3)
