import os

import pytest

from span_hpo.io.atomic import write_text


@pytest.fixture
def file(tmp_path):
    return tmp_path / "notes.txt"


def test_what_is_written_is_read(file):
    """A new file and one that was there hold the text afterwards, in UTF-8, and nothing else is."""
    for text in ("first", "Köln\n" * 1000, ""):
        write_text(file, text)
        assert file.read_bytes() == text.encode()
        assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("moment", ["os.replace", "shutil.copymode"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_interruption_leaves_the_old_file(file, monkeypatch, moment, error):
    """Whatever happens before the end, the old content is there and no draft is left."""
    write_text(file, "old")

    def interrupted(*args):
        raise error

    monkeypatch.setattr(moment, interrupted)
    with pytest.raises(error):
        write_text(file, "new")
    assert file.read_text() == "old"
    assert list(file.parent.iterdir()) == [file]


def test_text_that_cannot_be_encoded_leaves_the_old_file(file):
    """Half of a text is never written."""
    write_text(file, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(file, "new \ud800")
    assert file.read_text() == "old"
    assert list(file.parent.iterdir()) == [file]


def test_rights_are_kept(file):
    """A file keeps its rights, and a new one has those that any new file would have."""
    plain = file.with_name("plain")
    plain.touch()
    write_text(file, "new")
    assert file.stat().st_mode == plain.stat().st_mode
    file.chmod(0o640)
    write_text(file, "again")
    assert file.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("mask", [0o077, 0o022])
def test_the_mask_of_the_process_is_respected(file, mask):
    """A new file is as private as the user's mask asks for, and the mask stays as it was."""
    before = os.umask(mask)
    try:
        write_text(file, "secret")
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert file.stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_link_leads_to_the_file_that_is_written(file):
    """The link stays, and its file has the new text."""
    write_text(file, "old")
    link = file.with_name("link")
    link.symlink_to(file)
    write_text(link, "new")
    assert link.is_symlink()
    assert file.read_text() == "new"


def test_only_files_are_replaced(file):
    """A folder, a pipe and a path in a folder that is not there are errors."""
    file.mkdir()
    pipe = file.with_name("pipe")
    os.mkfifo(pipe)
    for path in (file, pipe):
        with pytest.raises(FileExistsError, match="not a file"):
            write_text(path, "text")
    with pytest.raises(FileNotFoundError):
        write_text(file / "missing" / "notes.txt", "text")
