"""Node and edge tables as Parquet data sets or dask DataFrames, cut into the blocks of a graph."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Future

from residua.backends.dask import shuffle
from residua.backends.dask.blocks import even_bounds
from residua.backends.dask.cluster import Cluster
from residua.backends.dask.vectors import Vector


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence what pandas warns Dask of."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        warnings.simplefilter("ignore", FutureWarning)
        yield


def read_frame(data: Any, name: str, columns: Iterable[str]) -> Any:
    """Return a dask DataFrame that has ``columns``."""
    if isinstance(data, str | os.PathLike):
        if "://" not in str(data) and not Path(data).exists():
            raise FileNotFoundError(f"{name}={str(data)!r} not found; give a Parquet file, or a folder of them.")
        with _quiet():
            data = dd.read_parquet(str(data))
    if not (hasattr(data, "to_delayed") and hasattr(data, "columns")):
        raise TypeError(f"{name} is {type(data).__name__}; give the path of a Parquet data set, or a dask DataFrame.")
    check_columns(data, name, columns)
    return data


def check_columns(frame: Any, name: str, columns: Iterable[str]) -> None:
    """Refuse a column that a table does not have."""
    for column in columns:
        if column not in frame.columns:
            raise ValueError(f"{name} has no column {column!r}; its columns are {', '.join(map(str, frame.columns))}.")


def frame_parts(cluster: Cluster, frame: Any, columns: Iterable[str]) -> list[Future]:
    """Return the partitions of some columns, as futures of pandas DataFrames."""
    with cluster.guarded(), _quiet():
        return cluster.client.compute(frame[list(dict.fromkeys(columns))].to_delayed())


class NodeTable:
    """A node table, its rows cut into blocks of nearly equal length; columns are read when they are asked for."""

    def __init__(self, cluster: Cluster, frame: Any, id: str):
        self.cluster, self.frame, self.id = cluster, frame, id
        lengths = cluster.fetch([cluster.run(len, part) for part in frame_parts(cluster, frame, [id])])
        self.starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        n = int(self.starts[-1])
        if n < cluster.blocks:
            raise ValueError(f"nodes has {n} rows, fewer than the {cluster.blocks} blocks; use a Graph on one machine.")
        self.bounds = even_bounds(n, cluster.blocks)

    def number_columns(self) -> list[str]:
        """Return the columns of numbers besides the id."""
        kinds = self.frame.dtypes
        return [str(c) for c in kinds.index if c != self.id and pd.api.types.is_numeric_dtype(kinds[c])]

    def read(self, names: Sequence[str]) -> Vector:
        """Return some columns as a DataFrame for each block."""
        check_columns(self.frame, "nodes", names)
        parts = frame_parts(self.cluster, self.frame, names)
        blocks = list(pairwise(self.bounds))
        touched = [np.flatnonzero((self.starts[:-1] < last) & (self.starts[1:] > first)) for first, last in blocks]
        frames = [[parts[k] for k in those] for those in touched]
        begins = [first - self.starts[those[0]] for (first, _), those in zip(blocks, touched, strict=True)]
        sizes = np.diff(self.bounds)
        return Vector(self.cluster, self.cluster.each(_cut, frames, begins, sizes), sizes)

    @cached_property
    def ids(self) -> Vector:
        name = self.id
        return self.read([name]).map(lambda frame: shuffle.as_ids(frame[name], f"nodes, column {name!r}"))

    def numbers(self, names: list[str]) -> Vector:
        """Return columns as floats (n, d)."""
        return self.read(names).map(_numbers, names=names)


def _cut(frames: list[pd.DataFrame], begin: int, length: int) -> pd.DataFrame:
    return pd.concat(frames, ignore_index=True).iloc[begin : begin + length]


def _numbers(frame: pd.DataFrame, names: list[str]) -> np.ndarray:
    for name in names:
        if not pd.api.types.is_numeric_dtype(frame[name].dtype):
            raise ValueError(f"nodes, column {name!r} holds {frame[name].dtype}, not numbers; encode or leave it out.")
    values = np.ascontiguousarray(frame[names].to_numpy(float, na_value=np.nan))
    infinite = np.isinf(values).any(axis=0)
    if infinite.any():
        raise ValueError(f"nodes, column {names[np.argmax(infinite)]!r} has an infinite value.")
    return values
