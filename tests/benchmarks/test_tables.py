"""The tables of the README and the documentation."""

import pytest

pytest.importorskip("ray")  # which one of the benchmarks measures
from benchmarks import tables


def test_tables_come_from_the_csvs(tmp_path):
    """The tables in README and documentation are what the command writes from the CSVs."""
    (tmp_path / "docs").mkdir()
    for file in tables.TABLES:
        (tmp_path / file).write_text((tables.ROOT / file).read_text())
    tables.write(tmp_path)
    for file in tables.TABLES:
        assert (tmp_path / file).read_text() == (tables.ROOT / file).read_text(), file
