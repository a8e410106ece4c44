"""Write files in one step, so that a file is never half written."""

import errno
import os
import shutil
import tempfile
from pathlib import Path


def write_text(path: str | Path, text: str) -> None:
    """Write a file in one step: a crash leaves the old file, never a part of the new one.

    Parameters
    ----------
    path
        Path of the file. If it is a link, the file that the link leads to is replaced.
    text
        Content of the file.

    Raises
    ------
    OSError
        If the file cannot be written, or the path belongs to something that is not a file.
    """
    path = Path(path).resolve()
    if path.exists() and not path.is_file():
        raise FileExistsError(errno.EEXIST, "it exists and is not a file", str(path))
    try:
        _write_in_one_step(path, text)
    except OSError as error:  # name the file itself, not the draft
        raise OSError(error.errno, error.strerror, str(path)) from error


def _write_in_one_step(path: Path, text: str) -> None:
    """Write a draft beside the file, and put it in the place of the file."""
    handle, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())  # or a crash of the system could leave an empty file
        if path.exists():
            shutil.copymode(path, draft)
        else:
            Path(draft).chmod(0o666 & ~_umask())
        os.replace(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _umask() -> int:
    """Return the permissions that new files lack, which can only be read by setting them."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
