"""A file of rows."""

import pytest

from tests.io.files import CSV


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text(CSV, encoding="utf-8")
    return file
