"""Keep a journal of Optuna whole: lines are complete, and locks end with their owners.

Optuna's own backend leaves a part of a line behind when a disk is full, a lock of a killed process
keeps others waiting for 30 seconds, and a journal that is deleted during a search is created again
without its first lines. All this is mended here; the file and the name of the lock are those of
Optuna, so that its other processes can work on the same journal.
"""

import contextlib
import errno
import json
import os
import time
import uuid
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

from span_hpo.integrations.optuna.workers import is_gone, this_process

try:
    import fcntl
except ImportError:  # Windows, where no process can be judged and so no lock is taken over
    fcntl = None  # type: ignore[assignment]

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.05  # seconds between two attempts to get a lock
_SEPARATORS = (",", ":")  # those with which Optuna writes the lines of a journal


def journal_storage(path: Path, *, mend: bool = True) -> JournalStorage:
    """Return the storage of a journal, which is created if there is none.

    Parameters
    ----------
    path
        Path of the journal.
    mend
        Drop a last line that was cut, with a warning, and keep a copy of it beside the journal. A
        journal that is only read needs no mending.

    Raises
    ------
    ValueError
        If a file exists that is not a journal.
    """
    check_journal(path)
    journal = Journal(path)
    if mend:
        journal.mend()
    return JournalStorage(journal)


def check_journal(path: Path) -> None:
    """Raise a `ValueError` if a file exists that is not a journal, to which Optuna would append."""
    if not path.exists():
        return
    with path.open("rb") as file:
        first = file.readline()
    if not first:
        return
    if not first.endswith(b"\n"):
        raise ValueError("its only line was cut: delete the file")
    if "op_code" not in json.loads(first):
        raise ValueError("its first line is not one of a journal")


class Journal(JournalFileBackend):
    """Journal whose last line is never a part of one, and whose first line does not change.

    A file that is deleted afterwards is not created again, and another file in its place is neither
    read nor written: both raise a `FileNotFoundError`.

    Parameters
    ----------
    path
        Path of the file, which is created if there is none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._first_line: bytes | None = None  # which names the process that has written it
        self._own_lock = JournalLock(str(path))
        super().__init__(str(path), self._own_lock)

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        """Yield the logs from a line on, if the file is still the same journal."""
        with self._path.open("rb") as file:
            self._check_same(file)
        yield from super().read_logs(log_number_from)

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Append one line for each log, and have them on the disk."""
        lines = [json.dumps(log, separators=_SEPARATORS) + "\n" for log in logs]
        data = "".join(lines).encode()
        with self._locked():
            self._drop_last_line(self._cut())
            try:
                with open(self._path, "ab", buffering=0, opener=_open_existing) as file:
                    _append(file.fileno(), data)
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(self._path)) from error

    def mend(self) -> None:
        """Drop a last line that was cut, and keep a copy of it beside the journal."""
        if self._damage() is not None:  # perhaps only because another process is writing
            with self._locked():
                self._drop_last_line(self._damage())

    def _check_same(self, file: BinaryIO) -> None:
        """Raise if a file has another first line than this journal had at an earlier call."""
        first = file.readline()
        if self._first_line is None and first.endswith(b"\n"):
            self._first_line = first
        if self._first_line not in (None, first):
            raise FileNotFoundError(
                errno.ENOENT,
                "The journal was deleted, and another file has taken its place",
                str(self._path),
            )

    def _cut(self) -> int | None:
        """Return where the last line begins if it has no end, otherwise None."""
        with self._path.open("rb") as file:
            self._check_same(file)
            if file.seek(0, os.SEEK_END) == 0:
                return None
            file.seek(-1, os.SEEK_END)
            return None if file.read(1) == b"\n" else self._damage()

    def _damage(self) -> int | None:
        """Return where the last line begins if it cannot be read, otherwise None."""
        content = self._path.read_bytes()
        start = content.rstrip(b"\n").rfind(b"\n") + 1
        try:
            json.loads(content[start:] or b"0")
            return None if content[-1:] in (b"\n", b"") else start
        except ValueError:
            return start

    def _drop_last_line(self, start: int | None) -> None:
        """Drop the line that begins there; nobody else is writing it, because of the lock."""
        if start is None:
            return
        with self._path.open("r+b") as file:
            file.seek(start)
            copy = _copy_beside(self._path, file.read())
            file.truncate(start)
            os.fsync(file.fileno())
        warnings.warn(
            f"The last line of {self._path} was cut, for instance by a full disk. It is dropped, "
            f"and a copy is kept in {copy}.",
            stacklevel=2,
        )

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        self._own_lock.acquire()
        try:
            yield
        finally:
            self._own_lock.release()


