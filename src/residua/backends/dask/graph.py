"""A graph on the workers of a cluster: S in row blocks, and the tables that it was read from.

S = D^-1/2 A D^-1/2,   rows in the order of the node table, cut into blocks of nearly equal length
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from distributed import Client

from residua.backends.dask import shuffle
from residua.backends.dask.blocks import Block, make_block
from residua.backends.dask.cluster import Cluster
from residua.backends.dask.components import Components
from residua.backends.dask.matrix import BlockMatrix, assemble
from residua.backends.dask.tables import NodeTable, edge_parts, read_frame
from residua.backends.dask.vectors import Vector, flat, from_numpy
from residua.graph import Graph
from residua.validation import check_count, check_graph


class DistributedGraph:
    """An undirected graph of one edge type, its rows cut into blocks that live on the workers.

    Build it with ``from_parquet`` or, from a ``Graph`` of this process, ``from_graph``.

    Attributes
    ----------
    S : the normalised adjacency as a ``BlockMatrix``; ``S.halo`` is what a product moves
    n_nodes, n_edges : counts
    """

    def __init__(self, cluster: Cluster, S: BlockMatrix, table: NodeTable | None = None, ids: np.ndarray | None = None):
        self.cluster, self.S, self.table, self._ids = cluster, S, table, ids
        entries, loops = S.totals(_entries)
        if not entries:
            raise ValueError(f"graph has no edges ({S.n} nodes); give at least one edge of positive weight.")
        self.n_edges = int(entries + loops) // 2

    @classmethod
    def from_parquet(
        cls,
        client: Client,
        edges: Any,
        nodes: Any,
        *,
        source: str = "source",
        target: str = "target",
        weight: str | None = None,
        id: str = "id",
        blocks: int | None = None,
        self_loops: bool = True,
        skip_unknown: bool = False,
    ) -> DistributedGraph:
        """Build from two Parquet data sets, or dask DataFrames.

        Parameters
        ----------
        client : a connected ``distributed.Client``
        edges : path that every worker can read (a file or a folder of files), or a dask DataFrame
        nodes : the same, a row for each node; their order is the order of all results
        source, target, weight : columns of ``edges``; weights are 1 where left out
        id : column of ``nodes``
        blocks : row blocks; by default one for each worker
        self_loops : keep edges from a node to itself, or drop them
        skip_unknown : leave out edges to nodes that are not in ``nodes``, instead of refusing them
        """
        if blocks is not None:
            check_count(blocks, "blocks", 1)
        cluster = Cluster(client, blocks)
        with cluster.guarded():
            table = NodeTable(cluster, read_frame(nodes, "nodes", (id,)), id)
            names = shuffle.EdgeNames(source, target, weight)
            parts = edge_parts(cluster, read_frame(edges, "edges", [n for n in names if n]), names)
            placed = shuffle.placed_edges(cluster, parts, table.ids.parts, table.bounds, skip_unknown)
            rough = shuffle.build_blocks(cluster, placed, table.bounds, self_loops)
            return cls(cluster, assemble(cluster, rough, table.bounds), table)

    @classmethod
    def from_graph(cls, client: Client, graph: Graph, *, blocks: int | None = None) -> DistributedGraph:
        """Deal out a graph of this process; all its edge types count alike."""
        cluster = Cluster(client, blocks)
        A = check_graph(graph).adjacency()
        bounds = even_bounds(graph.n_nodes, cluster.blocks)
        pieces = [(A[bounds[b] : bounds[b + 1]], int(bounds[b])) for b in range(cluster.blocks)]
        rough = [cluster.run(make_block, piece, first, bounds, block=b) for b, (piece, first) in enumerate(pieces)]
        return cls(cluster, assemble(cluster, rough, bounds), ids=np.asarray(graph.nodes))

    @property
    def n_nodes(self) -> int:
        return self.S.n

    def __repr__(self) -> str:
        return f"DistributedGraph({self.n_nodes} nodes, {self.n_edges} edges, {len(self.S.blocks)} blocks)"

    @cached_property
    def components(self) -> Components:
        return Components.of(self.S)

    @property
    def ids(self) -> Vector:
        """Ids of the nodes."""
        if self.table is not None:
            return self.table.ids
        assert self._ids is not None
        return from_numpy(self.cluster, self._ids, self.S.sizes)

    def columns(self, names: Sequence[str]) -> Vector:
        """Columns of the node table as numbers (n, d), NaN where a cell is empty."""
        if self.table is None:
            raise ValueError(f"columns {list(names)} cannot be read: this graph has no node table; give arrays.")
        return self.table.numbers(list(names))

    def vector(self, values: Any, name: str = "values") -> Vector:
        """One number for each node: a column of the node table, an array in the order of the nodes, or a Vector."""
        if isinstance(values, str):
            return self.columns([values]).map(flat)
        if isinstance(values, Vector):
            if not np.array_equal(values.sizes, self.S.sizes):
                raise ValueError(
                    f"{name} has parts of {values.sizes.tolist()} rows but graph has {self.S.sizes.tolist()}."
                )
            return values
        array = np.asarray(values, float)
        if array.shape[:1] != (self.n_nodes,):
            raise ValueError(f"{name} has shape {array.shape} but graph has {self.n_nodes} nodes; give a row for each.")
        return from_numpy(self.cluster, array, self.S.sizes)


def even_bounds(n: int, blocks: int) -> np.ndarray:
    """First row of each block, and n."""
    return np.linspace(0, n, blocks + 1).astype(np.int64)


def _entries(block: Block) -> np.ndarray:
    row = np.repeat(np.arange(len(block.S.scale)), np.diff(block.S.indptr))
    return np.array([len(row), int((row == block.S.indices).sum())])
