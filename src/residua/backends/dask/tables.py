"""Node and edge tables cut into the blocks of a graph: ids to places, edges to the blocks of both their ends.

    id -> bucket by its hash -> place in the node table;     edge (i, j) -> block of i and block of j

Tables are Parquet data sets or dask DataFrames. Every task is pure and reads what it needs from them, so that a lost
block is made again. Edges are sorted by hand, since Dask's own merge and shuffle take four times as long: 5.7 s where
this takes 1.4 s, for a million edges on four workers.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Future

from residua.arrays import as_floats
from residua.backends.dask.blocks import Block, even_bounds, make_block
from residua.backends.dask.cluster import Cluster
from residua.backends.dask.vectors import Vector
from residua.graph.adjacency import EdgeList, Symmetry, check_agreement, check_weights, directed
from residua.graph.ids import as_ids as ids_of_one_kind
from residua.graph.ids import show


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


def as_ids(column: pd.Series, name: str) -> np.ndarray:
    """Return ids as int64 where all are whole numbers, else as text; what is neither is refused, part by part."""
    if column.isna().any():
        raise ValueError(f"{name} has an empty cell; fill in the id, or drop the row.")
    ids = ids_of_one_kind(column, name)
    if pd.api.types.is_float_dtype(ids.dtype) and (ids == np.floor(ids)).all():
        ids = ids.astype(np.int64)
    if ids.dtype == np.int64 or pd.api.types.is_integer_dtype(column.dtype):
        if ids.dtype != np.int64 and len(ids):
            raise ValueError(f"{name} has {ids.max()}, more than 64 bits hold with a sign; write ids as text.")
        return ids.to_numpy(np.int64)
    if not pd.api.types.is_string_dtype(ids):
        raise ValueError(f"{name} has {show(ids.iloc[0])} of dtype {column.dtype}; ids are whole numbers or text.")
    return ids.astype(object).to_numpy()


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
        return self.read([name]).map(lambda frame: as_ids(frame[name], f"nodes, column {name!r}"))

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


# Edges


def edge_rows(frame: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """Return edges as a table has them: source, target and, where it is named, weight."""
    rows = {end: as_ids(frame[names[end]], f"edges, column {names[end]!r}") for end in ("source", "target")}
    if "weight" in names:
        called = f"edges, column {names['weight']!r}: the weight"
        rows["weight"] = weight = as_floats(frame[names["weight"]], called, "give one real number per edge")
        check_weights(weight, called, lambda k: f"edge ({show(rows['source'][k])}, {show(rows['target'][k])})")
    return pd.DataFrame(rows, copy=False)


# Ids to places


def placed_edges(edges: Sequence[Future], ids: Vector, skip_unknown: bool) -> list[Future]:
    """Return edges whose ends are places, in as many parts as there are buckets or were parts."""
    cluster, starts = ids.cluster, np.cumsum(ids.sizes) - ids.sizes
    begins = set(ids.partials(_id_of_first_row, starts))
    kinds = {kind for kind, _ in begins}
    if len(kinds) > 1:
        raise TypeError("nodes have ids that are numbers in some parts and text in others; write all of them as text.")
    (kind, low), *others = begins
    if low is not None and not others:
        index = pd.RangeIndex(low, low + len(ids))
        return [cluster.run(_numbered_ends, part, index, skip_unknown) for part in edges]
    count = cluster.blocks
    places = ids.map(lambda ids, start: _buckets(pd.Series(np.arange(len(ids)) + start, ids), ids, count), starts)
    known = _dealt(cluster, places.parts, count)
    for end in ("source", "target"):
        split = [cluster.run(lambda rows, end: _buckets(rows, _ends(rows, end, kind), count), p, end) for p in edges]
        edges = cluster.each(_found_ends, known, _dealt(cluster, split, count), end=end, skip_unknown=skip_unknown)
    return list(edges)


def _id_of_first_row(ids: np.ndarray, start: int) -> tuple[str, int | None]:
    """Return the kind of ids, and the id that row 0 has where they count up by one; None where this part's do not."""
    counts_up = ids.dtype == np.int64 and (np.diff(ids) == 1).all()
    return ids.dtype.kind, int(ids[0] - start) if counts_up else None


