"""Files that are there whole or not at all: written under another name, then moved into place.

A process that is killed leaves its other file behind. Whoever writes holds a lock on it, so the next writer of the
same file can tell what is left over from what is still being written, and takes it away.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows, where nobody else can take away or replace a file that is open
    fcntl = None

PathLike = str | os.PathLike[str]


def write_atomically(path: PathLike, write: Callable[[BinaryIO], object], what: str = "saving the model") -> None:
    """Let ``write`` fill a new file beside ``path``, then move it there."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is not a regular file; give a file name such as model.residua.")
    check_folder_of(target, str(path))
    try:
        with _beside(target) as (temporary, file):
            write(file)
            file.flush()
            os.fsync(file.fileno())
            if target.exists():
                shutil.copymode(target, temporary)
            if fcntl is None:  # there an open file cannot be moved
                file.close()
            os.replace(temporary, target)
        _sync_folder(target.parent)
        _sweep(target)
    except OSError as error:
        raise OSError(error.errno, f"{what} failed: {error.strerror or error}", str(path)) from error


def check_folder_of(target: Path, name: str) -> None:
    """Refuse what could not be written for want of a folder or a permission; ``name`` is what a user calls it."""
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{name} cannot be written: there is no folder {target.parent}; create it first.")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"{name} cannot be written: no permission in folder {str(target.parent)!r}.")


@contextmanager
def _beside(target: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Open a new file in the same folder, locked, and gone at the end unless it has been moved."""
    while True:  # a sweeper may find it in the instant before it is locked
        temporary = target.with_name(f"{_prefix(target)}{secrets.token_hex(8)}.tmp")
        try:
            with open(temporary, "xb") as file:
                if _locked(file):
                    yield temporary, file
                    return
        finally:
            with suppress(OSError):  # it has been moved, or never came to be
                temporary.unlink()


def _prefix(target: Path) -> str:
    """Return what the names of all files written for ``target`` begin with; short, however long its own name is."""
    return f".residua-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:8]}-"


def _locked(file: BinaryIO) -> bool:
    """Lock a file against sweepers; False where one was quicker. Some file systems have no locks, nor sweepers."""
    if fcntl is None:
        return True
    with suppress(OSError):
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
    return os.fstat(file.fileno()).st_nlink > 0


def _sweep(target: Path) -> None:
    """Take away what killed writers of ``target`` have left."""
    for left in target.parent.glob(f"{_prefix(target)}*.tmp"):
        with suppress(OSError):
            if fcntl is None:  # a file that another process still writes cannot be removed
                left.unlink()
                continue
            with open(left, "rb") as file:
                fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
                left.unlink()


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power cut; Windows cannot open a folder, and needs not."""
    if fcntl is None:
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that cannot sync folders
            raise
    finally:
        os.close(handle)
