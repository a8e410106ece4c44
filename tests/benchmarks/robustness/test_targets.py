"""Readers that are given damaged files."""

from pathlib import Path

import pytest

from benchmarks.robustness.targets import TARGETS
from benchmarks.robustness.watched import damaged_file
from span_hpo.errors import SolverError

BINARY = ("Parquet", "compressed")  # takes longer, because it may be large


@pytest.mark.filterwarnings("ignore")  # of unknown categories
@pytest.mark.parametrize("target", TARGETS)
def test_whole_files_are_accepted(target, tmp_path):
    """Every reader accepts the files that are damaged afterwards."""
    reader = TARGETS[target]
    for name, content in reader.files():
        path = Path(tmp_path) / name
        path.write_bytes(content)
        reader.read(path)


@pytest.mark.filterwarnings("ignore")  # of unknown categories and poor fits
@pytest.mark.parametrize("target", TARGETS)
def test_a_few_damaged_files(target, tmp_path):
    """Damaged files are accepted or refused with a message that says what is wanted."""
    ends = []
    for number in range(5 if target in BINARY else 40):
        name, content = damaged_file(target, 2**31, number)
        path = Path(tmp_path) / name
        path.write_bytes(content)
        try:
            TARGETS[target].read(path)
            ends.append("accepted")
        except (ValueError, TypeError, OSError) as error:
            assert " must " in str(error)  # noqa: PT017  some files are accepted
            ends.append("refused")
        except SolverError:
            ends.append("refused")
    assert "refused" in ends
