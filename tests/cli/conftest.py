import pytest

from tests.cli.program import moons_table


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """Every test has its own folder, with a table."""
    monkeypatch.chdir(tmp_path)
    moons_table().to_csv("rows.csv", index=False)
