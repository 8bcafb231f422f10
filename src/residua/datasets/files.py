"""Where files come from: the folder named by RESIDUA_DATA, else a cache filled by verified downloads.

A file counts only with the SHA-256 listed in ``data/SHA256SUMS``. With RESIDUA_DATA set nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

VARIABLE = "RESIDUA_DATA"
COMMIT = "03608b39b0da2c64293ba685213585de4ff8291f"
BASE_URL = f"https://raw.githubusercontent.com/000Justin000/gnn-residual-correlation/{COMMIT}/datasets/"

Progress = Callable[[str, int, int], None]  # file, bytes so far, bytes in all (0: unknown)


@cache
def checksums() -> dict[str, str]:
    """SHA-256 of every file, by its path below the data folder."""
    lines = (files("residua.datasets") / "data" / "SHA256SUMS").read_text(encoding="ascii").splitlines()
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
    """A file with the right checksum, downloaded where there is no folder of one's own.

    Parameters
    ----------
    name : path below the data folder, such as ``"election/income.csv"``
    progress : called with the name, the bytes so far and the bytes in all while the file is downloaded

    Raises
    ------
    FileNotFoundError
        Where the file is neither here nor could be downloaded; the message names both ways to get it.
    ValueError
        Where the file's checksum is another than the one listed.
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
        raise ValueError(
            f"{path} has another SHA-256 than the file this version of residua reads; replace it, or unset "
            f"{VARIABLE} and let `residua data fetch` download it."
        )
    return path


def is_intact(path: Path, name: str) -> bool:
    """The file at ``path`` is the listed one."""
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == checksums()[name]


def _download(name: str, progress: Progress | None) -> Path:
    """The file in the cache. pooch downloads beside it and renames, so that no process sees half a file."""
    import pooch

    folder = cache_folder()
    try:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        store = pooch.create(path=folder, base_url=BASE_URL, registry={name: checksums()[name]})
        bar: Any = _Bar(name, progress) if progress else False
        with _quiet(pooch.get_logger()):
            return Path(store.fetch(name, downloader=pooch.HTTPDownloader(progressbar=bar)))
    except (OSError, ValueError) as error:  # requests' errors are OSErrors; a wrong checksum is a ValueError
        reason = "its checksum is wrong" if isinstance(error, ValueError) else type(error).__name__
        raise FileNotFoundError(
            f"{name} is not in {folder} and could not be downloaded ({reason}). Set {VARIABLE} to a folder that "
            "holds it, or connect to the network and run `residua data fetch`: see docs/data.md."
        ) from error


class _Bar:
    """pooch's idea of a progress bar, told to a function."""

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
    """The library prints nothing; whoever wants to see a download passes ``progress``."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever goes wrong while a file is read becomes one line that names it."""
    try:
        yield
    except (ValueError, LookupError, AttributeError, TypeError) as error:
        text = " ".join(str(error).split())
        raise ValueError(f"{path} is malformed ({type(error).__name__}: {text}); get the file anew.") from error