class JournalLock(JournalFileOpenLock):
    """Lock of a journal that knows its owner, so that a dead one keeps nobody waiting.

    The lock is a file beside the journal, as those of Optuna. A process of this machine that finds
    a dead owner in it takes the lock over at once. If the owner cannot be judged, because it runs
    on another machine or is another program, the lock is taken over after Optuna's grace period.

    Parameters
    ----------
    file_path
        Path of the journal.
    """

    def __init__(self, file_path: str) -> None:
        super().__init__(file_path)
        self._journal = file_path
        self._file = file_path + ".lock"
        self._mine: bytes | None = None  # what the lock of this process holds

    def acquire(self) -> bool:
        """Wait for the lock, and return True."""
        pause, seen, since = _SHORTEST_PAUSE, None, time.monotonic()
        while not self._create():
            found = self._content()
            if found != seen:
                seen, since = found, time.monotonic()
            has_expired = time.monotonic() - since > (self.grace_period or float("inf"))
            if seen is not None and (has_expired or is_gone(_owner(seen))):
                self._break(seen)
                continue
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return True

    def release(self) -> None:
        """Give the lock back, unless another process has taken it over."""
        if self._mine is None or self._content() == self._mine:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._file)

    def _create(self) -> bool:
        """Try to create the lock, together with its content where the system can do that."""
        if os.path.lexists(self._file):
            return False
        mine = json.dumps({**this_process(), "id": uuid.uuid4().hex}).encode()
        try:
            if not _create_at_once(self._file, mine):
                self._mine = mine if _create_in_two_steps(self._file, mine) else None
                return True
        except FileExistsError:
            return False
        self._mine = mine
        return True

    def _content(self) -> bytes | None:
        """Return what the lock holds, with its age if it has no owner; None if it is gone."""
        try:
            if os.path.islink(self._file):  # a lock of Optuna
                return f"{os.readlink(self._file)} {os.lstat(self._file).st_mtime_ns}".encode()
            content = Path(self._file).read_bytes()
            return content or str(os.lstat(self._file).st_mtime_ns).encode()
        except FileNotFoundError:
            return None

    def _break(self, judged: bytes) -> None:
        """Remove a lock that was judged, unless another process has been faster."""
        with open(self._journal, "ab", opener=_open_existing) as guard:
            if fcntl is not None:
                # Only processes of this machine can judge an owner of this machine.
                with contextlib.suppress(OSError):  # a file system without such locks
                    fcntl.flock(guard, fcntl.LOCK_EX)
            if self._content() == judged:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._file)


def _open_existing(path: str, flags: int) -> int:
    """Open a file as `open` does, but never create it."""
    return os.open(path, flags & ~os.O_CREAT)


def _create_at_once(path: str, content: bytes) -> bool:
    """Create a file that never is without its content; return False where that is not possible.

    A process may be killed at any moment, and a lock without content has no owner.
    """
    try:
        handle = os.open(os.path.dirname(path) or ".", os.O_TMPFILE | os.O_WRONLY, 0o666)
    except (AttributeError, OSError):  # another system, or another file system
        return False
    try:
        if os.write(handle, content) < len(content):
            return False
        # Python follows the link to the open file only if it is given a descriptor.
        os.link(f"/proc/self/fd/{handle}", path, src_dir_fd=handle)
    except FileExistsError:
        raise
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _create_in_two_steps(path: str, content: bytes) -> bool:
    """Create a file and write to it; return whether there was space for the content."""
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        return os.write(handle, content) == len(content)
    except OSError:  # a full disk, of which the journal itself will complain
        return False
    finally:
        os.close(handle)


def _append(handle: int, data: bytes) -> None:
    """Append to a file either everything or nothing."""
    size, left = os.fstat(handle).st_size, data
    try:
        while left:
            left = left[os.write(handle, left) :]
    except BaseException:
        if os.fstat(handle).st_size < size + len(data):
            os.ftruncate(handle, size)
        raise
    os.fsync(handle)


def _copy_beside(path: Path, content: bytes) -> Path:
    """Write a new file beside another one, and return its path."""
    number = 1
    while True:
        copy = path.with_name(f"{path.name}.cut{number}")
        try:
            with copy.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            return copy
        except FileExistsError:
            number += 1


def _owner(content: bytes) -> Any:
    """Return the owner that a lock names, or None if it names none."""
    try:
        return json.loads(content)
    except ValueError:
        return None
