"""Disks without room and folders without rights: one clear line, and nothing is lost."""

import errno
import io
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import residua
from residua import atomic
from residua.bases.networks import checkpoint
from residua.io.tables.predictions import write_table
from residua.views.page.html import write_report
from soak.processes import Setting, begin, command, command_for, finished, others, said
from soak.verdicts import Budget, until
from soak.victims import EPOCHS, fetch_from, slow_server
from tables import town, write

FAILURES = (errno.ENOSPC, errno.EIO, errno.EDQUOT)
FIT = ("fit", "nodes.csv", "edges.csv", "--target", "price")
CHECKPOINT = ("--base", "mlp", "--checkpoint")


class FullDisk(io.FileIO):
    """A file on a disk that has room for so many bytes."""

    def __init__(self, path: Path, mode: str, room: int, code: int):
        super().__init__(path, mode)
        self.room, self.code = room, code

    def write(self, data: Any) -> int:
        if self.room <= 0:
            raise OSError(self.code, os.strerror(self.code))
        taken = super().write(memoryview(data)[: self.room])
        self.room -= taken
        return taken


@contextmanager
def failing(rng: np.random.Generator, size: int) -> Iterator[int]:
    """Writing fails at a byte of the file, or when it is synced or moved; gives the number of the error."""
    code = FAILURES[rng.integers(len(FAILURES))]
    kind = rng.integers(4)

    def no_room(path: Path, mode: str) -> io.BufferedIOBase:
        if mode == "rb":
            return open(path, mode)
        return io.BufferedWriter(FullDisk(path, mode, int(rng.integers(size)), code))

    def fails(*_: Any) -> None:
        raise OSError(code, os.strerror(code))

    if kind < 2:
        with mock.patch.object(atomic, "open", no_room, create=True):
            yield code
    else:
        with mock.patch.object(os, ("fsync", "replace")[kind - 2], fails):
            yield code


