"""Training kept in a file now and then, so that a killed run goes on where it was and ends at the same numbers.

The file holds arrays by name, a mark of what is being trained and a checksum; a checkpoint of another fit, or one
that is damaged, is refused. A write that fails ends no training: it is warned of once, and tried again.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from residua.atomic import write_atomically
from residua.bases.base import State
from residua.caller import warn
from residua.validation import one_line

SECONDS = 5.0  # between two writes
MARK, CHECKSUM = "residua checkpoint", "sha256"  # the entries beside the arrays


class Checkpoint:
    """The states of several trainings in one file; without a path, nothing is kept.

    Parameters
    ----------
    path : path or None
        The file.
    mark : str
        What tells this fit from others.
    """

    def __init__(self, path: str | os.PathLike[str] | None, mark: str):
        self.path, self.mark = path, mark
        self.arrays = _read(path, mark) if path is not None and os.path.exists(path) else {}
        self._write()  # a folder that cannot be written to is found now, not after an hour
        self.written, self._warned = time.monotonic(), False

    def section(self, name: str) -> Section:
        """Return the place of one training in the file."""
        return Section(self, f"{name}.")

    def write(self) -> None:
        """Write what there is; where that fails, warn once and keep the file that is there."""
        try:
            self._write()
        except OSError as error:
            if not self._warned:
                warn(f"{error}; the training goes on without it.")
            self._warned = True
        self.written = time.monotonic()

    def _write(self) -> None:
        if self.path is not None:
            data = save(self.arrays, {MARK: self.mark, CHECKSUM: checksum(self.arrays)})
            write_atomically(self.path, lambda file: file.write(data), "writing the checkpoint")


@dataclass(frozen=True)
class Section:
    """One training in a checkpoint.

    Parameters
    ----------
    whole : Checkpoint
        The file.
    prefix : str
        What the names of its arrays begin with.
    """

    whole: Checkpoint
    prefix: str

    def state(self) -> State:
        """Return what is kept of it; empty at first."""
        return under(self.whole.arrays, self.prefix)

    def offer(self, state: Callable[[], Mapping[str, np.ndarray]], now: bool = False) -> None:
        """Write the state, now or if the last one is old."""
        if self.whole.path is not None and (now or time.monotonic() - self.whole.written >= SECONDS):
            self.keep(state())

    def keep(self, state: Mapping[str, np.ndarray]) -> None:
        """Write this state."""
        others = {name: a for name, a in self.whole.arrays.items() if not name.startswith(self.prefix)}
        self.whole.arrays = others | {self.prefix + name: np.array(a, order="C") for name, a in state.items()}
        self.whole.write()


def under(state: Mapping[str, np.ndarray], prefix: str) -> State:
    """Return the arrays whose names begin with ``prefix``, by the rest of their names."""
    return {name.removeprefix(prefix): a for name, a in state.items() if name.startswith(prefix)}


def _read(path: str | os.PathLike[str], mark: str) -> State:
    named = f"checkpoint={str(path)!r}"
    try:
        if os.path.isdir(path):
            raise ValueError(f"{named} is a folder; name a file in it.")
        with safe_open(os.fspath(path), framework="np") as file:
            found = file.metadata() or {}
            arrays = {name: np.array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{named} cannot be read ({one_line(error)}); remove it to start anew.") from None
    if MARK in found and found.get(CHECKSUM) != checksum(arrays):
        raise ValueError(f"{named} is damaged (its checksum is wrong); remove it to start anew.")
    if found.get(MARK) != mark:
        raise ValueError(
            f"{named} belongs to another fit (other data, settings or random_state); "
            "name another file, or remove this one to start anew."
        )
    return arrays


def checksum(arrays: Mapping[str, np.ndarray], about: str = "") -> str:
    """Return a hash of names, types, shapes and numbers, and of what there is to say about them."""
    total = hashlib.sha256(about.encode())
    for name, array in sorted(arrays.items()):
        total.update(f"{name} {array.dtype} {array.shape}".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()
