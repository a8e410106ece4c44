"""Files that may not be written, and files that change while a command reads them."""

import importlib
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from span_hpo.cli import main
from tests.cli.program import call, hashes, moons_table

NOBODY = 65534  # number of the user without any rights


def as_another_user(arguments, folder):
    """Run the command in a folder as a user without any rights; return its code and its output."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # a new process, which must not return into pytest
        code = 99
        try:
            os.dup2(writer, 1)
            os.dup2(writer, 2)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            os.chdir(folder)
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.close(writer)
    with open(reader) as output:
        printed = output.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), printed


@pytest.fixture
def public():
    """Give a folder that every user can read."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        moons_table().to_csv(f"{folder}/rows.csv", index=False)
        yield Path(folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_folders_and_files_without_the_right_to_write(public, capsys):
    """A folder or a study that is read-only is named in one line, and nothing is changed."""
    importlib.import_module("span_hpo.integrations.optuna")  # others may not read its files
    tune = ("tune", "rows.csv", "--target", "label", "--trials", 2, "--seed", 0)
    code, printed = as_another_user(tune, public)
    assert (code, len(printed.splitlines())) == (2, 1), printed
    assert "must be in a folder where files can be written" in printed
    assert [path.name for path in public.iterdir()] == ["rows.csv"]

    call(*tune[:1], public / "rows.csv", *tune[2:], "--out", public / "model", capsys=capsys)
    before = hashes(public)
    with tempfile.TemporaryDirectory() as own:
        os.chown(own, NOBODY, NOBODY)
        for storage in (public / "model.journal", f"sqlite:///{public}/new.db"):
            code, printed = as_another_user(
                (*tune, "--out", f"{own}/model", "--storage", storage), public
            )
            assert (code, len(printed.splitlines())) == (2, 1), printed
            assert "storage" in printed or "Permission" in printed or "folder" in printed
        assert os.listdir(own) == []
    (public / "rows.csv").chmod(0o600)
    code, printed = as_another_user(("loo", "rows.csv", "--target", "label"), public)
    assert (code, len(printed.splitlines())) == (2, 1), printed
    assert "rows.csv" in printed
    assert hashes(public) == before


def test_a_file_that_comes_and_goes_while_it_is_read(tmp_path, capsys):
    """Rows that disappear, or are cut, give the right answer or one line, and no traceback."""
    rows, away = tmp_path / "rows.csv", tmp_path / "away.csv"
    whole = rows.read_bytes()
    is_over = threading.Event()

    def disturb():
        moments = random.Random(0)
        while not is_over.is_set():
            os.replace(rows, away)
            time.sleep(moments.uniform(0, 0.002))
            os.replace(away, rows)
            os.truncate(rows, moments.choice([0, len(whole) // 2, len(whole) - 5]))
            time.sleep(moments.uniform(0, 0.002))
            rows.write_bytes(whole)
            time.sleep(moments.uniform(0, 0.004))

    thread = threading.Thread(target=disturb)
    thread.start()
    codes = set()
    try:
        for _ in range(40):
            with pytest.raises(SystemExit) as stopped:
                main(["loo", "rows.csv", "--target", "label", "--no-refit"])
            codes.add(stopped.value.code)
            printed = capsys.readouterr()
            assert len(printed.err.splitlines()) == bool(stopped.value.code), printed.err
    finally:
        is_over.set()
        thread.join()
    assert codes <= {0, 2}
    assert 2 in codes
