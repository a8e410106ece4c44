"""Journals that survive full disks and killed processes, beside processes of plain Optuna."""

import json
import os
import resource
import subprocess
import sys
import time

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

from span_hpo.integrations.optuna import as_storage, journals, new_study, trial_count
from span_hpo.integrations.optuna.journals import Journal, JournalLock, check_journal
from span_hpo.integrations.optuna.workers import this_process
from tests.processes import ENVIRONMENT

WITH_PROC = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def dead():
    """Give the record of a process that has ended, whose number another one has now."""
    return {**this_process(), "started": 1}


@pytest.mark.parametrize(
    "rest",
    [b'{"op_code":5,"wor', b"\0\0\0\0", b'{"op_c{"op_code":5}\n'],
    ids=["cut", "zeros", "two"],
)
def test_a_last_line_that_was_cut_is_dropped_and_kept_beside(rest, tmp_path):
    """The study goes on with all other lines, and the warning names the copy of what was cut."""
    path = tmp_path / "a.journal"
    study = new_study(storage=path, study_name="moons", seed=0)
    study.tell(study.ask(), 0.5)
    whole = path.read_bytes()
    path.write_bytes(whole + rest)
    assert trial_count(path, "moons") == 1  # only reads
    assert path.read_bytes() == whole + rest
    with pytest.warns(UserWarning, match=r"last line of .* was cut.* kept in .*a\.journal\.cut1"):
        again = new_study(storage=path, study_name="moons", seed=0)
    assert path.read_bytes().startswith(whole)
    assert rest not in path.read_bytes()
    assert (tmp_path / "a.journal.cut1").read_bytes() == rest
    again.tell(again.ask(), 0.25)
    assert [trial.value for trial in again.trials] == [0.5, 0.25]


def test_copies_of_cut_lines_are_not_replaced(tmp_path):
    """Each line that was cut has a copy of its own."""
    path = tmp_path / "a.journal"
    for number in (1, 2):
        new_study(storage=path, study_name=f"study {number}", seed=0)
        with path.open("ab") as file:
            file.write(b"cut %d" % number)
        with pytest.warns(UserWarning, match=f"cut{number}"):
            as_storage(path)
        assert (tmp_path / f"a.journal.cut{number}").read_bytes() == b"cut %d" % number


def test_a_line_that_another_process_has_cut_is_dropped_before_the_next(tmp_path):
    """A process that is killed while others go on does not damage their lines."""
    path = tmp_path / "a.journal"
    study = new_study(storage=path, study_name="moons", seed=0)
    with path.open("ab") as file:
        file.write(b'{"op_code":4,')
    with pytest.warns(UserWarning, match="was cut"):
        study.tell(study.ask(), 0.5)
    assert all("op_code" in line for line in lines_of(path))
    plain = optuna.load_study(
        study_name="moons", storage=JournalStorage(JournalFileBackend(str(path)))
    )
    assert [trial.value for trial in plain.trials] == [0.5]


@pytest.mark.parametrize("limit", [1, 30, 200])
def test_a_full_disk_leaves_no_part_of_a_line(limit, tmp_path):
    """A line is written entirely or not at all, the error names the file, and no lock is left."""
    path = tmp_path / "a.journal"
    journal = Journal(path)
    journal.append_logs([{"op_code": 0}])
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + limit, hard))
    try:
        with pytest.raises(OSError, match=r"File too large: .*a\.journal"):
            journal.append_logs([{"op_code": 1, "text": "x" * 100}, {"op_code": 2, "y": "z" * 100}])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*.lock*"))
    journal.append_logs([{"op_code": 3}])
    assert lines_of(path) == [{"op_code": 0}, {"op_code": 3}]


def test_a_journal_of_which_nothing_was_written_is_refused(tmp_path):
    """A file whose only line was cut is not changed, and the message says what to do."""
    path = tmp_path / "a.journal"
    path.write_bytes(b'{"op_code":0')
    with pytest.raises(ValueError, match="its only line was cut: delete the file"):
        check_journal(path)
    assert path.read_bytes() == b'{"op_code":0'


