"""Files that are written in one step."""

import errno
import os
import shutil
import tempfile
from pathlib import Path


def write_text(path: str | Path, text: str) -> None:
    """Write a file in one step: a crash leaves the old one, never half of a new one.

    Raises
    ------
    OSError
        If it cannot be written, or something else than a file is there.
    """
    path = Path(path).resolve()  # of a link, the file that it leads to
    if path.exists() and not path.is_file():
        raise FileExistsError(errno.EEXIST, "something is there that is not a file", str(path))
    handle, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
        if path.exists():
            shutil.copymode(path, draft)
        else:
            Path(draft).chmod(0o666 & ~_umask())
        os.replace(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _umask() -> int:
    """Return what is taken from the rights of new files; it can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
