import bz2
import gzip
import re
from pathlib import Path

import pytest

from span_hpo.io.unpacking import UNPACK_LIMIT, check_unpacked, is_compressed, opened

PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress}
MEBIBYTE = 2**20


def content_of(path):
    """Return all bytes that a file gives."""
    with opened(path) as file:
        return file.read()


@pytest.mark.parametrize("suffix", PACKERS)
def test_packed_and_plain_files_give_the_same(suffix, tmp_path):
    """A file is decompressed if its suffix says so, in any case, and in several parts."""
    plain, packed = tmp_path / "rows", tmp_path / f"rows{suffix.upper()}"
    plain.write_bytes(b"1 1:2\n")
    packed.write_bytes(PACKERS[suffix](b"1 1") + PACKERS[suffix](b":2\n"))
    assert content_of(plain) == content_of(packed) == b"1 1:2\n"
    assert is_compressed(suffix.upper())
    assert not is_compressed(".csv")


@pytest.mark.parametrize("suffix", PACKERS)
def test_well_compressed_files_are_read(suffix, tmp_path):
    """A table of zeros, which is packed a thousandfold, is read."""
    path = tmp_path / f"rows.csv{suffix}"
    part = b"0,0,0,0\n" * (MEBIBYTE // 8)
    path.write_bytes(PACKERS[suffix](part) * 20)
    assert content_of(path) == part * 20


@pytest.mark.parametrize("suffix", PACKERS)
def test_bombs_are_refused_at_their_beginning(suffix, tmp_path):
    """The message names the limit, what was read so far, and how to raise the limit."""
    path = tmp_path / f"rows{suffix}"
    path.write_bytes(PACKERS[suffix](bytes(MEBIBYTE)) * 100_000)  # 100 GB
    with pytest.raises(ValueError, match=UNPACK_LIMIT) as refused:
        content_of(path)
    limit, unpacked, packed = map(int, re.findall(r"\b\d{4,}\b", str(refused.value)))
    assert limit < unpacked <= limit + MEBIBYTE
    assert packed < path.stat().st_size / 10


def test_the_limit_can_be_changed(tmp_path, monkeypatch):
    """The environment variable replaces the limit, in either direction."""
    path = tmp_path / "rows.gz"
    path.write_bytes(gzip.compress(b"1 1:2\n" * 1000))
    monkeypatch.setenv(UNPACK_LIMIT, "5999")
    with pytest.raises(ValueError, match="at most 5999 bytes, got at least 6000"):
        content_of(path)
    monkeypatch.setenv(UNPACK_LIMIT, "6e3")
    assert len(content_of(path)) == 6000
    check_unpacked(Path("x"), 6000, 0)
    for wrong in ("many", "-1", "inf", "nan"):
        monkeypatch.setenv(UNPACK_LIMIT, wrong)
        with pytest.raises(ValueError, match="must be a number of bytes such as 2e9"):
            content_of(path)


def test_missing_and_damaged_files(tmp_path):
    """A missing file raises what Python raises, and a damaged one is called damaged."""
    with pytest.raises(FileNotFoundError):
        content_of(tmp_path / "gone.gz")
    path = tmp_path / "rows.gz"
    path.write_bytes(gzip.compress(b"1 1:2\n")[:-3])
    with pytest.raises(ValueError, match=r"rows.gz must be a whole file, got a damaged one"):
        content_of(path)
