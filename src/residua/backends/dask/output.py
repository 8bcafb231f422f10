"""Results as a Parquet data set, there whole or not at all: workers write their parts beside it, then it is moved."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from residua.atomic import PathLike, check_folder_of, write_atomically
from residua.backends.dask.vectors import Vector


def check_folder(path: PathLike) -> Path:
    """Return a place where a folder can be made, or refuse it before the work is done."""
    target = Path(path).absolute()
    check_folder_of(target, f"output={str(path)!r}")
    if target.exists() and not (target.is_dir() and all(p.suffix == ".parquet" for p in target.iterdir())):
        raise ValueError(f"output={str(path)!r} is there and is no Parquet folder; name another.")
    return target


def write_parquet(columns: Mapping[str, Vector], path: PathLike) -> Path:
    """Write named columns (n,) as a folder of Parquet files, one for each block.

    Parameters
    ----------
    columns : mapping of str to Vector
        Columns by name.
    path : path
        A folder on a file system that this process and every worker share; an older result there is replaced.
    """
    target = check_folder(path)
    first = next(iter(columns.values()))
    folder, old = (target.with_name(f".residua-{secrets.token_hex(8)}.{kind}") for kind in ("tmp", "old"))
    folder.mkdir()
    try:
        files = [folder / f"part-{b:05d}.parquet" for b in range(len(first.parts))]
        parts = [vector.parts for vector in columns.values()]
        rows = first.cluster.fetch(first.cluster.each(_write, files, *parts, names=list(columns)))
        missing = [file for file in files if not file.exists()]
        if missing or sum(rows) != len(first):
            raise OSError(
                f"{len(missing)} of {len(files)} parts written by workers cannot be seen here; give output= on a file "
                "system that this process and every worker share."
            )
        for stray in set(folder.iterdir()) - set(files):  # what a killed worker left half written
            stray.unlink()
        if target.exists():
            os.rename(target, old)
        try:
            os.rename(folder, target)
        except OSError:
            if old.exists():
                os.rename(old, target)
            raise
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return target


def _write(file: Path, *parts: Any, names: list[str]) -> int:
    """Write one part, under another name until it is whole: a task may be run again after its worker was killed."""
    frame = pd.DataFrame({name: np.asarray(part) for name, part in zip(names, parts, strict=True)})
    file.parent.mkdir(exist_ok=True)  # a worker that does not share the folder writes into one of its own
    write_atomically(file, lambda out: frame.to_parquet(out, index=False), "writing a part of the predictions")
    return len(frame)