def run(budget: Budget, random_state: int) -> dict[str, float]:
    """Models, tables, reports and checkpoints, written where there is no room, over good ones."""
    counts = {"writes refused": 0, "trainings that went on": 0}
    graph = residua.Graph.from_edges(range(40), range(1, 41))
    y = np.where(np.arange(41) % 3, np.sin(np.arange(41) / 3), np.nan)
    model = residua.GraphRegressor("mean").fit(None, y, graph=graph)
    table = pd.DataFrame({"id": graph.nodes, "prediction": model.predict()})
    writers: dict[str, Callable[[Path], None]] = {
        "m.residua": model.save,
        "p.csv": lambda path: write_table(table, path),
        "p.parquet": lambda path: write_table(table, path),
        "r.html": lambda path: write_report(model, path),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, writer in writers.items():
            writer(folder / file)
        good = {file: (folder / file).read_bytes() for file in writers}
        for k in until(budget):
            rng = np.random.default_rng([random_state, k])
            file = list(writers)[k % len(writers)] if k % 40 else "m.residua"
            refuse_write(writers[file], folder / file, len(good[file]), rng)
            assert {path.name: path.read_bytes() for path in folder.iterdir()} == good
            counts["writes refused"] += 1
            if k % 40 == 0:
                train_without_room(folder, rng)
                counts["trainings that went on"] += 1
    return counts


def refuse_write(writer: Callable[[Path], None], path: Path, size: int, rng: np.random.Generator) -> None:
    with failing(rng, size) as code, pytest.raises(OSError, match=f"failed: {os.strerror(code)}: '{path}'") as caught:
        writer(path)
    assert caught.value.errno == code
    assert "\n" not in str(caught.value)


def train_without_room(folder: Path, rng: np.random.Generator) -> None:
    """The disk fills while a network is trained: the training goes on to the same end, the old checkpoint is kept."""
    graph = residua.Graph.from_edges(range(40), range(1, 41))
    X = np.random.default_rng(0).normal(size=(41, 2))
    y = np.where(np.arange(41) % 3, X[:, 0] + np.sin(np.arange(41) / 3), np.nan)
    path = folder / "run.ckpt"

    def fit(**given: Any) -> np.ndarray:
        base = residua.Network("mlp", epochs=20, widths=(4,))
        return residua.GraphRegressor(base, **given).fit(X, y, graph=graph).predict()

    expected, real, calls = fit(), checkpoint.write_atomically, []
    allowed = int(rng.integers(1, 10))

    def write_some(*arguments: Any) -> None:
        calls.append(1)
        if len(calls) > allowed:
            raise OSError(errno.ENOSPC, "writing the checkpoint failed: No space left on device", str(path))
        real(*arguments)

    with (
        mock.patch.object(checkpoint, "write_atomically", write_some),
        mock.patch.object(checkpoint, "SECONDS", 0.0),
        warnings.catch_warnings(record=True) as seen,
    ):
        warnings.simplefilter("always")
        np.testing.assert_array_equal(fit(checkpoint=path), expected)
    told = [str(warning.message) for warning in seen if "No space left" in str(warning.message)]
    assert len(told) == 1, told
    assert "the training goes on" in told[0]
    np.testing.assert_array_equal(fit(checkpoint=path), expected)  # from the last whole checkpoint
    path.unlink()


def commands(budget: Budget, random_state: int) -> dict[str, float]:
    """Every command that writes, with little room and without rights, once whatever the time."""
    size = int(np.random.default_rng(random_state).integers(100, 3000))
    return {"commands refused": len(commands_without_room(size)) + len(commands_without_rights())}


def commands_without_room(size: int = 2000) -> list[str]:
    """What each command says where no file may grow beyond some bytes; good files from before stay as they are."""
    with prepared() as (folder, url):
        good = contents(folder)
        told = [_refused(words, Setting(folder, file_size=size)) for words in writing_commands(folder)]
        told.append(_refused_fetch(folder, url, Setting(folder, _cache(folder), file_size=size)))
        assert {name: data for name, data in contents(folder).items() if name in good} == good
        assert not [name for name in others(folder, []) if name.endswith(".tmp")]
        return told


def commands_without_rights() -> list[str]:
    """What each command says where it may write to no folder."""
    with prepared() as (folder, url):
        good = contents(folder)
        os.chmod(folder, 0o555)
        try:
            told = [_refused(words, Setting(folder, plain=True)) for words in writing_commands(folder)]
            told.append(_refused_fetch(folder, url, Setting(folder, _cache(folder), plain=True)))
        finally:
            os.chmod(folder, 0o755)
        assert contents(folder) == good
        return told


@contextmanager
def prepared() -> Iterator[tuple[Path, str]]:
    """Two tables and what was made of them, in a folder that everybody may look into."""
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o755)
        write(folder, *town())
        for words in (FIT, ("predict", "model.residua"), ("report", "model.residua")):
            assert finished(begin(command, *words, setting=Setting(folder))) == 0, said(folder)
        for name in ("log.txt", "clock.txt"):
            (folder / name).chmod(0o666)
        with slow_server(0.0) as url:
            yield folder, url
    finally:
        shutil.rmtree(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in others(folder, [])}


def writing_commands(folder: Path) -> list[tuple[str, ...]]:
    """Every command that writes, over files that are there."""
    return [
        FIT,
        (*FIT, *CHECKPOINT, "run.ckpt"),
        ("predict", "model.residua"),
        ("predict", "model.residua", "-o", "new.parquet"),
        ("report", "model.residua"),
        ("reproduce", "table1", "--quick", "--datasets", "ising+", "--methods", "LP", "--jobs", "1", "--output", "out"),
    ]


def _cache(folder: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(folder), "NO_PROXY": "127.0.0.1", "RESIDUA_DATA": ""}


def _refused(words: tuple[str, ...], setting: Setting) -> str:
    assert finished(begin(command_for, EPOCHS, *words, setting=setting)) == 2, said(setting.folder)
    return _one_line(setting.folder, words)


def _refused_fetch(folder: Path, url: str, setting: Setting) -> str:
    assert finished(begin(fetch_from, url, setting=setting)) == 2, said(folder)
    return _one_line(folder, ("data", "fetch"))


def _one_line(folder: Path, words: tuple[str, ...]) -> str:
    lines = [line for line in said(folder) if line.strip() and not line.startswith("note: ")]
    assert len(lines) == 1, (words, lines)
    assert lines[0].startswith("residua: "), (words, lines)
    return lines[0]
