"""Node and edge tables as Parquet data sets or dask DataFrames, cut into the blocks of a graph."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Future

from residua.backends.dask import shuffle
from residua.backends.dask.cluster import Cluster
from residua.backends.dask.vectors import Vector


@contextmanager
def quiet_dask() -> Iterator[None]:
    """Silence what pandas warns Dask of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        yield


def read_frame(data: Any, name: str, columns: Sequence[str]) -> Any:
    """Return a dask DataFrame that has ``columns``."""
    if isinstance(data, str | os.PathLike):
        if "://" not in str(data) and not Path(data).exists():
            raise FileNotFoundError(f"{name}={str(data)!r} not found; give a Parquet file, or a folder of them.")
        with quiet_dask():
            frame = dd.read_parquet(str(data))
    elif hasattr(data, "to_delayed") and hasattr(data, "columns"):
        frame = data
    else:
        raise TypeError(f"{name} is {type(data).__name__}; give the path of a Parquet data set, or a dask DataFrame.")
    missing = [column for column in columns if column not in frame.columns]
    if missing:
        raise ValueError(f"{name} has no column {missing[0]!r}; its columns are {', '.join(map(str, frame.columns))}.")
    return frame


def frame_parts(cluster: Cluster, frame: Any, columns: Sequence[str]) -> list[Future]:
    """Return the partitions of some columns, as futures of pandas DataFrames."""
    with quiet_dask():
        return cluster.client.compute(frame[list(columns)].to_delayed())


def edge_parts(cluster: Cluster, frame: Any, names: shuffle.EdgeNames) -> list[Future]:
    """Return the rows of an edge table, part by part."""
    columns = list(dict.fromkeys(name for name in names if name is not None))
    return [cluster.run(shuffle.edge_rows, part, names) for part in frame_parts(cluster, frame, columns)]


class NodeTable:
    """A node table, its rows cut into blocks of nearly equal length; columns are read when they are asked for."""

    def __init__(self, cluster: Cluster, frame: Any, id: str):
        self.cluster, self.frame, self.id = cluster, frame, id
        lengths = cluster.fetch([cluster.run(len, part) for part in frame_parts(cluster, frame, [id])])
        self.starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        n = int(self.starts[-1])
        if n < cluster.blocks:
            raise ValueError(f"nodes has {n} rows, fewer than the {cluster.blocks} blocks; use a Graph on one machine.")
        self.bounds = np.linspace(0, n, cluster.blocks + 1).astype(np.int64)

    @property
    def columns(self) -> list[str]:
        return [str(name) for name in self.frame.columns]

    def number_columns(self) -> list[str]:
        """Return the columns of numbers besides the id."""
        kinds = self.frame.dtypes
        return [c for c in self.columns if c != self.id and pd.api.types.is_numeric_dtype(kinds[c])]

    def read(self, names: Sequence[str]) -> Vector:
        """Return some columns as a DataFrame for each block."""
        missing = [name for name in names if name not in self.columns]
        if missing:
            raise ValueError(f"nodes has no column {missing[0]!r}; its columns are {', '.join(self.columns)}.")
        parts = frame_parts(self.cluster, self.frame, names)
        out = []
        for b, (first, last) in enumerate(zip(self.bounds, self.bounds[1:], strict=False)):
            touched = np.flatnonzero((self.starts[:-1] < last) & (self.starts[1:] > first))
            begin = int(first - self.starts[touched[0]])
            out.append(self.cluster.run(_cut, [parts[k] for k in touched], begin, int(last - first), block=b))
        return Vector(self.cluster, out, np.diff(self.bounds))

    @cached_property
    def ids(self) -> Vector:
        frames = self.read([self.id])
        return frames.map(_ids, [self.id] * len(frames.parts))

    def numbers(self, names: list[str]) -> Vector:
        """Return columns as floats (n, d)."""
        frames = self.read(names)
        return frames.map(_numbers, [names] * len(frames.parts))


def _cut(frames: list[pd.DataFrame], begin: int, length: int) -> pd.DataFrame:
    return pd.concat(frames, ignore_index=True).iloc[begin : begin + length]


def _ids(frame: pd.DataFrame, name: str) -> np.ndarray:
    return shuffle.as_ids(frame[name], f"nodes, column {name!r}")


def _numbers(frame: pd.DataFrame, names: list[str]) -> np.ndarray:
    for name in names:
        if not pd.api.types.is_numeric_dtype(frame[name].dtype):
            raise ValueError(f"nodes, column {name!r} holds {frame[name].dtype}, not numbers; encode or leave it out.")
    values = np.column_stack([frame[name].to_numpy(float, na_value=np.nan) for name in names])
    if np.isinf(values).any():
        raise ValueError(f"nodes, column {names[int(np.argwhere(np.isinf(values))[0][1])]!r} has an infinite value.")
    return np.ascontiguousarray(values)
