"""Files that are there whole or not at all: written under another name, then moved into place."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO


def write_atomically(
    path: str | os.PathLike[str], write: Callable[[BinaryIO], object], what: str = "saving the model"
) -> None:
    """Let ``write`` fill a new file beside ``path``, then move it there."""
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is not a regular file; give a file name such as model.residua.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: folder {target.parent} does not exist; create it first.")
    temporary = target.with_name(f".residua-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
        _sync_folder(target.parent)
    except OSError as error:
        raise OSError(error.errno, f"{what} failed: {error.strerror}", str(path)) from error
    finally:
        with suppress(OSError):  # it has been moved, or never came to be
            temporary.unlink()


def _sync_folder(folder: Path) -> None:
    """Make the new name last through a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that cannot sync folders
            raise
    finally:
        os.close(handle)