@pytest.mark.parametrize("moment", ["before", "between", "after"])
def test_a_journal_that_was_deleted_is_not_created_again(moment, tmp_path, monkeypatch):
    """Whenever a file disappears during a change, the error names it and nothing is left."""
    path = tmp_path / "a.journal"
    study = new_study(storage=path, study_name="moons", seed=0)
    cut, append = Journal._cut, journals._append

    def look(journal):
        found = cut(journal)
        if moment == "between":  # the look at the last line, and the next one
            path.unlink()
        return found

    def write(handle, data):
        append(handle, data)
        if moment == "after":
            path.unlink()

    monkeypatch.setattr(Journal, "_cut", look)
    monkeypatch.setattr(journals, "_append", write)
    if moment == "before":
        path.unlink()
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: '.*a\.journal'"):
        study.set_user_attr("name", 1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("action", ["reads", "writes"])
def test_a_journal_that_was_replaced_is_left_alone(action, tmp_path):
    """Another file in the place of a journal is not mistaken for it, even if it is longer."""
    path = tmp_path / "a.journal"
    study = new_study(storage=path, study_name="moons", seed=0)
    path.unlink()
    other = new_study(storage=path, study_name="moons", seed=0)
    other.tell(other.ask(), 0.5)
    before = path.read_bytes()
    with pytest.raises(FileNotFoundError, match=r"deleted, and another file .*a\.journal'"):
        study.get_trials() if action == "reads" else study.ask()
    assert path.read_bytes() == before
    assert [trial.value for trial in other.trials] == [0.5]


@WITH_PROC
def test_the_lock_of_a_journal_that_was_deleted(dead, tmp_path):
    """Nobody creates a journal only to take a lock over."""
    path = tmp_path / "a.journal"
    (tmp_path / "a.journal.lock").write_text(json.dumps(dead))
    with pytest.raises(FileNotFoundError):
        JournalLock(str(path)).acquire()
    assert not path.exists()


@WITH_PROC
def test_the_lock_of_a_dead_process_is_taken_over(dead, tmp_path):
    """Nobody waits for the owner of a lock that has ended."""
    path = tmp_path / "a.journal"
    journal = Journal(path)
    lock = tmp_path / "a.journal.lock"
    lock.write_text(json.dumps(dead))
    start = time.monotonic()
    journal.append_logs([{"op_code": 0}])
    assert time.monotonic() - start < JournalLock(str(path)).grace_period / 2
    assert not lock.exists()


@pytest.mark.parametrize("owner", ["alive", "elsewhere", "unknown", "of Optuna"])
def test_the_lock_of_a_process_that_may_live_is_respected(owner, dead, tmp_path):
    """Locks of living processes, of other machines and of plain Optuna are waited for."""
    path = tmp_path / "a.journal"
    path.touch()
    lock, file = JournalLock(str(path)), tmp_path / "a.journal.lock"
    lock.grace_period = 0.5  # instead of Optuna's 30 seconds
    if owner == "of Optuna":
        JournalFileSymlinkLock(str(path)).acquire()
    else:
        who = {"alive": this_process(), "elsewhere": {**dead, "host": "elsewhere"}}.get(owner)
        file.write_text("" if who is None else json.dumps(who))
    start = time.monotonic()
    lock.acquire()  # by force, after the grace period
    assert time.monotonic() - start >= 0.5
    lock.release()
    assert not file.exists()


def test_a_lock_that_was_taken_over_is_not_given_back(tmp_path):
    """A process that was stopped for long does not remove the lock of its successor."""
    path = tmp_path / "a.journal"
    path.touch()
    slow, fast = JournalLock(str(path)), JournalLock(str(path))
    slow.acquire()
    fast.grace_period = 0.1
    fast.acquire()
    slow.release()
    assert (tmp_path / "a.journal.lock").exists()
    fast.release()
    assert not (tmp_path / "a.journal.lock").exists()


def test_plain_optuna_works_on_the_same_journal(tmp_path):
    """Processes with Optuna's own lock and ours share a journal, and lose no line."""
    path = tmp_path / "a.journal"
    new_study(storage=path, study_name="moons")
    code = """
import sys, optuna
from pathlib import Path
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from span_hpo.integrations.optuna import as_storage
optuna.logging.set_verbosity(optuna.logging.ERROR)
kind, path = sys.argv[1:]
storage = as_storage(path) if kind == "ours" else JournalStorage(JournalFileBackend(path))
study = optuna.load_study(study_name="moons", storage=storage)
study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=25)
"""
    processes = [
        subprocess.Popen([sys.executable, "-c", code, kind, str(path)], env=ENVIRONMENT)
        for kind in ("ours", "theirs")
    ]
    assert [process.wait(120) for process in processes] == [0, 0]
    trials = optuna.load_study(study_name="moons", storage=as_storage(path)).trials
    assert [trial.number for trial in trials] == list(range(50))
    assert all(trial.value == trial.params["x"] for trial in trials)