def _ends(rows: pd.DataFrame, end: str, kind: str) -> np.ndarray:
    """Return the ids at one end, of the kind that those of nodes have."""
    ids = rows[end].to_numpy()
    if len(ids) and ids.dtype.kind != kind:
        words = {"i": "numbers", "O": "text"}
        raise TypeError(
            f"edges have {end} ids that are {words[ids.dtype.kind]}, such as {show(ids[0])}, but nodes have "
            f"{words[kind]}; write both as numbers, or both as text."
        )
    return ids


def _buckets(rows: Any, ids: np.ndarray, count: int) -> list[Any]:
    """Return the rows of each bucket."""
    bucket = pd.util.hash_array(ids, categorize=False) % np.uint64(count)
    return [rows[bucket == k] for k in range(count)]


def _dealt(cluster: Cluster, splits: Sequence[Future], count: int) -> list[list[Future]]:
    """Return item k of every split, for each of ``count`` places k."""
    return [[cluster.run(lambda split, k: split[k], split, k) for split in splits] for k in range(count)]


def _numbered_ends(rows: pd.DataFrame, index: pd.Index, skip_unknown: bool) -> pd.DataFrame:
    """Replace ids that are numbers in a range by their places."""
    for end in ("source", "target"):
        _ends(rows, end, "i")
        rows = _positions(rows, end, index, skip_unknown)
    return rows


def _found_ends(known: list[pd.Series], parts: list[pd.DataFrame], end: str, skip_unknown: bool) -> pd.DataFrame:
    """Replace the ids of one bucket at one end by places, which ``known`` has by id."""
    places = pd.concat(known)
    if places.index.has_duplicates:
        twice = show(places.index[places.index.duplicated()][0])
        raise ValueError(f"nodes list {twice} more than once; give every node one row.")
    rows = _positions(pd.concat(parts), end, places.index, skip_unknown)
    return rows.assign(**{end: places.to_numpy()[rows[end]]})


def _positions(rows: pd.DataFrame, end: str, index: pd.Index, skip_unknown: bool) -> pd.DataFrame:
    """Replace the ids at one end by their positions in ``index``."""
    found = index.get_indexer(pd.Index(rows[end]))
    missing = found < 0
    if missing.any() and not skip_unknown:
        node = show(rows[end].iloc[np.argmax(missing)])
        raise ValueError(f"edges name node {node} as {end}, not in nodes; add it there, or pass skip_unknown=True.")
    return rows.assign(**{end: found})[~missing]


# Edges to blocks


def build_blocks(cluster: Cluster, edges: Sequence[Future], bounds: np.ndarray, self_loops: bool) -> list[Future]:
    """Return blocks of A from edges whose ends are places."""
    split = [cluster.run(_by_block, part, bounds, self_loops) for part in edges]
    parts = _dealt(cluster, split, cluster.blocks)
    return cluster.each(_block, parts, bounds[:-1], np.diff(bounds), bounds=bounds)


def _by_block(rows: pd.DataFrame, bounds: np.ndarray, self_loops: bool) -> list[list[pd.DataFrame]]:
    """Return for each block the edges from it, and those to it turned round."""
    rows = rows if self_loops else rows[rows["source"] != rows["target"]]
    turned = rows.rename(columns={"source": "target", "target": "source"})
    return [[side[side["source"].between(a, b, "left")] for side in (rows, turned)] for a, b in pairwise(bounds)]


def _block(parts: list[list[pd.DataFrame]], first: int, size: int, bounds: np.ndarray) -> Block:
    """Return one block of A, by the rules of ``Graph``: an edge may be listed in both directions, with one weight."""
    sides = (pd.concat(side) for side in zip(*parts, strict=True))
    F, B = (directed(_edge_list(rows, first), (size, bounds[-1])) for rows in sides)
    check_agreement(F, B, lambda i, j: (f"row {i + first} of nodes", f"row {j} of nodes"), Symmetry("rows"))
    return make_block(F.maximum(B).tocsr(), first, bounds)


def _edge_list(rows: pd.DataFrame, first: int) -> EdgeList:
    """Return edges whose sources are counted from row ``first`` on."""
    weight = rows["weight"].to_numpy() if "weight" in rows else None
    return EdgeList(rows["source"].to_numpy() - first, rows["target"].to_numpy(), weight)
