"""Graphs from every kind of input: one class method each, which reads it and hands over the adjacency matrices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import Any, Self

import numpy as np
import pandas as pd

from residua.graph import adjacency, readers, spatial_weights
from residua.graph.adjacency import CSR, Edges


class Constructors(ABC):
    """Base of ``Graph``: its class methods ``from_*``."""

    @classmethod
    def from_edges(
        cls,
        source: Any,
        target: Any,
        weight: Any = None,
        type: Any = None,
        nodes: Any = None,
        *,
        length: Any = None,
        self_loops: bool = True,
    ) -> Self:
        """Build from one row per edge.

        Parameters
        ----------
        source, target : array_like of shape (edges,)
            Ids of both ends. Series that are indexed in different orders are refused, those of weight and type too.
        weight : array_like of shape (edges,), optional
            Numbers; 1 where left out.
        type : array_like of shape (edges,), optional
            Edge types; ``"edge"`` where left out.
        nodes : array_like of shape (n,), optional
            Ids of all nodes in the order wanted, isolated ones too; else those in source and target.
        length : array_like of shape (edges,), optional
            Distances between both ends, in place of weights: the weight is 1 / length, on the scale on which the mean
            over the rows is 1.
        self_loops : bool, default True
            Keep edges from a node to itself, or drop them.

        Returns
        -------
        Graph

        Examples
        --------
        >>> from residua import Graph
        >>> graph = Graph.from_edges([3, 1], [1, 7], weight=[0.5, 2.0], type=["road", "rail"])
        >>> graph.nodes
        array([1, 3, 7])
        >>> graph.edge_types
        ('road', 'rail')
        """
        return cls._from_edges(readers.read_edges(source, target, weight, type, nodes, length), self_loops)

    @classmethod
    def from_pandas(
        cls,
        edges: pd.DataFrame,
        source: Hashable = "source",
        target: Hashable = "target",
        weight: Hashable | None = None,
        type: Hashable | None = None,
        nodes: Any = None,
        *,
        length: Hashable | None = None,
        self_loops: bool = True,
    ) -> Self:
        """Build from a table with one row per edge.

        Parameters
        ----------
        edges : DataFrame
            The table.
        source, target, weight, type, length : hashable
            Names of its columns; of weight, type and length None, where there is none. Lengths as in ``from_edges``.
        nodes : array_like of shape (n,), optional
            As in ``from_edges``.
        self_loops : bool, default True
            As in ``from_edges``.

        Returns
        -------
        Graph

        Examples
        --------
        >>> import pandas as pd
        >>> from residua import Graph
        >>> edges = pd.DataFrame({"a": [0, 1], "b": [1, 2], "km": [3.0, 4.0]})
        >>> Graph.from_pandas(edges, "a", "b", weight="km").degree
        array([3., 7., 4.])
        """
        columns = {"source": source, "target": target, "weight": weight, "type": type, "length": length}
        return cls._from_edges(readers.read_pandas(edges, nodes, **columns), self_loops)

    @classmethod
    def from_scipy(cls, A: Any, nodes: Any = None, *, symmetrize: str | None = None, self_loops: bool = True) -> Self:
        """Build from an adjacency matrix, or from one per edge type.

        Parameters
        ----------
        A : sparse matrix or array_like of shape (n, n), or dict of them
            Weights; a dict has one matrix per edge type. Rows and columns of a DataFrame are matched by the ids in its
            index and its columns.
        nodes : array_like of shape (n,), optional
            Ids of the rows; where left out, the index of a DataFrame, else 0 .. n-1.
        symmetrize : {"max", "mean", "sum"}, optional
            Of A and its transpose; where left out, a matrix that is not symmetric is refused.
        self_loops : bool, default True
            Keep the diagonal, or drop it.

        Returns
        -------
        Graph

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> from residua import Graph
        >>> Graph.from_scipy(sp.diags_array([1.0, 1.0], offsets=1), symmetrize="max")
        Graph(3 nodes, 2 edges)
        """
        symmetry = adjacency.choose_symmetry(symmetrize, "matrix", name="A")
        return cls._from_edges(readers.read_matrices(A, nodes, symmetry), self_loops)

    @classmethod
    def from_networkx(
        cls,
        G: Any,
        weight: str | None = "weight",
        type: str | None = None,
        *,
        symmetrize: str | None = None,
        self_loops: bool = True,
    ) -> Self:
        """Build from a networkx graph, nodes in the order of ``G.nodes``.

        Parameters
        ----------
        G : networkx.Graph, MultiGraph, DiGraph or MultiDiGraph
            Parallel edges add up.
        weight : str or None, default "weight"
            Edge attribute that holds the weight; 1 where an edge lacks it, as in networkx. None: all 1.
        type : str, optional
            Edge attribute that holds the edge type.
        symmetrize : {"max", "mean", "sum"}, optional
            Over both directions; where left out, a directed graph that is not symmetric is refused.
        self_loops : bool, default True
            Keep edges from a node to itself, or drop them.

        Returns
        -------
        Graph

        Examples
        --------
        >>> import networkx
        >>> from residua import Graph
        >>> Graph.from_networkx(networkx.path_graph(3))
        Graph(3 nodes, 2 edges)
        """
        return cls._from_edges(readers.read_networkx(G, weight, type, symmetrize), self_loops)

    @classmethod
    def from_pyg(cls, data: Any, *, symmetrize: str | None = None, self_loops: bool = True) -> Self:
        """Build from torch_geometric ``Data``, or ``HeteroData`` of one node type; nodes are 0 .. n-1.

        The edge types of ``HeteroData`` are named by their relation. ``edge_weight`` is used where there is
        one. A column of ``edge_index`` is an undirected edge; PyG's two directions of it are one edge. ``edge_attr``
        is kept for modules that take it, and is no weight; that of ``HeteroData`` is not used. ``residua.from_pyg``
        reads features, labels and masks too.

        Parameters
        ----------
        data : torch_geometric.data.Data or HeteroData
            The graph.
        symmetrize : {"max", "mean", "sum"}, optional
            Over both directions, where their weights disagree.
        self_loops : bool, default True
            Keep edges from a node to itself, or drop them.

        Returns
        -------
        Graph
        """
        graph = cls._from_edges(readers.read_pyg(data, symmetrize), self_loops)
        attributes = readers.read_pyg_attributes(data)
        return graph if attributes is None else graph.with_edge_attr(*attributes)

    @classmethod
    def from_libpysal(cls, w: Any, *, symmetrize: str | None = None, self_loops: bool = True) -> Self:
        """Build from ``libpysal.weights.W`` or ``libpysal.graph.Graph``; ids are kept, in their order.

        Parameters
        ----------
        w : libpysal.weights.W or libpysal.graph.Graph
            The weights.
        symmetrize : {"max", "mean", "sum"}, optional
            Of the weights and their transpose; where left out, weights that are not symmetric are refused, such as
            k nearest neighbours or row-standardised ones.
        self_loops : bool, default True
            Keep the weight of a place with itself, or drop it.

        Returns
        -------
        Graph
        """
        return cls._from_edges(readers.read_libpysal(w, symmetrize), self_loops)

    @classmethod
    def from_geopandas(
        cls,
        gdf: Any,
        how: str = "queen",
        *,
        k: int = 4,
        distance: float | None = None,
        islands: str = "warn",
        length: bool = False,
    ) -> Self:
        """Build from the places of a map, joined where they touch or are near; needs the extra ``geo``.

        Ids are the index of ``gdf``: of a file just read, set it by ``gdf.set_index("id")``. Every edge has weight
        1, unless ``length`` is asked for. Of ``how="queen"`` and ``"rook"``, polygons touch where they have vertices in
        common, as in libpysal. For ``"knn"`` and ``"distance"`` a place is where its centroid is; where coordinates are
        degrees (``gdf.crs.is_geographic``), distances are along the Earth's surface.

        Parameters
        ----------
        gdf : GeoDataFrame or GeoSeries
            A place in each row.
        how : {"queen", "rook", "knn", "distance"}
            Joined are polygons that share a point, or an edge; a place and its k nearest, whichever of the two is
            among the other's; or places not farther apart than ``distance``.
        k : int
            Neighbours of "knn".
        distance : float, optional
            In the units of ``gdf.crs``, metres where those are degrees; by default the least at which every place has
            a neighbour.
        islands : {"warn", "keep", "nearest"}
            Places without a neighbour: named in a warning, left so without one, or joined to their nearest place.
        length : bool, default False
            Whether near neighbours count for more: weights are 1 / distance of the centroids, as in ``from_edges``.

        Returns
        -------
        Graph

        Examples
        --------
        >>> import geopandas
        >>> from shapely.geometry import box
        >>> from residua import Graph
        >>> blocks = geopandas.GeoSeries([box(x, 0, x + 1, 1) for x in (0, 1, 5)], index=["a", "b", "c"])
        >>> Graph.from_geopandas(blocks, "queen", islands="nearest").adjacency().toarray()
        array([[0., 1., 0.],
               [1., 0., 1.],
               [0., 1., 0.]])
        """
        return cls._from_edges(spatial_weights.read_geopandas(gdf, how, k, distance, islands, length), True)

    @classmethod
    def _from_edges(cls, edges: Edges, self_loops: bool) -> Self:
        return cls._from_csr(edges.nodes, adjacency.adjacencies(edges, self_loops), edges.found)

    @abstractmethod
    def with_edge_attr(self, source: Any, target: Any, edge_attr: Any) -> Self:
        """Return the graph with attributes of its edges."""

    @classmethod
    @abstractmethod
    def _from_csr(cls, nodes: np.ndarray, matrices: Mapping[str, CSR], found: bool = False) -> Self:
        """Return the graph of these nodes with one adjacency matrix for each edge type."""
