"""A graph on the workers of a cluster: S in row blocks, and the tables that it was read from.

S = D^-1/2 A D^-1/2,   rows in the order of the node table, cut into blocks of nearly equal length
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from distributed import Client, Future

from residua.arrays import as_floats
from residua.backends.dask.blocks import Block, even_bounds, make_block
from residua.backends.dask.cluster import Cluster
from residua.backends.dask.exchange import Gang
from residua.backends.dask.matrix import BlockGraph
from residua.backends.dask.tables import NodeTable, build_blocks, edge_rows, frame_parts, placed_edges, read_frame
from residua.backends.dask.vectors import Vector, from_numpy
from residua.graph import Graph
from residua.graph.alignment import align, refuse_other_index
from residua.validation import check_count, check_graph


class DistributedGraph:
    """An undirected graph of one edge type, its rows cut into blocks that live on the workers.

    Build it with ``from_parquet`` or, from a ``Graph`` of this process, ``from_graph``.

    Attributes
    ----------
    S : BlockMatrix
        The normalised adjacency; ``S.halo`` is what a product moves.
    n_nodes, n_edges : int
        Counts.
    ids : Vector
        Ids of the nodes.
    """

    def __init__(self, blocks: Sequence[Future], ids: Vector, table: NodeTable | None = None):
        self.cluster, self.blocks, self.ids, self.table, self.n_nodes = ids.cluster, list(blocks), ids, table, len(ids)
        halo, entries, loops = zip(*self.cluster.fetch(self.cluster.each(Block.counts, blocks)), strict=True)
        self.S = BlockMatrix(ids.sizes, np.array(halo))
        if not sum(entries):
            raise ValueError(f"graph has no edges ({self.n_nodes} nodes); give at least one edge of positive weight.")
        self.n_edges = (sum(entries) + sum(loops)) // 2

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
        client : distributed.Client
            Connected to a scheduler.
        edges : path or dask DataFrame
            A file or a folder of files that every worker can read.
        nodes : path or dask DataFrame
            The same, a row for each node; their order is the order of all results.
        source, target, weight : str
            Columns of ``edges``; weights are 1 where left out.
        id : str
            Column of ``nodes``.
        blocks : int or None
            Row blocks; by default one for each worker.
        self_loops : bool
            Keep edges from a node to itself, or drop them.
        skip_unknown : bool
            Leave out edges to nodes that are not in ``nodes``, instead of refusing them.
        """
        if blocks is not None:
            check_count(blocks, "blocks", 1)
        cluster = Cluster(client, blocks)
        table = NodeTable(cluster, read_frame(nodes, "nodes", [id]), id)
        names = {"source": source, "target": target} | ({} if weight is None else {"weight": weight})
        parts = frame_parts(cluster, read_frame(edges, "edges", names.values()), names.values())
        rows = [cluster.run(edge_rows, part, names) for part in parts]
        placed = placed_edges(rows, table.ids, skip_unknown)
        return cls(build_blocks(cluster, placed, table.bounds, self_loops), table.ids, table)

    @classmethod
    def from_graph(cls, client: Client, graph: Graph, *, blocks: int | None = None) -> DistributedGraph:
        """Deal out a graph of this process; all its edge types count alike."""
        cluster = Cluster(client, blocks)
        A = check_graph(graph).adjacency()
        bounds = even_bounds(graph.n_nodes, cluster.blocks)
        pieces = [A[first:last] for first, last in pairwise(bounds)]
        dealt = cluster.each(make_block, pieces, bounds[:-1], bounds=bounds)
        return cls(dealt, from_numpy(cluster, np.asarray(graph.nodes), np.diff(bounds)))

    def __repr__(self) -> str:
        return f"DistributedGraph({self.n_nodes} nodes, {self.n_edges} edges, {len(self.blocks)} blocks)"

    def gang(self, f: Callable[..., Any], *items: Vector, **shared: Any) -> tuple[Any, dict[str, Vector]]:
        """Run ``f(graph, ...)`` for all blocks at once, each on its own rows: the code of one machine.

        Parameters
        ----------
        f : callable
            Gets a ``BlockGraph``, the part of each of ``items`` that belongs to it, and ``shared``. Returns a small
            value, the same in every block, and arrays by name.
        items : Vector
            Columns over the nodes.
        shared : Any
            Goes to every block as it is.

        Returns
        -------
        value : Any
        columns : dict of str to Vector
        """

        def member(gang: Gang, block: Block, *parts: Any) -> Any:
            return f(BlockGraph(block, gang), *parts, **shared)

        value, columns = self.cluster.gang(member, self.blocks, *(item.parts for item in items))
        return value, {name: Vector(self.cluster, found, self.S.sizes) for name, found in columns.items()}

    def columns(self, names: Sequence[str]) -> Vector:
        """Return columns of the node table as numbers (n, d), NaN where a cell is empty."""
        if self.table is None:
            raise ValueError(f"columns {list(names)} cannot be read: this graph has no node table; give arrays.")
        return self.table.numbers(list(names))

    def vector(self, values: Any, name: str = "values") -> Vector:
        """Return a number for each node, given as a column of the node table, an array in their order, or a Vector.

        A pandas Series or DataFrame is matched by id, as on one machine.
        """
        if isinstance(values, str):
            return self.columns([values]).map(lambda column: column[:, 0])
        if isinstance(values, Vector):
            if not np.array_equal(values.sizes, self.S.sizes):
                raise ValueError(f"{name} has parts of {values.sizes.tolist()} rows, graph of {self.S.sizes.tolist()}.")
            return values
        refuse_other_index(values, name)
        if isinstance(values, pd.DataFrame | pd.Series):
            values = align(values, self.ids.to_numpy(), name, unknown=True, called="graph.ids.to_numpy()")
        array = as_floats(values, name)
        if array.shape[:1] != (self.n_nodes,):
            raise ValueError(f"{name} has shape {array.shape} but graph has {self.n_nodes} nodes; give a row for each.")
        return from_numpy(self.cluster, array, self.S.sizes)


@dataclass(frozen=True)
class BlockMatrix:
    """S of a distributed graph.

    Attributes
    ----------
    sizes : ndarray of shape (blocks,)
        Rows of each block.
    halo : ndarray of shape (blocks, blocks)
        Rows that a block (first index) needs of another.
    """

    sizes: np.ndarray
    halo: np.ndarray

    @property
    def moved_rows(self) -> int:
        """Rows of a vector that travel in one product."""
        return int(self.halo.sum())
