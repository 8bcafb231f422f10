"""Where files come from: the folder named by RESIDUA_DATA, else a cache filled by verified downloads.

A file counts only with the SHA-256 listed in ``SHA256SUMS``. With RESIDUA_DATA set nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

VARIABLE = "RESIDUA_DATA"
LEFT_OVER = 86400.0  # seconds after which half a download is nobody's
COMMIT = "03608b39b0da2c64293ba685213585de4ff8291f"
BASE_URL = f"https://raw.githubusercontent.com/000Justin000/gnn-residual-correlation/{COMMIT}/datasets/"


class DataFileError(ValueError):
    """A data file that cannot be used; the message names the file and says what to do."""


Progress = Callable[[str, int, int], None]  # file, bytes so far, bytes in all (0: unknown)


@cache
def checksums() -> dict[str, str]:
    """SHA-256 of every file, by its path below the data folder."""
    lines = (files("residua.reproduction.datasets") / "SHA256SUMS").read_text(encoding="ascii").splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def own_folder() -> Path | None:
    """The folder that RESIDUA_DATA names, if it is set."""
    named = os.environ.get(VARIABLE)
    return Path(named).expanduser() if named else None


def cache_folder() -> Path:
    """Where downloads are kept."""
    import pooch

    return Path(pooch.os_cache("residua"))


def data_folder() -> Path:
    """Where files are looked for."""
    return own_folder() or cache_folder()


def find_file(name: str, progress: Progress | None = None) -> Path:
    """Return a file with the right checksum, downloaded where there is no folder of one's own.

    Parameters
    ----------
    name : str
        Path below the data folder, such as ``"election/income.csv"``.
    progress : callable, optional
        Called with the name, the bytes so far and the bytes in all while the file is downloaded.

    Raises
    ------
    FileNotFoundError
        Where the file is neither here nor could be downloaded; the message names both ways to get it.
    DataFileError
        A ``ValueError``, where the file's checksum is another than the one listed.
    """
    folder = own_folder()
    if folder is None:
        return _download(name, progress)
    path = folder / name
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} not found. Point {VARIABLE} to a folder that holds it, or unset {VARIABLE} and let "
            "`residua data fetch` download it: see docs/data.md."
        )
    if not is_intact(path, name):
        raise DataFileError(
            f"{path} has another SHA-256 than the file this version of residua reads; replace it, or unset "
            f"{VARIABLE} and let `residua data fetch` download it."
        )
    return path


def is_intact(path: Path, name: str) -> bool:
    """Whether the file at ``path`` is the listed one."""
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == checksums()[name]


def _download(name: str, progress: Progress | None) -> Path:
    """Return the file in the cache. pooch downloads beside it and renames, so that no process sees half a file."""
    import pooch

    folder = cache_folder()
    try:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        _sweep(folder)  # where pooch tries whether it may write
        _sweep((folder / name).parent)
        store = pooch.create(path=folder, base_url=BASE_URL, registry={name: checksums()[name]})
        bar: Any = _Bar(name, progress) if progress else False
        with _quiet(pooch.get_logger()):
            return Path(store.fetch(name, downloader=pooch.HTTPDownloader(progressbar=bar)))
    except (OSError, ValueError) as error:  # requests' errors are OSErrors; a wrong checksum is a ValueError
        reason = getattr(error, "strerror", None) or type(error).__name__
        if isinstance(error, ValueError):
            reason = "its checksum is wrong"
        raise FileNotFoundError(
            f"{name} is not in {folder} and could not be downloaded ({reason}). Set {VARIABLE} to a folder that "
            "holds it, or connect to the network and run `residua data fetch`: see docs/data.md."
        ) from error


def _sweep(folder: Path) -> None:
    """Take away what downloads that were killed have left; what is younger may still be under way."""
    for left in folder.glob("tmp*"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > LEFT_OVER:
                left.unlink()


class _Bar:
    """Report pooch's progress to a function."""

    def __init__(self, name: str, progress: Progress):
        self.name, self.progress = name, progress
        self.total = self.done = 0

    def update(self, size: int) -> None:
        self.done = min(self.done + size, self.total) if self.total else self.done + size
        self.progress(self.name, self.done, self.total)

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        pass


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Keep pooch from printing; whoever wants to see a download passes ``progress``."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong while a file, or the files of a folder, are read into one line that names it."""
    try:
        yield
    except DataFileError:
        raise
    except (ValueError, LookupError, AttributeError, TypeError, ArithmeticError, RecursionError) as error:
        text = repr(" ".join(str(error).split()))[1:-1][:300]  # without characters that move a terminal's cursor
        what = "is" if path.is_file() else "has files that are"
        raise DataFileError(f"{path} {what} malformed ({type(error).__name__}: {text}); get them anew.") from error
