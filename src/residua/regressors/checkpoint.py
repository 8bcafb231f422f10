"""Training kept in a file now and then, so that a killed run goes on where it was and ends at the same numbers.

The file holds arrays by name and a mark of what is being trained; a checkpoint of another fit is refused.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from residua.atomic import write_atomically

SECONDS = 5.0  # between two writes

State = dict[str, np.ndarray]


class Checkpoint:
    """The states of several trainings in one file; without a path, nothing is kept.

    Parameters
    ----------
    path : the file, or None
    mark : text that tells this fit from others
    """

    def __init__(self, path: str | os.PathLike[str] | None, mark: str):
        self.path, self.mark = path, mark
        self.arrays = _read(path, mark) if path is not None and os.path.exists(path) else {}
        self._written = time.monotonic()
        if path is not None:
            self._write()  # a folder that cannot be written to is found now, not after an hour

    def part(self, name: str) -> Part:
        return Part(self, f"{name}.")

    def _write(self) -> None:
        if self.path is not None:
            data = save(self.arrays, {"residua checkpoint": self.mark})
            write_atomically(self.path, lambda file: file.write(data), "writing the checkpoint")
            self._written = time.monotonic()


class Part:
    """One training in a checkpoint."""

    def __init__(self, whole: Checkpoint, prefix: str):
        self.whole, self.prefix = whole, prefix

    def state(self) -> State:
        """What is kept of it; empty at first."""
        return {name.removeprefix(self.prefix): a for name, a in self.whole.arrays.items() if self._has(name)}

    def offer(self, state: Callable[[], Mapping[str, np.ndarray]], now: bool = False) -> None:
        """Write the state, now or if the last one is old."""
        if self.whole.path is not None and (now or time.monotonic() - self.whole._written >= SECONDS):
            self.keep(state())

    def keep(self, state: Mapping[str, np.ndarray]) -> None:
        """Write this state."""
        others = {name: a for name, a in self.whole.arrays.items() if not self._has(name)}
        self.whole.arrays = others | {self.prefix + name: np.array(a, order="C") for name, a in state.items()}
        self.whole._write()

    def _has(self, name: str) -> bool:
        return name.startswith(self.prefix)


def _read(path: str | os.PathLike[str], mark: str) -> State:
    try:
        if os.path.isdir(path):
            raise ValueError(f"checkpoint={str(path)!r} is a folder; name a file in it.")
        with safe_open(os.fspath(path), framework="np") as file:
            found = (file.metadata() or {}).get("residua checkpoint")
            arrays = {name: np.array(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ValueError(f"checkpoint={str(path)!r} cannot be read ({error}); remove it to start anew.") from None
    if found != mark:
        raise ValueError(
            f"checkpoint={str(path)!r} belongs to another fit (other data, settings or random_state); "
            "name another file, or remove this one to start anew."
        )
    return arrays
